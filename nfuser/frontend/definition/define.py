# SPDX-License-Identifier: Apache-2.0
"""The calls of a definition that are no operations: inputs, constants and outputs.

Each function takes the draft, then the arguments as they are recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.ir.tensor import tensor
from nfuser.errors import DTypeError, ShapeError, UnsupportedError
from nfuser.frontend.definition.alias import aliased_slot
from nfuser.frontend.definition.execution.hosted import PassedNumber
from nfuser.frontend.definition.inputs import NumberInput, TensorInput, constant_of
from nfuser.frontend.definition.operations.stored import format_of
from nfuser.frontend.definition.types import DataType, required_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.frontend.definition.draft import Draft

_WIDE = {"f": DataType.Double, "c": DataType.ComplexDouble}


def _define_tensor(
    d: Draft,
    shape: Sequence[int],
    contiguity: Sequence[bool | None],
    dtype: DataType,
    is_cpu: bool = False,
    stride_order: Sequence[int] = (),
) -> Any:
    _check_shape(shape, stride_order, is_cpu)
    if len(contiguity) != len(shape):
        message = f"contiguity has {len(contiguity)} entries for {len(shape)} axes"
        raise ShapeError(message)
    slot, name, form = len(d.inputs), d.next_name("T"), format_of(dtype.value)
    own = required_dtype(dtype) if form is None or is_cpu else DType.U8
    extents = [
        scalar_symbols.size(slot, k) if n == -1 else n for k, n in enumerate(shape)
    ]
    view = tensor(extents, own)
    if form is not None:
        d.formats[view] = form
    d.builder.emit(Argument(slot, view, by_value=is_cpu))
    if is_cpu:
        d.inputs.append(NumberInput(name, own, d.place, is_array=True))
    else:
        layout = tuple(contiguity), tuple(stride_order)
        d.inputs.append(TensorInput(name, own, tuple(shape), *layout, d.place, form))
    return view


def _check_shape(
    shape: Sequence[object], stride_order: Sequence[int], is_cpu: bool
) -> None:
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, int) or n < -1:
            message = f"a size is an integer, -1 where it is any; found {n!r}"
            raise ShapeError(message)
    if stride_order and sorted(stride_order) != list(range(len(shape))):
        message = f"stride_order must rank {len(shape)} axes, not {tuple(stride_order)}"
        raise ShapeError(message)
    if is_cpu and shape:
        message = "is_cpu is for arrays without axes; define the tensor with shape=[]"
        raise UnsupportedError(message)


def _define_scalar(d: Draft, value: Any = None, *, dtype: DataType) -> Any:
    given = required_dtype(dtype)
    if value is None:
        return _number(d, given, d.next_name("S"))
    return constant_of(value, given)


def _define_vector(d: Draft, size: int) -> Any:
    first = int(d.next_name("S")[1:])
    names = (f"S{first + k}" for k in range(size))
    return [_number(d, required_dtype(DataType.Int), name) for name in names]


def _number(d: Draft, dtype: DType, name: str) -> Any:
    slot = len(d.inputs)
    d.inputs.append(NumberInput(name, dtype, d.place))
    if dtype.is_integer:
        return scalar_symbols.scalar_input(slot)
    # Python's floats are doubles; beside an f32 tensor they are rounded.
    wide = dtype if dtype.is_bool else _WIDE[dtype.kind]
    view = d.builder.argument(slot, 0, required_dtype(wide), by_value=True)
    if not dtype.is_complex:
        d.host.know(view, PassedNumber(slot))
    return d.same_kind(view, ())


def _add_output(d: Draft, output: Any, alias_input: Any = None) -> None:
    if alias_input is None:
        d.add_output(output)
        return
    if getattr(output, "stored", None) is not getattr(alias_input, "stored", None):
        message = (
            f"write fd.ops.cast(output, {alias_input.dtype}): the input takes its own "
            f"type, found {output.dtype}"
        )
        raise DTypeError(message)
    d.add_output(output, aliased_slot(d, d.tensor(output), alias_input))


DEFINE: dict[str, Callable[..., Any]] = {
    "define_tensor": _define_tensor,
    "define_scalar": _define_scalar,
    "define_vector": _define_vector,
    "add_output": _add_output,
}
