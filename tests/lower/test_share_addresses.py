# SPDX-License-Identifier: Apache-2.0
"""Both parts of complex arrays in one kernel, which a CPU reads from one address."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.cpu.memory.share_addresses import from_one_base
from nfuser.compiler.lower.kernel.kernel_ir import Buffer, For, Load, Number, Store

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "conj": np.conj,
    "square": lambda z: z * z,
    "transposed": lambda z: z + z.T,
    "crosswise": lambda z: (z.real + z.imag.T, z.imag * 2),
    "sums along other axes": lambda z: (z.real.sum(0), z.imag.sum(1)),
    "parts": lambda z: (z.imag, z.real, z),
    "swapped": lambda z: z.imag + 1j * z.real,
    "sum": lambda z: z.sum(-1),
    "centred": lambda z: z - z.mean(-1, keepdims=True),
    "joined": lambda z: np.concatenate([z, z.conj()]),
    "backwards": lambda z: z[::-1].conj(),
    "every other": lambda z: z[::2] * 2,
    "made of a real one": lambda z: z.real + 3j,
}


def _complex(dtype: str, *shape: int) -> Any:
    random = np.random.default_rng(sum(shape))
    x, y = random.integers(-9, 9, (2, *shape)) / 4
    return (x + 1j * y).astype(dtype)


def _layouts(z: Any, wide: Any) -> list[Any]:
    return [z, z.T, np.asfortranarray(z), wide[::2, ::3], wide[: len(z), : len(z)]]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_it_gives_what_numpy_gives_however_arrays_lie(name: str, dtype: str) -> None:
    function = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    for size in (1, 2, 5, 70, 300):
        wide = _complex(dtype, 2 * size, 3 * size)
        for z in _layouts(_complex(dtype, size, size), wide):
            got, wanted = fused(z), function(z)
            many = isinstance(wanted, tuple)
            for one, other in (
                zip(got, wanted, strict=True) if many else [(got, wanted)]
            ):
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["conj", "square"])
def test_pairs_are_stored_as_they_lie(name: str) -> None:
    (kernel,) = nfuser.fuse(FUNCTIONS[name]).kernels(_complex("c16", 5000))
    body = kernel.source.split("\ndef ")[1].split(":", 1)[1]
    assert len(set(re.findall(r"load\((T\d)", body))) == 1
    assert len(set(re.findall(r"store\((T\d)", body))) == 1


def test_a_sum_reads_both_parts_at_once() -> None:
    assert len(nfuser.fuse(lambda z: z.sum()).kernels(_complex("c16", 5000))) == 1


def test_the_second_of_a_pair_is_one_further() -> None:
    first, second = (Buffer(DType.F64, None, "x") for _ in "ab")
    index = scalar_symbols.loop_index(7, sc.const(9))
    load = Load(second, index * 2)
    (loop,) = from_one_base(
        (For(index, index.extent, (Store(second, index * 2, load),)),), {second: first}
    )
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    assert store.buffer is store.value.buffer is first
    assert store.index is store.value.index is index * 2 + 1


def test_what_has_no_pair_stays_as_it_is() -> None:
    first, second, third = (Buffer(DType.F64, None, "x") for _ in "abc")
    body = (Store(third, sc.const(0), Number(1.0, DType.F64)),)
    assert from_one_base(body, {}) is body
    assert from_one_base(body, {second: first}) is body
