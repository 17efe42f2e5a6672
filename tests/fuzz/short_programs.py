# SPDX-License-Identifier: Apache-2.0
"""Random programs of one to four statements, as a user of NumPy writes them first.

``python -m tests.fuzz.short_programs --programs 300`` runs as many.
They meet what long ones hide: a loop that does one thing, an assignment without a loop.
"""

# Programs are text, whose values have no static type.
# pyright: basic

from __future__ import annotations

import argparse
import ast
import copy
import random
import re
import sys
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.errors import AxisError, NfuserError, ShapeError
from tests.fuzz import comparing
from tests.fuzz.backends import BACKENDS
from tests.fuzz.given import USUAL, Given
from tests.fuzz.loaded import loaded
from tests.fuzz.short_writer import generate
from tests.fuzz.write_programs import outcome
from tests.fuzz.write_programs import require_same as require_near

if TYPE_CHECKING:
    from tests.fuzz.short_writer import Writer

_TRIES, _FAILING = 4, 0.1
_HARSH = 0.15  # so often indices go too far, and arrays lie in odd ways
_COMPARED = re.compile(r"[<>]|max|min|sort|box|OWN|%")  # as no complex numbers are


def _extents(rng: random.Random) -> dict[str, int]:
    found = {a: rng.choice((2, 3, 4, 5, 5, 6, 8, 11)) for a in "abc"}
    if rng.random() < 0.04:
        found[rng.choice("abc")] = rng.choice((0, 1))
    return found


def _arrays(
    rng: random.Random,
    writer: Writer,
    text: str,
    extents: dict[str, int],
    *,
    is_harsh: bool,
) -> Given:
    dtype = rng.choices(("f8", "f4", "i8", "c16"), (10, 2, 2, 3))[0]
    if dtype == "c16" and _COMPARED.search(text):
        dtype = "f8"
    listed = []
    for name in writer.given:
        shape = tuple(extents[a] for a in writer.given_axes[name])
        count = int(np.prod(shape))
        most, by = rng.choice(((3, 1), (24, 8)))
        numbers = np.array([rng.randint(-most, most) / by for _ in range(count)])
        if rng.random() < 0.08 and dtype != "i8" and count:
            odd = rng.choice((np.nan, np.nan, np.inf, -np.inf))
            numbers[:: rng.choice((1, 2, 3, count))] = odd
        if dtype == "c16":
            numbers = numbers + 1j * np.arange(count)
        listed.append(numbers.astype(dtype).reshape(shape))
    roll = rng.random()
    if roll < (0.4 if is_harsh else 0.08):
        return Given.of(rng, listed, ("unaligned", "swapped", "read-only", "fortran"))
    return Given.of(rng, listed, USUAL if roll < 0.5 else USUAL[:1])


def _others(
    rng: random.Random, extents: dict[str, int], *, is_harsh: bool
) -> dict[str, Any]:
    """Return what a program may be given beside its arrays.

    Of index arrays one may go beyond what it names, where that is to be harsh.
    """
    least = max(min(extents.values()), 1)
    count = rng.choice((1, 2, 2, 3))
    found: dict[str, Any] = {
        x: np.array([rng.randint(-least, least - 1) for _ in range(count)])
        for x in "ij"
    }
    if is_harsh and rng.random() < 0.7:
        far = extents[rng.choice("abc")]
        beyond = rng.choice((far, -far - 1, far - 1, far + 2, -far - 3))
        found[rng.choice("ij")][rng.randrange(count)] = beyond
    begin, end = rng.choice((None, 0, 1, -3)), rng.choice((None, -1, 2, 4, 9))
    step = rng.choice((None, 1, 2, -1, 3))
    found["part"] = slice(begin, end, step) if step != -1 else slice(end, begin, step)
    most = least if rng.random() < 0.5 else 4
    found |= {"n": rng.randint(0, min(most, 4)), "m": rng.randint(0, 2)}
    found |= {"t": rng.choice((0.5, -0.25, 1.5)), "box": {"y": np.zeros(3)}}
    found["bag"] = {"y": np.arange(3.0)}
    return found


