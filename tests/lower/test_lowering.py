# SPDX-License-Identifier: Apache-2.0
"""Passes over kernels: what each makes of one, and that none is needed for meaning."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.compiler.lower import lowering
from nfuser.compiler.lower.build import build
from nfuser.compiler.lower.cpu.memory.fetch_tiles import fetch_tiles
from nfuser.compiler.lower.kernel.kernel_ir import Buffer, For, Var
from nfuser.compiler.lower.kernel.text import text
from nfuser.compiler.lower.kernel.verify import verify_kernel
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.lower.lowering import BLOCK_PASSES, VECTOR_PASSES, lower, passes_of
from nfuser.compiler.schedule.facts.facts import TensorLayout
from nfuser.compiler.schedule.facts.target import CPU, H200
from nfuser.compiler.schedule.scheduled import Scheduled
from nfuser.random import of
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.base.debug.passes import IrPass
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel

X = np.linspace(-3, 3, 6400, dtype=np.float32).reshape(4, 1600)


def _tiled(x: Any) -> Any:
    return np.tile(x, (1, 2)) + 1


def _joined(x: Any) -> Any:
    return np.concatenate([-x[:, 3:], x[:, :3]], axis=1) * 2


def _sum(x: Any) -> Any:
    return x.sum(axis=1)


def _sine(x: Any) -> Any:
    return np.sin(x * 3)


def _none(x: Any) -> Any:
    return x[:, :0].sum(axis=1)


def _noise(x: Any) -> Any:
    return x + of(7).random(x.shape, np.float32)


def _crossed(x: Any) -> Any:
    return x + x.T


def _power(x: Any) -> Any:
    return np.exp(x) / 3


def _repeated(x: Any) -> Any:
    return np.repeat(np.exp(x), 3, axis=1) + 1


def _turned(x: Any) -> Any:
    return (x + 1j) * (2 - 1j)


def _logarithm(x: Any) -> Any:
    return np.log(x.astype(np.float64) ** 2 + 1)


def _likely(x: Any) -> Any:
    return np.log(np.exp(x).sum(axis=1)), (x * x).sum(axis=0)


CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "unwrap_modulo": (_tiled, X),
    "split_ranges": (_joined, X),
    "group_turns": (_repeated, X),
    "finish_rows": (_likely, X),
    "fetch_ahead": (_sum, X[:, :800]),
    "fetch_tiles": (_crossed, X.reshape(80, 80)),
    "interleave_loops": (_sum, X),
    "bound_angles": (_sine, X),
    "bound_powers": (_logarithm, X),
    "prune": (_none, X),
    "share_addresses": (_turned, X),
    "tile_draws": (_noise, X),
    "interleave_vectors": (_power, X),
    "draw_packets": (_noise, X),
}


def _built(function: Callable[..., Any], x: Any, *, has_vectors: bool) -> Kernel:
    call = Call(function, x, computes=False)
    target = CPU if has_vectors else H200
    facts = replace(call.facts, target=target)
    if function is _turned:  # the parts of complex numbers
        real, imaginary = call.fusion.outputs
        layouts = dict(facts.layouts)
        layouts[real] = layouts[imaginary] = TensorLayout((2 * x.shape[1], 2), 16)
        facts = replace(facts, layouts=layouts, between={imaginary: real})
    heuristic = call.scheduler.heuristic(call.fusion, facts)
    scheduled = call.scheduler.apply(call.fusion, heuristic, target)
    assert isinstance(scheduled, Scheduled)
    return build(scheduled)


def _before(apply: IrPass[Kernel]) -> Kernel:
    """Return the kernel that the case of a pass has come to before it."""
    has_vectors = apply in VECTOR_PASSES
    kernel = _built(*CASES[apply.__name__], has_vectors=has_vectors)
    for earlier in passes_of(kernel):
        if earlier is apply:
            return kernel
        kernel = earlier(kernel)
    raise AssertionError(apply)


EVERY = tuple(dict.fromkeys((*VECTOR_PASSES, *BLOCK_PASSES)))


@pytest.mark.parametrize("apply", EVERY, ids=lambda apply: apply.__name__)
def test_what_becomes_of_a_kernel_by(
    apply: IrPass[Kernel], golden: Callable[[str], None]
) -> None:
    before = _before(apply)
    after = apply(before)
    assert after is not before
    verify_kernel(after)
    golden(f"before:\n{text(before)}\nafter {apply.__name__}:\n{text(after)}")


def test_a_loop_of_rows_that_asks_for_memory_stays_what_it_was() -> None:
    before = _before(fetch_tiles)
    marked = tuple(replace(s, narrow=True) for s in before.body if isinstance(s, For))
    after = fetch_tiles(replace(before, body=marked)).body
    assert [s.narrow for s in after if isinstance(s, For)] == [True, True]


def test_a_kernel_in_order_is_checked_but_not_spelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spelled(_: object) -> str:
        message = "nobody asked which variable it is"
        raise AssertionError(message)

    kernel = _built(lambda x: np.exp(x) * 2 + x, X, has_vectors=True)
    for kind in (Var, Buffer):
        monkeypatch.setattr(kind, "__repr__", spelled)
    verify_kernel(kernel)


@pytest.mark.parametrize("apply", EVERY, ids=lambda apply: apply.__name__)
def test_a_pass_with_nothing_left_to_do_gives_the_same_kernel(
    apply: IrPass[Kernel],
) -> None:
    plain = _built(lambda x: x[::-1] * 2, X[0, :5], has_vectors=False)
    assert apply(plain) is plain


@pytest.mark.parametrize("left_out", range(len(VECTOR_PASSES)))
def test_a_cpu_computes_the_same_without_a_pass(
    left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = [p for k, p in enumerate(VECTOR_PASSES) if k != left_out]
    monkeypatch.setattr(lowering, "VECTOR_PASSES", tuple(fewer))
    function, x = CASES[VECTOR_PASSES[left_out].__name__]
    expected = function(x)
    with config.override(pass_limit=100 + left_out):  # a name for these kernels
        found = nfuser.fuse(lambda x: function(x))(x)
    for got, want in zip(_each(found), _each(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


def _each(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("function", [_noise, _none], ids=["noise", "none"])
def test_a_gpu_computes_the_same_without_passes(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "BLOCK_PASSES", ())
    call = Call(function, X[:, :40])
    call.check(call.apply(call.heuristic()))


@pytest.mark.parametrize("limit", [0, 2, 5])
def test_passes_stop_at_the_limit(limit: int) -> None:
    with config.override(pass_limit=limit):
        found = nfuser.fuse(lambda x: np.exp(x) / x.sum())(X + 9)
    np.testing.assert_allclose(found, np.exp(X + 9) / (X + 9).sum(), rtol=1e-5)


def test_every_loop_has_a_number_of_its_own() -> None:
    for function, x in CASES.values():
        call = Call(function, x, computes=False)
        facts = replace(call.facts, target=CPU)
        heuristic = call.scheduler.heuristic(call.fusion, facts)
        kernel = lower(call.scheduler.apply(call.fusion, heuristic, CPU))
        numbers = [s.index.number for s in every(kernel.body) if isinstance(s, For)]
        made = [n for n in numbers if n < kernel.loops]
        assert made == numbers
