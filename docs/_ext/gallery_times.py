# SPDX-License-Identifier: Apache-2.0
"""The times that pages of the gallery draw, as files of results beside the pages.

The build writes them where a page draws them, and links them there. By hand::

    python docs/_ext/gallery_times.py docs/gallery/plot_3_heat.py --json FILE
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
HELPER = "/_ext/by_turns.py"  # what scripts import, from the folder of the pages
sys.path[:0] = [str(ROOT)]

from by_turns import DRAWN

from asv_bench.charts.measured import load
from asv_bench.charts.tables import ahead
from asv_bench.compare.cores import pin
from asv_bench.compare.provenance import provenance

if TYPE_CHECKING:
    from asv_bench.charts.measured import Measured


def keep(_block: object, block_vars: dict[str, Any], _conf: object) -> str:
    """Write what a page has drawn so far; return the lines that link it.

    Sphinx-Gallery calls this after each block of a page, once its figures are saved.
    """
    if not DRAWN:
        return ""
    file = Path(block_vars["target_file"]).with_suffix(".json")
    before: list[Any] = block_vars.setdefault("drawn_before", [])
    before += _taken()
    _write(file, Path(block_vars["src_file"]), before)
    found = load(str(file.with_suffix("")))
    told = f"Measured {found.told.replace('`', '``')}"
    links = f":download:`{file.name} <{file.name}>`, :download:`by_turns.py <{HELPER}>`"
    said = " ".join([told, links, _said_of_others(found)])
    return f"\n.. container:: nf-origin\n\n   {said}\n\n"


def _said_of_others(measured: Measured) -> str:
    """Say who is ahead of nfuser, where anybody is."""
    rows = {row.name: ahead(row) for row in measured.rows}
    told = [
        f"{name}: {', '.join(f'{who} by {by:.2f}' for who, by in found.items())}"
        for name, found in rows.items()
        if found
    ]
    return f"Ahead of nfuser here: {'; '.join(told)}." if told else ""


def times_of(script: Path) -> list[dict[str, Any]]:
    """Run a page as a script; return the rows of what it draws."""
    os.environ["MPLBACKEND"] = "Agg"
    runpy.run_path(str(script))
    return _taken()


def _taken() -> list[dict[str, Any]]:
    rows = [*DRAWN]
    DRAWN.clear()
    return rows


def _write(file: Path, script: Path, rows: list[dict[str, Any]]) -> None:
    path = script.resolve()
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    command = f"python docs/_ext/gallery_times.py {name}"
    found = provenance(command=command) | {"unit": "s", "rows": rows}
    file.write_text(json.dumps(found, indent=1))


def main() -> None:
    """Write the times of a page of the gallery, with where they come from."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("--json", type=Path, required=True, metavar="FILE")
    given = parser.parse_args()
    pin()
    _write(given.json, given.script, times_of(given.script))


if __name__ == "__main__":
    main()
