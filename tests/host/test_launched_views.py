# SPDX-License-Identifier: Apache-2.0
"""Launched views of an operand are views where an alias was asked for."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.ir.statements as st
from tests.host.libraries import LIBRARIES, array_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser import HostIrContainer

X = np.arange(48, dtype=np.float32).reshape(4, 12)
VIEWS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "turned": (
        lambda f, x: f.ops.broadcast(f.ops.permute(x, [1, 0]), [True, False, False]),
        lambda x: x.T[None],
    ),
    "heads": (
        lambda f, x: f.ops.permute(f.ops.reshape(x, [4, 3, 4]), [1, 0, 2]),
        lambda x: x.reshape(4, 3, 4).transpose(1, 0, 2),
    ),
    "part": (
        lambda f, x: f.ops.slice(x, [1, 0], [4, 11], [1, 3]),
        lambda x: x[1:4, 0:11:3],
    ),
    "more axes": (
        lambda f, x: f.ops.broadcast(x, [False, True, False]),
        lambda x: x[:, None],
    ),
    "set": (lambda f, x: f.ops.set(x), lambda x: x),
}


def _launches(program: nfuser.HostProgram) -> list[st.Launch]:
    return [s for s in program.body if isinstance(s, st.Launch)]


def _defined(write: Callable[[nfuser.FusionDefinition, Any], None]) -> Any:
    with nfuser.FusionDefinition() as fd:
        write(fd, fd.define_tensor(shape=[-1, -1]))
    return fd


@LIBRARIES
@pytest.mark.parametrize("name", VIEWS)
def test_no_kernel_computes_a_view(name: str, library: str) -> None:
    build, oracle = VIEWS[name]
    fd = _defined(lambda fd, x: fd.add_output(build(fd, x)))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 12])
    hc.add_output(hc.launch(fd, x), alias_input=x)
    program = hc.program()
    assert not _launches(program)
    array = X.copy()
    (made,) = nfuser.HostIrEvaluator(program).run([array_of(library, array)])
    np.testing.assert_array_equal(np.asarray(made), oracle(X), strict=True)
    assert np.shares_memory(np.asarray(made), array)
    np.testing.assert_array_equal(array, X)


@LIBRARIES
def test_a_view_that_would_be_a_copy_is_refused(library: str) -> None:
    fd = _defined(lambda fd, x: fd.add_output(fd.ops.reshape(x, [48])))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([4, 12])
    flat = hc.launch(fd, x)
    hc.alias(flat, x)
    hc.binary("add", flat, 1.0, out=flat)
    hc.add_output(flat)
    ready = nfuser.HostIrEvaluator(hc.program())
    lies, turned = X.copy(), np.ascontiguousarray(X.T)
    ready.run([array_of(library, lies)])
    np.testing.assert_array_equal(lies, X + 1)
    with pytest.raises(nfuser.errors.HostError, match="cannot be viewed as"):
        ready.run([array_of(library, turned).T])
    np.testing.assert_array_equal(turned, X.T)


def test_what_is_computed_is_launched_without_the_view() -> None:
    def write(fd: nfuser.FusionDefinition, x: Any) -> None:
        flat = fd.ops.reshape(x, [48])
        fd.add_output(flat)
        fd.add_output(fd.ops.sum(fd.ops.exp(flat), 0))

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 12])
    flat, sums = hc.launch(_defined(write), x)
    hc.add_output(flat, alias_input=x)
    hc.add_output(sums)
    program = hc.program()
    (launch,) = _launches(program)
    assert len(launch.results) == 1
    evaluator = nfuser.HostIrEvaluator(program, backend="interpret")
    made, total = evaluator.run([X])
    assert np.shares_memory(made, X)
    np.testing.assert_array_equal(made, X.reshape(-1))
    np.testing.assert_allclose(total, np.exp(X).sum(), rtol=1e-5)


def test_what_is_no_view_is_written_in_place() -> None:
    def flipped(hc: HostIrContainer, x: Any) -> Any:
        fd = _defined(lambda fd, x: fd.add_output(fd.ops.flip(x, [1])))
        return hc.launch(fd, x)

    def of_another(hc: HostIrContainer, x: Any) -> Any:
        return hc.launch(
            _defined(lambda fd, x: fd.add_output(fd.ops.set(x))), hc.unary("sin", x)
        )

    def turned(hc: HostIrContainer, x: Any) -> Any:
        fd = _defined(lambda fd, x: fd.add_output(fd.ops.permute(x, [1, 0])))
        return hc.launch(fd, x)

    square = X[:, :4]
    cases = (
        (flipped, X, X[:, ::-1]),
        (of_another, X, np.sin(X)),
        (turned, square, square.T),
    )
    for build, x_array, want in cases:
        hc = nfuser.HostIrContainer()
        x = hc.define_tensor([-1, -1])
        hc.add_output(build(hc, x), alias_input=x)
        array = x_array.copy()
        evaluator = nfuser.HostIrEvaluator(hc.program(), backend="interpret")
        assert evaluator.run([array])[0] is array
        np.testing.assert_array_equal(array, want)


def test_without_an_alias_nothing_is_shared() -> None:
    fd = _defined(lambda fd, x: fd.add_output(fd.ops.permute(x, [1, 0])))
    hc = nfuser.HostIrContainer()
    hc.add_output(hc.launch(fd, hc.define_tensor([-1, 12])))
    (made,) = nfuser.HostIrEvaluator(hc.program(), backend="interpret").run([X])
    assert not np.shares_memory(made, X)
    np.testing.assert_array_equal(made, X.T)


def test_an_input_that_is_to_take_itself_is_left_alone() -> None:
    with nfuser.FusionDefinition(backend="interpret") as fd:
        x = fd.define_tensor(shape=[-1, 12])
        fd.add_output(fd.ops.set(fd.ops.set(x)), x)
    array = X.copy()
    assert fd.execute([array]) == []
    assert not fd.fusion.outputs
    np.testing.assert_array_equal(array, X)
