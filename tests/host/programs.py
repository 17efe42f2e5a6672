# SPDX-License-Identifier: Apache-2.0
"""Random programs: fusions cut at random places, aliases, and the caller's buffers."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from tests.definitions.check import _compare, written
from tests.host.peak import measured, reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Expr
    from tests.definitions.writer import Writer


def cutter(seed: int, share: float) -> Any:
    """Return a predicate that forbids a share of all merges, the same each time."""

    def should_merge(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
        dice = random.Random(f"{seed} {len(first)} {len(second)}")
        return dice.random() >= share

    return should_merge


def check(seed: int, backend: str) -> int:
    """Raise unless program ``seed`` does what NumPy does; return how many kernels."""
    dice = random.Random(seed)
    writer = written(seed, None, "numpy")
    fusion = writer.fd.fusion
    share = dice.choice([0.0, 0.3, 0.7, 1.0])
    cache = nfuser.FusionExecutorCache(
        fusion,
        backend=None if backend == "cpu" else backend,
        should_merge=cutter(seed, share),
    )
    given = [_copied(x) for x in writer.inputs]
    program = cache.program_for(given)
    assert measured(program) <= reference(program), (seed, "peak memory")
    host, arrays = _program(writer, cache, given)
    evaluator = nfuser.HostIrEvaluator(host)
    for _ in range(2):
        given = [_copied(x) for x in writer.inputs]
        arrays = [x for x in given if isinstance(x, np.ndarray)]
        outs = _buffers(dice, writer, host, arrays)
        kept = [x.tobytes() for x in arrays]
        with np.errstate(all="ignore"):
            made = evaluator.run(arrays, outs)
        _judge(seed, writer, made, outs, given, kept)
    return len(program.launches)


def _program(
    writer: Writer, cache: nfuser.FusionExecutorCache, given: list[Any]
) -> tuple[nfuser.HostProgram, list[Any]]:
    """Return a program that launches the fusion, with the aliases of the writer."""
    hc = nfuser.HostIrContainer("random")
    operands: list[Any] = []
    for x in given:
        is_array = isinstance(x, np.ndarray)
        operands.append(hc.define_tensor([-1] * x.ndim, x.dtype) if is_array else x)
    made = hc.launch(cache, *operands)
    made = made if isinstance(made, tuple) else (made,)
    aliases = writer.fd._complete()._aliases
    for number, tensor in enumerate(made):
        slot = aliases.get(number)
        hc.add_output(tensor, None if slot is None else operands[slot])
    return hc.program(), [x for x in given if isinstance(x, np.ndarray)]


def _copied(x: Any) -> Any:
    """Return an array with the same strides, writable."""
    if not isinstance(x, np.ndarray):
        return x
    copy = np.empty_like(x)
    copy[...] = x
    return copy


def _buffers(
    dice: random.Random,
    writer: Writer,
    host: nfuser.HostProgram,
    arrays: list[Any],
) -> list[Any]:
    """Return what some outputs go into: new, strided, or the memory of an input."""
    aliases = writer.fd._complete()._aliases
    terms = iter(writer.expected)
    found: list[Any] = []
    taken: set[int] = set()
    for number in range(len(host.outputs)):
        if number in aliases:
            found.append(None)
            continue
        array = next(terms).array
        chance = dice.random()
        fits = [
            k
            for k, x in enumerate(arrays)
            if x.shape == array.shape and x.dtype == array.dtype and k not in taken
        ]
        if chance < 0.2 and fits and not writer.aliased:
            taken.add(fits[0])
            found.append(arrays[fits[0]])
        elif chance < 0.4:
            found.append(np.empty_like(array))
        elif chance < 0.5:
            wide = np.empty((*array.shape, 2), array.dtype)
            found.append(wide[..., 0])
        else:
            found.append(None)
    return found


def _judge(
    seed: int,
    writer: Writer,
    made: list[Any],
    outs: list[Any],
    given: list[Any],
    kept: list[bytes],
) -> None:
    aliases = writer.fd._complete()._aliases
    for number, out in enumerate(outs):
        assert out is None or made[number] is out, (seed, "another buffer")
    for number, slot in aliases.items():
        assert made[number] is given[slot], (seed, "no alias")
    plain = [x for number, x in enumerate(made) if number not in aliases]
    _compare(writer, plain, [given[slot] for slot in writer.aliased])
    written_to = [given[slot] for slot in aliases.values()]
    arrays = [x for x in given if isinstance(x, np.ndarray)]
    for before, after in zip(kept, arrays, strict=True):
        if not any(after is x for x in (*outs, *written_to)):
            assert after.tobytes() == before, (seed, "wrote into an input")
