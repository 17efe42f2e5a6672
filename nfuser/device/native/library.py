# SPDX-License-Identifier: Apache-2.0
"""The machine code of native entries: compiled once a process, by llvmlite alone."""

# llvmlite carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from functools import cache
from typing import Any

from nfuser.device.native import c_functions, entry, layout, perform, read
from nfuser.device.native.c_functions import CFunction
from nfuser.device.native.layout import TABLE_BYTES
from nfuser.device.native.translate import translate

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


_engines: list[Any] = []  # code that plans name by its address is never unloaded


class Library:
    """Machine code that stays loaded as long as the process runs."""

    def __init__(self, text: str) -> None:
        self._engine = _compiled(text)
        _engines.append(self._engine)

    def address(self, name: str) -> int:
        """Return where a function or a variable lies."""
        function: int = self._engine.get_function_address(name)
        return function or self._engine.get_global_value_address(name)


@cache
def library() -> Library:
    """Return the native source, translated and compiled."""
    functions = (*entry.FUNCTIONS, *perform.FUNCTIONS, *read.FUNCTIONS)
    named = {k: v for k, v in vars(c_functions).items() if isinstance(v, CFunction)}
    text = translate(
        functions,
        c_functions={
            k: v.signature for k, v in named.items() if not k.startswith("call_")
        },
        by_address={k: v.signature for k, v in named.items() if k.startswith("call_")},
        constants={k: v for k, v in vars(layout).items() if isinstance(v, int)},
    )
    words = TABLE_BYTES // 8
    return Library(f"@table = global [{words} x i64] zeroinitializer\n{text}")


@cache
def kernel_caller(kinds: tuple[str, ...]) -> int:
    """Return a function that calls CPU kernels with parameters of these kinds.

    It takes the kernel, the range, and where the parameters lie, 8 bytes each.
    """
    lines: list[str] = []
    given: list[str] = []
    for k, kind in enumerate(kinds):
        lines.append(f"%p{k} = getelementptr i64, ptr %values, i64 {k}")
        lines.append(f"%v{k} = load {_TYPES[kind]}, ptr %p{k}, align 8")
        given.append(f"{_TYPES[kind]} {_EXTENDED.get(kind, '')} %v{k}")
    arguments = ", ".join(("ptr %r", "ptr %e", "i64 %start", "i64 %stop", *given))
    body = "\n  ".join(
        (
            "%r = alloca [8 x i64], align 16",
            "%e = alloca [8 x i64], align 16",
            *lines,
            f"%status = call i32 %kernel({arguments})",
            "ret i32 %status",
        )
    )
    head = "define i32 @run(ptr %kernel, i64 %start, i64 %stop, ptr %values)"
    return Library(f"{head} {{\n  {body}\n}}\n").address("run")


def _compiled(text: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(jit=True, opt=1)
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, options))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


_EXTENDED = {"i8": "signext", "i16": "signext", "bool": "zeroext"} | dict.fromkeys(
    ("u8", "u16"), "zeroext"
)
