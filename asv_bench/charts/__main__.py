# SPDX-License-Identifier: Apache-2.0
"""``python -m asv_bench.charts NAME VIEW``: print results as a table of Markdown.

``--svg FILE`` writes the chart. The documentation draws them by itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from asv_bench.charts.draw import curves, dots
from asv_bench.charts.measured import load
from asv_bench.charts.tables import summary, table


def main() -> None:
    """Print a table, and write a chart where one is asked for."""
    parser = argparse.ArgumentParser("asv_bench.charts", description=__doc__)
    parser.add_argument("name", help="of a file of results: h200/in_a_row")
    parser.add_argument("view", nargs="?", default="values")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--log", action="store_true")
    given = parser.parse_args()
    found = load(given.name, given.view)
    sys.stdout.write("\n\n".join([found.told, table(found), summary(found), ""]))
    if given.svg:
        has_axis = all(row.at is not None for row in found.rows)
        drawn = curves(found, "") if has_axis else dots(found, is_log=given.log)
        given.svg.write_text(drawn)


if __name__ == "__main__":
    main()
