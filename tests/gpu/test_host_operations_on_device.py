# SPDX-License-Identifier: Apache-2.0
"""Operations and classic programs on a device, in new arrays and in given buffers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import DeviceError, DTypeError, HostError, MutationError, ShapeError
from nfuser.execution.device.describe.descriptor import describe
from tests.host.classic import CLASSIC, sets
from tests.host.operations import (
    IN_PLACE,
    OPERATIONS,
    X,
    Y,
    check_in_place,
    evaluator,
    into_a_buffer,
)
from tests.host.updates import check_updates

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.gpu
LIBRARIES = pytest.mark.parametrize("library", ["torch", "cupy"])
NAMES = pytest.mark.parametrize("name", OPERATIONS)


def _array(library: str, array: Any) -> Any:
    if library == "torch":
        torch = pytest.importorskip("torch")
        return torch.from_numpy(array).cuda()
    return pytest.importorskip("cupy").asarray(array)


def _host(array: Any) -> Any:
    return array.cpu().numpy() if hasattr(array, "cpu") else array.get()


def _filled(library: str, like: Any, step: int = 1) -> Any:
    """Return an array on the device whose elements lie ``step`` apart."""
    whole = np.ones([step * n for n in like.shape], like.dtype)
    return _array(library, whole)[(*[slice(None, None, step)] * like.ndim, ...)]


@LIBRARIES
@pytest.mark.parametrize("name", CLASSIC)
def test_the_classic_programs(name: str, library: str) -> None:
    program = sets(*CLASSIC[name])
    array = np.arange(33 * 5000, dtype=np.float32).reshape(33, 5000)
    for streams in (1, 3, 64):
        ready = nfuser.HostIrEvaluator(program, number_of_streams=streams)
        for part in (array, array[:1], array[:0]):
            (got,) = ready.run([_array(library, part)])
            np.testing.assert_array_equal(_host(got), part, strict=True)


@LIBRARIES
@NAMES
def test_an_operation_gives_what_numpy_gives(name: str, library: str) -> None:
    build, oracle = OPERATIONS[name]
    ready, want = evaluator(build), np.asarray(oracle(X, Y))
    given = [_array(library, X), _array(library, Y)]
    (made,) = ready.run(given)
    np.testing.assert_allclose(_host(made), want, rtol=1e-5, strict=True)
    for step in (1, 2):
        out = _filled(library, want, step)
        pointer = describe(out, "out").pointer
        (got,) = ready.run(given, [out])
        assert got is out
        assert describe(got, "out").pointer == pointer
        np.testing.assert_allclose(_host(out), want, rtol=1e-5, strict=True)


@LIBRARIES
@NAMES
def test_an_operation_writes_the_buffer_that_it_names(name: str, library: str) -> None:
    build, oracle = OPERATIONS[name]
    want = np.asarray(oracle(X, Y))
    ready = into_a_buffer(build, want)
    x, y = _array(library, X), _array(library, Y)
    for step in (1, 2):
        copied, out = _filled(library, X), _filled(library, want, step)
        assert ready.run([x, y, copied, out])[0] is out
        np.testing.assert_array_equal(_host(copied), X)
        np.testing.assert_allclose(_host(out), want, rtol=1e-5, strict=True)
    if want.ndim:
        large = _filled(library, np.ones([n + 1 for n in want.shape], want.dtype))
        with pytest.raises(HostError, match="shape"):
            ready.run([x, y, copied, large])
        assert (large == 1).all()


@LIBRARIES
@NAMES
def test_a_wrong_buffer_is_refused_before_anything_is_written(
    name: str, library: str
) -> None:
    build, oracle = OPERATIONS[name]

    def both(h: nfuser.HostIrContainer, x: Any, y: Any) -> Any:
        h.add_output(h.set(x))
        return build(h, x, y)

    ready, want = evaluator(both), np.asarray(oracle(X, Y))
    given, first = [_array(library, X), _array(library, Y)], _filled(library, X)
    more = np.ones((*want.shape, 1), want.dtype)
    wrong: list[tuple[type[Exception], Any]] = [
        (ShapeError, _filled(library, more)),
        (DTypeError, _filled(library, want.astype(np.int16))),
        (DeviceError, np.ones_like(want)),
    ]
    if want.ndim:
        wrong.append((MutationError, _stretched(library, want)))
    for error, out in wrong:
        with pytest.raises(error, match="output 1 of host"):
            ready.run(given, [first, out])
        assert (first == 1).all()


@LIBRARIES
@pytest.mark.parametrize("name", IN_PLACE)
def test_nothing_reads_what_it_has_overwritten(name: str, library: str) -> None:
    check_in_place(name, partial(_array, library), _host)


@LIBRARIES
@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_of_updates(seed: int, library: str) -> None:
    check_updates(seed, partial(_array, library), _host)


def _stretched(library: str, like: Any) -> Any:
    one = _array(library, np.ones([1] * like.ndim, like.dtype))
    if library == "torch":
        return one.expand(like.shape)
    stretch: Callable[..., Any] = pytest.importorskip("cupy").broadcast_to
    return stretch(one, like.shape)
