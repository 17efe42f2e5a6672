# SPDX-License-Identifier: Apache-2.0
"""``python -m nfuser explain|kernels|report script.py``: run it, show its calls."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import nfuser.config as config

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(script: str, arguments: Sequence[str] = (), stage: str = "explain") -> int:
    """Run ``script`` as Python does, with ``stage`` added to ``NFUSER_DUMP``."""
    if not Path(script).is_file():
        sys.stderr.write(f"there is no file {script}\n")
        return 2
    sys.argv[:] = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    with config.override(dump=config.current().dump | {stage}):
        runpy.run_path(script, run_name="__main__")
    return 0
