# SPDX-License-Identifier: Apache-2.0
"""``docs/layout.md`` lists every inner folder, in the words of the folder itself."""

from __future__ import annotations

import ast
from itertools import permutations
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _says(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert text is not None
    return text.split("\n\n")[0].replace("\n", " ").replace("``", "`")


def test_every_inner_folder_is_listed_in_its_own_words() -> None:
    package = ROOT / "nfuser"
    inner = sorted(
        found.parent
        for found in package.rglob("__init__.py")
        if len(found.parent.relative_to(package).parts) > 1
    )
    rows = [f"| `{path.relative_to(package)}` | {_says(path)} |" for path in inner]
    page = (ROOT / "docs" / "layout.md").read_text()
    missing = [row for row in rows if row not in page]
    assert not missing, "write in docs/layout.md:\n" + "\n".join(missing)
    listed = [
        line
        for line in page.splitlines()
        if line.startswith("| `") and "/" in line.split("|")[1]
    ]
    assert len(listed) == len(rows)


PACKAGE = ROOT / "nfuser"
MOST_ROOMS = 12
# Targets have one name each: what one file says of CPUs, another says of GPUs.
TARGETS = {"cpu", "cuda"}
# Python gives these their names.
NAMED_BY_PYTHON = {"__init__", "__main__"}


def _folders() -> list[Path]:
    return sorted({PACKAGE, *(found.parent for found in PACKAGE.rglob("*.py"))})


def test_no_folder_has_more_than_twelve_rooms() -> None:
    many = {}
    for folder in _folders():
        rooms = {x.stem for x in folder.iterdir() if x.suffix in ("", ".py")}
        rooms -= {*NAMED_BY_PYTHON, "__pycache__"}
        if len(rooms) > MOST_ROOMS:
            many[str(folder)] = len(rooms)
    assert not many


def _is_in_sight(module: Path, other: Path) -> bool:
    """Return whether both are met on the way to one of them.

    What lies at the top of the package has names that users know: sight ends there.
    """
    folder, beyond = module.parent, other.parent
    if module.stem in TARGETS or {folder.name, beyond.name} == TARGETS:
        return False
    if folder == beyond or folder.parent == beyond.parent:
        return True
    return folder != PACKAGE and folder in beyond.parents


def test_no_modules_of_one_name_are_in_sight_of_each_other() -> None:
    named: dict[str, list[Path]] = {}
    for module in sorted(PACKAGE.rglob("*.py")):
        if module.stem not in NAMED_BY_PYTHON:
            named.setdefault(module.stem, []).append(module)
    pairs = [
        f"{module.relative_to(PACKAGE)} and {other.relative_to(PACKAGE)}"
        for modules in named.values()
        for module, other in permutations(modules, 2)
        if _is_in_sight(module, other)
    ]
    assert not pairs
