# SPDX-License-Identifier: Apache-2.0
"""What pages of the gallery measure and draw with: medians of calls by turns.

What is drawn is also kept, row by row, for the file of results beside the page.
"""

# Matplotlib has partial types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import statistics
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from time import perf_counter, sleep
from types import FunctionType
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, StrMethodFormatter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROUNDS = 7
REST = 0.01  # seconds; threads of OpenMP spin for a few milliseconds
LONG = 0.2  # seconds: of what takes longer, three rounds are enough
COLOURS = {
    "nfuser": "#2f9e44",
    "NumPy": "#868e96",
    "Numba": "#1098ad",
    "JAX": "#4c6ef5",
    "torch": "#e64980",
}
DRAWN: list[dict[str, Any]] = []
"""The rows of what was drawn, in seconds, until they are taken to a file."""


def by_turns(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median of the seconds that each takes, after two calls.

    Each rests before its turn, until the threads of the one before no longer spin;
    the build asks them not to, before any is there (``asv_bench.compare.cores``).
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for run in calls.values():
        for _ in range(2):
            run()
    for k in range(ROUNDS):
        for name, run in calls.items():
            if k >= 3 and times[name][0] > LONG:
                continue
            sleep(REST)
            begin = perf_counter()
            run()
            times[name].append(perf_counter() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


def in_order(calls: Iterable[Callable[[], Any]]) -> list[float]:
    """Return the seconds of each call, of which none is made twice."""
    times: list[float] = []
    for run in calls:
        begin = perf_counter()
        run()
        times.append(perf_counter() - begin)
    return times


def in_jax(
    function: Callable[..., Any], *arguments: Any, **named: str
) -> dict[str, Any]:
    """Return a call of a function in NumPy's words, by JAX, where that is installed.

    ``named`` arguments are said by where they stand in ``jax``.
    """
    if find_spec("jax") is None:
        return {}
    jax: Any = import_module("jax")
    import_module("jax.scipy")
    jax.config.update("jax_enable_x64", True)
    words = function.__globals__ | dict.fromkeys(("np", "xp"), jax.numpy)
    others = {name: attrgetter(where)(jax) for name, where in named.items()}
    moved = partial(FunctionType(function.__code__, words), **others)
    whole = [k for k, a in enumerate(arguments) if isinstance(a, int)]
    jitted = jax.jit(moved, static_argnums=whole)
    given = [a if k in whole else jax.numpy.asarray(a) for k, a in enumerate(arguments)]
    return {"JAX": lambda: jax.block_until_ready(jitted(*given))}


def in_torch(
    make: Callable[[Any], Callable[..., Any]], *arguments: Any
) -> dict[str, Any]:
    """Return a call of what ``make`` writes in torch's words, where it is installed."""
    if find_spec("torch") is None:
        return {}
    torch: Any = import_module("torch")
    function, given = make(torch), [torch.from_numpy(a) for a in arguments]
    return {"torch": lambda: function(*given)}


def _colour(name: str) -> str:
    """Return the colour of a library, whatever else its name says."""
    return next(c for library, c in COLOURS.items() if name.startswith(library))


def _keep(name: str, values: Mapping[str, float], at: int | None = None) -> None:
    """Keep the seconds of one row, which stands at a number where there is an axis."""
    where = {} if at is None else {"at": at}
    DRAWN.append({"name": name, **where, "values": dict(values)})


def bars(found: Mapping[str, float], title: str) -> None:
    """Draw one bar for each, as long as the seconds that it takes."""
    _keep(title, found)
    found = {name: 1e3 * seconds for name, seconds in found.items()}
    figure, axes = plt.subplots(figsize=(6.4, 0.55 * len(found) + 0.9))
    names = list(found)[::-1]
    drawn = axes.barh(
        names, [found[n] for n in names], color=[_colour(name) for name in names]
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
    for size, row in zip(sizes, found, strict=True):
        _keep(f"{title}: {size:,} {what}", row, size)
    figure, axes = plt.subplots(figsize=(7.2, 3.4))
    for name in found[0]:
        milliseconds = [1e3 * row[name] for row in found]
        axes.loglog(sizes, milliseconds, "o-", label=name, color=_colour(name))
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel(what)
    axes.set_ylabel("milliseconds")
    axes.set_title(title)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()


def dots(waits: Sequence[float], title: str, what: str) -> None:
    """Draw one dot for each call of nfuser, in their order."""
    for number, seconds in enumerate(waits):
        _keep(f"{title}: call {number + 1}", {"nfuser": seconds}, number + 1)
    figure, axes = plt.subplots(figsize=(6.4, 3))
    calls = range(1, len(waits) + 1)
    axes.semilogy(calls, [1e3 * s for s in waits], ".", color=COLOURS["nfuser"])
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel(what)
    axes.set_ylabel("milliseconds")
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
