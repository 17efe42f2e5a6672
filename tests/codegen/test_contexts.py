# SPDX-License-Identifier: Apache-2.0
"""A module in a cycle with its context is collected, in any order, without harm."""

from __future__ import annotations

import subprocess
import sys

CYCLES = """
import gc
from llvmlite import binding
from nfuser.codegen.numba.llvm import contexts

class Holder:
    pass

ended = []
dispose = binding.ffi.lib.LLVMPY_ContextDispose
counted = lambda x: (ended.append(x), dispose(x))
binding.ffi.lib._fntab["LLVMPY_ContextDispose"] = counted
text = "define i32 @f(i32 %x) { ret i32 %x }"
for k in range(100):
    holder = Holder()
    holder.itself = holder
    holder.context = contexts.create_context()
    holder.module = contexts.parse_assembly(text, holder.context)
    holder.copy = holder.module.clone()
    other = text.replace("@f", "@g")
    holder.module.link_in(contexts.parse_assembly(other, holder.context))
    del holder
gc.collect()
print(len(ended))
"""


def test_contexts_end_after_their_modules() -> None:
    command = [sys.executable, "-c", CYCLES]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout.strip()) == (0, "100"), found.stderr
