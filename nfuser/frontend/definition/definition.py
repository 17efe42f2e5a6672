# SPDX-License-Identifier: Apache-2.0
"""``nfuser.FusionDefinition``: a fusion built by hand, with nvFuser's Python names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import nfuser.config as config
from nfuser.compiler.concretize import DEFAULT_RESIZE, check_policy
from nfuser.compiler.ir.text import text
from nfuser.errors import ArgumentError, ShapeError
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.runtime.place import check_backend
from nfuser.frontend.definition.define import DEFINE
from nfuser.frontend.definition.draft import Draft
from nfuser.frontend.definition.execution.calls import DEFINITIONS, Calls
from nfuser.frontend.definition.execution.text import definition_text
from nfuser.frontend.definition.inputs import (
    constant_of,
    default_dtype,
    tensor_descriptor,
)
from nfuser.frontend.definition.operations.ops import TABLE, Ops
from nfuser.frontend.definition.operations.stored import bytes_of, format_of
from nfuser.frontend.definition.refused import DEFINITION, missing
from nfuser.frontend.definition.types import (
    DataType,
    Scalar,
    Tensor,
    data_type,
    required_dtype,
    stored_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.segment import ShouldMerge

_CALLS = {**{f"ops.{name}": verb for name, verb in TABLE.items()}, **DEFINE}


class FusionDefinition(Calls):
    """A fusion built operation by operation, then called with arrays.

    ``fd.ops`` holds the operations; dtypes meet by NumPy's rules. ``repr`` is Python
    that makes the definition again. ``backend="interpret"`` runs the CUDA kernels of
    NumPy arrays in the interpreter that checks them; ``resize="static"`` compiles the
    extents of slices, pads and concatenations in, ``"exact"`` all; ``should_merge``
    tells which two groups of expressions may share a kernel.

    >>> import numpy as np
    >>> with FusionDefinition() as fd:
    ...     t0 = fd.define_tensor(shape=[-1, -1], dtype=DataType.Float)
    ...     fd.add_output(fd.ops.sum(fd.ops.mul(t0, 2.0), 1))
    >>> fd.execute([np.ones((2, 3), np.float32)])
    [array([6., 6.], dtype=float32)]
    """

    def __init__(
        self,
        *,
        backend: str | None = None,
        resize: ResizePolicy = DEFAULT_RESIZE,
        should_merge: ShouldMerge | None = None,
    ) -> None:
        check_backend(backend)
        check_policy(resize)
        # While something is dumped, each definition shows all its stages.
        is_own = config.current().dump or should_merge is not None
        followed = None if is_own else DEFINITIONS.root((backend, resize))
        self.ops = Ops(draft := Draft(_CALLS, followed))
        super().__init__(draft, backend, resize, should_merge)

    def __enter__(self) -> FusionDefinition:
        self._draft.check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]:
        self._draft.is_open = False
        return False

    # -- inputs --------------------------------------------------------------

    def define_tensor(
        self,
        shape: Sequence[int] | None = None,
        contiguity: bool | Sequence[bool | None] = False,
        dtype: object = DataType.Float,
        is_cpu: bool = False,
        stride_order: Sequence[int] = (),
        *,
        sizes: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        static_sizes: bool = False,
    ) -> Tensor:
        """Add an array to the inputs.

        In ``shape``, -1 is any size, 1 a broadcast axis, other numbers that size.
        ``contiguity`` tells, from the slowest axis to the fastest, which follow the
        next without a gap (None: broadcast or expanded); ``stride_order`` ranks the
        axes, 0 the fastest. ``sizes`` and ``strides`` (in elements) of an example
        may stand in their place. ``is_cpu`` is an array without axes that stays on
        the CPU.
        """
        with self._draft.at_users_line("fd.define_tensor"):
            if sizes is not None and strides is not None and shape is None:
                if len(sizes) != len(strides):
                    message = f"sizes {sizes} and strides {strides} differ in length"
                    raise ShapeError(message)
                contiguity, stride_order = tensor_descriptor(sizes, strides)
                shape = [n if static_sizes or n == 1 else -1 for n in sizes]
            if shape is None or (sizes is None) != (strides is None):
                message = "define_tensor takes shape, or both sizes and strides"
                raise ArgumentError(message)
            return self._tensor(
                tuple(shape),
                contiguity,
                stored_type(dtype),
                is_cpu,
                tuple(stride_order),
            )

    def _tensor(
        self,
        shape: tuple[int, ...],
        contiguity: bool | Sequence[bool | None],
        dtype: DataType,
        is_cpu: bool,
        stride_order: tuple[int, ...],
    ) -> Tensor:
        listed = (
            [contiguity] * len(shape) if isinstance(contiguity, bool) else contiguity
        )
        options: dict[str, Any] = {"shape": list(shape), "contiguity": list(listed)}
        options["dtype"] = dtype
        if is_cpu:
            options["is_cpu"] = True
        if stride_order:
            options["stride_order"] = list(stride_order)
        return self._draft.perform("define_tensor", (), options)

    def from_array(self, array: Any, static_sizes: bool = False) -> Tensor:
        """Add an input like ``array``: its dtype, rank, layout and axes of size 1."""
        with self._draft.at_users_line("fd.from_array"):
            form = format_of(array)
            d = describe(array if form is None else bytes_of(array), "from_array")
            kind = data_type(d.dtype) if form is None else DataType(form)
            contiguity, order = tensor_descriptor(d.shape, d.strides)
            shape = tuple(n if static_sizes or n == 1 else -1 for n in d.shape)
            is_cpu = not shape and not d.device.is_cuda
            return self._tensor(shape, contiguity, kind, is_cpu, order)

    def from_numpy(self, array: Any, static_sizes: bool = False) -> Tensor:
        """Add an input like a NumPy array."""
        return self.from_array(array, static_sizes)

    def from_pytorch(self, tensor: Any, static_sizes: bool = False) -> Tensor:
        """Add an input like a tensor of PyTorch."""
        return self.from_array(tensor, static_sizes)

    def define_scalar(self, value: Any = None, dtype: Any = None) -> Scalar:
        """Return a constant, or add a number to the inputs if ``value`` is None."""
        with self._draft.at_users_line("fd.define_scalar"):
            if isinstance(value, DataType):
                value, dtype = None, value
            if value is None:
                given = required_dtype(DataType.Double if dtype is None else dtype)
            else:
                given = default_dtype(value) if dtype is None else required_dtype(dtype)
            constants = () if value is None else (constant_of(value, given),)
            options: dict[str, Any] = {"dtype": data_type(given)}
            return self._draft.perform("define_scalar", constants, options)

    def define_vector(self, size: int) -> list[Scalar]:
        """Add ``size`` integers to the inputs."""
        with self._draft.at_users_line("fd.define_vector"):
            return self._draft.perform("define_vector", (size,), {})

    # -- outputs -------------------------------------------------------------

    def add_output(
        self, output: Tensor | Scalar, alias_input: Tensor | None = None
    ) -> None:
        """Make ``output`` the next of the arrays that ``execute`` returns.

        With ``alias_input``, that input takes it instead, after all was read.
        """
        with self._draft.at_users_line("fd.add_output"):
            args = (output,) if alias_input is None else (output, alias_input)
            self._draft.perform("add_output", args, {})

    def __getattr__(self, name: str) -> Any:
        if name in DEFINITION:
            missing(f"fd.{name}", DEFINITION[name])
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=self)

    def __str__(self) -> str:
        with self._lock:
            self._draft.write()
            return text(self._draft.builder.fusion(self._draft.outputs))

    def __copy__(self) -> FusionDefinition:
        if self._draft.is_open:
            message = "leave the with statement before a definition is copied"
            raise ArgumentError(message)
        return self  # nobody can change it any more

    def __deepcopy__(self, memo: object) -> FusionDefinition:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle the program that ``repr`` shows."""
        return _defined, (repr(self.__copy__()), *self._kind, self._should_merge)

    def __repr__(self) -> str:
        return definition_text(self._draft.records, *self._kind)


def _defined(
    text: str,
    backend: str | None,
    resize: ResizePolicy,
    should_merge: ShouldMerge | None,
) -> FusionDefinition:
    """Return the definition that a program makes, as ``repr`` of one is."""
    known: dict[str, Any] = {}
    exec(text, known)  # noqa: S102 (what pickles hold is run in any case)
    if should_merge is None:
        return known["fd"]
    made = FusionDefinition(backend=backend, resize=resize, should_merge=should_merge)
    with made:
        known["nfuser_fusion"](made)
    return made
