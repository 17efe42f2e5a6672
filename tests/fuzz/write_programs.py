# SPDX-License-Identifier: Apache-2.0
"""Random programs that write, of one to three axes: masks, loops, branches, effects.

``python -m tests.fuzz.write_programs --programs 300`` runs as many, each for several
shapes, fused and plain. What it returns is compared, and what its arguments and arrays
from outside hold then; where NumPy raises, what the statements before left is. With
``--each 30`` programs are chosen in which each two features stand together so often,
and a table tells how often they do; ``--first`` and ``--programs`` are a part of them.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import AxisError, NfuserError, ShapeError
from tests.fuzz.comparing import is_refusal
from tests.fuzz.given import Given, kinds
from tests.fuzz.growing import SHAPES
from tests.fuzz.loaded import loaded
from tests.fuzz.on_device import BACKENDS, fused_for
from tests.fuzz.pairs import Chosen, for_each_pair, table
from tests.fuzz.ways import Way
from tests.fuzz.write_steps import are_shared, generate

if TYPE_CHECKING:
    from collections.abc import Callable


_RAISED = (
    NfuserError,
    ValueError,
    IndexError,
    TypeError,
    NameError,
    ArithmeticError,
)


def outcome(function: Any, given: list[Any]) -> tuple[str, Any]:
    """Return how a call ended, and what it returned or raised."""
    try:
        with np.errstate(all="ignore"):
            return "returned", function(*given)
    except _RAISED as error:
        return "raised", error


@dataclass
class Tally:
    """What calls came to."""

    agreed: int = 0
    failed_alike: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def compare(
    text: str,
    seed: int,
    rank: int,
    backend: str | None,
    tally: Tally,
    shapes: int | tuple[tuple[int, ...], ...] = 2,
) -> None:
    """Run one program for some shapes; raise where it is not what NumPy does.

    They are so many of those that are usual, or one of those that are given.
    """
    usual = SHAPES[rank] if isinstance(shapes, int) else shapes
    several = min(shapes, len(usual)) if isinstance(shapes, int) else 1
    outside = np.arange(9.0)
    rng = random.Random(seed)
    shared, on_device = are_shared(seed), backend == "cuda"
    way = Way.plain(text) if on_device else Way.random(rng, text)
    text = way.text
    with loaded(text, f"<write program {seed}>", np=np, G=outside) as space:
        fused = fused_for(backend, space["program"], text, outside)
        plain = way.calling(space["program"], space)
        fused = way.calling(fused, space)
        chosen = rng.sample(usual, several)
        if several > 1 and rng.random() < _AGAIN:  # it may lie in another way then
            chosen.append(chosen[0])
        first = 2 if backend == "interpret" else _CALLS
        calls: list[tuple[Given, int]] = []
        for shape, kind in zip(chosen, kinds(rng), strict=False):
            given = Given.random(rng, shape, kind, shared=shared, on_device=on_device)
            calls += [(given, rng.randint(0, 4))] * (1 if calls else first)
        if rng.random() < _MIXED:
            rng.shuffle(calls)
        for given, usual_n in calls:
            n = rng.randint(0, 4) if rng.random() < _OTHERS else usual_n
            numbers = [n, rng.choice((0.5, -0.25))]
            _one_call(plain, fused, given, numbers, outside, tally, text)
            given.change(rng)


_SMALL = 4  # arrays that loops, which count to 3, may read beyond
_AGAIN = _MIXED = 0.3  # so often a shape is there again, and calls are by turns
_OTHERS = 0.2  # so often a call of a shape counts otherwise
_CALLS = 4  # with arrays that lie alike, as native host programs begin with the third


def _one_call(
    plain: Any,
    fused: Any,
    given: Given,
    numbers: list[Any],
    outside: Any,
    tally: Tally,
    text: str,
) -> None:
    (held, mine), (own, theirs), (_, untouched) = (given.copies() for _ in range(3))
    before = outside.copy()
    how, wanted = outcome(plain, [*theirs, *numbers])
    after = outside.copy()
    outside[...] = before
    done, found = outcome(fused, [*mine, *numbers])
    wide = _widened(plain, given, numbers, outside, before)
    lies = [(str(x.dtype), x.shape, x.strides) for x in mine]
    what = f"for {lies} {numbers}\n{text}"
    is_refused = done == "raised" and is_refusal(found)
    if is_refused and how == "returned" and not _is_misfit(found, text):
        tally.refused[str(found).partition("\n")[0][:110]] += 1
        for x, was in zip((*mine, outside), (*untouched, before), strict=True):
            require_same(was, x, f"written though refused ({found}) {what}")
        outside[...] = after
        return
    if how == "raised" and min(mine[0].shape) < _SMALL and _MAY_SKIP.search(text):
        outside[...] = after  # what kernels read beyond an array is clipped
        return
    if isinstance(wanted, UnboundLocalError | ArithmeticError):
        outside[...] = after  # what no turn bound is zero, such an average nan
        return
    if how != done:
        error = wanted if how == "raised" else found
        message = f"{how} in NumPy, and {done} here: {error!r} {what}"
        raise AssertionError(message)
    if how == "raised":
        tally.failed_alike += 1
        if isinstance(found, NfuserError) and all(
            np.array_equal(x, y) for x, y in zip(mine, untouched, strict=True)
        ):
            outside[...] = after  # told before anything was written
            return
    listed: list[tuple[Any, Any]] = []
    if how == "returned":
        results: Any = found
        listed = list(zip(wanted, results, strict=True))
    pairs = [*listed, *zip(theirs, mine, strict=True), (after, outside)]
    for k, (one, other) in enumerate(pairs):
        exact = wide[k - len(pairs)] if len(wide) >= len(pairs) - k else None
        require_same(one, other, f"value {k} {what}", exact)
    returned = (
        listed if not _MAY_SKIP.search(text) else []
    )  # but for what loops pass on
    for one, other in returned:
        _require_same_identity(one, other, (theirs, mine), untouched, what)
    if not given.is_same_around((own, theirs), (held, mine)):
        raise AssertionError(f"written beside the arrays {what}")
    tally.agreed += 1


def _require_same_identity(
    one: Any, other: Any, given: tuple[list[Any], list[Any]], was: list[Any], what: str
) -> None:
    """Refuse an argument in place of a copy, a copy of one that was written, a view."""
    for x, y, before in zip(*given, was, strict=True):
        is_written = not np.array_equal(before, x, equal_nan=True)
        if (other is y and one is not x) or (
            is_written and one is x and other is not y
        ):
            raise AssertionError(f"identity {what}")
        if other is not y and np.may_share_memory(other, y):
            raise AssertionError(f"a view is returned {what}")


def _is_misfit(error: Any, text: str) -> bool:
    """Tell whether an error says that sizes do not fit, of statements that all run."""
    return isinstance(error, ShapeError | AxisError) and not _MAY_SKIP.search(text)


_MAY_SKIP = re.compile(r"^ +(if|for|while) ", re.MULTILINE)


def _widened(
    plain: Any, given: Given, numbers: list[Any], outside: Any, before: Any
) -> list[Any]:
    """Return the values of a call in doubles, if it has singles among its arguments.

    What differs there is what singles have rounded, and may have rounded otherwise.
    """
    if all(x.dtype.char != "f" for x in given.copies()[1]):
        return []
    held = outside.copy()
    outside[...] = before
    wide = given.in_doubles()
    how, found = outcome(plain, [*wide, *numbers])
    values = [*(found if how == "returned" else ()), *wide, outside.copy()]
    outside[...] = held
    return values


def _limit(wanted: Any, exact: Any, most: float) -> float:
    """Return how far a value may be off: by the rounding that it has seen."""
    if wanted.dtype.char == "f":
        return 1e-4 * most
    is_exact = wanted.dtype.kind not in "fc" or np.shape(exact) != wanted.shape
    if exact is None or is_exact:
        return 1e-10 * most
    apart = np.abs(wanted - exact).max() if wanted.size else 0
    if not np.isfinite(apart):
        return 1e-4 * most
    return 1e-10 * most if apart == 0 else 8 * apart + 1e-6 * most


def require_same(wanted: Any, found: Any, what: str, exact: Any = None) -> None:
    """Refuse an array that is not as wanted, but for what was rounded."""
    a, c = np.asarray(wanted), np.asarray(found)
    if a.dtype.newbyteorder("=") != c.dtype.newbyteorder("=") or a.shape != c.shape:
        message = f"{c.dtype}{c.shape} in place of {a.dtype}{a.shape}: {what}"
        raise AssertionError(message)
    finite = np.isfinite(a)
    most = np.abs(a[finite]).max(initial=0)
    if most > 1e30:
        return
    if not finite.all():
        if a.dtype.kind == "f":
            places = [np.isnan(a), a == np.inf, a == -np.inf]
            others = [np.isnan(c), c == np.inf, c == -np.inf]
            if not all(map(np.array_equal, places, others)):
                raise AssertionError(f"{c}\nin place of\n{a}\n{what}")
        a, c = a[finite], c[finite]
        exact = None if exact is None else np.asarray(exact)[finite]
    limit = _limit(a, exact, max(most, 1e-9))
    if not np.allclose(a, c, rtol=0, atol=2 * limit, equal_nan=True):
        raise AssertionError(f"{c}\nin place of\n{a}\n{what}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(
    write: Callable[..., tuple[str, set[str], int]] = generate,
    about: str | None = __doc__,
    shapes: int | tuple[tuple[int, ...], ...] = 2,
) -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--each", type=int, help="so often for each pair of features")
    parser.add_argument("--backend", choices=BACKENDS, default="cpu")
    given = parser.parse_args()
    tally, wrong = Tally(), 0
    features: Counter[str] = Counter()
    until = given.first + given.programs
    if given.each is None:
        chosen = [Chosen(seed) for seed in range(given.first, until)]
    else:
        every, counted = for_each_pair(given.each)
        chosen = every[given.first : until]
        _say(f"{table(counted)}\n{len(chosen)} of {len(every)} programs:")
    for seed, wanted in chosen:
        text, found, rank = write(seed, wanted)
        features.update(found)
        try:
            compare(text, seed, rank, given.backend, tally, shapes)
        except Exception as error:  # noqa: BLE001 (each is a fault to be told)
            wrong += 1
            _say(f"program {seed} {wanted}: {type(error).__name__}: {error}")
            if not isinstance(error, AssertionError):
                _say(text)
    refused = sum(tally.refused.values())
    _say(
        f"{tally.agreed} calls agreed, {tally.failed_alike} of them failed alike, "
        f"{refused} refused, {wrong} programs wrong"
    )
    _say(f"features: {dict(features)}")
    _say(f"refused: {dict(tally.refused.most_common(12))}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
