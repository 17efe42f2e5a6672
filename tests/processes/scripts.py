# SPDX-License-Identifier: Apache-2.0
"""Run a script as a user would: in a process of its own, with a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run_script(text: str, folder: Path) -> list[str]:
    """Run ``text`` as ``__main__``; return the lines that it printed."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(text))
    environment = {**os.environ, "NFUSER_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
