# SPDX-License-Identifier: Apache-2.0
"""Random programs that write, of one to three axes: masks, loops, branches, effects.

``python -m tests.fuzz.write_programs --programs 300`` runs as many, each for several
shapes, fused and plain. What it returns is compared, and what its arguments and arrays
from outside hold then; where NumPy raises, what the statements before left is. With
``--each 30`` programs are chosen in which each two features stand together so often,
and a table tells how often they do; ``--first`` and ``--programs`` are a part of them.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import AxisError, NfuserError, ShapeError
from tests.fuzz.growing import SHAPES
from tests.fuzz.loaded import loaded
from tests.fuzz.on_device import BACKENDS, fused_for
from tests.fuzz.pairs import Chosen, for_each_pair, table
from tests.fuzz.write_steps import are_shared, generate

if TYPE_CHECKING:
    from collections.abc import Callable


def random_arrays(rng: random.Random, shape: tuple[int, ...]) -> list[Any]:
    """Return two arrays of small integers, which lie in different ways."""
    found: list[Any] = []
    for _ in range(2):
        count = int(np.prod(shape))
        dtype = rng.choice(("f8", "f8", "f8", "f4"))
        x = np.asarray([rng.randint(-3, 3) for _ in range(count)], dtype).reshape(shape)
        layout = rng.random()
        if layout < 0.2:
            x = np.asfortranarray(x)
        elif layout < 0.3:
            x = np.repeat(x, 2, axis=0)[::2]
        elif layout < 0.4:
            x = x[..., ::-1].copy()[..., ::-1]
        found.append(x)
    return found


def copied(x: Any) -> Any:
    """Return a copy that lies as ``x`` does."""
    order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    if x.size and x.strides[-1] < 0:
        return x[..., ::-1].copy()[..., ::-1]
    return x.copy(order)


def outcome(function: Any, given: list[Any]) -> tuple[str, Any]:
    """Return how a call ended, and what it returned or raised."""
    try:
        with np.errstate(all="ignore"):
            return "returned", function(*given)
    except (NfuserError, ValueError, IndexError, TypeError, NameError) as error:
        return "raised", error


@dataclass
class Given:
    """Two arrays, or parts of one that is longer: what each call is given anew."""

    held: list[Any]
    views: Callable[[Any], list[Any]] | None = None

    @classmethod
    def random(cls, rng: random.Random, shape: tuple[int, ...], shared: bool) -> Given:
        """Return arrays of a shape; those that are shared overlap in some way."""
        if not shared:
            return cls(random_arrays(rng, shape))
        longer, _ = random_arrays(rng, (shape[0] + 1, *shape[1:]))
        return cls([longer], rng.choice(_OVERLAPS))

    def arrays(self, *, in_doubles: bool = False) -> list[Any]:
        """Return the arrays, which nobody has written into."""
        held = [copied(x) for x in self.held]
        if in_doubles:
            held = [x.astype("d") if x.dtype.char == "f" else x for x in held]
        return held if self.views is None else self.views(held[0])


_OVERLAPS: tuple[Callable[[Any], list[Any]], ...] = (
    lambda x: [x[:-1], x[1:]],
    lambda x: [x[1:], x[:-1]],
    lambda x: [x[1:], x[1:]],
    lambda x: [x[1:], x[:0:-1]],
    lambda x: [x[1:], x[1:][..., ::-1]],
)


@dataclass
class Tally:
    """What calls came to."""

    agreed: int = 0
    failed_alike: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def compare(
    text: str, seed: int, rank: int, backend: str | None, tally: Tally, shapes: int = 3
) -> None:
    """Run one program for some shapes; raise where it is not what NumPy does."""
    outside = np.arange(9.0)
    with loaded(text, f"<write program {seed}>", np=np, G=outside) as space:
        plain = space["program"]
        fused = fused_for(backend, plain, text, outside)
        rng = random.Random(seed)
        for shape in rng.sample(SHAPES[rank], min(shapes, len(SHAPES[rank]))):
            given = Given.random(rng, shape, are_shared(seed))
            numbers = [rng.randint(0, 4), rng.choice((0.5, -0.25))]
            for _ in range(2):
                _one_call(plain, fused, given, numbers, outside, tally, text)


def _one_call(
    plain: Any,
    fused: Any,
    given: Given,
    numbers: list[Any],
    outside: Any,
    tally: Tally,
    text: str,
) -> None:
    mine, theirs, untouched = (given.arrays() for _ in range(3))
    before = outside.copy()
    how, wanted = outcome(plain, [*theirs, *numbers])
    after = outside.copy()
    outside[...] = before
    done, found = outcome(fused, [*mine, *numbers])
    wide = _widened(plain, given, numbers, outside, before)
    what = f"for {[x.shape for x in mine]} {numbers}\n{text}"
    is_refused = done == "raised" and isinstance(found, NfuserError)
    if is_refused and how == "returned" and not _is_misfit(found, text):
        tally.refused[str(found).partition("\n")[0][:110]] += 1
        for x, was in zip((*mine, outside), (*untouched, before), strict=True):
            require_same(was, x, f"written though refused ({found}) {what}")
        outside[...] = after
        return
    if how != done:
        message = f"{how} {wanted!r}, but {done} {found!r} {what}"
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
    for one, other in listed:
        for x, y in zip(theirs, mine, strict=True):
            if other is y and one is not x:
                raise AssertionError(f"identity {what}")
    tally.agreed += 1


def _is_misfit(error: Any, text: str) -> bool:
    """Tell whether an error says that sizes do not fit, of statements that all run."""
    may_skip = any(f"{word} " in text for word in ("if", "for", "while"))
    return isinstance(error, ShapeError | AxisError) and not may_skip


def _widened(
    plain: Any, given: Given, numbers: list[Any], outside: Any, before: Any
) -> list[Any]:
    """Return the values of a call in doubles, if it has singles among its arguments.

    What differs there is what singles have rounded, and may have rounded otherwise.
    """
    if all(x.dtype.char != "f" for x in given.held):
        return []
    held = outside.copy()
    outside[...] = before
    wide = given.arrays(in_doubles=True)
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
    if a.dtype != c.dtype or a.shape != c.shape:
        message = f"{c.dtype}{c.shape} in place of {a.dtype}{a.shape}: {what}"
        raise AssertionError(message)
    most = np.abs(a).max() if a.size else 0
    if not np.isfinite(most) or most > 1e30:
        return
    limit = _limit(a, exact, max(most, 1e-9))
    if not np.allclose(a, c, rtol=0, atol=2 * limit, equal_nan=True):
        raise AssertionError(f"{c}\nin place of\n{a}\n{what}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
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
        text, found, rank = generate(seed, wanted)
        features.update(found)
        try:
            compare(text, seed, rank, given.backend, tally)
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
