# SPDX-License-Identifier: Apache-2.0
"""Gradients as rows of the table: forward and backward at once, or the way back alone.

The way back alone is what torch runs of a call that it has recorded: nfuser and torch
have kept what they chose to keep. JAX computes it of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import nfuser
from asv_bench.compare.contest import OURS, make_row
from asv_bench.compare.peers import Bound
from asv_bench.compare.workload import Array, Workload, in_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asv_bench.compare.devices import Cpu

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Gradient:
    """A function, and what it is differentiated in: all inputs but some last ones.

    ``inputs`` takes the dtype and the sizes; ``torch`` takes its namespace first. The
    ``value`` is as large as the first input, as its rows, or one number. There is a row
    for each of the sizes on a GPU, of the way back alone.
    """

    name: str
    function: Callable[..., Any]
    torch: Callable[..., Any]
    inputs: Callable[..., tuple[Array, ...]]
    cuda: tuple[Sizes, ...] | None
    cpu: Sizes | None
    value: Literal["array", "rows", "number"] = "array"
    constants: int = 0
    is_norm: bool = False
    is_headline: bool = True
    dtype: str = "bfloat16"  # on a GPU
    loses: float = 0.0

    def rows(self, backend: str, *, is_tiny: bool) -> list[Workload]:
        """Return the rows for a backend as workloads, which take a cotangent first."""
        cpu = (self.cpu,) if self.cpu else ()
        cuda = self.cuda or ()
        chosen = cpu if backend == "cpu" else cuda
        if is_tiny:
            whole = (*cpu, *cuda)[0]
            chosen = (tuple(min(n, 5 + k) for k, n in enumerate(whole)),)
        return [self._row(backend, sizes) for sizes in chosen]

    def _row(self, backend: str, sizes: Sizes) -> Workload:
        is_cuda = backend == "cuda"
        dtype = self.dtype if is_cuda else "float32"
        specs = self.inputs(dtype, *sizes)
        kind = "bf16" if dtype == "bfloat16" else "f32"
        name = f"{self.name} backward {kind}" if is_cuda else f"{self.name} {kind}"
        form = partial(_by_torch, self, with_value=not is_cuda)
        return Workload(
            name,
            partial(_in_f64, form),
            lambda *_: (Array(self._shape(specs), dtype), *specs),
            form,
            headline=(backend,) if self.is_headline else (),
            loses=self.loses,
            **{backend: sizes},
        )

    def _shape(self, specs: Sequence[Array]) -> Sizes:
        """Return the shape of the value, and so of a cotangent."""
        first = specs[0].shape
        return {"array": first, "rows": first[:-1], "number": ()}[self.value]


def derived(item: Gradient, *, with_value: bool) -> Callable[..., Any]:
    """Return the function of a cotangent and the inputs that is measured."""

    def way_back(cotangent: Any, *inputs: Any) -> Any:
        count = len(inputs) - item.constants
        rest = inputs[count:]
        value, pull = nfuser.vjp(lambda *x: item.function(*x, *rest), *inputs[:count])
        found = pull(cotangent)
        return (value, *found) if with_value else found

    way_back.__name__ = way_back.__qualname__ = "".join(filter(str.isalpha, item.name))
    return way_back


def _by_torch(
    item: Gradient, t: Any, cotangent: Any, *inputs: Any, with_value: bool
) -> Any:
    count = len(inputs) - item.constants
    found = both_ways(partial(item.torch, t), cotangent, inputs, count)()
    return found if with_value else found[1:]


def _in_f64(form: Callable[..., Any], *arrays: Any) -> Any:
    import torch

    return [x.numpy() for x in form(torch, *map(torch.as_tensor, arrays))]


def bind_ours(
    item: Gradient, backend: Any, with_value: bool, _: Workload, arguments: Any
) -> tuple[Bound, Any]:
    """Return nfuser's call, and the fused function."""
    del arguments
    function = derived(item, with_value=with_value)
    fused: Any = nfuser.fuse(function, dialect="numpy", backend=backend)
    return Bound(lambda given: partial(fused, *given)), fused


class _Recorded:
    """Calls that torch records, of which the way back is measured."""

    def __init__(self, item: Gradient) -> None:
        self._item = item
        self._fused: Any = nfuser.fuse(item.function, dialect="numpy")

    def on(self, given: Sequence[Any]) -> Callable[[], Any]:
        """Return the way back through a call with ``given``, a cotangent first."""
        cotangent, *inputs = given
        return _way_back(self._fused, cotangent, inputs, self._item.constants)

    def kernels(self, *given: Any) -> list[str]:
        """Return the launches of the way back."""
        with nfuser.timeline() as seen:
            self.on(given)()
        names = [e["name"] for e in seen.events if e["cat"] == "launch"]
        return [*dict.fromkeys(n for n in names if n.startswith("backward"))]

    def cache_info(self) -> Any:
        """Return the counters of the way there."""
        return self._fused.cache_info()


