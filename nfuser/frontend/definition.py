# SPDX-License-Identifier: Apache-2.0
"""``nfuser.FusionDefinition``: a fusion built by hand, with nvFuser's Python names."""

# Arrays of five libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import nfuser.config as config
from nfuser.concretize import DEFAULT_RESIZE, check_policy
from nfuser.debug import dump
from nfuser.device.descriptor import describe
from nfuser.errors import ArgumentError, ShapeError
from nfuser.frontend.definition_define import DEFINE
from nfuser.frontend.definition_draft import Draft
from nfuser.frontend.definition_inputs import (
    constant_of,
    default_dtype,
    tensor_descriptor,
)
from nfuser.frontend.definition_ops import TABLE, Ops
from nfuser.frontend.definition_repro import is_fault, note_fault
from nfuser.frontend.definition_run import Runner, check_backend
from nfuser.frontend.definition_text import definition_text
from nfuser.frontend.definition_trie import Trie
from nfuser.frontend.definition_types import (
    DataType,
    Scalar,
    Tensor,
    data_type,
    required_dtype,
)
from nfuser.frontend.dynamo import graph_break
from nfuser.frontend.kernels import KernelView
from nfuser.ir.text import text
from nfuser.ir.verify import verify_fusion
from nfuser.locks import ForkSafeLock
from nfuser.runtime import registry
from nfuser.runtime.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from types import TracebackType

    from nfuser.concretize import ResizePolicy
    from nfuser.dtypes import DType
    from nfuser.frontend.explanation import Explanation
    from nfuser.ir.fusion import Fusion
    from nfuser.runtime.counters import CacheInfo

_CALLS = {**{f"ops.{name}": verb for name, verb in TABLE.items()}, **DEFINE}
DEFINITIONS: Trie[Runner] = Trie()
registry.register_clear(DEFINITIONS.clear)


