# SPDX-License-Identifier: Apache-2.0
"""The programs of ``asv_bench.programs`` run as they are, with one line more."""

from __future__ import annotations

import importlib.util
import json
import sys
from difflib import ndiff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

sys.path.append(str(Path(__file__).parents[2]))  # after what is installed

from asv_bench.programs.__main__ import main
from asv_bench.programs.program import LONG_BODY, PROGRAMS, Program, copied, listed

if TYPE_CHECKING:
    from types import ModuleType

_EVERY = (*PROGRAMS, pytest.param(LONG_BODY, marks=pytest.mark.slow))
_MOST_KERNELS = 19  # of the long body, which has 47 assignments


def _decorated(program: Program, folder: Path) -> tuple[ModuleType, str, str]:
    """Return the module with the decorator on its function, and both sources."""
    plain = Path(str(program.plain_module.__file__)).read_text()
    head = f"def {program.function}("
    text = plain.replace(head, f"@nfuser.fuse\n{head}")
    text = text.replace("import numpy as np", "import nfuser\nimport numpy as np")
    path = folder / f"decorated_{program.module}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, plain, text


@pytest.mark.parametrize("program", _EVERY, ids=lambda p: p.module)
def test_the_decorator_alone_fuses_it(program: Program, tmp_path: Path) -> None:
    module, plain, text = _decorated(program, tmp_path)
    lines = ndiff(plain.splitlines(), text.splitlines())
    changed = [line for line in lines if line[0] in "+-"]
    assert sorted(changed) == ["+ @nfuser.fuse", "+ import nfuser"]
    given = program.given(program.small)
    theirs = copied(given)
    wanted = listed(program.plain(*theirs))
    fused: Any = getattr(module, program.function)
    for _ in range(3):  # the third call takes another way than the first
        ours = copied(given)
        found = listed(fused(*ours))
        pairs = zip((*wanted, *theirs), (*found, *ours), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
    assert fused.cache_info().traces == 1


def test_operations_of_a_long_body_share_kernels() -> None:
    shown = nfuser.fuse(LONG_BODY.plain).explain(*LONG_BODY.given((200, 100, 30)))
    assert shown.kernels <= _MOST_KERNELS


def test_parts_of_a_table_are_written_to_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "programs.json"
    asked = ["--size", "small", "--peers", "", "--turns", "1", "--json", str(file)]
    for name in ("mandelbrot", "jacobi_1d"):
        monkeypatch.setattr(sys, "argv", ["programs", name, *asked])
        main()
    found = json.loads(file.read_text())
    assert found["command"] == "python -m asv_bench.programs --size small"
    assert [row["name"] for row in found["rows"]] == ["jacobi_1d", "mandelbrot"]
    assert all([*row["values"]] == ["nfuser", "NumPy"] for row in found["rows"])
    file.write_text(json.dumps(found | {"tree": "of other sources"}))
    main()
    rows = json.loads(file.read_text())["rows"]
    assert [row["name"] for row in rows] == ["jacobi_1d"]
