# SPDX-License-Identifier: Apache-2.0
"""What a plan depends on, one thing at a time: a call that differs in it has no plan.

Each call here is followed by one that differs from it in a single thing. The second is
right, and no plan of the first served it, in Python or natively; the first is served as
before. Overlap with ``out=`` is told apart when a call is bound (``test_bind``), what
was captured in ``native/test_calls``, and devices that are there in ``tests/gpu``.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.execution.device.describe.descriptor import Library, key_reader
from nfuser.execution.device.native.shared import is_as_expected
from nfuser.frontend.call.inputs.arguments import Arguments
from nfuser.frontend.fuse import fused as fused_module
from tests.device.test_describe_others import cupy_array, numba_array


def _plain(x: Any, y: Any) -> Any:
    return x * 2 + y


def _consumed(x: Any, n: Any) -> Any:
    return x + 1 if n > 2 else x - 1


def _doubled(x: Any) -> Any:
    """Return the structure that came."""
    return {k: v * 2 for k, v in x.items()} if type(x) is dict else x[0] * 2


def _array(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 13 + 1).reshape(shape).astype(dtype)


X, N = _array(4, 8), _array(4, 8, dtype=np.int32)
_BYTES = np.zeros(256, np.uint8)
_START = -_BYTES.ctypes.data % 16


def _at(offset: int) -> Any:
    """Return an array that begins so many bytes after a multiple of 16."""
    found = _BYTES[_START + offset : _START + offset + 128].view(np.float32)
    found[:] = 1
    return found.reshape(4, 8)


CASES: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "dtype of the same size": (_plain, (X, X), (X, X.view(np.int32))),
    "dtype of another size": (_plain, (X, X), (X, X.astype(np.float64))),
    "extents": (_plain, (X, X), (X.reshape(8, 4), X.reshape(8, 4))),
    "one extent": (_plain, (X, X), (X[:3], X[:3])),
    "rank": (_plain, (X, X), (X.reshape(4, 2, 4), X.reshape(4, 2, 4))),
    "an extent of one": (_plain, (X, X), (X, X[:1])),
    "strides": (_plain, (X, X), (X, np.asfortranarray(X))),
    "a stride of zero": (_plain, (X, X), (X, np.broadcast_to(X[0], (4, 8)))),
    "alignment": (_plain, (X, _at(0)), (X, _at(4))),
    "type of a number: float": (_plain, (N, 2), (N, 2.0)),
    "type of a number: bool": (_plain, (N, 2), (N, True)),
    "type of a number: NumPy's": (_plain, (N, 2), (N, np.float32(2))),
    "a number beside an array": (_plain, (N, 2), (N, np.array(2.5))),
    "a number that Python consumed": (_consumed, (X, 3), (X, 2)),
    "a number that reaches a shape": (lambda x, n: x[:n] + 1, (X, 3), (X, 2)),
    "a number that names an axis": (lambda x, k: x.max(axis=k), (X, 0), (X, 1)),
    "a string": (lambda x, s: x * len(s), (X, "a"), (X, "bc")),
    "None": (lambda x, s: x if s is None else x * 3, (X, None), (X, "")),
    "a slice": (lambda x, s: x[s] * 2, (X, slice(1, 3)), (X, slice(0, 2))),
    "structure: a tuple or a list": (
        lambda x: x[0] * (2 if type(x) is tuple else 3),
        ((X,),),
        ([X],),
    ),
    "structure: the keys of a dict": (_doubled, ({"a": X},), ({"b": X},)),
}


@pytest.fixture(params=["Python", "native"])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Tell whether calls are served natively."""
    if request.param == "Python":
        monkeypatch.setattr(fused_module, "_has_native_calls", lambda: False)
    elif not is_as_expected():
        pytest.skip("no native calls here")
    return request.param == "native"


def _served(fused: Any, *args: Any) -> tuple[Any, int, int]:
    """Call; return what it gave, and how many plans and records served it."""
    hits, native = fused.cache_info().hits, fused.native_calls
    found = fused(*args)
    records = fused.native_calls - native
    return found, fused.cache_info().hits - hits - records, records


def _check(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = next(iter(found.values())), next(iter(expected.values()))
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.strides == expected.strides
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_call_that_differs_in_one_thing_has_no_plan(name: str, native: bool) -> None:
    function, first, second = CASES[name]
    fused = nfuser.fuse(function)
    for _ in range(3):
        fused(*first)
    _, plans, records = _served(fused, *first)
    assert plans + records == 1
    assert native or not records
    found, plans, records = _served(fused, *second)
    assert plans + records == 0
    _check(found, function(*second))
    for given in (first, second):
        found, plans, records = _served(fused, *given)
        assert plans + records == 1
        _check(found, function(*given))


@pytest.mark.usefixtures("native")
def test_the_library_of_an_array() -> None:
    torch: Any = pytest.importorskip("torch")
    fused = nfuser.fuse(_plain)
    for _ in range(4):
        fused(X, X)
    tensor = torch.from_numpy(X)  # the same memory
    for k in range(4):
        found, plans, records = _served(fused, tensor, tensor)
        assert type(found) is torch.Tensor
        assert bool(plans + records) == bool(k)
        _check(found.numpy(), _plain(X, X))
    found, plans, records = _served(fused, X, X)
    assert type(found) is np.ndarray
    assert plans + records == 1


def test_the_device_of_an_array() -> None:
    torch: Any = pytest.importorskip("torch")
    cupy, numba = cupy_array((2, 3), (12, 4)), numba_array((2, 3), (24, 8))
    here = key_reader(Library.CUPY)(cupy), key_reader(Library.NUMBA)(numba)
    cupy.data.device_id += 1
    numba.gpu_data.context.device.id += 1
    assert key_reader(Library.CUPY)(cupy) != here[0]
    assert key_reader(Library.NUMBA)(numba) != here[1]
    # Neither has memory: only the device is another.
    cpu, meta = torch.empty(0, 3), torch.empty(0, 3, device="meta")
    assert key_reader(Library.TORCH)(cpu) != key_reader(Library.TORCH)(meta)
    assert Arguments((cpu,), {}, _plain).key != Arguments((meta,), {}, _plain).key


@pytest.mark.parametrize(
    "change",
    [
        {"disable": frozenset({"concretize_resize_extents"})},
        {"pass_limit": 3},
        {"num_threads": 1},
        {"dump": frozenset({"launch"}), "dump_folder": "given below"},
        {"disable_all": True},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.usefixtures("native")
def test_the_configuration(change: dict[str, Any], tmp_path: Any) -> None:
    if "dump" in change:
        change = {**change, "dump_folder": str(tmp_path)}
    fused = nfuser.fuse(_plain)
    for _ in range(4):
        fused(X, X)
    with config.override(**change):
        found, plans, records = _served(fused, X, X)
    assert plans + records == 0
    _check(found, _plain(X, X))
    found, plans, records = _served(fused, X, X)
    assert plans + records == 1