def bind_recorded(item: Gradient, _: Workload, arguments: Any) -> tuple[Bound, Any]:
    """Return the way back through nfuser's call, and what knows its kernels."""
    del arguments
    recorded = _Recorded(item)
    return Bound(recorded.on), recorded


def _way_back(
    function: Callable[..., Any], cotangent: Any, inputs: Sequence[Any], constants: int
) -> Callable[[], Any]:
    """Return torch's way back through a call of ``function`` that was just made."""
    import torch

    count = len(inputs) - constants
    leaves = [x.detach().requires_grad_() for x in inputs[:count]]

    def on_this_stream() -> Callable[[], Any]:
        with torch.enable_grad():
            value = function(*leaves, *inputs[count:])
        given = cotangent.reshape(value.shape)
        return partial(torch.autograd.grad, value, leaves, given, retain_graph=True)

    return captured(on_this_stream) if cotangent.is_cuda else on_this_stream()


def both_ways(
    function: Callable[..., Any], cotangent: Any, inputs: Sequence[Any], count: int
) -> Callable[[], Any]:
    """Return torch's way there and back: a value, then slopes in ``count`` inputs."""
    import torch

    leaves = [x.detach().requires_grad_() for x in inputs[:count]]

    def call() -> Any:
        with torch.enable_grad():
            value = function(*leaves, *inputs[count:])
        slopes = torch.autograd.grad(value, leaves, cotangent.to(value.dtype))
        return (value.detach(), *slopes)

    return call


def captured(make: Callable[[], Callable[[], Any]]) -> Callable[[], Any]:
    """Return the replay of a CUDA graph of a call: no host is waited for.

    torch runs the way back on the stream of the way there, which is one that can be
    captured therefore.
    """
    import torch

    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call = make()
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        found = call()
    return partial(_replay, graph, found, call)


def _replay(graph: Any, found: Any, holder: Any) -> Any:
    """Replay a graph; it reads what ``holder``, the call that was captured, keeps."""
    del holder
    graph.replay()
    return found


def _bind_torch(item: Gradient, with_value: bool, compiles: bool) -> Any:
    def bind(_: Workload, arguments: Sequence[Any]) -> Bound:
        import torch

        def forward(*given: Any) -> Any:
            return item.torch(torch, *given)

        chosen = torch.compile(forward, dynamic=False) if compiles else forward
        count = len(arguments) - 1 - item.constants

        def on(given: Sequence[Any]) -> Callable[[], Any]:
            cotangent, *inputs = map(torch.as_tensor, given)
            if not with_value:
                return _way_back(chosen, cotangent, inputs, item.constants)
            return both_ways(chosen, cotangent, inputs, count)

        return Bound(on)

    return bind


def _bind_jax(item: Gradient, with_value: bool) -> Any:
    def bind(_: Workload, arguments: Sequence[Any]) -> Bound:
        import jax

        function = in_namespace(item.function, jax.numpy)
        count = len(arguments) - 1 - item.constants

        @jax.jit
        def call(cotangent: Any, *inputs: Any) -> Any:
            rest = inputs[count:]
            value, pull = jax.vjp(lambda *x: function(*x, *rest), *inputs[:count])
            found = pull(cotangent)
            return (value, *found) if with_value else found

        is_cpu = isinstance(arguments[0], np.ndarray)
        hold = jax.numpy.asarray if is_cpu else jax.dlpack.from_dlpack
        return Bound(
            lambda given: partial(call, *map(hold, given)), wait=jax.block_until_ready
        )

    return bind


def gradient_rows(
    device: Cpu,
    peers: Sequence[str],
    only: Sequence[str],
    done: Callable[[Any], None],
    *,
    is_tiny: bool = False,
    backend: str | None = None,
) -> None:
    """Make the rows of all gradients on ``device``; ``backend`` is nfuser's."""
    from asv_bench.compare.workloads.gradients import GRADIENTS

    with_value = device.name == "cpu"
    for item in GRADIENTS:
        known = {
            "torch": _bind_torch(item, with_value, compiles=False),
            "torch.compile": _bind_torch(item, with_value, compiles=True),
            "JAX": _bind_jax(item, with_value),
        }
        chosen = {name: bind for name, bind in known.items() if name in peers}
        is_recorded = device.name == "cuda" and backend is None
        in_one = partial(bind_ours, item, backend, with_value)
        ours = {OURS: partial(bind_recorded, item) if is_recorded else in_one}
        for workload in item.rows(device.name, is_tiny=is_tiny):
            sizes = workload.cuda or workload.cpu or ()
            if workload.row_name(sizes).startswith(tuple(only) or ""):
                done(make_row(device, workload, sizes, chosen, ours, not is_tiny))
