# SPDX-License-Identifier: Apache-2.0
"""Programs of one to three statements out of a list of those that people write.

``python -m tests.fuzz.form_programs --programs 300`` runs as many. Each is called often
enough to be served natively, then with arrays of other sizes and dtypes, that lie
otherwise or over each other, and compared with NumPy in all that can be seen.
"""

# Programs are text, whose values have no static type.
# pyright: basic

from __future__ import annotations

import argparse
import copy
import random
import re
import sys
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

import nfuser
from nfuser.errors import NfuserError
from tests.fuzz import comparing
from tests.fuzz.backends import BACKENDS
from tests.fuzz.form_given import GIVEN, Call, calls
from tests.fuzz.form_texts import LOOPS, VALUES, WRITES
from tests.fuzz.form_ways import FormWay
from tests.fuzz.loaded import loaded

_TOKEN = re.compile(r"(?<![.\w])[ABXYPMKTRSDL]\b")
_FAILING = re.compile(r"raise |assert |99|axis=3|k \+ 9|\[p \+ 1\] = |\[p \* 2\] = ")
_CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")


def chosen(rng: random.Random, text: str) -> list[str]:
    """Return the lines of a form, with one of the ways that each place may be."""
    while _CHOICE.search(text):
        text = _CHOICE.sub(lambda found: rng.choice(found[1].split("|")), text)
    return [line.rstrip() for line in text.split("\n") if line.strip()]


