# SPDX-License-Identifier: Apache-2.0
"""Arrays on disk go in and out chunk by chunk: Zarr, and files that are mapped."""

# Dask and Zarr have no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("dask.array")


@nfuser.fuse
def standardised(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


def rows() -> Any:
    return np.random.default_rng(0).standard_normal((500, 8)).astype("f4")


def wanted(x: Any) -> Any:
    return ((x - x.mean(0, dtype="f8")) / x.std(0, dtype="f8")).astype("f4")


def test_stores_of_zarr_are_read_and_written(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    da: Any = import_module("dask.array")
    x = rows()
    da.from_array(x, chunks=(120, 8)).to_zarr(str(tmp_path / "in.zarr"))
    made = standardised(da.from_zarr(str(tmp_path / "in.zarr")))
    made.to_zarr(str(tmp_path / "out.zarr"))
    found = da.from_zarr(str(tmp_path / "out.zarr"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.compute(), wanted(x), rtol=1e-5, atol=1e-6)


def test_files_that_are_mapped_are_read_and_written(tmp_path: Path) -> None:
    da: Any = import_module("dask.array")
    x = rows()
    form: dict[str, Any] = {"dtype": "f4", "shape": x.shape}
    source = np.memmap(tmp_path / "in", mode="w+", **form)
    source[...] = x
    source.flush()
    read = np.memmap(tmp_path / "in", mode="r", **form)  # nobody may write there
    out = np.memmap(tmp_path / "out", mode="w+", **form)
    da.store(standardised(da.from_array(read, chunks=(120, 8))), out)
    np.testing.assert_allclose(out, wanted(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(read, x)
