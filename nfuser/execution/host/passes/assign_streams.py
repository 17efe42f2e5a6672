# SPDX-License-Identifier: Apache-2.0
"""Run what does not depend on each other on different streams."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.execution.host.ir.memory import MemoryOwners
from nfuser.execution.host.ir.rules import STREAMS
from nfuser.execution.host.ir.verify import verify

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.ir.statements import Event, HostStream, Statement


def assign_streams(program: HostProgram, streams: int = 4) -> HostProgram:
    """Return ``program`` with independent statements on up to ``streams`` streams.

    A statement goes on where the last one that it depends on ran, if nothing followed
    there; else it takes the next stream. It waits, by an event, for each other stream
    with something that it depends on and has not waited for. A program that names
    streams already, or has loops, stays as it is.
    """
    fixed = st.GetStream | st.SetStream | st.Synchronize | st.RecordEvent | st.Wait
    found = any(isinstance(s, fixed | st.ForLoop | st.IfThenElse) for s in program.body)
    if found or streams < 2:
        return program
    body = _Assignment(program, streams).run()
    if len(body) == len(program.body):
        return program
    made = replace(program, body=tuple(body))
    verify(made)
    return made


class _Assignment:
    """Number 0 is the caller's stream; the others are the evaluator's."""

    def __init__(self, program: HostProgram, streams: int) -> None:
        self.program = program
        self.memory = MemoryOwners(program)
        self.streams = streams
        self.caller = st.HostStream()
        self.placed: list[int] = []  # the stream of each statement
        self.last: dict[int, int] = {}  # the last statement on each stream
        self.needs: list[set[int]] = []  # the statements that each one waits for
        self.writer: dict[TensorView, int] = {}
        self.readers: dict[TensorView, list[int]] = {}

    def run(self) -> list[Statement]:
        for number, stmt in enumerate(self.program.body):
            needs = self._dependencies(number, stmt)
            self.needs.append(needs)
            self.placed.append(self._place(stmt, needs))
            if self._issues(stmt):
                self.last[self.placed[-1]] = number
        return self._written() if any(self.placed) else list(self.program.body)

    def _dependencies(self, number: int, stmt: Statement) -> set[int]:
        """Return the earlier statements that must be done, by what is read and made."""
        if self.memory.is_view(stmt) and not self._issues(stmt):
            return set()  # nobody waits for it: what wrote that memory did so before
        root = self.memory.root
        given = {root(t) for t in st.reads(stmt)}
        made = {root(t) for t in st.writes(stmt)}
        is_free = isinstance(stmt, st.Free)
        made |= given if is_free else set()
        needs = {self.writer[t] for t in given | made if t in self.writer}
        for tensor in made:
            needs.update(self.readers.pop(tensor, []))
            self.writer[tensor] = number
        for tensor in given - made:
            self.readers.setdefault(tensor, []).append(number)
        return {n for n in needs if self._issues(self.program.body[n])}

    def _place(self, stmt: Statement, needs: set[int]) -> int:
        if not self._issues(stmt):
            return 0
        for number in sorted(needs, reverse=True):
            if self.last[self.placed[number]] == number:
                return self.placed[number]
        for stream in range(self.streams):
            if stream not in self.last:
                return stream
        return min(self.last, key=self.last.__getitem__)

    def _issues(self, stmt: Statement) -> bool:
        """Tell whether ``stmt`` gives a stream something to do."""
        if isinstance(stmt, st.ReshapeOp):
            return True  # it may be a copy
        return not (
            isinstance(stmt, st.Allocate | st.Free) or self.memory.is_view(stmt)
        )

    def _written(self) -> list[Statement]:
        writer = _Writer(self.caller)
        body, placed, root = self.program.body, self.placed, self.memory.root
        wanted = {
            n
            for k, needs in enumerate(self.needs)
            for n in needs
            if placed[n] != placed[k]
        }
        first_use: dict[TensorView, int] = {}
        for number, stmt in enumerate(body):
            if self._issues(stmt):
                for tensor in (*st.reads(stmt), *st.writes(stmt)):
                    first_use.setdefault(root(tensor), placed[number])
        unmade: dict[TensorView, Statement] = {}
        for number, stmt in enumerate(body):
            if isinstance(stmt, st.Allocate):
                unmade[root(stmt.result)] = stmt
                continue
            # Memory that another stream let go of may still be in use there.
            for tensor in (*st.reads(stmt), *st.writes(stmt)):
                if (key := root(tensor)) in unmade:
                    writer.switch(first_use.get(key, 0), stmt)
                    writer.made.append(unmade.pop(key))
            if not self._issues(stmt):
                writer.made.append(stmt)
                continue
            writer.switch(placed[number], stmt)
            for other in sorted(self.needs[number], reverse=True):
                if placed[other] != placed[number]:
                    writer.wait(placed[number], placed[other], other, stmt)
            writer.made.append(stmt)
            if number in wanted:
                writer.record(number, stmt)
        writer.made += unmade.values()
        return writer.finished()


class _Writer:
    """Adds statements, each on its stream."""

    def __init__(self, caller: HostStream) -> None:
        self.caller = caller
        self.begin = st.Event()
        self.made: list[Statement] = [st.GetStream(caller), st.RecordEvent(self.begin)]
        self._now = 0
        self._begun = {0}
        self._events: dict[int, Event] = {}
        self._heard: dict[tuple[int, int], int] = {}

    def switch(self, stream: int, stmt: Statement) -> None:
        """Go to ``stream``, which has to wait for what the caller gave before."""
        if stream != self._now:
            self.made.append(st.SetStream(self._stream(stream), stmt.line))
            self._now = stream
        if stream not in self._begun:
            self._begun.add(stream)
            self.made.append(st.Wait(self.begin, stmt.line))

    def record(self, number: int, stmt: Statement) -> None:
        """Mark the end of statement ``number``."""
        self._events[number] = st.Event()
        self.made.append(st.RecordEvent(self._events[number], stmt.line))

    def wait(self, here: int, there: int, number: int, stmt: Statement) -> None:
        """Wait for statement ``number`` of another stream, unless a later one was."""
        if self._heard.get((here, there), -1) < number:
            self.made.append(st.Wait(self._events[number], stmt.line))
            self._heard[here, there] = number

    def finished(self) -> list[Statement]:
        """Return all, the caller's stream waiting for the others in the end."""
        if self._now:
            self.made.append(st.SetStream(self.caller))
        used = sorted(self._begun - {0})
        return self.made + [st.Synchronize(self._stream(s)) for s in used]

    def _stream(self, number: int) -> HostStream:
        if number == 0:
            return self.caller
        return st.HostStream(sc.const(number - 1) % STREAMS)
