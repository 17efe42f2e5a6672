# SPDX-License-Identifier: Apache-2.0
"""A step of an ocean model: mixing along surfaces of density, and turbulence.

Arrays have axes x, y, z, with two cells of halo in x and y; x is cyclic. Gradients and
fluxes lie on the faces to the east, to the north and on top of a cell. Density is a
quotient of two polynomials (Jackett and others, 2006). Slopes are those of triads of
neighbours (Griffies, 1998), tapered where they are steep. Turbulence is one equation
for the kinetic energy of what is not resolved (Gaspar and others, 1990); it is carried
along with the superbee limiter.
"""

import numpy as np

EPS = 1e-20
SLOPE_MAX, SLOPE_WIDTH = 0.002, 0.001
K_ISO, K_STEEP = 1000.0, 500.0
GRAVITY, RHO = 9.81, 1024.0
C_K, C_EPS, KAPPA_MIN, KAPPA_MAX = 0.1, 0.7, 2e-5, 100.0
K_TKE = 2000.0


def initialize(nx, ny, nz):
    from numpy.random import default_rng

    rng = default_rng(42)
    shape = nx, ny, nz
    x, y, z = (np.linspace(0.0, 1.0, n) for n in shape)
    dzt = 10.0 + 150.0 * z[::-1] ** 2
    dzw = dzt + 2.0
    zt = np.cumsum(dzt[::-1])[::-1] - 0.5 * dzt
    dxt = 8e4 + 1e3 * np.cos(2 * np.pi * x)
    dyt = 9e4 + 1e3 * np.sin(2 * np.pi * y)
    cost = np.cos(0.3 + 0.8 * y)
    front = y[:, None] + 0.1 * np.sin(2 * np.pi * x)[:, None, None]
    temp = 25.0 * z**2 * (1.0 - front) + 2.0 + 0.1 * rng.random(shape)
    salt = 34.0 + z * (1.0 + front) + 0.02 * rng.random(shape)
    u, v = (0.4 * (rng.random(shape) - 0.5) for _ in range(2))
    tke = 1e-3 * rng.random(shape) * (0.2 + z)
    mask_t = (z >= 0.4 * rng.random((nx, ny, 1)) ** 4).astype(np.float64)
    mask_u, mask_v, mask_w = np.zeros((3, *shape))
    mask_u[:-1] = mask_t[:-1] * mask_t[1:]
    mask_v[:, :-1] = mask_t[:, :-1] * mask_t[:, 1:]
    mask_w[:, :, :-1] = mask_t[:, :, :-1] * mask_t[:, :, 1:]
    heat = 1e-5 * rng.standard_normal((nx, ny))
    fields = temp, salt, tke, u, v, mask_t, mask_u, mask_v, mask_w
    return (*fields, heat, dxt, dyt, dzt, dzw, zt, cost, 900.0)


def density_slopes(temp, salt, depth):
    """Return the derivatives of density by temperature and by salinity."""
    square = temp**2
    root = np.sqrt(np.maximum(salt, 0.0))
    top = (
        999.84085444849347
        + temp * (7.3471625860981584 + temp * (-0.053211231792841769 + temp * 3.649e-4))
        + salt * (2.588057102399139 - 0.0067168282786692355 * temp + 0.00192032 * salt)
        + depth * (0.011798263740430364 + 9.89202e-8 * square + 4.699664e-6 * salt)
        - depth**2 * (2.5862187075154352e-8 + 3.2921414e-12 * square)
    )
    below = (
        1.0
        + temp * (0.0072815210113327091 + temp * (-4.478727e-5 + temp * 3.385100e-7))
        + salt * (0.0017632126669040377 - temp * (8.80666e-6 + 1.88327e-10 * square))
        + salt * root * (5.7463776745432097e-6 + 1.4716275472242334e-9 * square)
        + depth * (6.7103246285651894e-6 - depth * temp * 2.4461698e-17 * square)
    )
    top_t = (
        7.3471625860981584
        + temp * (-0.106422463585683538 + 0.0010947731729 * temp)
        - 0.0067168282786692355 * salt
        + depth * temp * (1.978404e-7 - 6.5842828e-12 * depth)
    )
    top_s = (
        2.588057102399139
        - 0.0067168282786692355 * temp
        + 0.00384064 * salt
        + 4.699664e-6 * depth
    )
    below_t = (
        0.0072815210113327091
        + temp * (-8.957454e-5 + temp * 1.01553e-6)
        - salt * (8.80666e-6 + 5.64981e-10 * square)
        + salt * root * temp * 2.9432550944484668e-9
        - depth**2 * square * 7.3385094e-17
    )
    below_s = (
        0.0017632126669040377
        - temp * (8.80666e-6 + 1.88327e-10 * square)
        + root * (8.61956651181481e-6 + 2.2074413208363501e-9 * square)
    )
    rho = top / below
    return (top_t - rho * below_t) / below, (top_s - rho * below_s) / below