class FusionDefinition:
    """A fusion built operation by operation, then called with arrays.

    ``fd.ops`` holds the operations; dtypes meet by NumPy's rules. ``repr`` is Python
    that makes the definition again. ``backend="interpret"`` runs the CUDA kernels of
    NumPy arrays in the interpreter that checks them; ``resize="static"`` compiles the
    extents of slices, pads and concatenations in.

    >>> import numpy as np
    >>> with FusionDefinition() as fd:
    ...     t0 = fd.define_tensor(shape=[-1, -1], dtype=DataType.Float)
    ...     fd.add_output(fd.ops.sum(fd.ops.mul(t0, 2.0), 1))
    >>> fd.execute([np.ones((2, 3), np.float32)])
    [array([6., 6.], dtype=float32)]
    """

    def __init__(
        self, *, backend: str | None = None, resize: ResizePolicy = DEFAULT_RESIZE
    ) -> None:
        check_backend(backend)
        check_policy(resize)
        # While something is dumped, each definition shows all its stages.
        followed = (
            None if config.current().dump else DEFINITIONS.root((backend, resize))
        )
        self.ops = Ops(draft := Draft(_CALLS, followed))
        self._draft = draft
        self._kind: tuple[str | None, ResizePolicy] = backend, resize
        self._runner: Runner | None = None
        self._counters = Counters()
        self._shares = False  # what it runs was built by an equal definition
        self._lock = ForkSafeLock()

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
                required_dtype(dtype),
                is_cpu,
                tuple(stride_order),
            )

    def _tensor(
        self,
        shape: tuple[int, ...],
        contiguity: bool | Sequence[bool | None],
        dtype: DType,
        is_cpu: bool,
        stride_order: tuple[int, ...],
    ) -> Tensor:
        listed = (
            [contiguity] * len(shape) if isinstance(contiguity, bool) else contiguity
        )
        options: dict[str, Any] = {"shape": list(shape), "contiguity": list(listed)}
        options["dtype"] = data_type(dtype)
        if is_cpu:
            options["is_cpu"] = True
        if stride_order:
            options["stride_order"] = list(stride_order)
        return self._draft.perform("define_tensor", (), options)

    def from_array(self, array: Any, static_sizes: bool = False) -> Tensor:
        """Add an input like ``array``: its dtype, rank, layout and axes of size 1."""
        with self._draft.at_users_line("fd.from_array"):
            d = describe(array, "from_array")
            contiguity, order = tensor_descriptor(d.shape, d.strides)
            shape = tuple(n if static_sizes or n == 1 else -1 for n in d.shape)
            is_cpu = not shape and not d.device.is_cuda
            return self._tensor(shape, contiguity, d.dtype, is_cpu, order)

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

    def validate_definition(self) -> tuple[bool, str]:
        """Tell whether the definition can run, and why not."""
        if not self._draft.records:
            return False, "Fusion is empty!"
        if not any(record.name == "add_output" for record in self._draft.records):
            return False, "Fusion has no output; call fd.add_output"
        return True, ""

    # -- running -------------------------------------------------------------

    @graph_break
    def execute(self, inputs: Sequence[Any] = ()) -> list[Any]:
        """Return the outputs for arrays and numbers, in the order of definition.

        Those that were added with ``alias_input`` are left out.
        """
        with self._at_own_lines(inputs):
            return self._complete().run(inputs, self._counters)

    def kernels(self, inputs: Sequence[Any] = ()) -> list[KernelView]:
        """Return the kernels that a call with ``inputs`` runs."""
        with self._at_own_lines(inputs):
            plan = self._complete().plan(inputs, self._counters)
        return [KernelView(launch) for launch in plan.program.launches]

    def explain(self, inputs: Sequence[Any] = ()) -> Explanation:
        """Say how a call is fused, as ``explain`` of a fused function does."""
        with self._at_own_lines(inputs):
            runner = self._complete()
            if self._shares:
                with self._lock:
                    self._draft.write()
                    runner = self._built()
            return runner.explain(inputs, self._counters)

    @contextmanager
    def _at_own_lines(self, inputs: Sequence[Any]) -> Generator[None]:
        """Raise errors of a call that name lines of this definition.

        One that follows another shares what that built, with its lines.
        """
        try:
            yield
        except Exception as error:
            if is_fault(error):
                note_fault(error, repr(self), inputs)
            elif self._shares:
                with self._lock:
                    self._draft.write()
                    own = self._built()
                own.plan(inputs, Counters())
            raise

    def cache_info(self) -> CacheInfo:
        """Return how often each level of the caches was asked and had to work."""
        return self._counters.info()

    def why(self) -> str:
        """Say what was new about the last call that compiled."""
        return self._counters.reason

    @property
    def fusion(self) -> Fusion:
        """The fusion in nfuser's IR; ``str(fd)`` prints it."""
        return self._complete().fusion

    def _complete(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._runner = self._found() or self._recorded()
            return self._runner

    def _found(self) -> Runner | None:
        """Return what an equal definition left, if there was one."""
        self._draft.is_open = False
        node = self._draft.node
        found = None if node is None else DEFINITIONS.leaf(node)
        if found is not None:
            self._counters.reason = "an equal definition had built what it needs"
            self._shares = True
        return found

    def _recorded(self) -> Runner:
        is_valid, problem = self.validate_definition()
        if not is_valid:
            raise ArgumentError(problem)
        self._draft.write()
        made = self._built()
        self._counters.add("traces")
        if config.current().dump:
            return made
        found = DEFINITIONS.add(self._kind, self._draft.records, made)
        self._shares = found is not made
        return found

    def _built(self) -> Runner:
        draft = self._draft
        fusion = draft.close()
        if config.current().verify:
            verify_fusion(fusion)
        if dump.wants("fusion"):
            dump.dump("fusion", text(fusion))
        fits = tuple(draft.builder.questions.checks)
        needed = tuple(draft.requirements)
        return Runner(
            fusion, draft.inputs, needed, fits, *self._kind, aliases=draft.aliases
        )

    def __str__(self) -> str:
        with self._lock:
            self._draft.write()
            return text(self._draft.builder.fusion(self._draft.outputs))

    def __repr__(self) -> str:
        return definition_text(self._draft.records, *self._kind)
