# SPDX-License-Identifier: Apache-2.0
"""Plant faults in what makes derivatives, and count those that the tests find.

``python -m tests.differentiate.faults`` plants each in a copy of the package and runs
the tests of its room there until one fails; numbers name the first and the last.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
RULES = "rules/"
TESTS = {
    "differentiate": ("tests/differentiate",),
    "partition": (
        "tests/partition",
        "tests/frontend/test_saved.py",
        "tests/frontend/test_checkpoint.py",
    ),
    "rewrite": ("tests/rewrite/test_share_derived_sums.py",),
}
IN = {
    "differentiate": "transforms/differentiate",
    "partition": "transforms/partition",
    "rewrite": "rewrite",
}


@dataclass(frozen=True)
class Fault:
    """Other text in a file of a room of ``nfuser``, where ``text`` stands once."""

    file: str
    text: str
    other: str
    room: str = "differentiate"


SLOPES, CHOICES, FOLDS, VIEWS = (
    f"{RULES}{name}.py" for name in ("slopes", "choices", "folds", "views")
)
PARTITION, SHARED = "partition", "share_derived_sums.py"
FAULTS = (
    Fault(SLOPES, "n.multiply(t, n.add(r, n(1.0)))),),", "n.multiply(t, r)),),"),
    Fault(SLOPES, "n.negative(n.multiply(t, n.sin(x)))", "n.multiply(t, n.sin(x))"),
    Fault(SLOPES, "n.scaled(t, 1 / 3)", "n.scaled(t, 1 / 2)"),
    Fault(SLOPES, "_turn(0, -1.0)", "_turn(0, 1.0)"),
    Fault(SLOPES, "n.select(n.equal(y, n(0.0)), n(0.0), slope)", "slope"),
    Fault(SLOPES, "n.select(bottom, n(0.0), found)", "found"),
    Fault(CHOICES, "n.select(tie, n.scaled(t, 0.5), t)", "t"),
    Fault(CHOICES, "if place == 1 else n.invert(given[0])", "if place else given[0]"),
    Fault(CHOICES, "n.greater(given[0], n(0.0))", "n.greater_equal(given[0], n(0.0))"),
    Fault(FOLDS, "share = n.divide(t, count)", "share = t"),
    Fault(FOLDS, "n.scaled(squares, 2.0)", "squares"),
    Fault(FOLDS, "n.select(first, at_first, n(0.0))", "n(0.0)"),
    Fault(VIEWS, "t = flipped(b, t, axis)", "pass"),
    Fault(VIEWS, "ops.sum(b, around, tuple(", "ops.sum(b, t, tuple("),
    Fault(VIEWS, "lefts[axis] + (t.shape[axis] - 1) * step", "lefts[axis] + step"),
    Fault(f"{RULES}products.py", "ops.sum_to(b, found, rhs.shape)", "found"),
    Fault(f"{RULES}gathers.py", "negative, behind, index)", "negative, index, index)"),
    Fault(f"{RULES}scatters.py", "expr), found, zero)", "expr), found, found)"),
    Fault(f"{RULES}casts.py", 'b.point("negative", t))', "t)"),
    Fault("flow.py", '"bit_or", flow', '"bit_and", flow'),
    Fault("reverse.py", '"not_equal", counted, zero', '"equal", counted, zero'),
    Fault(
        "forward.py", "ops.matmul(b, expr.lhs, right)", "ops.matmul(b, right, expr.lhs)"
    ),
    Fault("loops.py", "body.turn if expr.backwards else turn", "turn"),
    Fault("centred.py", "axes if is_all and fits else ()", "axes if fits else ()"),
    Fault("cut.py", "told.get(tensor) is False", "told.get(tensor) is None", PARTITION),
    Fault("cut.py", "(isinstance(expr, _DEAR) or is_fold)", "is_fold", PARTITION),
    Fault("cut.py", "graph.edge(inside[tensor][1], 1,", "graph.edge(1, 1,", PARTITION),
    Fault("cut.py", "wanted.update(sources(expr))", "pass", PARTITION),
    Fault("network.py", "self._left[edge ^ 1] += amount", "pass", PARTITION),
    Fault("policies.py", "self.others is not (", "self.others is (", PARTITION),
    Fault("sums.py", "return 0 not in places", "return True", PARTITION),
    Fault("sums.py", "return len(places) == 1", "return True", PARTITION),
    Fault(SHARED, "(other, not is_below), (one", "(other, is_below), (one", "rewrite"),
    Fault(SHARED, "is_minus is not alike[base].is_minus", "is_minus", "rewrite"),
    Fault(SHARED, "if less <= more else None", "", "rewrite"),
    Fault(SHARED, 'found = point("add", found, nothing)', "pass", "rewrite"),
)


def planted(folder: Path, fault: Fault) -> None:
    """Write a copy of the package and its tests, with the fault, into ``folder``."""
    for name in ("nfuser", "tests"):
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=without)
    shutil.copy(ROOT / "pyproject.toml", folder)
    path = folder / "nfuser" / "compiler" / IN[fault.room] / fault.file
    text = path.read_text()
    assert text.count(fault.text) == 1, (fault, text.count(fault.text))
    path.write_text(text.replace(fault.text, fault.other))


def finds(fault: Fault) -> str | None:
    """Return the first test that fails with the fault, if one does."""
    with TemporaryDirectory() as name:
        planted(Path(name), fault)
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", *TESTS[fault.room]],
            cwd=name,
            env=os.environ | {"PYTHONPATH": name},
            capture_output=True,
            text=True,
            check=False,
        )
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    assert bool(failed) is (run.returncode == 1), run.stdout + run.stderr
    return failed[0].removeprefix("FAILED ").split(" - ")[0] if failed else None


def main(first: int = 0, last: int = len(FAULTS) - 1) -> int:
    """Print what finds each fault; return how many nothing finds."""
    chosen = FAULTS[first : last + 1]
    missed = 0
    for number, fault in enumerate(chosen, first):
        found = finds(fault)
        missed += found is None
        what = f"{number} {fault.room}/{fault.file}: {fault.other}"
        print(f"{what}: {found or 'not found'}")  # noqa: T201
    print(f"{len(chosen) - missed} of {len(chosen)} found")  # noqa: T201
    return missed


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
