# SPDX-License-Identifier: Apache-2.0
"""The comparison with peers runs, checks what it times, and says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = ("softmax f", "RoPE bf16", "cumsum", "Black", "a + b f32")


def test_a_tiny_table_is_right_and_complete(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "asv_bench.compare", "--tiny", "--peers", "numpy"]
    run = subprocess.run(
        [*command, "--json", str(found), "--only", *ROWS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    rows = {row["name"]: row for row in json.loads(found.read_text())["rows"]}
    for prefix in ROWS:
        assert any(name.startswith(prefix) for name in rows)
    for name, row in rows.items():
        assert "NumPy" in row["errors"], name
        assert "nfuser" in row["errors"] or "nfuser" in row["notes"], name
        assert name in run.stdout