class Side:
    """One of the two that run a program: its arguments, and what it may change."""

    def __init__(self, function: Any, args: list[Any], outside: list[Any]) -> None:
        self.args = args
        self.how, self.result = outcome(function, args)
        self.outside = [x.copy() for x in outside]

    def state(self) -> list[tuple[str, Any]]:
        """Return what may be seen after the call, with words for it."""
        found = [(f"argument {k}", x) for k, x in enumerate(self.args)]
        found += [(f"OWN {k}", x) for k, x in enumerate(self.outside)]
        if self.how == "returned":
            found += comparing.leaves(self.result, "result")
        return [leaf for what, x in found for leaf in comparing.leaves(x, what)]


_CHOSEN = re.compile(r"[^.]m(ax|in)\(| if |^ +(for|while) ", re.MULTILINE)
_READ = re.compile(r"= .*\b[ij]\b")
_LATER = re.compile(r"^ {8,}for |^    else:|^    [^f].*\b[kh]\b", re.MULTILINE)
"""Reads in loops in loops, and by what counters are after all turns."""

_IN_ARMS = re.compile(r"^ +(if|while) | if ", re.MULTILINE)
_MAY_SKIP = re.compile(r"^ +(if|while|for) ", re.MULTILINE)


def _is_clipped(text: str) -> bool:
    """Tell whether something is read by arrays, or in loops in loops: no writes."""
    program = text.partition("seed ")[2].partition("\n")[2]
    reads = (
        ast.unparse(node.slice)
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
    )
    by_arrays = any(re.search(r"\b[ij]\b", key) for key in reads)
    return by_arrays or bool(_LATER.search(program))


def _beside(text: str, writer: Writer) -> list[str]:
    """Return what a program is given beside its arrays."""
    names = re.search(r"def program\((.*)\):", text)
    assert names is not None
    return names[1].split(", ")[len(writer.given) :]


def _fitting(seed: int) -> tuple[str, Writer]:
    """Return a program that does not always fail, but for some."""
    text, writer = generate(seed)
    for number in range(_TRIES):
        rng = random.Random(f"{seed} {number}")
        if rng.random() < _FAILING or any(
            _returns(text, writer, rng) for _ in range(2)
        ):
            break
        text, writer = generate(f"{seed} {number}")
    return text, writer


def _returns(text: str, writer: Writer, rng: random.Random) -> bool:
    extents = _extents(rng)
    args = _arrays(rng, writer, text, extents, is_harsh=False).copies()[1]
    more = _others(rng, extents, is_harsh=False)
    args += [more[x] for x in _beside(text, writer)]
    with loaded(text, "<short program>", np=np) as space:
        return outcome(space["program"], args)[0] == "returned"


def compare(seed: int, backend: str, tally: Counter[str]) -> None:
    """Run one program for some calls; raise where it is not what NumPy does."""
    rng = random.Random(seed)
    text, writer = _fitting(seed)
    beside = _beside(text, writer)
    with (
        warnings.catch_warnings(action="ignore"),
        loaded(text, f"<short program {seed}>", np=np) as space,
    ):
        plain, owner = space["program"], space.get("OWN")
        outside = [owner.g, owner.h] if owner is not None else []
        what = f"seed {seed}\n{text}"
        fused = nfuser.fuse(plain, backend=backend)
        kept: list[tuple[Any, Any]] = []
        for _ in range(rng.choice((1, 2, 2, 3))):
            extents = _extents(rng)
            is_harsh = rng.random() < _HARSH
            given = _arrays(rng, writer, text, extents, is_harsh=is_harsh)
            for _ in range(rng.choice((1, 2, 4))):
                more = _others(rng, extents, is_harsh=is_harsh)
                if rng.random() < 0.3:
                    space["RATE"] = rng.choice((1, 2, 3, 0.5))
                listed = [more[x] for x in beside]
                other = _one_call(plain, fused, outside, given, listed, tally, what)
                kept += comparing.own(other.state(), outside)
                given.change(rng)
        if said := comparing.changed(kept):
            raise AssertionError(f"a later call changed {said} {what}")


