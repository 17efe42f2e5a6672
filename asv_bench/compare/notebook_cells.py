# SPDX-License-Identifier: Apache-2.0
"""Ten cells of a first notebook: what is written, what is edited, what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Cell:
    """A function ``f`` in plain NumPy; ``loops`` where Numba takes no such NumPy.

    An edit is one text in place of another, for either form.
    """

    name: str
    arguments: tuple[str, ...]
    text: str
    edit: tuple[str, str]
    loops: str | None = None
    loops_edit: tuple[str, str] | None = None

    def versions(self, library: str) -> tuple[str, str]:
        """Return the cell as it is first written, and as it is run again."""
        text, edit = self.text, self.edit
        if library == "numba" and self.loops is not None:
            text, edit = self.loops, self.loops_edit or self.edit
        assert text.count(edit[0]) > 0
        return text, text.replace(*edit)


def data() -> dict[str, Any]:
    """Return what the cells are given."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 10, 20_000)
    return {
        "table": rng.standard_normal((2000, 50)),
        "points": rng.standard_normal((300, 3)),
        "series": rng.standard_normal(20_000),
        "other": rng.standard_normal(20_000),
        "t": t,
        "y": np.exp(-t / 3) * np.cos(2 * t) + rng.standard_normal(20_000) / 10,
        "field": rng.standard_normal((200, 200)),
        "labels": rng.integers(0, 2, 2000).astype(np.float64),
        "weights": rng.standard_normal(50),
    }


CELLS = (
    Cell(
        "standardise",
        ("table",),
        "def f(x):\n    return (x - x.mean(0)) / x.std(0)\n",
        ("x.std(0)", "(x.std(0) + 1e-9)"),
        "def f(x):\n"
        "    out = np.empty_like(x)\n"
        "    for j in range(x.shape[1]):\n"
        "        out[:, j] = (x[:, j] - x[:, j].mean()) / x[:, j].std()\n"
        "    return out\n",
        ("x[:, j].std()", "(x[:, j].std() + 1e-9)"),
    ),
    Cell(
        "pairwise distance",
        ("points",),
        "def f(a):\n"
        "    d = a[:, None, :] - a[None, :, :]\n"
        "    return np.sqrt((d * d).sum(2))\n",
        ("np.sqrt((d * d).sum(2))", "np.abs(d).sum(2)"),
    ),
    Cell(
        "rolling mean",
        ("series",),
        "def f(x):\n    c = np.cumsum(x)\n    return (c[5:] - c[:-5]) / 5\n",
        ("5", "20"),
    ),
    Cell(
        "softmax",
        ("table",),
        "def f(x):\n"
        "    e = np.exp(x - x.max(1)[:, None])\n"
        "    return e / e.sum(1)[:, None]\n",
        ("np.exp(x - x.max(1)[:, None])", "np.exp((x - x.max(1)[:, None]) / 2)"),
        "def f(x):\n"
        "    out = np.empty_like(x)\n"
        "    for i in range(x.shape[0]):\n"
        "        e = np.exp(x[i] - x[i].max())\n"
        "        out[i] = e / e.sum()\n"
        "    return out\n",
        ("np.exp(x[i] - x[i].max())", "np.exp((x[i] - x[i].max()) / 2)"),
    ),
    Cell(
        "buckets",
        ("series",),
        "def f(x):\n"
        "    a = np.where((x >= -1) & (x < 0), 1.0, 0.0).sum()\n"
        "    b = np.where((x >= 0) & (x < 1), 1.0, 0.0).sum()\n"
        "    c = np.where(x >= 1, 1.0, 0.0).sum()\n"
        "    return a, b, c\n",
        ("1)", "1.5)"),
    ),
    Cell(
        "finite differences",
        ("field",),
        "def f(u):\n"
        "    inner = u[1:-1, 1:-1]\n"
        "    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]\n"
        "    return inner + 0.1 * (around - 4 * inner)\n",
        ("0.1", "0.2"),
    ),
    Cell(
        "error",
        ("series", "other"),
        "def f(x, y):\n    return np.sqrt(np.mean((x - y) ** 2))\n",
        ("np.sqrt(np.mean((x - y) ** 2))", "np.mean(np.abs(x - y))"),
    ),
    Cell(
        "clipped logarithm",
        ("series",),
        "def f(x):\n    return np.log1p(np.minimum(np.maximum(x, 0.0), 3.0))\n",
        ("3.0", "2.0"),
    ),
    Cell(
        "logistic gradient",
        ("table", "labels", "weights"),
        "def f(x, y, w):\n"
        "    p = 1 / (1 + np.exp(-(x @ w)))\n"
        "    return x.T @ (p - y) / x.shape[0]\n",
        ("x.shape[0]", "x.shape[0] + 0.1 * w"),
    ),
    Cell(
        "residual of a fit",
        ("t", "y"),
        "def f(t, y):\n"
        "    r = y - np.exp(-t / 3.0) * np.cos(2.0 * t)\n"
        "    return (r * r).sum()\n",
        ("np.cos(2.0 * t)", "np.sin(2.0 * t)"),
    ),
)
