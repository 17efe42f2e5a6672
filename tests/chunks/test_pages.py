# SPDX-License-Identifier: Apache-2.0
"""Pages whose code needs pandas and xarray run, and say what is true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.contract.pages import run_python

DOCS = Path(__file__).parents[2] / "docs"


def test_columns_of_pandas_go_in_and_out() -> None:
    pytest.importorskip("pandas")
    names = run_python(DOCS / "howto" / "pandas.md")
    trips, plain = names["trips"], names["distance"].__wrapped__
    wanted = plain(*(trips[n].to_numpy() for n in ("lat1", "lon1", "lat2", "lon2")))
    np.testing.assert_allclose(trips["km"], wanted, rtol=1e-12)
    np.testing.assert_allclose(names["means"], trips.groupby("who")["km"].mean())
    column = trips["km"]
    assert np.shares_memory(column.to_numpy(), column.to_numpy())


def test_arrays_of_xarray_keep_their_labels() -> None:
    pytest.importorskip("xarray")
    names = run_python(DOCS / "xarray.md")
    t, lazy = names["t"], names["lazy"]
    assert lazy.dims == ("time",)
    wanted = names["weighted"].__wrapped__(t)
    np.testing.assert_allclose(lazy.compute(), wanted)


def test_arrays_of_dask_are_stored_and_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("dask.array")
    page = DOCS / "dask.md"
    names = run_python(DOCS / "dask.md")
    (told,) = re.findall(
        r"^```text\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    assert capsys.readouterr().out.strip() == told.strip()
    np.testing.assert_allclose(names["out"], np.sqrt(np.arange(1e6) ** 2 + 1))
    np.testing.assert_allclose(names["y"].mean(axis=0).compute(), 0, atol=1e-9)
