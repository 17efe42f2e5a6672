# SPDX-License-Identifier: Apache-2.0
"""A call of a fused function in a graph of torch.compile: one operator of torch's.

Dynamo runs ``in_graph`` in place of the call. It spells the arguments, which must be
tensors and constants, and leaves an operator in the graph whose name stands for the
function and the constants. Sizes stay symbols: the shapes of results are expressions of
those of the arguments, of the trace that serves the call.
"""

# What torch gives has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false
# pyright: reportMissingImports=false

from __future__ import annotations

import ast
import functools
import sys
from itertools import count
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.frontend.fuse.dynamo as dynamo
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.trace.call import tree as trees
from nfuser.errors import NfuserError
from nfuser.frontend.call.inputs.arguments import Arguments
from nfuser.frontend.gradients.autograd import pulled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nfuser.compiler.trace.call.call import Trace
    from nfuser.compiler.trace.call.tree import Tree
    from nfuser.frontend.fuse.fused import Fused


@node
class _Operator:
    """A function with its constant arguments; ``...`` stands for each tensor."""

    fused: Fused[..., Any]
    leaves: tuple[Any, ...]
    shape: Tree

    def arguments(self, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """Return the arguments of a call, by place and by name."""
        rest = iter(tensors)
        return trees.unflatten(
            self.shape, [next(rest) if x is ... else x for x in self.leaves]
        )


_operators: dict[str, _Operator] = {}  # graphs name them as long as the process lives
_names: dict[tuple[Any, ...], str] = {}
_structures: dict[str, str] = {}  # of what each gave when it was traced last


def in_graph(fused: Fused[..., Any], args: Any, kwargs: Any) -> Any:
    """Return what the call gives, as Dynamo follows it."""
    import torch  # noqa: PLC0415 (it is there: it asks)

    tensors: list[Any] = []
    text = _spelled((args, kwargs), tensors, torch.Tensor)
    if text is None or not tensors:
        return fused._called(*args, **kwargs)
    name = named(fused, text)
    found = torch.ops.nfuser.call(name, tensors)
    structure = structure_of(name)
    if not structure:
        return fused._called(*args, **kwargs)
    return _rebuilt(structure, found)


def _spelled(item: Any, tensors: list[Any], kind: type) -> str | None:
    """Return what Python reads as ``item``, with ``...`` for tensors."""
    if isinstance(item, kind):
        tensors.append(item)
        return "..."
    if item is None or type(item) in (bool, int, str):
        return repr(item)
    if type(item) is float:
        return repr(item) if item - item == 0 else None
    if type(item) not in (tuple, list, dict):
        return None
    keys = list(item) if type(item) is dict else None
    parts: list[str] = []
    for part in item.values() if type(item) is dict else item:
        text = _spelled(part, tensors, kind)
        if text is None:
            return None
        parts.append(text)
    if keys is not None:
        if any(type(key) is not str for key in keys):
            return None
        pairs = [f"{keys[k]!r}: {parts[k]}" for k in range(len(keys))]
        return "{" + ", ".join(pairs) + "}"
    inside = "".join([f"{text}, " for text in parts])
    return f"({inside})" if type(item) is tuple else f"[{inside}]"


def _written(nest: Tree, numbers: Iterator[int]) -> str:
    """Return what ``_rebuilt`` reads: leaves, then what is made of how many of them."""
    if nest.container is None:
        return str(next(numbers))
    if nest.container is type(None):
        return "none"
    parts = [_written(child, numbers) for child in nest.children]
    kinds = {tuple: "tuple", list: "list", dict: "dict"}
    kind = kinds.get(nest.container, "unknown")
    if nest.keys:
        kind = f"dict/{'/'.join(map(str, nest.keys))}"
    is_plain = all(isinstance(k, str) and k.isidentifier() for k in nest.keys)
    return " ".join([*parts, f"{kind if is_plain else 'unknown'}/{len(parts)}"])


def _rebuilt(structure: str, found: Any) -> Any:
    """Return results in the nest that the function gave."""
    stack: list[Any] = []
    for word in structure.split(" "):
        if word.isdigit():
            stack.append(found[int(word)])
            continue
        if word == "none":
            stack.append(None)
            continue
        kind, *keys, count = word.split("/")
        first = len(stack) - int(count)
        items, stack = stack[first:], stack[:first]
        if kind == "dict":
            stack.append({keys[k]: items[k] for k in range(len(keys))})
        else:
            stack.append(items if kind == "list" else tuple(items))
    return stack[0]


def named(fused: Fused[..., Any], text: str) -> str:
    """Return the name of the operator for a function and its spelled arguments."""
    library()
    leaves, shape = trees.flatten(ast.literal_eval(text))
    return _named(fused, tuple(leaves), shape)


def structure_of(name: str) -> str:
    """Return the nest of what an operator gives; empty if it cannot stand for it."""
    return _structures[name]


# Dynamo calls both while it follows a call, and takes what they give as constants.
named.__dict__["_dynamo_marked_constant"] = True
structure_of.__dict__["_dynamo_marked_constant"] = True


def _named(fused: Fused[..., Any], leaves: tuple[Any, ...], shape: Tree) -> str:
    key = (id(fused), tuple((type(x), x) for x in leaves), shape)
    if key not in _names:
        _names[key] = f"{fused._name} {len(_names)}"
        _operators[_names[key]] = _Operator(fused, leaves, shape)
    return _names[key]


@functools.cache
def library() -> Any:
    """Define the operator, once torch is there."""
    torch: Any = sys.modules["torch"]
    made = torch.library.Library("nfuser", "DEF")
    made.define("call(str name, Tensor[] inputs) -> Tensor[]")
    made.impl("call", _run, "CompositeExplicitAutograd")
    torch.library.register_fake("nfuser::call", _fake, lib=made)
    torch.library.register_autograd(
        "nfuser::call", _pull, setup_context=_keep, lib=made
    )
    return made


def _run(name: str, inputs: Sequence[Any]) -> list[Any]:
    operator = _operators[name]
    torch: Any = sys.modules["torch"]
    args, kwargs = operator.arguments(inputs)
    fused: Any = operator.fused
    call = fused._called if dynamo.is_compiling() else fused
    with torch.no_grad():
        found = trees.flatten(call(*args, **kwargs))[0]
    return [x.contiguous() for x in found]


def _fake(name: str, inputs: Sequence[Any]) -> list[Any]:
    """Return tensors without elements; none where no operator stands for a call."""
    operator = _operators[name]
    found = _trace(operator, inputs)
    if found is None:
        _structures[name] = ""
        return []
    trace, values = found
    outputs = [trace.fusion.outputs[leaf.position] for leaf in trace.output_leaves]
    # Dynamo takes strings as they are, and looks into other constants.
    _structures[name] = _written(trace.output_tree, iter(range(len(outputs))))
    torch: Any = sys.modules["torch"]
    made: list[Any] = []
    for output in outputs:
        shape = evaluate_all(output.shape, values)
        dtype = getattr(torch, output.dtype.numpy.name)
        made.append(inputs[0].new_empty(shape, dtype=dtype))
    return made


def _trace(
    operator: _Operator, inputs: Sequence[Any]
) -> tuple[Trace, dict[Any, Any]] | None:
    """Return the trace that serves such a call, and what its sizes are."""
    torch: Any = sys.modules["torch"]
    fake: Any = sys.modules["torch._subclasses.fake_tensor"]
    fused: Any = operator.fused
    with fake.unset_fake_temporarily(), torch.no_grad():
        args, kwargs = operator.arguments([_phantom(torch, x) for x in inputs])
        try:
            arguments = Arguments(args, kwargs, fused._function)
            trace, captured = fused._traced_call(arguments, args, kwargs)
        except NfuserError:
            return None  # the call itself says why
    numbers = any(leaf.python for leaf in trace.output_leaves)
    drawn = trace.captured.read_streams(args, kwargs)
    changes = trace.writes or trace.changed
    if changes or numbers or drawn or any(map(_is_tensor, captured)):
        return None
    if "unknown" in _written(trace.output_tree, count()):
        return None
    values = dict(_sizes(operator.leaves, inputs))
    for taken, array in zip(trace.captured.arrays, captured, strict=True):
        values |= {
            scalar_symbols.size(taken.slot, k): n for k, n in enumerate(array.shape)
        }
    for guard in trace.guards:
        (answer,) = evaluate_all([guard.condition], values)
        if answer != guard.answer:
            return None
    return trace, values


def _phantom(torch: Any, x: Any) -> Any:
    """Return a tensor of the sizes of today that takes no memory."""
    sizes = [n if isinstance(n, int) else n.node.hint for n in x.shape]
    return torch.empty((), dtype=x.dtype, device=x.device).expand(sizes)


def _sizes(leaves: Sequence[Any], inputs: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Give the value of each symbol that the trace of such a call may have."""
    rest, slot = iter(inputs), 0
    for item in leaves:
        if item is ...:
            for k, n in enumerate(next(rest).shape):
                yield scalar_symbols.size(slot, k), n
        elif type(item) is int:
            yield scalar_symbols.scalar_input(slot), item
        elif type(item) is not float:
            continue
        slot += 1


def _is_tensor(item: Any) -> bool:
    return isinstance(item, sys.modules["torch"].Tensor)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Sequence[Any]) -> None:
    ctx.name, tensors = inputs
    ctx.outputs = [(x.shape, x.dtype, x.device) for x in output]
    ctx.save_for_backward(*tensors)


def _pull(ctx: Any, cotangents: Sequence[Any]) -> tuple[None, list[Any]]:
    """Return the gradients: one more operator, of a fused function as well."""
    torch: Any = sys.modules["torch"]
    operator, saved = _operators[ctx.name], ctx.saved_tensors
    needed = ctx.needs_input_grad[1]
    places = [k for k, x in enumerate(operator.leaves) if x is ...]
    floats = [x.is_floating_point() or x.is_complex() for x in saved]
    pairs = list(zip(places, needed, floats, strict=True))
    wanted = tuple(k for k, need, is_float in pairs if need and is_float)
    given: list[int] = []
    ts: list[Any] = []
    for k, (t, (shape, dtype, device)) in enumerate(
        zip(cotangents, ctx.outputs, strict=True)
    ):
        if dtype.is_floating_point or dtype.is_complex:
            given.append(k)
            zeros = torch.zeros(shape, dtype=dtype, device=device)
            ts.append(zeros if t is None else t)
    fused: Any = operator.fused
    back = pulled(fused, operator.shape, wanted, tuple(given))
    leaves, shape = trees.flatten(((operator.leaves, (...,) * len(ts)), {}))
    name = _named(back, tuple(leaves), shape)
    found = iter(torch.ops.nfuser.call(name, [*saved, *ts]))
    return None, [next(found) if k in wanted else None for k in places]
