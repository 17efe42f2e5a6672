# SPDX-License-Identifier: Apache-2.0
"""Print a kernel as Python source for numba-cuda."""

from __future__ import annotations

from typing import assert_never

from nfuser.codegen.printers.printer import Printer
from nfuser.codegen.printers.source import Source
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import (
    Binary,
    Const,
    Datum,
    Knob,
    LoopIndex,
    Scalar,
    ScalarInput,
    Select,
    Size,
    Stride,
)
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    AwaitCopies,
    Barrier,
    Buffer,
    CopyPacket,
    DrawPacket,
    Fetch,
    FindFirst,
    FindLine,
    For,
    Kernel,
    LoadPacket,
    Memory,
    OwnStmt,
    Post,
    Publish,
    StoreLine,
    StorePacket,
    TakePacket,
    TakeTicket,
)
from nfuser.errors import VerifyError

_NAMES = {
    DType.BOOL: "boolean",
    DType.F32: "float32",
    DType.F64: "float64",
    **{d: f"int{d.bits}" for d in (DType.I8, DType.I16, DType.I32, DType.I64)},
    **{d: f"uint{d.bits}" for d in (DType.U8, DType.U16, DType.U32, DType.U64)},
}
_TYPED = (Size, Stride, ScalarInput, Knob, Datum, Binary, Select)
_PREPARED = (Op.MULTIPLIER, Op.SHIFT)
_PLACES = {
    "bx": "cuda.blockIdx.x",
    "by": "cuda.blockIdx.y",
    "tx": "cuda.threadIdx.x",
    "ty": "cuda.threadIdx.y",
}


def print_cuda(kernel: Kernel) -> Source:
    """Return ``kernel`` as a module with one ``@cuda.jit`` function."""
    return _CudaPrinter(kernel).source()


def storage_name(dtype: DType) -> str:
    """Return the type that elements of ``dtype`` have in memory."""
    if dtype.is_bool:
        return "uint8"
    return "uint16" if dtype.is_half else _NAMES[dtype]


_FENCES: dict[type, str] = {
    Barrier: "cuda.syncthreads()",
    Publish: "cuda.threadfence()",
}