def tapered(slope):
    """Return how much of the mixing is left where a surface has this slope."""
    return 0.5 * (1.0 + np.tanh((SLOPE_MAX - np.abs(slope)) / SLOPE_WIDTH))


def slope_of(along, upward):
    """Return the slope of the surface along which density stays the same."""
    return -along / (np.minimum(0.0, upward) - EPS)


def limiter(ratio):
    """Return how much of a second-order flux is taken (superbee)."""
    return np.maximum(
        0.0, np.maximum(np.minimum(1.0, 2.0 * ratio), np.minimum(2.0, ratio))
    )


def superbee(speed, courant, behind, here, there, beyond):
    """Return the flux of a tracer through a face between ``here`` and ``there``."""
    step = there - here
    safe = np.where(np.abs(step) < EPS, EPS, step)
    ratio = np.where(speed > 0.0, here - behind, beyond - there) / safe
    taken = limiter(ratio)
    upwind = 0.5 * (here + there)
    against = 0.5 * np.abs(speed) * (1.0 - taken + np.abs(courant) * taken) * step
    return speed * upwind - against


def converging(flux_east, flux_north, dx, dy, cost):
    """Return what comes into the inner cells through their sides."""
    along = (flux_east[2:-2, 2:-2] - flux_east[1:-3, 2:-2]) / dx[2:-2, 2:-2]
    across = flux_north[2:-2, 2:-2] - flux_north[2:-2, 1:-3]
    return along + across / (dy[2:-2] * cost[2:-2, np.newaxis])


def cyclic(x):
    """Fill the halo in x from the other end."""
    x[:2] = x[-4:-2]
    x[-2:] = x[2:4]


