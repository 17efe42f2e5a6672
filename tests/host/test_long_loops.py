# SPDX-License-Identifier: Apache-2.0
"""Long loops whose turns differ in where rows lie alone are loops of the program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.runtime.host.link as link_module
import nfuser.execution.runtime.host.linked_calls as linked_calls
from nfuser.base.debug.timeline import Timeline
from nfuser.compiler.ir.scalars.scalar import const
from nfuser.compiler.ir.scalars.symbols import loop_index
from nfuser.errors import NfuserError
from nfuser.execution.host.call.program import Repeat
from nfuser.execution.runtime.host.turns import LONG, is_linear
from tests.host.loops import check_loops

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser import HostIrContainer
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.execution.host.call.program import CallProgram

    Build = Callable[[HostIrContainer, Any], None]

ROWS = 2 * LONG  # a loop of two statements is longer than what is kept as a line
X = np.arange(ROWS * 8, dtype=np.float32).reshape(ROWS, 8) / 7 - 100


def _scaled() -> Fusion:
    with nfuser.FusionDefinition() as fd:
        fd.add_output(fd.ops.mul(fd.define_tensor(shape=[-1]), 1.5))
    return fd.fusion


def _mixed() -> Fusion:
    with nfuser.FusionDefinition() as fd:
        x, y = fd.define_tensor(shape=[-1]), fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.add(fd.ops.mul(x, 0.5), y))
        fd.add_output(fd.ops.sub(y, x))
    return fd.fusion


def _handed() -> Fusion:
    with nfuser.FusionDefinition() as fd:
        x, y, z = (fd.define_tensor(shape=[-1]) for _ in range(3))
        fd.add_output(y)
        fd.add_output(fd.ops.add(fd.ops.mul(x, 0.5), z))
    return fd.fusion


SCALED, MIXED, HANDED = _scaled(), _mixed(), _handed()


def _rows(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        made = hc.launch(SCALED, hc.select(x, 0, i))
        hc.launch(SCALED, made, out=hc.alias_select(out, 0, i))
    hc.add_output(out)


def _backwards(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    n = x.shape[0]
    with hc.loop(n - 1, -1, -1) as i:
        row = hc.launch(SCALED, hc.select(x, 0, i))
        hc.set(row, hc.alias_select(out, 0, n - 1 - i))
    hc.add_output(out)


def _carried(hc: HostIrContainer, x: Any) -> None:
    """Let each turn read what the one before has made, in new memory each time."""
    y = hc.launch(SCALED, hc.select(x, 0, 0))
    z = hc.launch(SCALED, y)
    with hc.loop(x.shape[0]) as i:
        hc.launch(MIXED, y, hc.select(x, 0, i), out=[y, z])
        hc.binary("add", z, y, out=y)
    hc.add_output(y)
    hc.add_output(z)


def _steps(hc: HostIrContainer, x: Any) -> None:
    """Write each row of one array where the row before was read."""
    y = hc.set(x)
    with hc.loop(1, x.shape[0]) as i:
        before, row = hc.select(y, 0, i - 1), hc.alias_select(y, 0, i)
        hc.binary("multiply", before, 0.5, out=row)
        hc.binary("add", row, hc.select(x, 0, i), out=row)
    hc.add_output(y)


def _nested(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    hc.set(x, out)
    with hc.loop(12), hc.loop(x.shape[0]) as i:
        row = hc.alias_select(out, 0, i)
        hc.binary("multiply", row, 0.9, out=row)
    with hc.loop(x.shape[0]) as i, hc.loop(3):
        row = hc.alias_select(out, 0, i)
        hc.binary("subtract", row, 0.25, out=row)
    hc.add_output(out)


def _slices(hc: HostIrContainer, x: Any) -> None:
    n, columns = x.shape
    out = hc.allocate((n - 2, columns), np.float32)
    with hc.loop(n - 2) as i:
        part = hc.slice(x, (i, 0), (i + 3, columns))
        more = hc.binary("add", hc.select(part, 0, 0), hc.select(part, 0, 2))
        hc.set(more, hc.alias_select(out, 0, i))
    hc.add_output(out)


def _all_rows_meet(hc: HostIrContainer, x: Any) -> None:
    """Copy rows to where others lie; one in the middle is copied to itself."""
    y = hc.set(x)
    n = x.shape[0]
    with hc.loop(n) as i:
        hc.set(hc.select(y, 0, i), hc.alias_select(y, 0, n - 1 - i))
        hc.set(hc.select(x, 0, i), hc.alias_select(y, 0, i))
    hc.add_output(y)


def _kept_and_moved(hc: HostIrContainer, x: Any) -> None:
    """Look at an array in two ways, one of which lies in it all the time."""
    y = hc.set(x)
    row = hc.select(y, 0, 1)
    with hc.loop(x.shape[0]) as i:
        hc.binary("add", y, 1.0, out=y)
        hc.binary("multiply", hc.select(x, 0, i), 2.0, out=hc.alias_select(y, 0, 1))
    hc.add_output(y)
    hc.add_output(hc.set(row))


def _columns(hc: HostIrContainer, x: Any) -> None:
    """Go along what no packet begins at: neighbours lie 4 bytes apart."""
    turned = hc.permute(x, (1, 0))
    out = hc.allocate(turned.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        hc.set(hc.select(turned, 1, i), hc.alias_select(out, 1, i))
    hc.add_output(out)


def _shrinking(hc: HostIrContainer, x: Any) -> None:
    """Read at the same place in views of other shapes."""
    out = hc.allocate(x.shape, np.float32)
    n, columns = x.shape
    with hc.loop(n) as i:
        part = hc.slice(x, (0, 0), (n - i, columns))
        hc.set(hc.select(part, 0, 0), hc.alias_select(out, 0, i))
    hc.add_output(out)


def _handed_on(hc: HostIrContainer, x: Any) -> None:
    """Launch what gives an array that it was given."""
    y, z = hc.set(hc.select(x, 0, 0)), hc.set(hc.select(x, 0, 1))
    with hc.loop(x.shape[0]) as i:
        hc.launch(HANDED, y, z, hc.select(x, 0, i), out=[y, z])
    hc.add_output(y)
    hc.add_output(z)


REPEATED = [
    *(_rows, _backwards, _carried, _steps, _nested, _slices, _kept_and_moved),
    *(_all_rows_meet, _shrinking, _columns, _handed_on),
]


def _squares(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    n = x.shape[0]
    with hc.loop(n) as i:
        hc.set(hc.select(x, 0, i * i % n), hc.alias_select(out, 0, i))
    hc.add_output(out)


def _halves(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        hc.set(hc.select(x, 0, i // 2 * 2), hc.alias_select(out, 0, i))
    hc.add_output(out)


def _numbers(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        hc.binary("add", hc.select(x, 0, i), i, out=hc.alias_select(out, 0, i))
    hc.add_output(out)


def _one_turn_differs(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        row = hc.alias_select(out, 0, i)
        with hc.when(i - 77):
            hc.set(hc.select(x, 0, i), row)
        with hc.otherwise():
            hc.set(hc.select(x, 0, 0), row)
    hc.add_output(out)


def _from_the_end(hc: HostIrContainer, x: Any) -> None:
    """Let an index pass from below 0, which counts from the end, to 0."""
    out = hc.allocate(x.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        hc.set(hc.select(x, 0, i - 3), hc.alias_select(out, 0, i))
    hc.add_output(out)


LINES = [_squares, _halves, _numbers, _one_turn_differs, _from_the_end]


def _evaluator(build: Build) -> tuple[nfuser.HostIrEvaluator, Any]:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor((-1, -1))
    build(hc, x)
    return nfuser.HostIrEvaluator(hc.program()), hc


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[CallProgram]:
    """Collect what is linked as one program."""
    found: list[CallProgram] = []
    link = linked_calls.link

    def noted(*args: Any) -> CallProgram:
        made = link(*args)
        if args[-1] is None:
            found.append(made)
        return made

    monkeypatch.setattr(linked_calls, "link", noted)
    return found


def _checked(build: Build, given: np.ndarray[Any, Any]) -> None:
    """Run as a first call, as what is kept, and natively: in pieces comes first."""
    evaluator, _ = _evaluator(build)
    wanted = evaluator.run([given])
    for _ in range(4):
        for found, first in zip(evaluator.run([given]), wanted, strict=True):
            np.testing.assert_array_equal(found, first)
    other = given[::-1].copy()
    fresh, _ = _evaluator(build)
    for found, first in zip(evaluator.run([other]), fresh.run([other]), strict=True):
        np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize("columns", [8, 7])
@pytest.mark.parametrize("build", REPEATED)
def test_turns_that_differ_in_rows_are_repeated(
    build: Build, columns: int, programs: list[CallProgram]
) -> None:
    _checked(build, X[:, :columns].copy())
    assert programs
    for program in programs:
        assert any(isinstance(stmt, Repeat) for stmt in program.body)


@pytest.mark.parametrize("build", LINES)
def test_other_turns_are_written_out(build: Build, programs: list[CallProgram]) -> None:
    for rows in (ROWS, LONG):
        _checked(build, X[:rows].copy())
    for program in programs:
        assert not any(isinstance(stmt, Repeat) for stmt in program.body)


def test_what_fails_in_the_last_turn_fails_after_the_others() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor((-1, -1))
    with hc.loop(x.shape[0]) as i:
        row = hc.alias_select(x, 0, i)
        hc.launch(SCALED, hc.select(x, 0, i + 1), out=row)
    hc.add_output(x)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    for _ in range(3):
        with pytest.raises(NfuserError):
            evaluator.run([X.copy()])


def test_indices_that_are_linear() -> None:
    i, j = loop_index(0, const(8)), loop_index(1, const(8))
    assert is_linear(i * 3 + j * j, i)
    assert not is_linear(i * j * i, i)
    assert not is_linear(i % 3, i)
    assert is_linear(j % 3, i)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops_that_are_short(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = linked_calls.link

    def repeating(program: Any, linking: Any, *rest: Any) -> CallProgram:
        is_kept = rest[-1] is None
        return link(program, replace(linking, repeats=is_kept), *rest)

    monkeypatch.setattr(link_module, "LONG", 1)
    monkeypatch.setattr(linked_calls, "link", repeating)
    check_loops(seed, "cpu")


def test_what_a_timeline_follows_is_kept_beside_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chain(hc: HostIrContainer, x: Any) -> None:
        row = hc.launch(SCALED, hc.select(x, 0, 1))
        hc.add_output(hc.launch(SCALED, row))

    evaluator, _ = _evaluator(chain)
    followed = [Timeline() for _ in range(3)]
    for timeline in followed[:2]:
        evaluator.run([X], timeline=timeline)
    monkeypatch.setattr(linked_calls, "link", None)
    (found,) = evaluator.run([X], timeline=followed[2])
    np.testing.assert_array_equal(found, X[1] * 1.5 * 1.5)
    names = [[event["name"] for event in t.events] for t in followed]
    assert len(names[0]) == 3
    assert names[0] == names[1] == names[2]
    assert len({t.peak_bytes for t in followed}) == 1
