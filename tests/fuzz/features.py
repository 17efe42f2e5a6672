# SPDX-License-Identifier: Apache-2.0
"""How often random programs have what docs/assignment.md and docs/loops.md promise.

``python -m tests.fuzz.features --programs 500`` counts the programs of all generators
of loops and assignments, by turns, and runs none. ``--least 5`` fails if a feature
stands in fewer.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from tests.fuzz import (
    assign_programs,
    chain_programs,
    element_programs,
    failing_programs,
    flow_programs,
    sweep_programs,
    write_programs,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GENERATORS: tuple[Callable[[int], Any], ...] = (
    *(write_programs.generate, flow_programs.generate, write_programs.generate),
    *(sweep_programs.generate, element_programs.generate, write_programs.generate),
    *(failing_programs.generate, assign_programs.generate, chain_programs.generate),
)
FEATURES: dict[str, str] = {
    "slices with steps": r"\[[^\]]*::\d[^\]]*\] [-+*]?= ",
    "backwards": r"\[[^\]]*::-\d[^\]]*\] [-+*]?= ",
    "an integer": r"\w\[-?\d\] [-+*]?= ",
    "an ellipsis beside others": r"\[[^\]]*\.\.\., [^\]]*\] [-+*]?= ",
    "None in a key": r"\[None\b|, None\b",
    "a mask": r"(\bm\d+|_m\d+|[<>=] [^\]]+)\] [-+*]?= ",
    "a mask beside others": r"(m\d+, |, _?m\d+)[^\]]*\] [-+*]?= ",
    "what a mask chooses": r"= .*\[_?m\d+\] [-+*]",
    "a whole array": r"\[\.\.\.\] [-+*]?= ",
    "an update": r"^ +[a-z]\w* [-+*]= ",
    "out=": r"\bout=",
    "where=": r"\bwhere=",
    "an index array": r"\[(np\.array\(|\[-?\d+, )[^=\n]*\] [-+*]?= ",
    "a mesh": r"np\.ix_\(.*\] [-+*]?= ",
    "an update at an index": r"\b(add|subtract|multiply|maximum|minimum)\.at\(",
    **{
        f"np.{name}": rf"\bnp\.{name}\("
        for name in (
            *("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"),
            *("bincount", "histogram", "where", "roll", "cumsum", "empty_like", "take"),
        )
    },
    "np.full or np.array": r"np\.(full|array)\((?!\[-?\d)",
    **{
        f".{name}": rf"\.{name}\("
        for name in ("fill", "sort", "partition", "put", "copy", "sum", "max", "append")
    },
    "a view of a view": r"_v\d+ = _v\d+[.\[]",
    "a transposed view": r"= \w+\.T$",
    "a number read out": r"= \w+\[-?\d+(, -?\d+)*\]$",
    "a global": r"^ +G\[",
    "an attribute": r"BOX\.u",
    "an item of a dict or list": r"(KEPT\['u'\]|CELLS\[0\])",
    "exchanged parts": r"^ +(\w+\[.*\]), (\w+\[.*\]) = ",
    "exchanged names": r"^ +(\w+), (\w+) = \2, \1$",
    "a function that writes": r"halve\(|shifted\(|stepped\(|helped\(",
    "a method or lambda": r"BOX\.turn\(|lambda",
    "range of a size": r"in range\(.*(\bn\b|shape|len\()",
    "range with steps": r"in range\(.*, .*, [^)]*\d\)",
    "range backwards": r"in range\(.*, -\d\)",
    "reversed range": r"reversed\(range",
    "reversed rows": r"reversed\(_?\w+\)",
    "rows": r"for _row in \w+",
    "elements": r"for \w+, v in ",
    "zip": r"\bzip\(",
    "enumerate": r"enumerate\(",
    "enumerate from elsewhere": r"enumerate\(\w.*, (start=)?-?\d",
    "nested loops": r"( +)for .*:\n(\1 .*\n)*?\1 +for ",
    "bounds of a loop around": r"range\(.*\bi\b.*\):",
    "bounds of elements": r"range\((int\()?p\[",
    "while": r"^ +while ",
    "break": r"\bbreak$",
    "continue": r"\bcontinue$",
    "else of a loop": r"( +)(for|while) .*:\n(\1 .*\n)+\1else:",
    "return in a loop": r"( +)(for|while) .*:\n(\1 .*\n)*?\1 +return",
    "branches on numbers": r"^ +if .*\w\[.*:$|^ +if \w+ > \w+:$",
    "branches on any": r"if .*\.any\(\)",
    "one arm alone": r"( +)if .*:\n(\1 .*\n)+(?!\1else|\1elif)",
    "elif": r"^ +elif ",
    "a choice": r" if .* else ",
    "compared twice": r"\d < \w+ < \d",
    "max of numbers": r"(?<![.\w])(max|min)\(\w+.*, ",
    "what turns counted": r" = [ijk] \* 0\.5$",
    "the last row afterwards": r"\n    \S.*\b_row\b",
    "a table of places": r"\[p\[",
    "nfuser.lax": r"\blax\.",
}


def text_of(made: Any) -> str:
    """Return the text of a program, whatever comes beside it, without what all have."""
    text = made if isinstance(made, str) else str(made[0])
    return text.rpartition("KEPT, CELLS = ")[2]


def counted(programs: int, first: int = 0) -> Counter[str]:
    """Return in how many of so many programs each feature stands."""
    found: Counter[str] = Counter(dict.fromkeys(FEATURES, 0))
    for seed, generate in enumerate(islice(cycle(GENERATORS), programs), first):
        text = text_of(generate(seed))
        found.update(n for n, p in FEATURES.items() if re.search(p, text, re.MULTILINE))
    return found


def main() -> int:
    """Say what was counted, what stands least often last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--least", type=int, default=1)
    given = parser.parse_args()
    found = counted(given.programs, given.first)
    for name, count in found.most_common():
        sys.stdout.write(f"{count:6} {name}\n")
    return int(min(found.values()) < given.least)


if __name__ == "__main__":
    sys.exit(main())