def require_same(wanted: Any, found: Any, what: str) -> None:
    """Refuse what is not as wanted, also where it is no number, or infinite."""
    a, c = np.asarray(wanted), np.asarray(found)
    is_float = a.dtype.kind == c.dtype.kind == "f" and a.itemsize != c.itemsize
    is_rounded = a.dtype == c.dtype and a.dtype.kind in "fc" and "'float32'" in what
    is_chosen = (is_float or not (a.ndim or c.ndim)) and _CHOSEN.search(what)
    if is_chosen or is_rounded:
        a, c = (x.astype("c8") for x in (a, c))  # one of two types is the wider here
    require_near(a, c, what)
    if a.dtype.kind in "fc" and not np.isfinite(a).all():
        for part in (np.isnan, np.isposinf, np.isneginf) if a.dtype.kind == "f" else ():
            if not np.array_equal(part(a), part(c)):
                raise AssertionError(f"{c}\nin place of\n{a}\n{what}")
        both = np.isfinite(a)
        require_near(a[both], c[both], what)


def require_form(wanted: Any, found: Any, what: str) -> None:
    """Refuse what lies in memory in another order, or that nobody may write."""
    if _MAY_SKIP.search(what) or not isinstance(wanted, np.ndarray):
        return  # what loops and branches give is theirs
    if said := comparing.lying(wanted, np.asarray(found)):
        raise AssertionError(f"{said} {what}")


def _put(arrays: list[Any], values: list[Any]) -> None:
    for x, value in zip(arrays, values, strict=True):
        x[...] = value


def _one_call(
    plain: Any,
    fused: Any,
    outside: list[Any],
    given: Given,
    beside: list[Any],
    tally: Counter[str],
    text: str,
) -> Side:
    (own, theirs), (held, mine), (_, before) = (given.copies() for _ in range(3))
    first = [x.copy() for x in outside]
    one = Side(plain, [*theirs, *copy.deepcopy(beside)], outside)
    _put(outside, first)
    other = Side(fused, [*mine, *copy.deepcopy(beside)], outside)
    _put(outside, one.outside)
    lies = [(str(x.dtype), x.shape, x.strides) for x in mine]
    what = f"for {lies} {beside}\n{text}"
    _require_alike(one, other, before, (own, held), given, tally, what)
    return other


def _is_told(
    one: Side, other: Side, before: list[Any], tally: Counter[str], what: str
) -> bool:
    """Tell whether a call was refused, or raised in NumPy where it may not here."""
    is_refused = other.how == "raised" and (
        comparing.is_refusal(other.result)
        or (one.how == "raised" and isinstance(other.result, NfuserError))
    )
    is_misfit = is_refused and isinstance(other.result, ShapeError | AxisError)
    if is_misfit and one.how == "returned" and not _MAY_SKIP.search(what):
        raise AssertionError(f"refused: {other.result} {what}")
    if is_refused:
        told = "failed alike" if one.how == "raised" else "refused"
        tally[told] += 1
        if told == "refused":
            tally["refused: " + str(other.result).partition("\n")[0][:110]] += 1
        is_left = told == "failed alike" and not all(
            np.array_equal(was, x, equal_nan=True)
            for x, was in zip(other.args, before, strict=False)
        )  # by statements before that one
        if is_left and (_IN_ARMS.search(what) or _READ.search(what)):
            return True  # what is read by arrays and in arms is clipped
        for k, was in enumerate(before):
            wanted = one.args[k] if is_left else was
            require_same(wanted, other.args[k], f"left by {other.result} {what}")
        return True
    if one.how == "raised" and other.how == "returned":
        unbound = isinstance(one.result, UnboundLocalError)
        if "setting an array element" in str(one.result):
            return True  # of one element, as NumPy took until 2.4
        if isinstance(one.result, OverflowError) or "NaN to int" in str(one.result):
            return True  # of numbers that no integer of the dtype holds
        clipped = isinstance(one.result, IndexError) and _is_clipped(what)
        if unbound or clipped or _IN_ARMS.search(what):
            tally["beyond"] += 1  # what kernels read beyond an array is clipped
            return True
    if one.how != other.how:
        error = one.result if one.how == "raised" else other.result
        raise AssertionError(
            f"{one.how} in NumPy, and {other.how} here: {error!r} {what}"
        )
    return False


