# SPDX-License-Identifier: Apache-2.0
"""The machine code of native entries: compiled by llvmlite alone, once.

Who keeps machine code between processes lies above this room and says so: ``keep_by``.
"""

from __future__ import annotations

import ctypes
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from nfuser.codegen.numba.compiler_lock import COMPILER, Later, undisturbed
from nfuser.codegen.numba.llvm.compile_llvm import compile_llvm
from nfuser.codegen.objects.load_object import load_object
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.execution.device.native import COMPILED
from nfuser.execution.device.native.owned import for_ever

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Loaded: TypeAlias = "tuple[int, Any]"
    Make: TypeAlias = "Callable[[], MachineCode]"
    Load: TypeAlias = "Callable[[MachineCode], Loaded]"
    Keeper: TypeAlias = "Callable[[str, Make, Load], Loaded]"

_ENTRIES = (
    "table",
    "read",
    "mixed",
    "call",
    "call_bound",
    "perform",
    "share",
    "help_others",
    "advance",
)
_TYPES = {
    "pointer": "ptr",
    "bool": "i8",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "u8": "i8",
    "u16": "i16",
    "u32": "i32",
    "u64": "i64",
    "f32": "float",
    "f64": "double",
}


class NativeLibrary:
    """Native source, translated and compiled."""

    def __init__(self) -> None:
        first = _loaded("native entry", _compiled_source)
        words = (ctypes.c_int64 * len(_ENTRIES)).from_address(first)
        self._addresses: dict[str, int] = dict(zip(_ENTRIES, words, strict=True))

    def address(self, name: str) -> int:
        """Return where a function or a variable lies."""
        return self._addresses[name]


@cache
def library() -> NativeLibrary:
    """Return the native source as machine code, one for the process."""
    return undisturbed(_only)


@cache
def begin_library() -> Later[NativeLibrary]:
    """Have a thread compile it; who asks for the library meanwhile waits for that."""
    return Later(_only, COMPILER)


@cache
def advancing() -> Callable[[int, int], int]:
    """Return what adds to a word, by its address, in one step with all threads."""
    kind = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
    return kind(library().address("advance"))


@cache
def _only() -> NativeLibrary:
    return NativeLibrary()


def _compiled_source() -> MachineCode:
    from nfuser.execution.device.native import c_functions, layout
    from nfuser.execution.device.native.source import (
        entry,
        launches,
        matching,
        nests,
        numbers,
        perform,
        pool,
        read,
        repeat,
    )
    from nfuser.execution.device.native.translate import translate

    parts = (entry, matching, nests, numbers, perform, launches, pool, read, repeat)
    functions = [f for part in parts for f in part.FUNCTIONS]
    known = vars(c_functions).items()
    named = {k: v for k, v in known if isinstance(v, c_functions.CFunction)}
    text = translate(
        functions,
        c_functions={
            k: v.signature for k, v in named.items() if not k.startswith("call_")
        },
        by_address={k: v.signature for k, v in named.items() if k.startswith("call_")},
        constants={k: v for k, v in vars(layout).items() if isinstance(v, int)},
    )
    words = layout.TABLE_BYTES // 8
    entries = ", ".join(f"ptr @{name}" for name in _ENTRIES)
    head = (
        f"@table = global [{words} x i64] zeroinitializer\n"
        f"@entries = constant [{len(_ENTRIES)} x ptr] [{entries}]\n"
    )
    return compile_llvm(head + text, "entries")


def kernel_caller(kinds: tuple[str, ...]) -> int:
    """Return a function that calls CPU kernels with parameters of these kinds.

    It takes the kernel, the range, and where the parameters lie, 8 bytes each.
    """
    words = _in_words(kinds)
    if words not in _callers:
        kernel_callers([words])
    return _callers[words]


def kernel_callers(kinds: Iterable[tuple[str, ...]]) -> None:
    """Compile the callers that are missing for these kinds, as one module."""
    missing = [k for k in dict.fromkeys(map(_in_words, kinds)) if k not in _callers]
    texts = [_caller(words, f"run{n}") for n, words in enumerate(missing)]

    @cache
    def compiled() -> bytes:
        return compile_llvm("\n".join(texts), "run0").code

    def load() -> None:
        for n, words in enumerate(missing):
            made = partial(_entered, compiled, f"run{n}")
            _callers[words] = _loaded(f"call of ({', '.join(words)})", made)

    if missing:
        undisturbed(load)


def _entered(compiled: Callable[[], bytes], entry: str) -> MachineCode:
    return MachineCode(compiled(), entry)


_callers: dict[tuple[str, ...], int] = {}


def _in_words(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return kinds that are passed alike: addresses are integers of 64 bits."""
    return tuple("i64" if kind in _WORDS else kind for kind in kinds)


_WORDS = frozenset(("pointer", "i64", "u64"))


@cache
def procedure_caller(kinds: tuple[str, ...]) -> int:
    """Return the same for functions of C that take these alone and return nothing."""
    name = f"call of a procedure ({', '.join(kinds)})"
    return _loaded(name, lambda: compile_llvm(_of_procedure(kinds), "run"))


def _caller(kinds: tuple[str, ...], name: str) -> str:
    loads, given = _given(kinds)
    arguments = ", ".join(("ptr %r", "ptr %e", "i64 %start", "i64 %stop", *given))
    return _run(
        name,
        "%r = alloca [8 x i64], align 16",
        "%e = alloca [8 x i64], align 16",
        *loads,
        f"%status = call i32 %kernel({arguments})",
        "ret i32 %status",
    )


def _of_procedure(kinds: tuple[str, ...]) -> str:
    loads, given = _given(kinds)
    return _run("run", *loads, f"call void %kernel({', '.join(given)})", "ret i32 0")


def _given(kinds: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return what loads the parameters, and what they are in a call."""
    loads: list[str] = []
    given: list[str] = []
    for k, kind in enumerate(kinds):
        loads.append(f"%p{k} = getelementptr i64, ptr %values, i64 {k}")
        loads.append(f"%v{k} = load {_TYPES[kind]}, ptr %p{k}, align 8")
        given.append(f"{_TYPES[kind]} {_EXTENDED.get(kind, '')} %v{k}")
    return loads, given


def _run(name: str, *body: str) -> str:
    head = f"define i32 @{name}(ptr %kernel, i64 %start, i64 %stop, ptr %values)"
    lines = "\n  ".join(body)
    return f"{head} {{\n  {lines}\n}}\n"


_EXTENDED = {"i8": "signext", "i16": "signext", "bool": "zeroext"} | dict.fromkeys(
    ("u8", "u16"), "zeroext"
)


# -- keeping it --------------------------------------------------------------


def _anew(_name: str, make: Make, load: Load) -> Loaded:
    return load(make())


_keepers: list[Keeper] = [_anew]


def keep_by(keeper: Keeper) -> None:
    """Let ``keeper`` find machine code by name, or make and keep it, and load it."""
    _keepers[:] = [keeper]


def _loaded(name: str, make: Make) -> int:
    def made() -> MachineCode:
        code = make()
        COMPILED.append(name)
        return code

    address, owner = undisturbed(lambda: _keepers[0](name, made, load_object))
    # Plans name code by its address, and threads that help sleep in it until the
    # process is gone: it is never unloaded, not even at the end.
    for_ever(owner)
    return address
