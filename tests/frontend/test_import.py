# SPDX-License-Identifier: Apache-2.0
"""What ``import nfuser`` loads, and what that costs beside ``import numpy``."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

ROUNDS = 9
MOST = 1.6  # times what NumPy takes


def _output(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _seconds(code: str) -> float:
    return float(_output(f"{code}; import time; print(time.process_time())"))


def test_importing_costs_little_more_than_numpy() -> None:
    _seconds("import nfuser")  # which writes what Python keeps of its source
    rounds = [
        (_seconds("import nfuser; nfuser.fuse"), _seconds("import numpy"))
        for _ in range(ROUNDS)
    ]
    own, numpy = (median(column) for column in zip(*rounds, strict=True))
    assert own <= MOST * numpy


def test_decorating_loads_no_stage_of_the_compiler() -> None:
    loaded = _output(
        "import sys, nfuser; nfuser.fuse(lambda x: x); print(*sys.modules)"
    ).split()
    names = [name.split(".") for name in loaded if name.startswith("nfuser.")]
    rooms = {part for name in names for part in name[1:3]}
    assert not rooms & {"trace", "ops", "ir", "concretize", "schedule", "host", "lower"}
    assert not {"numba", "llvmlite", "ml_dtypes"} & set(loaded)


def test_wrong_options_are_refused_where_they_are_written() -> None:
    written = (
        "import nfuser\n"
        "for options in ({'backend': 'gpu'}, {'resize': 'no'}):\n"
        "    try:\n"
        "        nfuser.fuse(lambda x: x, **options)\n"
        "    except nfuser.NfuserError as error:\n"
        "        print('refused')\n"
    )
    assert _output(written).split() == ["refused", "refused"]
