# SPDX-License-Identifier: Apache-2.0
"""Products of 16-bit floats are rounded where results are stored, not before."""

# Torch has types of its own.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser import FusionDefinition

KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
DEVICES = ("numpy", "torch", pytest.param("cuda", marks=pytest.mark.gpu))
# Of numbers as these, sums of f32 lie next to the middle of two halves this often.
TIES = 0.01


def _given(kind: str, *shape: int) -> Any:
    rng = np.random.default_rng(sum(shape))
    return rng.standard_normal(shape).astype(KINDS[kind])


def _moved(x: Any, device: str) -> Any:
    if device == "numpy":
        return x
    torch = pytest.importorskip("torch")
    kind = getattr(torch, x.dtype.name)
    return torch.from_numpy(x.astype(np.float64)).to(
        device.replace("torch", "cpu"), kind
    )


def _exact(made: Any) -> Any:
    return made if isinstance(made, np.ndarray) else made.cpu().double().numpy()


def _wrong(found: Any, exact: Any, kind: str) -> float:
    """Return the share of elements that are not the exact ones, rounded once."""
    wanted = exact.astype(np.float32).astype(KINDS[kind]).astype(np.float64)
    return float(np.mean(_exact(found).astype(np.float64) != wanted))


SHAPES = {
    "matrices": ((24, 8), (8, 16)),
    "stacks": ((3, 24, 8), (3, 8, 16)),
    "a stack and a matrix": ((3, 24, 8), (8, 16)),
    "a stretched stack": ((24, 8), (3, 8, 16)),
    "a row": ((8,), (8, 640)),
    "a column": ((640, 8), (8,)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_kernel_makes_of_a_product_is_rounded_once(
    kind: str, device: str
) -> None:
    fused = nfuser.fuse(lambda x, w, b: x @ w + b)
    for name, shapes in SHAPES.items():
        x, w = (_given(kind, *shape) for shape in shapes)
        b = _given(kind, (x @ w).shape[-1])
        found = fused(*(_moved(a, device) for a in (x, w, b)))
        wide = [a.astype(np.float64) for a in (x, w, b)]
        assert _wrong(found, wide[0] @ wide[1] + wide[2], kind) <= TIES, name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_linear_with_a_bias_is_rounded_once(kind: str, device: str) -> None:
    given = _given(kind, 24, 8), _given(kind, 16, 8), _given(kind, 16)
    with FusionDefinition() as fd:
        inputs = [fd.from_numpy(x) for x in given]
        fd.add_output(fd.ops.linear(*inputs))
    (found,) = fd.execute([_moved(x, device) for x in given])
    x, w, b = (a.astype(np.float64) for a in given)
    assert _wrong(found, x @ w.T + b, kind) <= TIES


def _chain(x: Any, w: Any) -> Any:
    first = x @ w
    return first, first @ w.T, np.tanh(first), (x @ w).T


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_product_may_be_stored_multiplied_and_computed_with(
    kind: str, device: str
) -> None:
    given = _given(kind, 24, 8), _given(kind, 8, 16)
    found = nfuser.fuse(_chain)(*(_moved(a, device) for a in given))
    x, w = (a.astype(np.float64) for a in given)
    first = (x @ w).astype(KINDS[kind]).astype(np.float64)
    exact = first, first @ w.T, np.tanh(x @ w), first.T
    for one, other in zip(found, exact, strict=True):
        assert _wrong(one, other, kind) <= 2 * TIES


def test_torch_multiplies_float16_on_the_cpu_as_f32() -> None:
    torch = pytest.importorskip("torch")
    product, calls = torch.matmul, []

    def watched(x: Any, y: Any, **options: Any) -> Any:
        calls.append((x.dtype, y.dtype))
        return product(x, y, **options)

    torch.matmul = watched
    try:
        given = [_moved(_given("float16", 8, 8), "torch")] * 2
        found = nfuser.fuse(lambda x, w: x @ w)(*given)
    finally:
        torch.matmul = product
    assert found.dtype is torch.float16
    assert set(calls) == {(torch.float32, torch.float32)}
