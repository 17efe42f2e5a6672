# SPDX-License-Identifier: Apache-2.0
"""What is new about the answers of a call, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.concretize.answers import BROADCAST, ITERATION, TRIVIAL
from nfuser.compiler.ir.expr import results
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.text import groups_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.concretize.answers import Answers, Questions, Resized, Triple
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion

MOST = 2  # differences that one sentence names
_SIZES = ("0", "1", "2 or more")
_KINDS = {TRIVIAL: "keeps its size", BROADCAST: "gets size 1", ITERATION: "is resized"}


def whats_new(
    fusion: Fusion, asked: Questions, answers: Answers, known: Iterable[Answers]
) -> str:
    """Return how ``answers`` differ from the nearest of ``known``; "" if none is."""
    every = [_differences(fusion, asked, answers, other) for other in known]
    if not every:
        return ""
    found = min(every, key=len)
    more = [f"{len(found) - MOST} more"] if len(found) > MOST else []
    return "; ".join([*found[:MOST], *more])


def _differences(
    fusion: Fusion, asked: Questions, answers: Answers, other: Answers
) -> list[str]:
    found: list[str] = []
    classes = zip(asked.extents, answers.classes, other.classes, strict=True)
    changed = [(x, size) for x, size, before in classes if size != before]
    given = [(x, n) for x, n in changed if isinstance(x, sc.Size)]
    found += [
        f"the size of argument {x.slot} along axis {x.axis} is {_SIZES[n]}"
        for x, n in given
    ]
    patterns = zip(asked.reshapes, answers.patterns, other.patterns, strict=True)
    for number, pattern, before in patterns:
        if pattern != before:
            how = groups_text(pattern.groups) or "no axis"
            expr = fusion.every[number]
            found.append(f"the reshape{_line(expr)} pairs other axes: {how}")
    resizes = zip(asked.resized, answers.resized, other.resized, strict=True)
    found += [_resize(fusion, one, new) for one, new, old in resizes if new != old]
    if answers.sizes and not found:
        pairs = zip(answers.sizes, other.sizes, strict=True)
        new = ", ".join(str(size) for size, before in pairs if size != before)
        found = [f"there are new sizes, which are compiled in: {new}"] if new else []
    if not found:
        found = [f"a size computed of others is {_SIZES[n]}" for _, n in changed]
    return list(dict.fromkeys(found))


def _resize(fusion: Fusion, one: Resized, triple: Triple) -> str:
    expr = fusion.every[one.number]
    how = _KINDS.get(triple)
    if how is None:
        extent, left, right = triple
        how = f"has size {extent} and gains {left} and {right}, which is compiled in"
    return f"axis {one.axis} of the source of {_verb(expr)}{_line(expr)} {how}"


def _verb(expr: Expr) -> str:
    return type(expr).__name__.lower()


def _line(expr: Expr) -> str:
    source = results(expr)[0].source
    return f" at {source}" if source else ""
