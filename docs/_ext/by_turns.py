# SPDX-License-Identifier: Apache-2.0
"""What pages of the gallery measure and draw with: medians of calls by turns."""

from __future__ import annotations

import statistics
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROUNDS = 7
LONG = 0.2  # seconds: of what takes longer, three rounds are enough
COLOURS = ("#2f9e44", "#868e96", "#e8590c", "#4c6ef5", "#9c36b5")


def by_turns(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median of the milliseconds that each takes, after two calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for run in calls.values():
        for _ in range(2):
            run()
    for k in range(ROUNDS):
        for name, run in calls.items():
            if k >= 3 and times[name][0] > LONG:
                continue
            begin = perf_counter()
            run()
            times[name].append(perf_counter() - begin)
    return {name: 1e3 * statistics.median(found) for name, found in times.items()}


def in_jax(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return a call of a function of ``jax.numpy``, where JAX is installed."""
    if find_spec("jax") is None:
        return {}
    import jax

    jax.config.update("jax_enable_x64", True)
    jitted, given = jax.jit(function), [jax.numpy.asarray(a) for a in arguments]
    return {"JAX": lambda: jax.block_until_ready(jitted(*given))}


def bars(found: Mapping[str, float], title: str) -> None:
    """Draw one bar for each, as long as what it takes."""
    figure, axes = plt.subplots(figsize=(6.4, 0.55 * len(found) + 0.9))
    names = list(found)[::-1]
    drawn = axes.barh(
        names, [found[n] for n in names], color=COLOURS[: len(names)][::-1]
    )
    axes.bar_label(drawn, fmt="%.3g ms", padding=4)
    axes.set_xlim(0, 1.18 * max(found.values()))
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()


def lines(
    sizes: Sequence[int], found: Sequence[Mapping[str, float]], title: str, what: str
) -> None:
    """Draw one line for each over sizes, both axes in powers."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    for name, colour in zip(found[0], COLOURS, strict=False):
        axes.loglog(sizes, [row[name] for row in found], "o-", label=name, color=colour)
    axes.set_xlabel(what)
    axes.set_ylabel("milliseconds")
    axes.set_title(title)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
