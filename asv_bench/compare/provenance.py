# SPDX-License-Identifier: Apache-2.0
"""Where numbers come from: the command, the day, the commit, and the machine.

Every file of results begins with it, and every picture says it below. The commit is
the one whose folder ``nfuser`` is the very one that ran: a copy without git, or with
changes, has none, but leaves the name that git has for such a folder. ``python -m
asv_bench.compare.provenance FILE ...`` looks for the commit of it where git is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from asv_bench.compare.versions import versions

ROOT = Path(__file__).parents[2]
UNKNOWN = "unknown"
MOST = 400  # commits that are looked through


def provenance(kind: str = "cpu", command: str | None = None) -> dict[str, str]:
    """Return what a file of results says about the run of this process.

    ``kind`` is of ``PACKAGES``: what takes part in the run.
    """
    tree = tree_of(ROOT / "nfuser")
    return {
        "command": command or _command(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit_of(tree),
        "tree": tree,
        "machine": machine(kind),
        "versions": versions(kind),
    }


def rows_before(file: Path | None, head: dict[str, str]) -> dict[str, Any]:
    """Return the rows by name that a run of the same command and sources wrote.

    So a table of which each part takes long can be measured part by part.
    """
    found = json.loads(file.read_text()) if file and file.exists() else {}
    is_same = all(found.get(key) == head[key] for key in ("command", "tree", "machine"))
    return {row["name"]: row for row in found["rows"]} if is_same else {}


def machine(kind: str) -> str:
    """Return the GPU, or the processor and how many cores of it may be used here."""
    if kind == "cuda":
        torch: Any = import_module("torch")
        return torch.cuda.get_device_name()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {_processor()}"


def _command() -> str:
    given = sys.argv[1:]
    if "--json" in given:  # where to is another matter
        at = given.index("--json")
        given = [*given[:at], *given[at + 2 :]]
    file = Path(sys.argv[0]).resolve()
    path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    named = ".".join(path.with_suffix("").parts).removesuffix(".__main__")
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    how = ["python", "-m", named] if spec else ["python", str(path)]
    return shlex.join([*how, *given])


def tree_of(folder: Path) -> str:
    """Return the name that git has for a folder with these files, none executable."""
    entries: list[tuple[str, bytes]] = []
    for path in folder.iterdir():
        if path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_dir():  # git sorts folders as if a slash ended their names
            key, mode, named = f"{path.name}/", "40000", tree_of(path)
        else:
            key, mode, named = path.name, "100644", _named("blob", path.read_bytes())
        entry = f"{mode} {path.name}\0".encode() + bytes.fromhex(named)
        entries.append((key, entry))
    return _named("tree", b"".join(entry for _, entry in sorted(entries)))


def _named(kind: str, content: bytes) -> str:
    head = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def commit_of(tree: str) -> str:
    """Return the newest commit whose folder ``nfuser`` is ``tree``, or that none is."""
    listed = _git("log", f"-{MOST}", "--format=%h").split()
    asked = "".join(f"{commit}:nfuser\n" for commit in listed)
    told = _git("cat-file", "--batch-check=%(objectname)", given=asked).splitlines()
    pairs = zip(listed, told, strict=False)
    return next((commit for commit, found in pairs if found == tree), UNKNOWN)


def _git(*words: str, given: str = "") -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, input=given
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout


def stamped(found: dict[str, Any]) -> dict[str, Any]:
    """Return results with the commit of their tree, where git knows one."""
    if found.get("commit") != UNKNOWN:
        return found
    return found | {"commit": commit_of(found["tree"])}


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in told.splitlines())
    lines = zip(told.splitlines(), names, strict=True)
    found = next((n for line, n in lines if line.startswith("model name")), "")
    return f"{found} ({platform.machine()})" if found else platform.machine()


def main() -> None:
    """Write commits into files of results that were measured without git."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    for file in parser.parse_args().files:
        found = stamped(json.loads(file.read_text()))
        file.write_text(json.dumps(found, indent=1))
        sys.stdout.write(f"{file}: {found['commit']}\n")


if __name__ == "__main__":
    main()
