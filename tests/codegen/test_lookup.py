# SPDX-License-Identifier: Apache-2.0
"""Tables of 32 numbers, which stand in registers where the processor has room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.codegen.numba import kernel_library
from nfuser.codegen.primitives.cpu.features import has, keeps_its_clock
from nfuser.codegen.primitives.cpu.math import lookup
from nfuser.execution.runtime.caches.shared_cache import forget_all

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _raised(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Compile anew, and raise."""
    forget_all()

    def raised(a: Any, b: Any) -> Any:
        return a**b

    with config.override(disable=frozenset({"disk_cache"})):
        result: NDArray[Any] = nfuser.fuse(raised)(x, y)
    return result


def _numbers(count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return bases in all pieces of binades, and exponents of either sign."""
    generator = np.random.default_rng(count)
    base = np.exp2(generator.uniform(-18, 18, count)).astype("f4")
    return base, generator.uniform(-6, 6, count).astype("f4")


@pytest.mark.skipif(not has("avx2"), reason="no instruction that looks numbers up")
def test_a_table_is_looked_up_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    emit = kernel_library._Library.emit  # pyright: ignore[reportPrivateUsage]

    def emitted(self: Any) -> bytes:
        made.append(str(self._final_module))
        return emit(self)

    monkeypatch.setattr(kernel_library._Library, "emit", emitted)  # pyright: ignore[reportPrivateUsage]
    _raised(*_numbers(1000))
    found = "\n".join(made)
    wide, narrow = "llvm.x86.avx512.vpermi2var.ps.512", "llvm.x86.avx2.permps"
    assert (wide if keeps_its_clock() else narrow) in found
    assert "llvm.masked.gather" not in found
    assert "call float @nfuser.table" not in found  # what is left over loads
    for lanes in (4, 8, 16):
        assert f"call <{lanes} x float> @nfuser.table" not in found


def test_loads_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    given = _numbers(5000)
    permuted = _raised(*given)
    compiled: list[Any] = []

    def loading(module: Any) -> tuple[list[Any], str]:
        compiled.append(module)
        return [], ""

    monkeypatch.setattr(lookup, "leave_open", loading)
    np.testing.assert_array_equal(permuted, _raised(*given))
    assert any("nfuser.table" in str(x) for x in compiled)


@pytest.mark.parametrize("columns", [1, 3, 4, 7, 8, 15, 16, 33])
def test_vectors_of_any_length_give_the_same_bits(columns: int) -> None:
    base, exponent = _numbers(columns * 70)
    rows = _raised(base.reshape(70, columns), exponent.reshape(70, columns))
    np.testing.assert_array_equal(rows.ravel(), _raised(base, exponent))


def test_powers_of_float32_are_near_those_of_float64() -> None:
    base, exponent = _numbers(200_000)
    exact = base.astype("f8") ** exponent
    distance = np.abs(_raised(base, exponent) - exact) / np.spacing(exact.astype("f4"))
    assert distance.max() < 0.65