class _CudaPrinter(Printer):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._index = "int64" if kernel.wide_index else "int32"
        # Indices of unrolled loops are Python's, and of no fixed width.
        self._typed = {index for index, _ in kernel.bound}

    def source(self) -> Source:
        kernel = self.kernel
        parameters = [self.buffer(b) for b in kernel.buffers]
        types = [f"CPointer({storage_name(b.dtype)})" for b in kernel.buffers]
        kinds = ["pointer"] * len(kernel.buffers)
        for var in (*kernel.values, *(var for var, _ in kernel.integers)):
            parameters.append(self.var(var))
            types.append(_NAMES[var.dtype])
            kinds.append(str(var.dtype))
        for scalar in kernel.scalars:
            parameters.append(self.symbol(scalar) or "")
            is_factor = isinstance(scalar, Binary) and scalar.op is Op.MULTIPLIER
            types.append("uint32" if is_factor else self._index)
            kinds.append("u32" if is_factor else self._index.replace("int", "i"))
        places = [
            f"    {name} = {self.primitive(self._index)}({_PLACES[name]})"
            for _, name in kernel.bound
        ]
        lines = [f"    {self._declared(array)}" for array in kernel.arrays]
        lines += self.block(kernel.body, 1)
        signature = f"void({', '.join(types)})"
        launch = kernel.launch
        bounds = (launch.threads, launch.blocks) if launch.blocks else launch.threads
        form = f"launch_bounds={bounds}"
        if launch.cluster > 1:
            form += f", cluster=(1, {launch.cluster})"
        code = [
            "from numba import cuda",
            "",
            "from nfuser.codegen.primitives.cuda import (",
            *(f"    {name}," for name in sorted(self.used)),
            ")",
            "",
            "",
            f'@cuda.jit("{signature}", {form})',
            f"def {kernel.name}({', '.join(parameters)}):",
            *places,
            *lines,
        ]
        target = "sm_{}{}".format(*kernel.scheduled.target.compute_capability)
        text = "\n".join(code) + "\n"
        return Source(kernel, self.comment(target), text, signature, kinds)

    def type_name(self, dtype: DType) -> str:
        return self.primitive(_NAMES[dtype])

    def scalar(self, x: Scalar) -> str:
        text = self.plain(x)
        if self._is_typed(x):
            return text
        return f"{self.primitive(self._index)}({text})"

    def _is_typed(self, x: Scalar) -> bool:
        """Tell whether the text of ``x`` is a variable of the index type."""
        if isinstance(x, LoopIndex):
            return x in self._typed
        return x in self._named or isinstance(x, _TYPED)

    def division(self, x: Binary, lhs: str, rhs: str) -> str:
        wrap = self.primitive(self._index)
        left = lhs if self._is_typed(x.lhs) else f"{wrap}({lhs})"
        right = rhs if self._is_typed(x.rhs) else f"{wrap}({rhs})"
        match x.op:
            case Op.LT | Op.EQ:
                right = rhs if isinstance(x.rhs, Const) else right
                return f"{wrap}({left} {x.op.value} {right})"
            case Op.MIN | Op.MAX:
                verb = self.primitive(f"{x.op.value}imum")
                return f"{verb}({left}, {right})"
            case Op.FLOORDIV | Op.MOD:
                pass
            case _:
                raise AssertionError(x.op)
        if isinstance(x.rhs, Const) or self.kernel.wide_index:
            verb = self.primitive("udiv" if x.op is Op.FLOORDIV else "urem")
            return f"{verb}({left}, {right})"
        multiplier, shift = (self._prepared_name(op, x.rhs) for op in _PREPARED)
        quotient = f"{self.primitive('fast_divide')}({left}, {multiplier}, {shift})"
        if x.op is Op.FLOORDIV:
            return quotient
        quotient = self._named.get(x.lhs // x.rhs, quotient)
        return f"{wrap}({lhs} - {quotient} * ({rhs}))"

    def _prepared_name(self, op: Op, divisor: Scalar) -> str:
        for x in self.kernel.scalars:
            if isinstance(x, Binary) and x.op is op and x.lhs is divisor:
                return self.symbol(x) or ""
        raise AssertionError(divisor)

    def element(self, array: Array, index: Scalar) -> str:
        return f"{self.array(array)}[{self.plain(index)}]"

    def set_element(self, array: Array, index: Scalar, value: str) -> str:
        return f"{self.element(array, index)} = {value}"

    def loop(self, stmt: For, depth: int) -> list[str]:
        pad = self.indent * depth
        if isinstance(stmt.stop, Const) and stmt.going is None and not stmt.backwards:
            name = self.symbol(stmt.index)
            body = self.block(stmt.body, depth + 1)
            return [f"{pad}for {name} in range({stmt.stop.value}):", *body]
        self._typed.add(stmt.index)
        name = self.symbol(stmt.index)
        wrap, stop = self.primitive(self._index), self.scalar(stmt.stop)
        first, test, step = "0", f"{name} < {stop}", "+ 1"
        if stmt.backwards:
            first, test, step = f"{stop} - 1", f"{name} >= 0", "- 1"
        if stmt.going is not None:
            test = f"({test}) & ({self.var(stmt.going)} != 0)"
        return [
            f"{pad}{name} = {wrap}({first})",
            f"{pad}while {test}:",
            *self.block(stmt.body, depth + 1),
            f"{pad}{self.indent}{name} = {wrap}({name} {step})",
        ]

    def _declared(self, array: Array) -> str:
        if array.memory is Memory.LANDING:
            kind = self.primitive(storage_name(array.dtype))
            return f"{self.array(array)} = cuda.shared.array(0, {kind})"
        space = "shared" if array.memory is Memory.SHARED else "local"
        kind = self.type_name(array.dtype)
        return f"{self.array(array)} = cuda.{space}.array({array.size}, {kind})"

    def own_statement(self, stmt: OwnStmt) -> list[str]:
        match stmt:
            case LoadPacket() | CopyPacket() | TakePacket() | StorePacket():
                return [self._moved(stmt)]
            case DrawPacket(array, at, place, key, call, width):
                verb = self.primitive(f"draw_packet_{width}")
                given = ", ".join(map(self.value, (place, key, call)))
                return [f"{verb}({self.array(array)}, {self.plain(at)}, {given})"]
            case AwaitCopies():
                return [f"{self.primitive('await_copies')}()"]
            case Barrier(of_cluster=True):
                return [f"{self.primitive('cluster_barrier')}()"]
            case Barrier() | Publish():
                return [_FENCES[type(stmt)]]
            case Post():
                return [self._posted(stmt)]
            case TakeTicket(var, buffer, index):
                verb = self.primitive("ticket")
                where = f"{self.buffer(buffer)}, {self.scalar(index)}"
                return [f"{self.var(var)} = {verb}({where})"]
            case FindLine() | FindFirst() | StoreLine() | Fetch():
                message = f"a GPU has no {type(stmt).__name__}"
                raise VerifyError(message)
            case _:
                assert_never(stmt)

    def _posted(self, stmt: Post) -> str:
        """Render what is sent to another block: of this launch, or of the cluster."""
        value = self.value(stmt.value)
        if isinstance(stmt.boxes, Buffer):
            place = f"{self.buffer(stmt.boxes)}, {self.scalar(stmt.index)}"
            return f"{self.primitive('post')}({place}, {value})"
        assert stmt.block is not None
        assert stmt.turn is not None
        index, block, turn = map(self.plain, (stmt.index, stmt.block, stmt.turn))
        verb = self.primitive("cluster_post")
        return f"{verb}({self.array(stmt.boxes)}, {index}, {block}, {value}, {turn})"

    def _moved(self, stmt: LoadPacket | CopyPacket | TakePacket | StorePacket) -> str:
        """Render what goes between an array and memory in one access."""
        local = f"{self.array(stmt.array)}, {self.plain(stmt.at)}"
        match stmt:
            case LoadPacket(_, _, buffer, index, width, across):
                name = "load_packet_across" if across else "load_packet"
                verb = self._packet(name, buffer.dtype, width)
                return f"{verb}({local}, {self.buffer(buffer)}, {self.scalar(index)})"
            case CopyPacket(_, _, buffer, index, width):
                verb = self.primitive(f"copy_packet_{width}")
                return f"{verb}({local}, {self.buffer(buffer)}, {self.scalar(index)})"
            case TakePacket(_, _, source, index, width):
                verb = self._packet("take_packet", source.dtype, width)
                return f"{verb}({local}, {self.array(source)}, {self.plain(index)})"
            case StorePacket(buffer, index, _, _, width):
                verb = self._packet("store_packet", buffer.dtype, width)
                return f"{verb}({self.buffer(buffer)}, {self.scalar(index)}, {local})"

    def _packet(self, verb: str, dtype: DType, width: int) -> str:
        return self.primitive(self.access(f"{verb}_{width}", dtype))