class _Writer:
    """Grows a program, which NumPy runs meanwhile."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"form {seed}")
        self.lines: list[str] = []
        self.made: list[str] = []
        self.text, self.space = self._whole([], []), self._trial()

    def _trial(self) -> dict[str, Any]:
        return {x.lower(): copy.deepcopy(v) for x, v in GIVEN.items()}

    def _bound(self, lines: list[str]) -> tuple[list[str], list[str]]:
        """Return lines in which letters have become names, and the names made."""
        rng = self.rng
        names: dict[str, str] = {}
        later = [x for x in self.made if isinstance(self.space.get(x), np.ndarray)]

        def like(shape: tuple[int, ...], usual: str) -> str:
            fit = [x for x in later if self.space[x].shape == shape]
            return rng.choice(fit) if fit and rng.random() < 0.75 else usual

        wide = [x for x in later if self.space[x].ndim == 2]
        names["A"] = rng.choice(wide) if wide and rng.random() < 0.6 else "a"
        rows = self.space[names["A"]].shape
        names["B"] = like(rows, "b") if rng.random() < 0.5 else "b"
        names["X"], names["Y"] = like(rows[1:], "x"), like(rows[:1], "y")
        count = len(self.made)
        names |= {"R": f"r{count}", "S": f"s{count}", "P": "p", "M": "m"}
        names |= {"K": "k", "T": "t", "D": "d", "L": "l"}
        text = "\n".join(lines)
        made = [names[x] for x in "RS" if re.search(rf"(?<!\.)\b{x}\b", text)]
        text = _TOKEN.sub(lambda found: names[found[0]], text)
        return text.split("\n"), made

    def _whole(self, lines: list[str], made: list[str]) -> str:
        body = "\n".join(lines)
        given = [x for x in "abxypmktdl" if re.search(rf"\b{x}\b", body)]
        arrays = [x for x in given if x in "abxydl"]
        results = [*made, *[x for x in arrays if self.rng.random() < 0.5]] or arrays
        self.rng.shuffle(results)
        form = self.rng.random()
        end = ", ".join(results)
        if form < 0.2:
            pairs = (f"{x!r}: {x}" for x in results)
            end = f"{{{', '.join(pairs)}}}"
        elif form < 0.4:
            end = f"[{end}]"
        head = f"def program({', '.join(given)}):"
        return "\n    ".join([head, *lines, f"return {end}"]) + "\n"

    def grow(self, forms: list[str], tries: int = 8) -> None:
        """Add a form if it fits."""
        for _ in range(tries):
            lines, made = self._bound(chosen(self.rng, self.rng.choice(forms)))
            every = [*self.lines, *lines]
            is_end = any("return" in x and x[4:5] == " " for x in every)
            names = [*self.made, *made]
            text = self._whole(every, names)
            ends = text.rpartition("    return ")[0]
            named = ", ".join(f"{x!r}: {x}" for x in names)
            trial = f"{ends}    return {{{named}}}\n"
            space = self._trial()
            try:
                found = _called(trial, space)
            except Exception:  # noqa: BLE001 (whatever does not fit is left out)
                if not _FAILING.search(text):
                    continue
                found = {}
            if isinstance(found, dict):
                space |= {k: x for k, x in found.items() if not callable(x)}
            names = (
                [x for x in names if not callable(found.get(x))]
                if isinstance(found, dict)
                else names
            )
            self.lines, self.made, self.space = every, names, space
            self.text = self._whole(every, names)
            if is_end:
                self.made = [x for x in names if x in space]
            return


def _called(text: str, space: dict[str, Any]) -> Any:
    names: dict[str, Any] = {"np": np}
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        exec(text, names)  # noqa: S102 (programs are text)
        heads = re.match(r"def program\((.*)\):", text)
        assert heads is not None
        return names["program"](*[space[x] for x in heads[1].split(", ") if x])


def fits(rng: random.Random, form: str) -> bool:
    """Tell whether NumPy runs a form alone, written in one of its ways."""
    writer = _Writer(rng.getrandbits(32))
    writer.grow([form], 1)
    return bool(writer.lines)


def generate(seed: int) -> str:
    """Return the text of a program."""
    writer = _Writer(seed)
    rng = writer.rng
    every = [*VALUES, *WRITES, *LOOPS]
    if rng.random() < 0.5:
        writer.grow([rng.choice(every)])
    while not writer.lines:
        writer.grow(rng.choices((VALUES, WRITES, LOOPS), (3, 5, 3))[0])
    if rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 2))):
            writer.grow(rng.choices((VALUES, WRITES, LOOPS), (3, 5, 3))[0])
    return writer.text


_ROUNDED = re.compile(r"f2|f4|float32|float16")
_NUMBERS = re.compile(r"^ +(for|while|if) |\b(max|min)\(| if | and | or ", re.MULTILINE)
_TIES = re.compile(r"max|min|median|percentile|quantile|sort|partition|clip|ptp")
_BEYOND = re.compile(r"\bp [-+*]|-p\b")
_PLACED = re.compile(r"stretched|\bfft\b|\[.*\bp\b.*\] .?= ")
"""What makes NumPy's numbers of Python's, zeros of either sign, and reads that clip;
and what gives results that lie in their own way."""


def _outcome(function: Any, given: list[Any]) -> tuple[str, Any]:
    try:
        with np.errstate(all="ignore"):
            return "returned", function(*given)
    except Exception as error:  # noqa: BLE001 (it is compared)
        return "raised", error


def compare(seed: int, backend: str, tally: Counter[str]) -> None:
    """Run one program for some calls; raise where it is not what NumPy does."""
    rng = random.Random(seed)
    way = FormWay.random(rng, generate(seed))
    text = way.text
    kept: list[tuple[Any, Any]] = []
    with (
        warnings.catch_warnings(action="ignore"),
        loaded(text, f"<form program {seed}>", np=np) as space,
    ):
        plain = way.calling(space["program"], space)
        fused = nfuser.fuse(space["program"], backend=backend)
        fused = way.calling(fused, space)
        for number, call in enumerate(calls(rng, way.names)):
            what = f"call {number}: {call.about}\n{text}"
            kept += _one_call(plain, fused, call, tally, what)
        if said := comparing.changed(kept):
            raise AssertionError(f"a later call changed {said}\n{text}")


def _one_call(
    plain: Any, fused: Any, call: Call, tally: Counter[str], what: str
) -> list[tuple[Any, Any]]:
    """Compare one call; return the arrays that it made, and copies of them."""
    (own, theirs), (held, mine), (_, was) = (call.copies() for _ in range(3))
    how, wanted = _outcome(plain, theirs)
    done, found = _outcome(fused, mine)
    if how == "raised" or done == "raised":
        _require_failed(
            call, (how, wanted, theirs), (done, found, mine), was, tally, what
        )
        return []
    tally["agreed"] += 1
    pairs = zip(
        [*comparing.leaves(theirs, "argument"), *comparing.leaves(wanted, "result")],
        [*comparing.leaves(mine, "argument"), *comparing.leaves(found, "result")],
        strict=False,
    )
    one, other = (comparing.leaves(x, "result") for x in (wanted, found))
    if [x for x, _ in one] != [x for x, _ in other]:
        raise AssertionError(f"{other} in place of {one} {what}")
    free = comparing.Free(
        wide=call.is_wide or bool(_ROUNDED.search(what)),
        signs=bool(_TIES.search(what)),
        kinds=bool(_NUMBERS.search(what)),
    )
    is_placed = bool(_PLACED.search(what))
    for (name, x), (_, y) in pairs:
        if said := comparing.difference(
            x, y, replace(free, lies=is_placed or name[0] == "a")
        ):
            raise AssertionError(f"{name}: {said}\n{what}")
    _require_shared(theirs, mine, was, [x for _, x in one], [x for _, x in other], what)
    for x, y in zip(own, held, strict=True):
        if said := comparing.difference(x, y, free):
            raise AssertionError(f"beside the arrays: {said}\n{what}")
    return comparing.own([*comparing.leaves(mine, "argument"), *other], [])


def _require_shared(
    theirs: list[Any],
    mine: list[Any],
    was: list[Any],
    one: list[Any],
    other: list[Any],
    what: str,
) -> None:
    """Refuse memory that is shared with arguments, or among results, otherwise."""
    count = len(theirs)
    wanted, found = (
        comparing.sharing([*a, *b]) for a, b in ((theirs, one), (mine, other))
    )
    same, alike = (
        comparing.identities([*a, *b]) for a, b in ((theirs, one), (mine, other))
    )
    if spare := found - wanted:
        raise AssertionError(f"memory is shared by {spare} {what}")
    if spare := alike - same:
        raise AssertionError(f"one array stands for two: {spare} {what}")
    written = {
        k
        for k, (x, y) in enumerate(zip(theirs, was, strict=True))
        if isinstance(x, np.ndarray) and x.tobytes() != y.tobytes()
    }
    lost = {(j, k) for j, k in same - alike if j in written and k >= count}
    lost |= {(j, k) for j, k in wanted - found if j in written and k >= count}
    if lost and not re.search(r"reshape|ravel|\bif\b|\bfor\b|while|asarray", what):
        raise AssertionError(f"copies of what is written: {lost} {what}")


def _is_as(listed: list[Any], others: list[Any]) -> bool:
    free = comparing.Free(wide=True, signs=True, lies=True)
    return all(
        comparing.difference(x, y, free) is None
        for x, y in zip(listed, others, strict=True)
        if isinstance(x, np.ndarray)
    )


def _require_failed(
    call: Call,
    one: tuple[str, Any, list[Any]],
    other: tuple[str, Any, list[Any]],
    was: list[Any],
    tally: Counter[str],
    what: str,
) -> None:
    """Refuse another failure than NumPy's, and what it leaves in the arguments."""
    (how, wanted, theirs), (done, found, mine) = one, other
    if how == "returned":
        if not comparing.is_refusal(found):
            raise AssertionError(f"{found!r} in place of a result {what}")
        if not _is_as(was, mine):
            raise AssertionError(f"written though refused: {found} {what}")
        said = re.sub(r"\d+|'.*?'|<.*?>", "", str(found).partition("\n")[0])[:110]
        tally[f"refused: {said}"] += 1
        tally["refused"] += 1
        return
    if done == "returned":
        if (
            call.may_read_beyond
            or _BEYOND.search(what)
            or isinstance(wanted, (UnboundLocalError, OverflowError, ZeroDivisionError))
        ):
            tally["beyond"] += 1
            return
        if isinstance(wanted, ValueError) and "cast" in str(wanted):
            return
        raise AssertionError(f"a result in place of {wanted!r} {what}")
    tally["failed alike"] += 1
    if not (_is_as(was, mine) or _is_as(theirs, mine)):
        raise AssertionError(f"{mine}\nin place of\n{theirs}\nafter {found!r} {what}")
    if not isinstance(found, NfuserError) and type(found) is not type(wanted):
        raise AssertionError(f"{found!r} in place of {wanted!r} {what}")


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
            sys.stdout.flush()
    sys.stdout.write(
        f"{tally['agreed']} calls agreed, {tally['failed alike']} failed alike, "
        f"{tally['refused']} refused, {wrong} wrong\n"
    )
    said = {k: n for k, n in tally.most_common(40) if k.startswith("refused: ")}
    for k, n in said.items():
        sys.stdout.write(f"{n:5} {k}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
