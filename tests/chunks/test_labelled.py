# SPDX-License-Identifier: Apache-2.0
"""Fused functions of xarray's objects mean what xarray makes of their names."""

# xarray is optional: nothing of it has a static type here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError, NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("xarray")
pytest.importorskip("dask.array")
xr: Any = import_module("xarray")


def field() -> Any:
    """Return two years of months over four latitudes; one value is missing."""
    x = np.random.default_rng(0).random((24, 4))
    x[3, 1] = np.nan
    months = np.arange("2000-01", "2002-01", dtype="datetime64[M]")
    return xr.DataArray(
        x,
        dims=("time", "lat"),
        coords={
            "time": months.astype("datetime64[ns]"),
            "lat": [1.0, 2, 3, 4],
            "area": ("lat", np.arange(4.0)),
            "name": "here",
        },
        attrs={"units": "K"},
        name="t",
    )


def profile(first: float = 1.0) -> Any:
    lat = first + np.arange(4.0)
    return xr.DataArray(np.arange(1.0, 5), dims="lat", coords={"lat": lat})


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "anomaly": lambda x: x - x.mean("time"),
    "standardised": lambda x: (x - x.mean("time")) / x.std("time"),
    "sum that skips": lambda x: x.sum("time"),
    "mean that does not skip": lambda x: x.mean("time", skipna=False),
    "where": lambda x: x.where(x > 0.5),
    "filled": lambda x: x.fillna(0),
    "part by place": lambda x: x.isel(time=slice(1, -1)),
    "part by label": lambda x: x.sel(lat=[2.0, 3.0]),
    "year": lambda x: x.sel(time="2000"),
    "function of numpy": lambda x: np.tanh(x) * 2,
    "shifted": lambda x: x.shift(time=1),
    "differences": lambda x: x.diff("time"),
    "cumulative": lambda x: x.cumsum("time"),
    "rolling": lambda x: x.rolling(time=3, center=True).mean(),
    "climatology": lambda x: x.groupby("time.month").mean("time"),
    "anomaly of months": lambda x: (
        x.groupby("time.month") - x.groupby("time.month").mean("time")
    ),
    "years": lambda x: x.resample(time="YS").mean(),
    "coarsened": lambda x: x.coarsen(time=3).mean(),
    "weighted": lambda x: x.weighted(np.cos(np.deg2rad(x.lat))).mean("lat"),
    "coordinate": lambda x: x * x.area,
    "transposed": lambda x: x.transpose("lat", "time"),
    "joined": lambda x: xr.concat([x, x * 2], dim="lat"),
    "stacked": lambda x: x.stack(place=("time", "lat")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_mean_what_xarray_makes_of_them(name: str) -> None:
    plain, x = FUNCTIONS[name], field()
    fused = nfuser.fuse(plain)
    for _ in range(3):
        found, wanted = fused(x), plain(x)
        xr.testing.assert_allclose(found, wanted)
        assert found.dtype == wanted.dtype
        assert (found.attrs, found.name) == (wanted.attrs, wanted.name)
    assert fused.cache_info().traces == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_names_mean_the_same_in_chunks(name: str) -> None:
    plain, x = FUNCTIONS[name], field()
    found, wanted = nfuser.fuse(plain)(x.chunk(time=5)), plain(x)
    assert found.chunks is not None
    xr.testing.assert_allclose(found.compute(), wanted)
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize("join", ["inner", "outer", "left", "exact"])
def test_coordinates_that_differ_follow_the_settings_of_xarray(join: str) -> None:
    product = nfuser.fuse(lambda x, y: x * y)
    with xr.set_options(arithmetic_join=join):
        x, y = field(), profile(2.0)
        if join == "exact":
            with pytest.raises(ValueError, match=r"align|indexes"):
                product(x, y)
        else:
            xr.testing.assert_allclose(product(x, y), x * y)
    xr.testing.assert_allclose(product(profile(), field()), profile() * field())


def test_data_sets_go_in_and_out_with_what_is_no_number() -> None:
    x = field()
    data = xr.Dataset(
        {"t": x, "p": profile(), "station": ("lat", ["a", "b", "c", "d"])},
        attrs={"source": "made here"},
    )

    def changed(data: Any) -> Any:
        found = data.assign(warm=data.t.mean("time") + data.p)
        return found.assign_coords(high=data.p * 2)

    found, wanted = nfuser.fuse(changed)(data), changed(data)
    xr.testing.assert_allclose(found, wanted)
    assert found.attrs == wanted.attrs
    assert set(found.coords) == set(wanted.coords)


def test_labels_that_change_are_another_call() -> None:
    fused = nfuser.fuse(lambda x: x * x.area + x.attrs.get("offset", 0))
    x = field()
    first = fused(x)
    x.area.values[2] = 50
    found = fused(x)
    xr.testing.assert_allclose(found, x * x.area)
    assert float(first[0, 2]) != float(found[0, 2])
    x.attrs["offset"] = 7
    xr.testing.assert_allclose(fused(x), x * x.area + 7)


def test_arrays_in_chunks_stay_lazy_and_keep_their_labels() -> None:
    x = field()
    lazy = x.chunk(time=6)
    fused = nfuser.fuse(lambda x: (x - x.mean("time")) / x.std("time"))
    found = fused(lazy)
    assert found.chunks is not None
    assert found.name == "t"
    assert fused(lazy.rename(None)).name is None
    assert found.compute().coords.identical(x.coords)
    xr.testing.assert_allclose(found.compute(), fused(x))


def test_ufuncs_and_map_blocks_take_fused_functions_as_they_are() -> None:
    x = field()
    fused = nfuser.fuse(lambda x: np.tanh(x) + 1)
    wanted = np.tanh(x) + 1
    lazy = x.chunk(time=6)
    for found in (
        xr.apply_ufunc(fused, x, keep_attrs=True),
        xr.apply_ufunc(fused, lazy, dask="allowed", keep_attrs=True),
        xr.apply_ufunc(fused, lazy, dask="parallelized", keep_attrs=True),
        xr.map_blocks(fused, lazy),
    ):
        xr.testing.assert_allclose(found.compute(), wanted)


def test_what_cannot_be_meant_is_refused() -> None:
    def renamed(x: Any) -> Any:
        x.attrs["seen"] = True
        return x * 2

    with pytest.raises(MutationError, match=r"x\.copy\(\)"):
        nfuser.fuse(renamed)(field())
    with pytest.raises((NfuserError, ValueError)):
        nfuser.fuse(lambda x: x.interp(lat=[1.5]))(field())
