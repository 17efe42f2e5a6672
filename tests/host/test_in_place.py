# SPDX-License-Identifier: Apache-2.0
"""Statements whose result lies in what they read."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import nfuser
from tests.host.libraries import LIBRARIES, array_of
from tests.host.operations import IN_PLACE, SQUARE, X, check_in_place


@LIBRARIES
@pytest.mark.parametrize("name", IN_PLACE)
def test_nothing_reads_what_it_has_overwritten(name: str, library: str) -> None:
    check_in_place(name, partial(array_of, library), np.asarray)


@LIBRARIES
def test_inputs_may_overlap_each_other(library: str) -> None:
    hc = nfuser.HostIrContainer()
    x, out = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    hc.matmul(x, x, out=out)
    hc.add_output(out)
    whole = np.concatenate([SQUARE, SQUARE])
    given = array_of(library, whole)
    nfuser.HostIrEvaluator(hc.program()).run([given[:64], given[32:96]])
    np.testing.assert_allclose(whole[32:96], SQUARE @ SQUARE, rtol=1e-4, atol=1e-4)


def test_views_that_a_torch_function_gives_are_copied() -> None:
    torch = pytest.importorskip("torch")
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    work = hc.set(x)
    turned = hc.launch(torch.t, work, like=[((x.shape[1], x.shape[0]), np.float32)])
    hc.binary("multiply", work, 0.0, out=work)
    hc.add_output(turned)
    (made,) = nfuser.HostIrEvaluator(hc.program()).run([torch.from_numpy(X)])
    np.testing.assert_array_equal(made.numpy(), X.T)


def test_what_records_gradients_may_be_launched() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(6, 4)
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 6])
    form = (x.shape[0], 4), np.float32
    made = hc.launch(layer, x, like=[form])
    hc.add_output(hc.binary("multiply", made, 2.0))
    given = torch.from_numpy(X)
    (got,) = nfuser.HostIrEvaluator(hc.program()).run([given])
    torch.testing.assert_close(got, 2 * layer(given))


def test_a_tensor_that_a_view_writes_outlives_what_was_viewed() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([4, 6])
    work, result = hc.binary("add", x, 1.0), hc.binary("add", x, 2.0)
    hc.slice(work, (0, 0), (4, 6), out=result)
    hc.free(work)
    hc.add_output(result)
    (made,) = nfuser.HostIrEvaluator(hc.program()).run([X])
    np.testing.assert_array_equal(made, X + 1)


@LIBRARIES
def test_a_result_may_be_moved_within_the_input_that_it_comes_from(
    library: str,
) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    hc.add_output(hc.slice(x, (1,), (7,)))
    array = np.arange(8, dtype=np.float32)
    given = array_of(library, array)
    nfuser.HostIrEvaluator(hc.program()).run([given], [given[:6]])
    np.testing.assert_array_equal(array, [1, 2, 3, 4, 5, 6, 6, 7])