def _require_alike(
    one: Side,
    other: Side,
    before: list[Any],
    held: tuple[list[Any], list[Any]],
    given: Given,
    tally: Counter[str],
    what: str,
) -> None:
    if _is_told(one, other, before, tally, what):
        return
    tally[one.how] += 1
    seen, found = one.state(), other.state()
    if [name for name, _ in seen] != [name for name, _ in found]:
        raise AssertionError(f"{seen} and {found} {what}")
    for (name, x), (_, y) in zip(seen, found, strict=True):
        if x is None or y is None or isinstance(x, slice):
            if x is not y and x != y:
                raise AssertionError(f"{name}: {y} in place of {x} {what}")
            continue
        require_same(x, y, f"{name} {what}")
        if name.startswith("result"):
            require_form(x, y, f"{name} {what}")
    arrays = [
        (name, x, y)
        for (name, x), (_, y) in zip(seen, found, strict=True)
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    ]
    if not re.search(r"^ +if ", what, re.MULTILINE):  # in arms, choices are copies
        _require_identities(arrays, before, what)
    if not given.is_same_around(
        (held[0], one.args[: len(before)]), (held[1], other.args[: len(before)])
    ):
        raise AssertionError(f"written beside the arrays {what}")


def _require_identities(
    arrays: list[tuple[str, Any, Any]], before: list[Any], what: str
) -> None:
    """Refuse a copy of what was written or made, and a view of what was neither."""
    given, later = arrays[: len(before)], arrays[len(before) :]
    for (_, x, y), was in zip(given, before, strict=True):
        is_written = not np.array_equal(was, x, equal_nan=True)
        for name, p, q in later:
            if (q is y and p is not x) or (is_written and p is x and q is not y):
                raise AssertionError(f"identity of {name} {what}")
            shares, wanted = np.may_share_memory(q, y), np.may_share_memory(p, x)
            if shares != wanted and (shares or is_written):
                raise AssertionError(f"{name}: a view {shares}, not {wanted} {what}")
    for k, (_, x, y) in enumerate(later):
        if not any(np.may_share_memory(x, p) for _, p, _ in given):
            for name, p, q in later[k + 1 :]:
                if (p is x) != (q is y) and "box" in what:
                    raise AssertionError(f"identity of {name} {what}")


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", choices=BACKENDS, default="cpu")
    asked = parser.parse_args()
    tally: Counter[str] = Counter()
    wrong = 0
    for seed in range(asked.first, asked.first + asked.programs):
        try:
            compare(seed, asked.backend, tally)
        except Exception as error:  # noqa: BLE001 (each is a fault to be told)
            wrong += 1
            sys.stdout.write(f"program {seed}: {type(error).__name__}: {error}\n")
    refused = tally["refused"]
    sys.stdout.write(
        f"{tally['returned']} calls agreed, {tally['raised']} failed alike, "
        f"{tally['failed alike']} told before, {refused} refused, {wrong} wrong\n"
    )
    said = {k: n for k, n in tally.most_common(40) if k.startswith("refused: ")}
    sys.stdout.write("".join(f"{n:5} {k}\n" for k, n in said.items()))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
