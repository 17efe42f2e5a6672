# SPDX-License-Identifier: Apache-2.0
"""Programs that write where others read; the command line tries thousands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nfuser.execution.host.ir.statements as st
from nfuser.execution.host.ir.memory import MemoryOwners
from nfuser.execution.host.passes.assign_streams import assign_streams
from tests.host.updates import Updates, check_updates

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("seed", range(40))
def test_a_random_program_of_updates(seed: int, library: str) -> None:
    if library == "numpy":
        check_updates(seed)
    else:
        check_updates(seed, pytest.importorskip("torch").from_numpy)


@pytest.mark.parametrize("seed", range(80))
def test_who_uses_memory_waits_for_who_wrote_it(seed: int) -> None:
    program = assign_streams(Updates(seed).program)
    memory, now = MemoryOwners(program), "None"
    seen: dict[str, set[int]] = {now: set()}  # by stream: what is done before
    marks: dict[st.Event, set[int]] = {}
    writers: dict[TensorView, int] = {}
    readers: dict[TensorView, set[int]] = {}
    for number, stmt in enumerate(program.body):
        match stmt:
            case st.SetStream(stream):
                now = str(stream.index)
                seen.setdefault(now, set())
            case st.RecordEvent(event):
                marks[event] = set(seen[now])
            case st.Wait(event):
                seen[now] |= marks[event]
            case st.GetStream() | st.Synchronize() | st.Allocate() | st.Free():
                pass
            case _ if not memory.is_view(stmt):
                read = {memory.root(t) for t in st.reads(stmt)}
                made = {memory.root(t) for t in st.writes(stmt)}
                needs = {writers[t] for t in read | made if t in writers}
                needs = needs.union(*(readers.pop(t, set()) for t in made))
                assert needs <= seen[now], stmt
                seen[now].add(number)
                writers |= dict.fromkeys(made, number)
                for tensor in read:
                    readers.setdefault(tensor, set()).add(number)
            case _:
                pass
