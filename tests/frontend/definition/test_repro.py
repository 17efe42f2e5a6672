# SPDX-License-Identifier: Apache-2.0
"""The program that an internal fault leaves behind."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser.frontend.definition.execution.run as definition_run
from nfuser import DataType, FusionDefinition, NfuserError, config
from nfuser.frontend.definition.execution.repro import array_like

if TYPE_CHECKING:
    from pathlib import Path

ARRAY = np.arange(24, dtype=np.int32).reshape(2, 3, 4).transpose(2, 0, 1)[::-1, :, 1:]


def _definition() -> FusionDefinition:
    with FusionDefinition(backend="interpret") as fd:
        x = fd.define_tensor(shape=[-1, 2, -1], dtype=DataType.Int32)
        s = fd.define_scalar(dtype=DataType.Double)
        fd.add_output(fd.ops.mul(x, s))
    return fd


def _break(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Any]:
    seen: list[Any] = []

    def broken(plan: object, call: Any) -> Any:
        seen.append(call)
        raise error

    monkeypatch.setattr(definition_run, "run_call", broken)
    return seen


def test_a_fault_leaves_a_program_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = _break(monkeypatch, KeyError("lost"))
    folder = tmp_path / "repros"
    with config.override(repro_dir=str(folder)), pytest.raises(KeyError) as caught:
        _definition().execute([ARRAY, 0.5])
    (script,) = folder.iterdir()
    assert caught.value.__notes__ == [f"{script} is a program that shows this fault"]
    assert script.read_text().startswith("# Shows: KeyError: 'lost'\n")
    with pytest.raises(KeyError):
        runpy.run_path(str(script))
    first, second = seen
    given, again = first.arrays[0], second.arrays[0]
    assert again.shape == given.shape
    assert again.strides == given.strides
    assert again.dtype == given.dtype
    assert first.key == second.key
    assert second.numbers == {1: 0.5}


def test_the_program_runs_once_the_fault_is_mended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch, config.override(repro_dir=str(tmp_path)):
        _break(patch, AssertionError())
        with pytest.raises(AssertionError):
            _definition().execute([ARRAY, float("inf")])
    (script,) = tmp_path.iterdir()
    names = runpy.run_path(str(script))
    assert repr(names["fd"]) == repr(_definition())
    assert names["inputs"][1] == float("inf")


def test_an_error_of_the_users_leaves_none(tmp_path: Path) -> None:
    with config.override(repro_dir=str(tmp_path)):
        with pytest.raises(NfuserError) as caught:
            _definition().execute([ARRAY.astype(float), 0.5])
        with pytest.raises(NfuserError):
            _definition().execute([ARRAY])
        with pytest.raises(NfuserError, match="expected a list of inputs"):
            _definition().execute(ARRAY)  # pyright: ignore[reportArgumentType]
    assert not hasattr(caught.value, "__notes__")
    assert not [*tmp_path.iterdir()]


def test_what_memory_runs_out_of_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _break(monkeypatch, MemoryError())
    with config.override(repro_dir=str(tmp_path)), pytest.raises(MemoryError):
        _definition().execute([ARRAY, 0.5])
    assert not [*tmp_path.iterdir()]


def test_without_a_folder_the_error_says_how_to_get_a_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _break(monkeypatch, KeyError("lost"))
    with pytest.raises(KeyError) as caught:
        _definition().execute([ARRAY, 0.5])
    assert "NFUSER_REPRO=DIR" in caught.value.__notes__[0]


def test_a_folder_that_cannot_be_written_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _break(monkeypatch, KeyError("lost"))
    (tmp_path / "file").write_text("")
    with (
        config.override(repro_dir=str(tmp_path / "file")),
        pytest.raises(KeyError, match="lost") as caught,
    ):
        _definition().execute([ARRAY, 0.5])
    assert "was written: " in caught.value.__notes__[0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "complex64"])
@pytest.mark.parametrize(
    ("shape", "strides"), [((2, 3), (-3, 1)), ((4,), (0,)), ((), ()), ((0, 3), (3, 1))]
)
def test_an_array_like_another(
    dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    found = array_like("numpy", "cpu", dtype, shape, strides, 1)
    assert found.shape == shape
    assert found.dtype.name == dtype
    assert tuple(s // found.itemsize for s in found.strides) == strides
    if found.size > 2 and dtype != "bool" and 0 not in strides:
        assert len(np.unique(found)) > 1


def test_a_tensor_of_torch_like_another() -> None:
    torch = pytest.importorskip("torch")
    found = array_like("torch", "cpu", "bfloat16", (2, 3), (1, 2), 3)
    assert found.dtype == torch.bfloat16
    assert found.stride() == (1, 2)
    assert found.storage_offset() == 3
