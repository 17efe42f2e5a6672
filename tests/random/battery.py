# SPDX-License-Identifier: Apache-2.0
"""Judge stream 1 by a battery: ``python -m tests.random.battery [NUMBER ...]``.

The battery is dieharder, a package of Debian's: Marsaglia's Diehard tests, NIST's, and
those of its authors. Each of its tests reads raw words of the stream from where the
last one stopped, and is repeated with more of them while it is undecided, until its
p-value is below 1e-6 or above 0.05. Test 14 is left out, as dieharder itself says of it
"Do Not Use". Numbers name the tests to run; ``DIEHARDER`` in the environment is another
program than the one on the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TESTS = (*range(14), *range(15, 18), *range(100, 103), *range(200, 210))
SIZES = {
    200: range(1, 13),
    201: range(2, 6),
    202: range(2, 6),
    203: range(33),
}
"""The tests of tuples, and which lengths of them."""


def judge(number: int, sizes: Iterable[int]) -> Iterator[str]:
    """Yield dieharder's lines, one a p-value, of the test of this number."""
    program = os.environ.get("DIEHARDER", "dieharder")
    for size in sizes:
        words = subprocess.Popen(
            [sys.executable, "-m", "tests.random.quality", "--words"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        ask = [program, "-d", str(number), "-n", str(size), "-g", "200"]
        # Repeat what is undecided, and print the lines of results alone.
        ask += ["-Y", "1", "-D", "test_name", "-D", "ntuple", "-D", "tsamples"]
        ask += ["-D", "psamples", "-D", "pvalues", "-D", "assessment"]
        found = subprocess.run(
            ask, stdin=words.stdout, capture_output=True, text=True, check=True
        )
        words.kill()
        words.wait()
        yield from found.stdout.splitlines()


def main(arguments: list[str]) -> int:
    """Print every line; return how many say that the stream failed."""
    failed = 0
    for number in map(int, arguments) if arguments else TESTS:
        for line in judge(number, SIZES.get(number, (0,))):
            failed += "FAILED" in line
            sys.stdout.write(f"{number:4} {line}\n")
            sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
