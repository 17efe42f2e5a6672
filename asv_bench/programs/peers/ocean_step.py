# SPDX-License-Identifier: Apache-2.0
"""A step of an ocean model: three passes, each over all that it can do of a cell.

Whatever another cell reads is stored; what only the cell itself reads is not.
"""

from __future__ import annotations

from typing import Any

from asv_bench.programs.peers.ocean_step_in_jax import jax as jax
from asv_bench.programs.plain import ocean_step as plain

torch = None


def numba() -> Any:
    from math import sqrt, tanh

    from numba import njit, prange
    from numpy import empty, empty_like, zeros, zeros_like

    EPS, SLOPE_MAX, SLOPE_WIDTH = plain.EPS, plain.SLOPE_MAX, plain.SLOPE_WIDTH
    K_ISO, K_STEEP, K_TKE = plain.K_ISO, plain.K_STEEP, plain.K_TKE
    C_K, C_EPS, BUOYANCY = plain.C_K, plain.C_EPS, -plain.GRAVITY / plain.RHO
    KAPPA_MIN, KAPPA_MAX = plain.KAPPA_MIN, plain.KAPPA_MAX
    density_slopes = njit(plain.density_slopes)

    @njit
    def triad(by_t, by_s, t_along, s_along, t_up, s_up):
        along = by_t * t_along + by_s * s_along
        slope = -along / (min(0.0, by_t * t_up + by_s * s_up) - EPS)
        taper = 0.5 * (1.0 + tanh((SLOPE_MAX - abs(slope)) / SLOPE_WIDTH))
        return taper * slope, max(K_STEEP, K_ISO * taper)

    @njit
    def superbee(speed, courant, behind, here, there, beyond):
        step = there - here
        safe = EPS if abs(step) < EPS else step
        ratio = (here - behind if speed > 0.0 else beyond - there) / safe
        taken = max(0.0, max(min(1.0, 2.0 * ratio), min(2.0, ratio)))
        against = 0.5 * abs(speed) * (1.0 - taken + abs(courant) * taken) * step
        return speed * 0.5 * (here + there) - against

    @njit(parallel=True)
    def local(
        temp, salt, tke, u, v, mask_u, mask_v, mask_w, dxt, dyt, dzt, dzw, zt, cost,
        by_t, by_s, dtdx, dsdx, dtdy, dsdy, dtdz, dsdz, kappa_m, kappa_h, source,
    ):  # fmt: skip
        nx, ny, nz = temp.shape
        depth = zt[0] + 0.5 * dzt[0]
        for i in prange(nx):
            for j in range(ny):
                inner = 2 <= i < nx - 2 and 2 <= j < ny - 2
                for k in range(nz):
                    rt, rs = density_slopes(temp[i, j, k], salt[i, j, k], zt[k])
                    by_t[i, j, k], by_s[i, j, k] = rt, rs
                if i < nx - 1:
                    dx = dxt[i] * cost[j]
                    for k in range(nz):
                        scale = mask_u[i, j, k] / dx
                        dtdx[i, j, k] = scale * (temp[i + 1, j, k] - temp[i, j, k])
                        dsdx[i, j, k] = scale * (salt[i + 1, j, k] - salt[i, j, k])
                if j < ny - 1:
                    for k in range(nz):
                        scale = mask_v[i, j, k] / dyt[j]
                        dtdy[i, j, k] = scale * (temp[i, j + 1, k] - temp[i, j, k])
                        dsdy[i, j, k] = scale * (salt[i, j + 1, k] - salt[i, j, k])
                for k in range(nz):
                    stability, shear, up_t, up_s = 0.0, 0.0, 0.0, 0.0
                    mask = mask_w[i, j, k]
                    if k < nz - 1:
                        scale = mask / dzw[k]
                        up_t = scale * (temp[i, j, k + 1] - temp[i, j, k])
                        up_s = scale * (salt[i, j, k + 1] - salt[i, j, k])
                        rho = by_t[i, j, k] * up_t + by_s[i, j, k] * up_s
                        stability = BUOYANCY * mask * rho
                        if i > 0 and j > 0:
                            a = (u[i, j, k + 1] - u[i, j, k]) / dzw[k]
                            b = (u[i - 1, j, k + 1] - u[i - 1, j, k]) / dzw[k]
                            c = (v[i, j, k + 1] - v[i, j, k]) / dzw[k]
                            d = (v[i, j - 1, k + 1] - v[i, j - 1, k]) / dzw[k]
                            shear = 0.5 * mask * (a * a + b * b + c * c + d * d)
                    dtdz[i, j, k], dsdz[i, j, k] = up_t, up_s
                    energy = tke[i, j, k]
                    root = sqrt(max(energy, 0.0))
                    length = sqrt(2.0) * root / sqrt(max(1e-12, stability))
                    length = min(length, min(zt[k], depth - zt[k]) + dzw[k])
                    km, kh = 0.0, 0.0
                    if inner and k < nz - 1:
                        richardson = max(stability, 0.0) / max(shear, 1e-12)
                        prandtl = max(1.0, min(10.0, 6.6 * richardson))
                        km = mask * max(KAPPA_MIN, min(KAPPA_MAX, C_K * length * root))
                        kh = km / prandtl
                    kappa_m[i, j, k], kappa_h[i, j, k] = km, kh
                    lost = C_EPS * energy * root / max(length, 1e-3)
                    source[i, j, k] = km * shear - kh * stability - lost

    @njit(parallel=True)
    def sides(
        tke, u, v, mask_u, mask_v, dxt, dyt, dzt, dzw, cost, dt,
        by_t, by_s, dtdx, dsdx, dtdy, dsdy, dtdz, dsdz,
        slopes_x, slopes_y, k_east, k_north, fluxes,
    ):  # fmt: skip
        nx, ny, nz = tke.shape
        for i in prange(1, nx - 2):
            for j in range(1, ny - 2):
                for k in range(nz if j > 1 else 0):
                    gx, hx = dtdx[i, j, k], dsdx[i, j, k]
                    t0, s0 = dtdz[i, j, k], dsdz[i, j, k]
                    t1, s1 = dtdz[i + 1, j, k], dsdz[i + 1, j, k]
                    t2 = s2 = t3 = s3 = 0.0
                    if k > 0:
                        t2, s2 = dtdz[i, j, k - 1], dsdz[i, j, k - 1]
                        t3, s3 = dtdz[i + 1, j, k - 1], dsdz[i + 1, j, k - 1]
                    rt, rs = by_t[i, j, k], by_s[i, j, k]
                    qt, qs = by_t[i + 1, j, k], by_s[i + 1, j, k]
                    a, ka = triad(rt, rs, gx, hx, t0, s0)
                    b, kb = triad(qt, qs, gx, hx, t1, s1)
                    c, kc = triad(rt, rs, gx, hx, t2, s2)
                    d, kd = triad(qt, qs, gx, hx, t3, s3)
                    mask = mask_u[i, j, k]
                    a, b, c, d = a * mask, b * mask, c * mask, d * mask
                    slopes_x[0, i, j, k], slopes_x[1, i, j, k] = a, b
                    slopes_x[2, i, j, k], slopes_x[3, i, j, k] = c, d
                    mixed = mask * dzw[k] * (ka + kb + kc + kd) / (4.0 * dzt[k])
                    k_east[i, j, k] = mixed
                    skew = 0.25 * K_ISO
                    across = a * t0 + b * t1 + c * t2 + d * t3
                    fluxes[0, i, j, k] = mixed * gx - skew * across
                    across = a * s0 + b * s1 + c * s2 + d * s3
                    fluxes[1, i, j, k] = mixed * hx - skew * across
                    dx = dxt[i] * cost[j]
                    here, there = tke[i, j, k], tke[i + 1, j, k]
                    speed = u[i, j, k]
                    carried = superbee(
                        speed, speed * dt / dx, tke[i - 1, j, k], here, there,
                        tke[i + 2, j, k],
                    )  # fmt: skip
                    spread = K_TKE * (there - here) / dx
                    fluxes[2, i, j, k] = mask * (spread - carried)
                for k in range(nz if i > 1 else 0):
                    gy, hy = dtdy[i, j, k], dsdy[i, j, k]
                    t0, s0 = dtdz[i, j, k], dsdz[i, j, k]
                    t1, s1 = dtdz[i, j + 1, k], dsdz[i, j + 1, k]
                    t2 = s2 = t3 = s3 = 0.0
                    if k > 0:
                        t2, s2 = dtdz[i, j, k - 1], dsdz[i, j, k - 1]
                        t3, s3 = dtdz[i, j + 1, k - 1], dsdz[i, j + 1, k - 1]
                    rt, rs = by_t[i, j, k], by_s[i, j, k]
                    qt, qs = by_t[i, j + 1, k], by_s[i, j + 1, k]
                    a, ka = triad(rt, rs, gy, hy, t0, s0)
                    b, kb = triad(qt, qs, gy, hy, t1, s1)
                    c, kc = triad(rt, rs, gy, hy, t2, s2)
                    d, kd = triad(qt, qs, gy, hy, t3, s3)
                    mask = mask_v[i, j, k]
                    a, b, c, d = a * mask, b * mask, c * mask, d * mask
                    slopes_y[0, i, j, k], slopes_y[1, i, j, k] = a, b
                    slopes_y[2, i, j, k], slopes_y[3, i, j, k] = c, d
                    mixed = mask * dzw[k] * (ka + kb + kc + kd) / (4.0 * dzt[k])
                    k_north[i, j, k] = mixed
                    skew = 0.25 * K_ISO
                    across = a * t0 + b * t1 + c * t2 + d * t3
                    fluxes[3, i, j, k] = cost[j] * (mixed * gy - skew * across)
                    across = a * s0 + b * s1 + c * s2 + d * s3
                    fluxes[4, i, j, k] = cost[j] * (mixed * hy - skew * across)
                    here, there = tke[i, j, k], tke[i, j + 1, k]
                    speed = v[i, j, k]
                    carried = superbee(
                        speed, speed * dt / dyt[j], tke[i, j - 1, k], here, there,
                        tke[i, j + 2, k],
                    )  # fmt: skip
                    spread = K_TKE * (there - here) / dyt[j]
                    fluxes[5, i, j, k] = cost[j] * mask * (spread - carried)

    @njit(parallel=True)
    def update(
        temp, salt, tke, mask_t, mask_w, heat, dxt, dyt, dzt, cost, dt,
        dtdx, dsdx, dtdy, dsdy, dtdz, dsdz, slopes_x, slopes_y, fluxes,
        k_top, kappa_h, source,
    ):  # fmt: skip
        nx, ny, nz = temp.shape
        f = fluxes
        for i in prange(2, nx - 2):
            for j in range(2, ny - 2):
                dx, dy = dxt[i] * cost[j], dyt[j] * cost[j]
                below_t = below_s = 0.0
                for k in range(nz):
                    top_t, top_s = heat[i, j], 0.0
                    if k < nz - 1:
                        sx = 0.25 * (
                            slopes_x[0, i, j, k]
                            + slopes_x[1, i - 1, j, k]
                            + slopes_x[2, i, j, k + 1]
                            + slopes_x[3, i - 1, j, k + 1]
                        )
                        sy = 0.25 * (
                            slopes_y[0, i, j, k]
                            + slopes_y[1, i, j - 1, k]
                            + slopes_y[2, i, j, k + 1]
                            + slopes_y[3, i, j - 1, k + 1]
                        )
                        mixed = K_ISO * mask_w[i, j, k] * (sx * sx + sy * sy)
                        k_top[i, j, k] = mixed
                        mixed += kappa_h[i, j, k]
                        gx = 0.5 * (dtdx[i, j, k] + dtdx[i - 1, j, k])
                        gy = 0.5 * (dtdy[i, j, k] + dtdy[i, j - 1, k])
                        top_t = mixed * dtdz[i, j, k] - K_ISO * (sx * gx + sy * gy)
                        gx = 0.5 * (dsdx[i, j, k] + dsdx[i - 1, j, k])
                        gy = 0.5 * (dsdy[i, j, k] + dsdy[i, j - 1, k])
                        top_s = mixed * dsdz[i, j, k] - K_ISO * (sx * gx + sy * gy)
                    change = (f[0, i, j, k] - f[0, i - 1, j, k]) / dx
                    change += (f[3, i, j, k] - f[3, i, j - 1, k]) / dy
                    change += (top_t - below_t) / dzt[k]
                    temp[i, j, k] += dt * mask_t[i, j, k] * change
                    change = (f[1, i, j, k] - f[1, i - 1, j, k]) / dx
                    change += (f[4, i, j, k] - f[4, i, j - 1, k]) / dy
                    change += (top_s - below_s) / dzt[k]
                    salt[i, j, k] += dt * mask_t[i, j, k] * change
                    change = (f[2, i, j, k] - f[2, i - 1, j, k]) / dx
                    change += (f[5, i, j, k] - f[5, i, j - 1, k]) / dy
                    change += source[i, j, k]
                    energy = tke[i, j, k] + dt * mask_w[i, j, k] * change
                    tke[i, j, k] = max(0.0, energy)
                    below_t, below_s = top_t, top_s

    @njit
    def cyclic(x):
        x[:2] = x[-4:-2]
        x[-2:] = x[2:4]

    @njit
    def ocean_step(
        temp, salt, tke, u, v, mask_t, mask_u, mask_v, mask_w,
        heat, dxt, dyt, dzt, dzw, zt, cost, dt,
    ):  # fmt: skip
        nx, ny, nz = temp.shape
        by_t, by_s, source = empty_like(temp), empty_like(temp), empty_like(temp)
        dtdx, dsdx = empty_like(temp), empty_like(temp)
        dtdy, dsdy = empty_like(temp), empty_like(temp)
        dtdz, dsdz = empty_like(temp), empty_like(temp)
        kappa_m, kappa_h = empty_like(temp), empty_like(temp)
        local(
            temp, salt, tke, u, v, mask_u, mask_v, mask_w, dxt, dyt, dzt, dzw, zt, cost,
            by_t, by_s, dtdx, dsdx, dtdy, dsdy, dtdz, dsdz, kappa_m, kappa_h, source,
        )  # fmt: skip
        slopes_x = empty((4, nx, ny, nz))
        slopes_y = empty((4, nx, ny, nz))
        fluxes = empty((6, nx, ny, nz))
        k_east, k_north = zeros_like(temp), zeros_like(temp)
        k_top = zeros((nx, ny, nz))
        sides(
            tke, u, v, mask_u, mask_v, dxt, dyt, dzt, dzw, cost, dt,
            by_t, by_s, dtdx, dsdx, dtdy, dsdy, dtdz, dsdz,
            slopes_x, slopes_y, k_east, k_north, fluxes,
        )  # fmt: skip
        update(
            temp, salt, tke, mask_t, mask_w, heat, dxt, dyt, dzt, cost, dt,
            dtdx, dsdx, dtdy, dsdy, dtdz, dsdz, slopes_x, slopes_y, fluxes,
            k_top, kappa_h, source,
        )  # fmt: skip
        cyclic(temp)
        cyclic(salt)
        return k_east, k_north, k_top, kappa_m, kappa_h

    return ocean_step
