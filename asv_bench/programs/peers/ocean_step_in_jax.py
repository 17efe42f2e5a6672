# SPDX-License-Identifier: Apache-2.0
"""A step of an ocean model in JAX.

Helpers that assign nothing are those of the plain program, in which ``np`` is JAX's.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from asv_bench.programs.plain import ocean_step as plain


def jax() -> Any:
    from jax import jit
    from jax import numpy as jnp

    names = {**vars(plain), "np": jnp}
    helpers = (
        "density_slopes",
        "tapered",
        "slope_of",
        "limiter",
        "superbee",
        "converging",
    )
    for name in helpers:
        names[name] = FunctionType(getattr(plain, name).__code__, names, name)
    density_slopes, tapered, slope_of, _, superbee, converging = (
        names[name] for name in helpers
    )

    def cyclic(x):
        x = x.at[:2].set(x[-4:-2])
        return x.at[-2:].set(x[2:4])

    def step(
        temp,
        salt,
        tke,
        u,
        v,
        mask_t,
        mask_u,
        mask_v,
        mask_w,
        heat,
        dxt,
        dyt,
        dzt,
        dzw,
        zt,
        cost,
        dt,
    ):
        dx = dxt[:, jnp.newaxis, jnp.newaxis] * cost[:, jnp.newaxis]
        dy = dyt[:, jnp.newaxis]
        dtdx, dsdx = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        dtdy, dsdy = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        dtdz, dsdz = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        dtdz_below, dsdz_below = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        dtdx = dtdx.at[:-1].set(mask_u[:-1] * (temp[1:] - temp[:-1]) / dx[:-1])
        dsdx = dsdx.at[:-1].set(mask_u[:-1] * (salt[1:] - salt[:-1]) / dx[:-1])
        dtdy = dtdy.at[:, :-1].set(
            mask_v[:, :-1] * (temp[:, 1:] - temp[:, :-1]) / dy[:-1]
        )
        dsdy = dsdy.at[:, :-1].set(
            mask_v[:, :-1] * (salt[:, 1:] - salt[:, :-1]) / dy[:-1]
        )
        dtdz = dtdz.at[..., :-1].set(
            mask_w[..., :-1] * (temp[..., 1:] - temp[..., :-1]) / dzw[:-1]
        )
        dsdz = dsdz.at[..., :-1].set(
            mask_w[..., :-1] * (salt[..., 1:] - salt[..., :-1]) / dzw[:-1]
        )
        dtdz_below = dtdz_below.at[..., 1:].set(dtdz[..., :-1])
        dsdz_below = dsdz_below.at[..., 1:].set(dsdz[..., :-1])
        by_t, by_s = density_slopes(temp, salt, zt)
        west, east = (np.s_[1:-2, 2:-2], np.s_[2:-1, 2:-2])
        west_above, west_below = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        east_above, east_below = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        k_east = jnp.zeros_like(temp)
        along = by_t[west] * dtdx[west] + by_s[west] * dsdx[west]
        slope = slope_of(along, by_t[west] * dtdz[west] + by_s[west] * dsdz[west])
        taper = tapered(slope)
        west_above = west_above.at[west].set(taper * slope * mask_u[west])
        total = dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        slope = slope_of(
            along, by_t[west] * dtdz_below[west] + by_s[west] * dsdz_below[west]
        )
        taper = tapered(slope)
        west_below = west_below.at[west].set(taper * slope * mask_u[west])
        total += dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        along = by_t[east] * dtdx[west] + by_s[east] * dsdx[west]
        slope = slope_of(along, by_t[east] * dtdz[east] + by_s[east] * dsdz[east])
        taper = tapered(slope)
        east_above = east_above.at[west].set(taper * slope * mask_u[west])
        total += dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        slope = slope_of(
            along, by_t[east] * dtdz_below[east] + by_s[east] * dsdz_below[east]
        )
        taper = tapered(slope)
        east_below = east_below.at[west].set(taper * slope * mask_u[west])
        total += dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        k_east = k_east.at[west].set(mask_u[west] * total / (4.0 * dzt))
        south, north = (np.s_[2:-2, 1:-2], np.s_[2:-2, 2:-1])
        south_above, south_below = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        north_above, north_below = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        k_north = jnp.zeros_like(temp)
        along = by_t[south] * dtdy[south] + by_s[south] * dsdy[south]
        slope = slope_of(along, by_t[south] * dtdz[south] + by_s[south] * dsdz[south])
        taper = tapered(slope)
        south_above = south_above.at[south].set(taper * slope * mask_v[south])
        total = dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        slope = slope_of(
            along, by_t[south] * dtdz_below[south] + by_s[south] * dsdz_below[south]
        )
        taper = tapered(slope)
        south_below = south_below.at[south].set(taper * slope * mask_v[south])
        total += dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        along = by_t[north] * dtdy[south] + by_s[north] * dsdy[south]
        slope = slope_of(along, by_t[north] * dtdz[north] + by_s[north] * dsdz[north])
        taper = tapered(slope)
        north_above = north_above.at[south].set(taper * slope * mask_v[south])
        total += dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        slope = slope_of(
            along, by_t[north] * dtdz_below[north] + by_s[north] * dsdz_below[north]
        )
        taper = tapered(slope)
        north_below = north_below.at[south].set(taper * slope * mask_v[south])
        total += dzw * jnp.maximum(plain.K_STEEP, plain.K_ISO * taper)
        k_north = k_north.at[south].set(mask_v[south] * total / (4.0 * dzt))
        inner, upper = (np.s_[2:-2, 2:-2, :-1], np.s_[2:-2, 2:-2, 1:])
        k_top = jnp.zeros_like(temp)
        slope_x = 0.25 * (
            west_above[inner]
            + east_above[1:-3, 2:-2, :-1]
            + west_below[upper]
            + east_below[1:-3, 2:-2, 1:]
        )
        slope_y = 0.25 * (
            south_above[inner]
            + north_above[2:-2, 1:-3, :-1]
            + south_below[upper]
            + north_below[2:-2, 1:-3, 1:]
        )
        k_top = k_top.at[inner].set(
            plain.K_ISO * mask_w[inner] * (slope_x**2 + slope_y**2)
        )
        stability, shear = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        kappa_m, kappa_h = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        stability = stability.at[..., :-1].set(
            -plain.GRAVITY
            / plain.RHO
            * mask_w[..., :-1]
            * (by_t[..., :-1] * dtdz[..., :-1] + by_s[..., :-1] * dsdz[..., :-1])
        )
        shear = shear.at[1:, 1:, :-1].set(
            0.5
            * mask_w[1:, 1:, :-1]
            * (
                ((u[1:, 1:, 1:] - u[1:, 1:, :-1]) / dzw[:-1]) ** 2
                + ((u[:-1, 1:, 1:] - u[:-1, 1:, :-1]) / dzw[:-1]) ** 2
                + ((v[1:, 1:, 1:] - v[1:, 1:, :-1]) / dzw[:-1]) ** 2
                + ((v[1:, :-1, 1:] - v[1:, :-1, :-1]) / dzw[:-1]) ** 2
            )
        )
        root = jnp.sqrt(jnp.maximum(tke, 0.0))
        length = jnp.sqrt(2.0) * root / jnp.sqrt(jnp.maximum(1e-12, stability))
        length = jnp.minimum(length, jnp.minimum(zt, zt[0] + 0.5 * dzt[0] - zt) + dzw)
        richardson = jnp.maximum(stability, 0.0) / jnp.maximum(shear, 1e-12)
        prandtl = jnp.maximum(1.0, jnp.minimum(10.0, 6.6 * richardson))
        mixing = jnp.minimum(plain.KAPPA_MAX, plain.C_K * length * root)
        kappa_m = kappa_m.at[inner].set(
            mask_w[inner] * jnp.maximum(plain.KAPPA_MIN, mixing[inner])
        )
        kappa_h = kappa_h.at[inner].set(kappa_m[inner] / prandtl[inner])
        flux_east, flux_north = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        flux_top, change_t = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        flux_east = flux_east.at[west].set(
            k_east[west] * dtdx[west]
            - 0.25
            * plain.K_ISO
            * (
                west_above[west] * dtdz[west]
                + east_above[west] * dtdz[east]
                + west_below[west] * dtdz_below[west]
                + east_below[west] * dtdz_below[east]
            )
        )
        flux_north = flux_north.at[south].set(
            cost[1:-2, jnp.newaxis]
            * (
                k_north[south] * dtdy[south]
                - 0.25
                * plain.K_ISO
                * (
                    south_above[south] * dtdz[south]
                    + north_above[south] * dtdz[north]
                    + south_below[south] * dtdz_below[south]
                    + north_below[south] * dtdz_below[north]
                )
            )
        )
        flux_top = flux_top.at[inner].set(
            (k_top[inner] + kappa_h[inner]) * dtdz[inner]
            - plain.K_ISO
            * (
                slope_x * 0.5 * (dtdx[inner] + dtdx[1:-3, 2:-2, :-1])
                + slope_y * 0.5 * (dtdy[inner] + dtdy[2:-2, 1:-3, :-1])
            )
        )
        flux_top = flux_top.at[..., -1].set(heat)
        change_t = change_t.at[2:-2, 2:-2].set(
            converging(flux_east, flux_north, dx, dy, cost)
        )
        change_t = change_t.at[..., 0].add(flux_top[..., 0] / dzt[0])
        change_t = change_t.at[..., 1:].add(
            (flux_top[..., 1:] - flux_top[..., :-1]) / dzt[1:]
        )
        flux_east, flux_north = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        flux_top, change_s = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        flux_east = flux_east.at[west].set(
            k_east[west] * dsdx[west]
            - 0.25
            * plain.K_ISO
            * (
                west_above[west] * dsdz[west]
                + east_above[west] * dsdz[east]
                + west_below[west] * dsdz_below[west]
                + east_below[west] * dsdz_below[east]
            )
        )
        flux_north = flux_north.at[south].set(
            cost[1:-2, jnp.newaxis]
            * (
                k_north[south] * dsdy[south]
                - 0.25
                * plain.K_ISO
                * (
                    south_above[south] * dsdz[south]
                    + north_above[south] * dsdz[north]
                    + south_below[south] * dsdz_below[south]
                    + north_below[south] * dsdz_below[north]
                )
            )
        )
        flux_top = flux_top.at[inner].set(
            (k_top[inner] + kappa_h[inner]) * dsdz[inner]
            - plain.K_ISO
            * (
                slope_x * 0.5 * (dsdx[inner] + dsdx[1:-3, 2:-2, :-1])
                + slope_y * 0.5 * (dsdy[inner] + dsdy[2:-2, 1:-3, :-1])
            )
        )
        change_s = change_s.at[2:-2, 2:-2].set(
            converging(flux_east, flux_north, dx, dy, cost)
        )
        change_s = change_s.at[..., 0].add(flux_top[..., 0] / dzt[0])
        change_s = change_s.at[..., 1:].add(
            (flux_top[..., 1:] - flux_top[..., :-1]) / dzt[1:]
        )
        flux_east, flux_north = (jnp.zeros_like(temp), jnp.zeros_like(temp))
        flux_east = flux_east.at[west].set(
            mask_u[west]
            * (
                plain.K_TKE * (tke[east] - tke[west]) / dx[1:-2, 2:-2]
                - superbee(
                    u[west],
                    u[west] * dt / dx[1:-2, 2:-2],
                    tke[:-3, 2:-2],
                    tke[west],
                    tke[east],
                    tke[3:, 2:-2],
                )
            )
        )
        flux_north = flux_north.at[south].set(
            mask_v[south]
            * (
                plain.K_TKE * (tke[north] - tke[south]) / dy[1:-2]
                - superbee(
                    v[south],
                    v[south] * dt / dy[1:-2],
                    tke[2:-2, :-3],
                    tke[south],
                    tke[north],
                    tke[2:-2, 3:],
                )
            )
        )
        flux_north = flux_north.at[south].multiply(cost[1:-2, jnp.newaxis])
        change_e = kappa_m * shear - kappa_h * stability
        change_e -= plain.C_EPS * tke * root / jnp.maximum(length, 0.001)
        change_e = change_e.at[2:-2, 2:-2].add(
            converging(flux_east, flux_north, dx, dy, cost)
        )
        inside = np.s_[2:-2, 2:-2]
        temp = temp.at[inside].add(dt * mask_t[inside] * change_t[inside])
        salt = salt.at[inside].add(dt * mask_t[inside] * change_s[inside])
        tke = tke.at[inside].set(
            jnp.maximum(0.0, tke[inside] + dt * mask_w[inside] * change_e[inside])
        )
        temp = cyclic(temp)
        salt = cyclic(salt)
        return (temp, salt, tke, k_east, k_north, k_top, kappa_m, kappa_h)

    return jit(step)
