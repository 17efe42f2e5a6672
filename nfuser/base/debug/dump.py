# SPDX-License-Identifier: Apache-2.0
"""``NFUSER_DUMP``: print what a stage gives, or write it to files."""

from __future__ import annotations

import re
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import nfuser.config as config

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = count()


def wants(stage: str) -> bool:
    """Tell whether ``stage`` (or ``stage.pass``, one of all passes) is to be dumped."""
    wanted = config.current().dump
    return bool(wanted) and not wanted.isdisjoint({stage, stage.partition(".")[0]})


def dump_lazily(stage: str, text: Callable[[], str], name: str = "") -> None:
    """Dump what ``text`` gives if ``stage`` is wanted."""
    if wants(stage):
        dump(stage, text(), name)


def dump(stage: str, text: str, name: str = "") -> None:
    """Print ``text`` under the name of ``stage``, or write it to the dump folder.

    Files have the ``name`` of the function or of the kernel in theirs. Pages and
    traces are always files.
    """
    suffix = _SUFFIXES.get(stage, "txt")
    folder = config.current().dump_folder
    if folder is None and suffix in _PAGES:
        folder = "."
    if folder is None:
        sys.stderr.write(f"--- nfuser {stage}\n{text.rstrip()}\n")
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    word = re.sub(r"\W+", "_", name).strip("_")
    parts = (f"{next(_numbers):05d}", *filter(None, (word,)), stage)
    path /= f"{'_'.join(parts)}.{suffix}"
    path.write_text(text, encoding="utf-8")
    if suffix in _PAGES:
        sys.stderr.write(f"nfuser wrote {path}\n")


_SUFFIXES = {"source": "py", "report": "html", "timeline": "json"}
_PAGES = ("html", "json")
