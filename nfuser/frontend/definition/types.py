# SPDX-License-Identifier: Apache-2.0
"""Element types under nvFuser's names, and what a definition hands to its user."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.scalar import Const, const
from nfuser.errors import DTypeError
from nfuser.frontend.definition.operations.stored import E4M3, E5M2, Float8, format_of
from nfuser.frontend.definition.operators import HandleOperators
from nfuser.frontend.definition.refused import TENSOR, missing

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar as IntegerExpression
    from nfuser.compiler.ir.tensor import SourceLine, TensorView
    from nfuser.compiler.ops.builder import Number
    from nfuser.frontend.definition.operators import Owner


class DataType(Enum):
    """An element type under nvFuser's name; ``Int`` has 64 bits.

    The narrow integers are nfuser's own. ``Null`` stands for "not given". Of 8-bit
    floats there are arrays, to be moved and cast.
    """

    Bool = DType.BOOL
    Int8 = DType.I8
    Int16 = DType.I16
    Int32 = DType.I32
    Int = DType.I64
    Index = DType.I64  # noqa: PIE796 (the same member)
    UInt8 = DType.U8
    UInt16 = DType.U16
    UInt32 = DType.U32
    UInt64 = DType.U64
    Half = DType.F16
    BFloat16 = DType.BF16
    Float = DType.F32
    Double = DType.F64
    ComplexFloat = DType.C64
    ComplexDouble = DType.C128
    Float8_e4m3fn = E4M3
    Float8_e5m2 = E5M2
    Null = None

    def __call__(self) -> DataType:
        """Return this type: ``x.dtype()`` of nvFuser is ``x.dtype`` here."""
        return self

    def __repr__(self) -> str:
        return f"DataType.{self.name}"

    __str__ = __repr__


def data_type(dtype: DType) -> DataType:
    """Return nvFuser's name for ``dtype``.

    >>> data_type(DType.F32)
    DataType.Float
    """
    return DataType(dtype)


def dtype_or_none(spec: object) -> DType | None:
    """Return the dtype for a ``DataType``, or for what NumPy takes as one.

    >>> dtype_or_none(DataType.BFloat16), dtype_or_none("int32"), dtype_or_none(None)
    (bf16, i32, None)
    """
    if (form := _format_of(spec)) is not None:
        message = (
            f"write fd.ops.cast(x, {DataType(form)}) for what is stored so: no "
            "operation computes in 8-bit floats"
        )
        raise DTypeError(message)
    if isinstance(spec, DataType):
        return spec.value if isinstance(spec.value, DType) else None
    return None if spec is None else as_dtype(spec)


def _format_of(spec: object) -> Float8 | None:
    return format_of(spec.value if isinstance(spec, DataType) else spec)


def stored_type(spec: object) -> DataType:
    """Return the type for ``spec``, which an array may have.

    >>> stored_type("float8_e5m2"), stored_type(DataType.Half)
    (DataType.Float8_e5m2, DataType.Half)
    """
    form = _format_of(spec)
    return data_type(required_dtype(spec)) if form is None else DataType(form)


def required_dtype(spec: object) -> DType:
    """Return the dtype for ``spec``, which must name one."""
    found = dtype_or_none(spec)
    if found is None:
        message = "expected a dtype, found DataType.Null"
        raise DTypeError(message)
    return found


@node
class Tensor(HandleOperators):
    """A tensor of a definition; ``fd.ops`` takes and gives it, and so do operators."""

    draft: Owner | None  # None: kept for definitions to come
    view: TensorView
    name: str
    stored: Float8 | None = None  # what the bytes are, if they are no numbers

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.view.ndim

    @property
    def dtype(self) -> DataType:
        """The element type."""
        stored = self.stored
        return data_type(self.view.dtype) if stored is None else DataType(stored)

    def size(self, dim: int) -> Scalar:
        """Return the extent along ``dim``, as ``fd.ops.size`` does."""
        assert self.draft is not None
        return self.draft.call("size", (self, dim), {})

    def shape(self) -> list[Scalar]:
        """Return all extents, as ``fd.ops.shape`` does."""
        assert self.draft is not None
        return self.draft.call("shape", (self,), {})

    def is_tensor(self) -> bool:
        """Tell a tensor from a scalar."""
        return True

    def is_symbolic(self) -> bool:
        """Tell whether its value is for calls to say, which is so."""
        return True

    def domain(self) -> list[Axis]:
        """Return the axes, as nvFuser's ``TensorDomain`` lists them."""
        return [Axis(self, k) for k in range(self.ndim)]

    get_logical_domain = domain

    def __getattr__(self, name: str) -> NoReturn:
        if name in TENSOR:
            missing(f"{name} of a tensor", TENSOR[name])
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.ndim} axes, {self.dtype}>"


@node
class Axis:
    """One axis of a tensor of a definition."""

    tensor: Tensor
    number: int

    def extent(self) -> Scalar:
        """Return the size along it, as ``fd.ops.size`` does."""
        return self.tensor.size(self.number)

    def is_broadcast(self) -> bool:
        """Tell whether it has size 1 in every call."""
        return self.tensor.view.shape[self.number] is const(1)

    def is_reduction(self) -> bool:
        """Tell whether it is folded: no axis of a result is."""
        return False

    def __repr__(self) -> str:
        return f"<axis {self.number} of {self.tensor!r}>"


Value: TypeAlias = "Number | IntegerExpression | TensorView"


@node
class Scalar(HandleOperators):
    """A number of a definition: a constant, an input, or computed of such.

    Beside a tensor it is weak, as a Python number is: it takes part by kind. An
    integer that is known before the kernels run may be an extent.
    """

    draft: Owner | None
    value: Value
    name: str

    def is_tensor(self) -> bool:
        """Tell a tensor from a scalar."""
        return False

    def is_symbolic(self) -> bool:
        """Tell whether its value is for calls to say: it is no constant."""
        return not isinstance(self.value, Const | bool | int | float | complex)

    def __repr__(self) -> str:
        return f"<{self.name}: scalar>"


Handle: TypeAlias = Tensor | Scalar


@node
class CallRecord:
    """One call to a definition, to be printed again; ``name`` as after ``fd.``."""

    name: str
    args: tuple[object, ...]
    options: dict[str, object]
    result: object
    source: SourceLine | None
