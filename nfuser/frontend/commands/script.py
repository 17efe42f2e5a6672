# SPDX-License-Identifier: Apache-2.0
"""``python -m nfuser explain|... script.py``: run it, show its calls."""

from __future__ import annotations

import runpy
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import nfuser.config as config
from nfuser.base.debug.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


def main(script: str, arguments: Sequence[str] = (), stage: str = "explain") -> int:
    """Run ``script`` as Python does, with ``stage`` added to ``NFUSER_DUMP``."""
    if not Path(script).is_file():
        sys.stderr.write(f"there is no file {script}\n")
        return 2
    sys.argv[:] = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    dumped = config.override(dump=config.current().dump | {stage})
    with _timed(script) if stage == "timeline" else dumped:
        runpy.run_path(script, run_name="__main__")
    return 0


@contextmanager
def _timed(script: str) -> Generator[None]:
    """Write what happens to ``SCRIPT.timeline.json``, here or in the dump folder."""
    folder = Path(config.current().dump_folder or ".")
    with timeline() as seen:
        try:
            yield
        finally:
            folder.mkdir(parents=True, exist_ok=True)
            path = seen.save(folder / f"{Path(script).stem}.timeline.json")
            sys.stderr.write(f"nfuser wrote {path}\n")