def ocean_step(
    temp, salt, tke, u, v, mask_t, mask_u, mask_v, mask_w,
    heat, dxt, dyt, dzt, dzw, zt, cost, dt,
):  # fmt: skip
    dx = dxt[:, np.newaxis, np.newaxis] * cost[:, np.newaxis]
    dy = dyt[:, np.newaxis]

    # Gradients on the faces to the east, to the north, on top and below
    dtdx, dsdx = np.zeros_like(temp), np.zeros_like(temp)
    dtdy, dsdy = np.zeros_like(temp), np.zeros_like(temp)
    dtdz, dsdz = np.zeros_like(temp), np.zeros_like(temp)
    dtdz_below, dsdz_below = np.zeros_like(temp), np.zeros_like(temp)
    dtdx[:-1] = mask_u[:-1] * (temp[1:] - temp[:-1]) / dx[:-1]
    dsdx[:-1] = mask_u[:-1] * (salt[1:] - salt[:-1]) / dx[:-1]
    dtdy[:, :-1] = mask_v[:, :-1] * (temp[:, 1:] - temp[:, :-1]) / dy[:-1]
    dsdy[:, :-1] = mask_v[:, :-1] * (salt[:, 1:] - salt[:, :-1]) / dy[:-1]
    dtdz[..., :-1] = mask_w[..., :-1] * (temp[..., 1:] - temp[..., :-1]) / dzw[:-1]
    dsdz[..., :-1] = mask_w[..., :-1] * (salt[..., 1:] - salt[..., :-1]) / dzw[:-1]
    dtdz_below[..., 1:] = dtdz[..., :-1]
    dsdz_below[..., 1:] = dsdz[..., :-1]

    by_t, by_s = density_slopes(temp, salt, zt)

    # Triads on the eastern faces: cells ``west`` and ``east`` of a face, and the
    # vertical gradient above or below them
    west, east = np.s_[1:-2, 2:-2], np.s_[2:-1, 2:-2]
    west_above, west_below = np.zeros_like(temp), np.zeros_like(temp)
    east_above, east_below = np.zeros_like(temp), np.zeros_like(temp)
    k_east = np.zeros_like(temp)
    along = by_t[west] * dtdx[west] + by_s[west] * dsdx[west]
    slope = slope_of(along, by_t[west] * dtdz[west] + by_s[west] * dsdz[west])
    taper = tapered(slope)
    west_above[west] = taper * slope * mask_u[west]
    total = dzw * np.maximum(K_STEEP, K_ISO * taper)
    slope = slope_of(
        along, by_t[west] * dtdz_below[west] + by_s[west] * dsdz_below[west]
    )
    taper = tapered(slope)
    west_below[west] = taper * slope * mask_u[west]
    total += dzw * np.maximum(K_STEEP, K_ISO * taper)
    along = by_t[east] * dtdx[west] + by_s[east] * dsdx[west]
    slope = slope_of(along, by_t[east] * dtdz[east] + by_s[east] * dsdz[east])
    taper = tapered(slope)
    east_above[west] = taper * slope * mask_u[west]
    total += dzw * np.maximum(K_STEEP, K_ISO * taper)
    slope = slope_of(
        along, by_t[east] * dtdz_below[east] + by_s[east] * dsdz_below[east]
    )
    taper = tapered(slope)
    east_below[west] = taper * slope * mask_u[west]
    total += dzw * np.maximum(K_STEEP, K_ISO * taper)
    k_east[west] = mask_u[west] * total / (4.0 * dzt)

    # Triads on the northern faces
    south, north = np.s_[2:-2, 1:-2], np.s_[2:-2, 2:-1]
    south_above, south_below = np.zeros_like(temp), np.zeros_like(temp)
    north_above, north_below = np.zeros_like(temp), np.zeros_like(temp)
    k_north = np.zeros_like(temp)
    along = by_t[south] * dtdy[south] + by_s[south] * dsdy[south]
    slope = slope_of(along, by_t[south] * dtdz[south] + by_s[south] * dsdz[south])
    taper = tapered(slope)
    south_above[south] = taper * slope * mask_v[south]
    total = dzw * np.maximum(K_STEEP, K_ISO * taper)
    slope = slope_of(
        along, by_t[south] * dtdz_below[south] + by_s[south] * dsdz_below[south]
    )
    taper = tapered(slope)
    south_below[south] = taper * slope * mask_v[south]
    total += dzw * np.maximum(K_STEEP, K_ISO * taper)
    along = by_t[north] * dtdy[south] + by_s[north] * dsdy[south]
    slope = slope_of(along, by_t[north] * dtdz[north] + by_s[north] * dsdz[north])
    taper = tapered(slope)
    north_above[south] = taper * slope * mask_v[south]
    total += dzw * np.maximum(K_STEEP, K_ISO * taper)
    slope = slope_of(
        along, by_t[north] * dtdz_below[north] + by_s[north] * dsdz_below[north]
    )
    taper = tapered(slope)
    north_below[south] = taper * slope * mask_v[south]
    total += dzw * np.maximum(K_STEEP, K_ISO * taper)
    k_north[south] = mask_v[south] * total / (4.0 * dzt)

    # Slopes and mixing on the faces on top, from all triads around them
    inner, upper = np.s_[2:-2, 2:-2, :-1], np.s_[2:-2, 2:-2, 1:]
    k_top = np.zeros_like(temp)
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
    k_top[inner] = K_ISO * mask_w[inner] * (slope_x**2 + slope_y**2)

    # Turbulence: stability, shear, mixing length, mixing
    stability, shear = np.zeros_like(temp), np.zeros_like(temp)
    kappa_m, kappa_h = np.zeros_like(temp), np.zeros_like(temp)
    stability[..., :-1] = (
        -GRAVITY
        / RHO
        * mask_w[..., :-1]
        * (by_t[..., :-1] * dtdz[..., :-1] + by_s[..., :-1] * dsdz[..., :-1])
    )
    shear[1:, 1:, :-1] = (
        0.5
        * mask_w[1:, 1:, :-1]
        * (
            ((u[1:, 1:, 1:] - u[1:, 1:, :-1]) / dzw[:-1]) ** 2
            + ((u[:-1, 1:, 1:] - u[:-1, 1:, :-1]) / dzw[:-1]) ** 2
            + ((v[1:, 1:, 1:] - v[1:, 1:, :-1]) / dzw[:-1]) ** 2
            + ((v[1:, :-1, 1:] - v[1:, :-1, :-1]) / dzw[:-1]) ** 2
        )
    )
    root = np.sqrt(np.maximum(tke, 0.0))
    length = np.sqrt(2.0) * root / np.sqrt(np.maximum(1e-12, stability))
    length = np.minimum(length, np.minimum(zt, zt[0] + 0.5 * dzt[0] - zt) + dzw)
    richardson = np.maximum(stability, 0.0) / np.maximum(shear, 1e-12)
    prandtl = np.maximum(1.0, np.minimum(10.0, 6.6 * richardson))
    mixing = np.minimum(KAPPA_MAX, C_K * length * root)
    kappa_m[inner] = mask_w[inner] * np.maximum(KAPPA_MIN, mixing[inner])
    kappa_h[inner] = kappa_m[inner] / prandtl[inner]

    # Temperature
    flux_east, flux_north = np.zeros_like(temp), np.zeros_like(temp)
    flux_top, change_t = np.zeros_like(temp), np.zeros_like(temp)
    flux_east[west] = k_east[west] * dtdx[west] - 0.25 * K_ISO * (
        west_above[west] * dtdz[west]
        + east_above[west] * dtdz[east]
        + west_below[west] * dtdz_below[west]
        + east_below[west] * dtdz_below[east]
    )
    flux_north[south] = cost[1:-2, np.newaxis] * (
        k_north[south] * dtdy[south]
        - 0.25
        * K_ISO
        * (
            south_above[south] * dtdz[south]
            + north_above[south] * dtdz[north]
            + south_below[south] * dtdz_below[south]
            + north_below[south] * dtdz_below[north]
        )
    )
    flux_top[inner] = (k_top[inner] + kappa_h[inner]) * dtdz[inner] - K_ISO * (
        slope_x * 0.5 * (dtdx[inner] + dtdx[1:-3, 2:-2, :-1])
        + slope_y * 0.5 * (dtdy[inner] + dtdy[2:-2, 1:-3, :-1])
    )
    flux_top[..., -1] = heat
    change_t[2:-2, 2:-2] = converging(flux_east, flux_north, dx, dy, cost)
    change_t[..., 0] += flux_top[..., 0] / dzt[0]
    change_t[..., 1:] += (flux_top[..., 1:] - flux_top[..., :-1]) / dzt[1:]

    # Salt
    flux_east, flux_north = np.zeros_like(temp), np.zeros_like(temp)
    flux_top, change_s = np.zeros_like(temp), np.zeros_like(temp)
    flux_east[west] = k_east[west] * dsdx[west] - 0.25 * K_ISO * (
        west_above[west] * dsdz[west]
        + east_above[west] * dsdz[east]
        + west_below[west] * dsdz_below[west]
        + east_below[west] * dsdz_below[east]
    )
    flux_north[south] = cost[1:-2, np.newaxis] * (
        k_north[south] * dsdy[south]
        - 0.25
        * K_ISO
        * (
            south_above[south] * dsdz[south]
            + north_above[south] * dsdz[north]
            + south_below[south] * dsdz_below[south]
            + north_below[south] * dsdz_below[north]
        )
    )
    flux_top[inner] = (k_top[inner] + kappa_h[inner]) * dsdz[inner] - K_ISO * (
        slope_x * 0.5 * (dsdx[inner] + dsdx[1:-3, 2:-2, :-1])
        + slope_y * 0.5 * (dsdy[inner] + dsdy[2:-2, 1:-3, :-1])
    )
    change_s[2:-2, 2:-2] = converging(flux_east, flux_north, dx, dy, cost)
    change_s[..., 0] += flux_top[..., 0] / dzt[0]
    change_s[..., 1:] += (flux_top[..., 1:] - flux_top[..., :-1]) / dzt[1:]

    # Turbulence is carried along, mixed and dissipated
    flux_east, flux_north = np.zeros_like(temp), np.zeros_like(temp)
    flux_east[west] = mask_u[west] * (
        K_TKE * (tke[east] - tke[west]) / dx[1:-2, 2:-2]
        - superbee(
            u[west],
            u[west] * dt / dx[1:-2, 2:-2],
            tke[:-3, 2:-2],
            tke[west],
            tke[east],
            tke[3:, 2:-2],
        )
    )
    flux_north[south] = mask_v[south] * (
        K_TKE * (tke[north] - tke[south]) / dy[1:-2]
        - superbee(
            v[south],
            v[south] * dt / dy[1:-2],
            tke[2:-2, :-3],
            tke[south],
            tke[north],
            tke[2:-2, 3:],
        )
    )
    flux_north[south] *= cost[1:-2, np.newaxis]
    change_e = kappa_m * shear - kappa_h * stability
    change_e -= C_EPS * tke * root / np.maximum(length, 1e-3)
    change_e[2:-2, 2:-2] += converging(flux_east, flux_north, dx, dy, cost)

    inside = np.s_[2:-2, 2:-2]
    temp[inside] += dt * mask_t[inside] * change_t[inside]
    salt[inside] += dt * mask_t[inside] * change_s[inside]
    tke[inside] = np.maximum(0.0, tke[inside] + dt * mask_w[inside] * change_e[inside])
    cyclic(temp)
    cyclic(salt)
    return k_east, k_north, k_top, kappa_m, kappa_h
