# SPDX-License-Identifier: Apache-2.0
"""N bodies that attract each other."""

from __future__ import annotations

from typing import Any


def numba() -> Any:
    from numba import njit, prange
    from numpy import empty, empty_like, sqrt

    @njit(parallel=True)
    def forces(pos, mass, G, softening, acc):
        n = pos.shape[0]
        for i in prange(n):
            x, y, z = 0.0, 0.0, 0.0
            for j in range(n):
                dx, dy = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                square = dx * dx + dy * dy + dz * dz + softening * softening
                if square > 0:
                    square = 1.0 / (square * sqrt(square))
                weight = square * mass[j, 0]
                x, y, z = x + dx * weight, y + dy * weight, z + dz * weight
            acc[i, 0], acc[i, 1], acc[i, 2] = G * x, G * y, G * z

    @njit(parallel=True)
    def energies(pos, vel, mass, G):
        kinetic, potential = 0.0, 0.0
        for i in prange(pos.shape[0]):
            square = vel[i, 0] ** 2 + vel[i, 1] ** 2 + vel[i, 2] ** 2
            kinetic += 0.5 * mass[i, 0] * square
            own = 0.0
            for j in range(i + 1, pos.shape[0]):
                dx, dy = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1]
                dz = pos[j, 2] - pos[i, 2]
                r = sqrt(dx * dx + dy * dy + dz * dz)
                if r > 0:
                    own += mass[j, 0] / r
            potential -= mass[i, 0] * own
        return kinetic, G * potential

    @njit
    def nbody(mass, pos, vel, Nt, dt, G, softening):
        for k in range(3):
            vel[:, k] -= (mass[:, 0] * vel[:, k]).mean() / mass.mean()
        acc = empty_like(pos)
        KE, PE = empty(Nt + 1), empty(Nt + 1)
        forces(pos, mass, G, softening, acc)
        KE[0], PE[0] = energies(pos, vel, mass, G)
        for i in range(Nt):
            vel += acc * dt / 2.0
            pos += vel * dt
            forces(pos, mass, G, softening, acc)
            vel += acc * dt / 2.0
            KE[i + 1], PE[i + 1] = energies(pos, vel, mass, G)
        return KE, PE

    return nbody


def _apart(pos):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    return x.T - x, y.T - y, z.T - z


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp
    from jax.lax import scan

    def get_acc(pos, mass, G, softening):
        dx, dy, dz = _apart(pos)
        square = dx**2 + dy**2 + dz**2 + softening**2
        inverse = jnp.where(square > 0, square**-1.5, square)
        parts = [G * (d * inverse) @ mass for d in (dx, dy, dz)]
        return jnp.hstack(parts)

    def get_energy(pos, vel, mass, G):
        dx, dy, dz = _apart(pos)
        r = jnp.sqrt(dx**2 + dy**2 + dz**2)
        inverse = jnp.where(r > 0, 1.0 / r, r)
        potential = G * jnp.sum(jnp.triu(-(mass * mass.T) * inverse, 1))
        return 0.5 * jnp.sum(mass * vel**2), potential

    def nbody(mass, pos, vel, Nt, dt, G, softening):
        vel = vel - jnp.mean(mass * vel, axis=0) / jnp.mean(mass)
        acc = get_acc(pos, mass, G, softening)
        first = get_energy(pos, vel, mass, G)

        def step(state, _):
            pos, vel, acc = state
            vel = vel + acc * dt / 2.0
            pos = pos + vel * dt
            acc = get_acc(pos, mass, G, softening)
            vel = vel + acc * dt / 2.0
            return (pos, vel, acc), get_energy(pos, vel, mass, G)

        (pos, vel, _), rest = scan(step, (pos, vel, acc), None, Nt)
        pairs = zip(first, rest, strict=True)
        KE, PE = (jnp.concatenate([a[None], b]) for a, b in pairs)
        return pos, vel, KE, PE

    return jit(nbody, static_argnums=3)


def torch() -> Any:
    import torch

    @torch.compile
    def kick(pos, vel, acc, mass, dt, G, softening):
        vel += acc * dt / 2.0
        pos += vel * dt
        dx, dy, dz = _apart(pos)
        square = dx**2 + dy**2 + dz**2
        inverse = (square + softening**2) ** -1.5
        acc = torch.hstack([G * (d * inverse) @ mass for d in (dx, dy, dz)])
        vel += acc * dt / 2.0
        r = torch.sqrt(square)
        inverse = torch.where(r > 0, 1.0 / r, r)
        potential = G * torch.triu(-(mass * mass.T) * inverse, 1).sum()
        return acc, 0.5 * (mass * vel**2).sum(), potential

    def nbody(mass, pos, vel, Nt, dt, G, softening):
        vel -= torch.mean(mass * vel, axis=0) / torch.mean(mass)
        acc, *first = kick(pos, vel, torch.zeros_like(pos), mass, 0.0, G, softening)
        found = [first]
        for _ in range(Nt):
            acc, *energies = kick(pos, vel, acc, mass, dt, G, softening)
            found.append(energies)
        return tuple(torch.stack(parts) for parts in zip(*found, strict=True))

    return nbody
