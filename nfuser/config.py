# SPDX-License-Identifier: Apache-2.0
"""All settings, read from ``NFUSER_*`` variables once and kept as one value."""

from __future__ import annotations

import os
import warnings
from array import array
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from nfuser.base.locks import ForkSafeLock

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Mapping
    from collections.abc import Set as AbstractSet

VERSION = "0.1.0"
FEATURES = frozenset(
    {"concretize_resize_extents", "disk_cache", "native_calls", "object_files"}
)
REWRITES = (
    "take_known_choices",
    "drop_dead_code",
    "split_complex",
    "widen_halves",
    "simplify_casts",
    "forward_assigned_rows",
    "forward_assigned_parts",
    "insert_axes_last",
    "merge_common_subexpressions",
    "sum_products",
    "share_derived_sums",
    "forward_beside_arrays",
    "copy_leaf_outputs",
    "place_assignments",
)
LOWERINGS = (
    "unwrap_modulo",
    "split_ranges",
    "group_turns",
    "finish_rows",
    "fetch_ahead",
    "interleave_loops",
    "bound_angles",
    "bound_powers",
    "prune",
    "share_addresses",
    "fetch_tiles",
    "tile_draws",
    "interleave_vectors",
    "draw_packets",
)
STAGES = (
    "fusion",
    "concrete",
    "rewrite",
    "segments",
    "schedule",
    "kernel",
    "source",
    "host",
    "launch",
    "explain",
    "report",
    "timeline",
    "nvtx",
)
VARIABLES = (
    "NFUSER_DUMP",
    "NFUSER_DISABLE",
    "NFUSER_VERIFY",
    "NFUSER_PASS_LIMIT",
    "NFUSER_NUM_THREADS",
    "NFUSER_CACHE_SIZE",
    "NFUSER_CACHE_DIR",
    "NFUSER_REPRO",
    "NFUSER_TRACEBACK",
    "NFUSER_PROGRESS",
    "NFUSER_NUMBA",
)
D = TypeVar("D")
LEVELS = (0, 1, 2)
DUMPS = frozenset(
    {
        *STAGES,
        *(f"rewrite.{name}" for name in REWRITES),
        *(f"kernel.{name}" for name in LOWERINGS),
    }
)


@dataclass(frozen=True, slots=True)
class Config:
    """What the environment asks for.

    ``dump``
        Stages (or ``stage.pass``) to print; ``dump_folder`` writes files instead.
    ``disable_all``
        Run the plain Python function, unfused.
    ``disable``
        Names of single features to turn off.
    ``verify``
        0: never; 1: at the end of each stage; 2: after each pass, and what nfuser's
        own code raises by mistake where a loop is traced is raised.
    ``pass_limit``
        Run only the first n passes of each stage.
    ``cache_dir``
        Folder of compiled kernels; None: ``nfuser`` in the user's cache folder.
    ``repro_dir``
        Folder for what makes a failed call happen again; None: none is written.
    ``num_threads``
        Threads of the CPU backend; None: as many as the process may use.
    ``full_tracebacks``
        Show nfuser's own frames in tracebacks of errors, too.
    ``progress``
        Say on standard error how far a long compile is: always, never, or, where this
        is None, on terminals and in notebooks.
    ``numba``
        ``"public"``: compile kernels by what Numba documents alone.
    ``cache_size``
        Entries that each cache in memory keeps: of traces and plans of a function, of
        fusions, concretizations, runtimes, schedules and kernels; the least recently
        used goes first.
    """

    dump: frozenset[str] = frozenset()
    dump_folder: str | None = None
    disable_all: bool = False
    disable: frozenset[str] = frozenset()
    verify: int = 1
    pass_limit: int | None = None
    cache_dir: str | None = None
    num_threads: int | None = None
    repro_dir: str | None = None
    full_tracebacks: bool = False
    progress: bool | None = None
    numba: str = ""
    cache_size: int = 1024

    @property
    def of_kernels(self) -> Hashable:
        """What changes the kernels that are made: part of the key of every cache."""
        return self.disable, self.pass_limit, self.numba

    @property
    def of_calls(self) -> Hashable:
        """What changes how a call runs: part of the key of every plan."""
        shows_launches = "launch" in self.dump
        return self.of_kernels, self.disable_all, shows_launches, self.num_threads


