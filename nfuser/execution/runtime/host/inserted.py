# SPDX-License-Identifier: Apache-2.0
"""The program of one launch as a part of the program of the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.execution.host.call.program as flat
from nfuser.compiler.dtypes import check_fits
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.execution.runtime.host.locations import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.runtime.planning.plan import Plan


class NotLinkedError(Exception):
    """The program of a launch is no part of a larger one: it runs by itself."""


class Inserted:
    """The program of one launch, with arrays and numbers of the whole in place."""

    def __init__(
        self,
        plan: Plan,
        numbers: Mapping[int, Any],
        places: dict[flat.Slot, Location],
        number: int,
    ) -> None:
        self.plan = plan
        self.numbers = numbers
        self.places = places
        self.number = number
        self.symbols: dict[Scalar, int] = {
            scalar_symbols.scalar_input(slot): n
            for slot, n in numbers.items()
            if type(n) is int
        }

    def run(self) -> list[flat.HostStmt]:
        """Return the statements; when memory is freed is decided for the whole."""
        found: list[flat.HostStmt] = []
        for stmt in self.plan.program.body:
            match stmt:
                case flat.FreeSlot():
                    pass
                case flat.LaunchKernel(arguments=arguments):
                    own = tuple(self._argument(a) for a in arguments)
                    found.append(replace(stmt, arguments=own))
                case flat.CallLibrary(_, operands, result):
                    target = self.location(result)
                    if not target.is_whole:
                        raise NotLinkedError
                    own = tuple(map(self._operand, operands))
                    found.append(replace(stmt, operands=own, result=target.slot))
                case flat.AllocateSlot() | flat.Clear():
                    found.append(replace(stmt, slot=self.location(stmt.slot).slot))
                case _:
                    raise NotLinkedError
        return found

    def location(self, slot: flat.Slot) -> Location:
        """Return where a slot of the launch lies; new ones get names of their own."""
        if slot not in self.places:
            own = replace(slot, name=f"{slot.name}_{self.number}")
            self.places[slot] = Location.of(own)
        return self.places[slot]

    def _operand(self, operand: flat.Operand) -> flat.Operand:
        if isinstance(operand.part, flat.ProgramNumber):
            return operand
        if not self.location(operand.part.slot).is_whole:
            raise NotLinkedError
        return replace(operand, part=self._part(operand.part))

    def _part(self, part: flat.SlotPart) -> flat.SlotPart:
        location = self.location(part.slot)
        return flat.SlotPart(location.slot, location.offset + part.offset)

    def _argument(self, argument: flat.Argument) -> flat.Argument:
        match argument:
            case flat.SlotPart():
                return self._part(argument)
            case flat.ByValue(slot, dtype, part):
                number = self.numbers[slot]
                number = getattr(number, part) if part else number
                value = float(number) if dtype.is_float else int(number)
                return flat.HostScalar(sc.const(0), value, False, dtype)
            case flat.HostScalar(scalar, _, True, dtype):
                value = scalar_walk.evaluate(scalar, self.symbols)
                if not dtype.is_float:
                    check_fits(value, dtype, "a number passed to a launch")
                return replace(argument, value=value, is_dynamic=False)
            case _:
                return argument
