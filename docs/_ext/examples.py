# SPDX-License-Identifier: Apache-2.0
"""Examples of names that come by the hundred: one line each, kept beside the pages.

The pages show them, and the tests run them, out of the same files.
"""

# What is computed has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import inspect
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nfuser.numpy as xp
from nfuser.frontend.definition.operations.ops import BINARY, TABLE, UNARY

REFERENCE = Path(__file__).parents[1] / "reference"


@dataclass(frozen=True)
class Family:
    """Names that do alike; ``examples`` has a line for each."""

    title: str
    examples: dict[str, str]


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((REFERENCE / "names.toml").read_text())[name]


def numpy_families() -> list[Family]:
    """Return the families of ``nfuser.numpy`` in the order of the page."""
    read = _table("numpy")
    return [
        Family(
            title,
            {
                name: own.get("examples", {}).get(name)
                or own["example"].format(name=name)
                for name in own["names"].split()
            },
        )
        for title, own in read.items()
    ]


def operations() -> dict[str, str]:
    """Return the example of each operation of ``fd.ops`` that has one."""
    read = _table("operations")
    own: dict[str, str] = read["examples"]
    found: dict[str, str] = {}
    for name in TABLE:
        general = read["two"] if name in BINARY else read["one"]
        is_general = name in UNARY or name in BINARY or _takes_one(name)
        if name in own or is_general:
            found[name] = own.get(name) or general.format(name=name)
    return found


def meanings() -> dict[str, str]:
    """Return what operations do whose functions come out of a table."""
    return _table("operations")["does"]


def _takes_one(name: str) -> bool:
    """Tell whether an operation can be called with a tensor alone."""
    taken = list(inspect.signature(TABLE[name]).parameters.values())[1:]
    return sum(one.default is one.empty for one in taken) == 1


def numpy_names() -> dict[str, Any]:
    """Return the names that examples of ``nfuser.numpy`` may use."""
    return {
        "xp": xp,
        "x": np.array([0.25, 0.5, 0.75]),
        "y": np.array([1.0, 2.0, 3.0]),
        "n": np.array([6, 4, 2]),
        "k": np.array([1, 2, 3]),
        "b": np.array([True, False, True]),
        "m": np.array([[1.0, 2.0], [3.0, 4.0]]),
    }


def shown(example: str, names: dict[str, Any]) -> str:
    """Return what a line gives, short and on one line."""
    with np.printoptions(precision=3, suppress=True):
        text = " ".join(repr(eval(example, {}, names)).split())
    return text.replace("array(", "").replace("])", "]") if "array(" in text else text