def from_environment(environ: Mapping[str, str]) -> Config:
    """Read a configuration; a value that makes no sense is an error that names it.

    >>> from_environment({"NFUSER_DUMP": "fusion,kernel"}).dump == {"fusion", "kernel"}
    True
    """
    _warn_of_unknown(environ)
    stages, _, folder = environ.get("NFUSER_DUMP", "").partition(":")
    disable = _names(environ, "NFUSER_DISABLE", {*FEATURES, "0", "1"})
    return Config(
        dump=_names({"NFUSER_DUMP": stages}, "NFUSER_DUMP", DUMPS),
        dump_folder=folder or None,
        disable_all="1" in disable,
        disable=disable - {"0", "1"},
        verify=_level(environ, "NFUSER_VERIFY", 1),
        pass_limit=_integer(environ, "NFUSER_PASS_LIMIT", None),
        cache_dir=environ.get("NFUSER_CACHE_DIR") or None,
        num_threads=_positive(environ, "NFUSER_NUM_THREADS", None),
        repro_dir=environ.get("NFUSER_REPRO") or None,
        full_tracebacks="full" in _names(environ, "NFUSER_TRACEBACK", {"full", "user"}),
        progress=_switch(environ, "NFUSER_PROGRESS"),
        numba="".join(_names(environ, "NFUSER_NUMBA", {"public"})),
        cache_size=_positive(environ, "NFUSER_CACHE_SIZE", 1024),
    )


def _warn_of_unknown(environ: Mapping[str, str]) -> None:
    """Name the variables that look like settings and are none."""
    for name in sorted(environ):
        if not name.startswith("NFUSER_") or name in VARIABLES:
            continue
        words = [known.removeprefix("NFUSER_") for known in VARIABLES]
        close = get_close_matches(name.removeprefix("NFUSER_"), words, 1)
        meant = f"write NFUSER_{close[0]}, or unset it" if close else "unset it"
        message = (
            f"{meant}: {name} is no setting of nfuser's; there are "
            f"{', '.join(VARIABLES)}"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _switch(environ: Mapping[str, str], name: str) -> bool | None:
    found = _names(environ, name, {"0", "1"})
    return None if not found else "1" in found


def _names(
    environ: Mapping[str, str], name: str, known: AbstractSet[str]
) -> frozenset[str]:
    """Read a list of names with commas between them, every one of them known."""
    given = (part.strip() for part in environ.get(name, "").split(","))
    found = frozenset(filter(None, given))
    if unknown := sorted(found - known):
        message = (
            f"{name}: expected names among {', '.join(sorted(known))}, with commas "
            f"between them; found {', '.join(unknown)}"
        )
        raise ValueError(message)
    return found


def _integer(environ: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        message = f"{name} must be a whole number, not {text!r}"
        raise ValueError(message)
    return int(text)


def _positive(environ: Mapping[str, str], name: str, default: D) -> int | D:
    found = _integer(environ, name, None)
    if found == 0:
        message = f"{name} must be at least 1, not 0"
        raise ValueError(message)
    return default if found is None else found


def _level(environ: Mapping[str, str], name: str, default: int) -> int:
    found = _integer(environ, name, None)
    if found is not None and found not in LEVELS:
        message = f"{name} must be one of {', '.join(map(str, LEVELS))}, not {found}"
        raise ValueError(message)
    return default if found is None else found


_current = _first = from_environment(os.environ)
_numbers: dict[Hashable, int] = {_current.of_calls: 0}
_number = array("q", (0,))
_ASIDE = 1 << 32  # beside it where native code serves no call
_lock = ForkSafeLock()  # who changes the number reads it first


def current() -> Config:
    """Return the configuration in force."""
    return _current


def at_start() -> Config:
    """Return what the environment asked for when the process began."""
    return _first


def number() -> int:
    """Return a number for how calls run: equal for those that run alike, only."""
    return _number[0] % _ASIDE


def words() -> array[int]:
    """Return the memory that this number lies in, for native code."""
    return _number


def leave_to_python(*, is_wanted: bool) -> None:
    """Let native code serve no call, as long as this is wanted."""
    with _lock:
        _number[0] = number() + is_wanted * _ASIDE


def is_left_to_python() -> bool:
    """Tell whether native code serves no call."""
    return _number[0] >= _ASIDE


def _enter(chosen: Config) -> None:
    global _current
    with _lock:
        _current = chosen
        chosen_number = _numbers.setdefault(chosen.of_calls, len(_numbers))
        _number[0] += chosen_number - number()


@contextmanager
def override(**changes: Any) -> Generator[Config]:
    """Change settings inside a ``with`` statement, for the whole process."""
    global _current
    with _lock:
        before, own = _current, number()
    try:
        _enter(replace(before, **changes))
        yield _current
    finally:
        # No call of a function: an exception of another thread might end it. To enter a
        # lock is none.
        with _lock:
            _current = before
            _number[0] += own - _number[0] % _ASIDE
