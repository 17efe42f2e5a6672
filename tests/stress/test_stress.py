# SPDX-License-Identifier: Apache-2.0
"""A few seconds of ``python -m tests.stress``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_sixteen_threads_do_everything_at_once_and_nothing_breaks() -> None:
    command = [sys.executable, "-m", "tests.stress", "--threads=16", "--seconds=6"]
    command += ["--seed=1", "--weight=fork=4"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=480, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 crash, 0 stuck, 0 wrong" in done.stdout
