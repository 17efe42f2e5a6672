# SPDX-License-Identifier: Apache-2.0
"""What native code reads is held by what is being called."""

# Arrays of words have no static type, and native code's own names are private.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportPrivateUsage=false

from __future__ import annotations

import ast
import ctypes
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native import layout
from nfuser.execution.device.native.owned import Keeper, new_words
from nfuser.execution.device.native.state import NativeState, Record
from tests.interrupts import interrupted

ROOT = Path(nfuser.__file__).parent
WRITERS = (
    *(
        "execution/host/call/native/program_words.py",
        "execution/host/call/native/records.py",
        "execution/host/call/native/calls.py",
    ),
    *(
        "frontend/native/calls.py",
        "frontend/native/guards.py",
        "frontend/fuse/bound.py",
    ),
    *("execution/runtime/host/linked_calls.py", "execution/device/native/state.py"),
)


def _record(bucket: int) -> Record:
    header = new_words([0] * (layout.RECORD_BYTES // 8))
    header[layout.R_HASH // 8] = bucket
    return Record(header, [], [])


def _add_all(state: NativeState, records: list[Record]) -> None:
    for record in records:
        state.add(record)


def _linked(state: NativeState, bucket: int) -> list[int]:
    """Return where native code finds records, as it would walk them."""
    found: list[int] = []
    at = int(state._words[layout.S_BUCKETS // 8 + bucket])
    while at:
        assert at in _held(state), "a word names a record that nobody holds"
        found.append(at)
        at = ctypes.c_int64.from_address(at + layout.R_NEXT).value
    return found


def _held(state: NativeState) -> set[int]:
    """Return where all records lie that the state reaches by references."""
    seen: dict[int, Any] = {}
    left: list[Any] = [state.owned]
    while left:
        item = left.pop()
        if isinstance(item, (tuple, list, Record)) and id(item) not in seen:
            seen[id(item)] = item
            left += gc.get_referents(item)
    return {x.address for x in seen.values() if isinstance(x, Record)}


@pytest.mark.parametrize("kind", ["add", "discard first", "discard middle"])
def test_an_exception_between_two_statements_leaves_every_linked_record_held(
    kind: str,
) -> None:
    number = 0
    is_reached = True
    while is_reached:
        state = NativeState()
        records = [_record(5) for _ in range(4)]
        _add_all(state, records[:3])
        victim = records[{"discard first": 2, "discard middle": 1}.get(kind, 3)]
        change = state.add if kind == "add" else state.discard
        is_reached = interrupted("state.py", number, lambda: change(victim))  # noqa: B023
        del records, victim
        _linked(state, 5)
        more = _record(5)
        state.add(more)
        assert more.address in _linked(state, 5)
        state.clear()
        assert _linked(state, 5) == []
        number += 1
    assert number > 3


def test_a_cleared_cache_keeps_the_words_that_calls_in_flight_count_in() -> None:
    fused, x = nfuser.fuse(lambda x: x * 2 + 1), np.ones(3)
    for _ in range(4):
        fused(x)
    words = fused._native
    assert words is not None
    fused.cache_clear()
    for _ in range(4):
        fused(x)
    assert fused._native is words
    assert fused.native_calls > 0


def _survives(program: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "fine"


def test_a_cache_may_be_cleared_while_threads_call() -> None:
    _survives(
        """
import threading, numpy as np, nfuser
f = nfuser.fuse(lambda x: x * 2 + 1)
x = np.full((4, 70000), 1.5)
stop, wrong = [], []
def go():
    while not stop:
        if (f(x) != 4).any():
            wrong.append(1)
threads = [threading.Thread(target=go) for _ in range(2)]
[t.start() for t in threads]
for _ in range(60):
    f.cache_clear()
    f(x)
stop.append(1)
[t.join() for t in threads]
print("wrong" if wrong else "fine")
"""
    )


def test_what_is_put_where_native_code_looks_is_not_followed() -> None:
    _survives(
        """
import numpy as np, nfuser
f, x = nfuser.fuse(lambda x: x * 2 + 1), np.ones(1000)
b = f.bind(x)
for item in (5, None, (5,), np.zeros(9, "i8"), "text", object()):
    b._native = item
    assert b().sum() == 3000
    for _ in range(4):
        f(x)
    f._native = item
    assert f(x).sum() == 3000
print("fine")
"""
    )


def test_a_bound_call_holds_what_it_was_bound_to() -> None:
    x = np.arange(100_000, dtype=np.float64)
    bound = nfuser.fuse(lambda x: x + 1).bind(x)
    with pytest.raises(AttributeError):
        bound.arguments = ()  # pyright: ignore[reportAttributeAccessIssue]
    bound._arguments = ()
    del x
    gc.collect()
    np.testing.assert_array_equal(bound(), np.arange(1, 100_001))


def test_a_call_may_come_when_modules_are_gone() -> None:
    _survives(
        """
import sys, numpy as np, nfuser
f, x = nfuser.fuse(lambda x: x * 2 + 1), np.ones(3)
b = f.bind(x)
for _ in range(4):
    f(x), b()
class Late:
    def __init__(self):
        self.held = f, b, x, sys.stdout
    def __del__(self):
        f, b, x, out = self.held
        for call in (lambda: f(x), b, lambda: f(x, x), lambda: b(x)):
            try:
                call()
            except BaseException:
                pass
        out.write("fine\\n")
        out.flush()
sys.late = Late()
import builtins
builtins.late = sys.__dict__.pop("late")
"""
    )


def test_addresses_come_from_what_holds_them() -> None:
    """Where words are written nothing takes an address by itself."""
    found: list[str] = []
    for name in WRITERS:
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            is_call = isinstance(node, ast.Call)
            taken = is_call and ast.unparse(node.func)
            if taken in {"id", "ctypes.addressof"} or (
                isinstance(node, ast.Attribute)
                and ast.unparse(node).endswith("ctypes.data")
            ):
                found.append(f"{name}: {ast.unparse(node)}")
    # A record says who it is, to be held by who follows it.
    assert found == ["execution/device/native/state.py: id(self)"]


def test_a_keeper_holds_what_it_gives_the_address_of() -> None:
    keeper = Keeper()
    at = keeper.words([7, 8])
    gc.collect()
    assert list((ctypes.c_int64 * 3).from_address(at)) == [7, 8, 0]
    item = object()
    assert keeper.object(item) == id(item)
    assert any(item is held for held in gc.get_referents(keeper._held))
