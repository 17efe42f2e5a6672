# SPDX-License-Identifier: Apache-2.0
"""``docs/layout.md`` lists every inner folder, in the words of the folder itself."""

from __future__ import annotations

import ast
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
