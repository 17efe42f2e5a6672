# SPDX-License-Identifier: Apache-2.0
"""A host program: inputs, outputs, statements, and what shares memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.errors import ArgumentError
from nfuser.execution.host.ir.statements import walk
from nfuser.execution.host.ir.text import HostPrinter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.ir.statements import Input, Statement


@node
class HostProgram:
    """Statements in the order in which they are issued; ``outputs`` are returned.

    ``aliases`` says which tensors have no memory of their own, and whose they use.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[TensorView, ...]
    body: tuple[Statement, ...]
    aliases: Mapping[TensorView, TensorView]

    def __str__(self) -> str:
        printer = HostPrinter(self.inputs)
        name = printer.tensor
        head = ", ".join(printer.input(x) for x in self.inputs)
        outputs = ", ".join(name(t) for t in self.outputs) or "nothing"
        shared = [
            f"  {name(alias)} shares the memory of {name(owner)}"
            for alias, owner in self.aliases.items()
        ]
        lines = printer.block(self.body, "  ")
        first = f"program {self.name}({head}) -> {outputs}:"
        return "\n".join([first, *shared, *lines]) + "\n"

    def lines(self) -> dict[Statement, str]:
        """Return the line of each statement in the text of the program."""
        printer = HostPrinter(self.inputs)
        for output in self.outputs:
            printer.tensor(output)
        return {stmt: printer.statement(stmt) for stmt in walk(self.body)}

    def __repr__(self) -> str:
        return f"<HostProgram {self.name}: {len(self.body)} statements>"


def owners(aliases: Mapping[TensorView, TensorView]) -> dict[TensorView, TensorView]:
    """Return the tensor whose memory each alias uses in the end; refuse cycles."""
    found: dict[TensorView, TensorView] = {}
    for start in aliases:
        end, passed = start, {start}
        while end in aliases:
            end = aliases[end]
            if end in passed:
                message = "aliases form a cycle: each needs memory that another has"
                raise ArgumentError(message)
            passed.add(end)
        found[start] = end
    return found
