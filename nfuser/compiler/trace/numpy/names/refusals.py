# SPDX-License-Identifier: Apache-2.0
"""What the tracer says no to, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Coroutine

import numpy as np

from nfuser.compiler.trace.source_line import running
from nfuser.compiler.trace.torch.names import instead
from nfuser.errors import (
    AxisError,
    EndlessError,
    MutationError,
    ShapeError,
    TraceAttributeError,
    TraceError,
    UnsupportedAttributeError,
    UnsupportedError,
)

MASK = (
    "use where(condition, x, fill), and reduce that: indexing by a boolean array gives "
    "a shape that depends on values; it may be computed with element by element, "
    "summed, and assigned under the same mask"
)
SCATTER = (
    "write where(condition, new, x): assigning by a mask beside other indices is not "
    "supported yet"
)
MASKED_VALUES = (
    "take one value, or values of the same mask, as in x[mask] = f(y[mask]); or write "
    "x[...] = where(mask, values, x): how many elements a mask chooses is not known "
    "while tracing"
)
MASKED_EXTREME = (
    "write np.max(x, where=mask, initial=least), or min likewise with the greatest: a "
    "mask may choose nothing, which has no greatest and no least element"
)
MASKED_PLACES = (
    "write x[mask] = values, or np.add.at(x, i, np.where(mask, values, 0)): places "
    "that a mask chooses are assigned to where they are all that the mask holds at"
)
REPEATED_VALUES = (
    "write x[mask] = values of the same mask, or x[...] = np.where(mask, values, x): "
    "how often the values are repeated depends on how many elements a mask chooses"
)
PART_OUTSIDE = (
    "read and assign to parts of the array itself: it is assigned to, is no argument, "
    "and another name from outside holds a part of it"
)
_KEEP_SHAPE = (
    "write where(condition, x, fill), which keeps the shape, x[condition] += 1 or "
    "x[condition].sum(), or call it outside: how many elements there are depends on "
    "values"
)
_NO_MEMORY = "leave x.{name} out: a traced array has no memory yet"
_AFTERWARDS = "call x.{name} of the returned array"
_NUMPY_METHODS = {
    "nonzero": _KEEP_SHAPE,
    "compress": "write where(condition, x, fill)",
    "resize": "write x.reshape(shape), or np.tile, np.pad and a slice for other sizes",
    "view": "write x.astype(dtype) to convert the values, x.reshape(shape) for another "
    "shape; take the same bytes in another dtype outside, and pass them",
    "byteswap": "byteswap outside the fused function",
    "tobytes": _AFTERWARDS,
    "tofile": _AFTERWARDS,
    "dump": _AFTERWARDS,
    "dumps": _AFTERWARDS,
    "data": _NO_MEMORY,
    "ctypes": _NO_MEMORY,
    "strides": _NO_MEMORY,
    "flags": _NO_MEMORY,
    "base": _NO_MEMORY,
    "setflags": _NO_MEMORY,
    "flat": "write x.reshape(-1)[i] to read, np.put(x, i, v) for x.flat[i] = v, and "
    "x[...] = v for x.flat = v",
    "shape": "write x = x.reshape(shape) in place of x.shape = shape",
    "setfield": "write where(condition, new, x)",
    "getfield": "write x.astype(dtype)",
}
_CALL_OUTSIDE = "call it outside the fused function"
_OF_VALUES = f"{_CALL_OUTSIDE}, as it gives a shape that depends on values"
_NUMPY_FUNCTIONS = {
    "apply_along_axis": "call the function on the whole array, with an axis",
    "apply_over_axes": "call the function on the whole array, with its axes",
    "nonzero": _KEEP_SHAPE,
    "argwhere": _KEEP_SHAPE,
    "flatnonzero": _KEEP_SHAPE,
    "unique": "write y = np.sort(x.ravel()), and y[1:] != y[:-1] where another value "
    "begins, or call it outside, as it gives a shape that depends on values",
    "histogram_bin_edges": "write np.linspace(x.min(), x.max(), n + 1)",
    "extract": _KEEP_SHAPE,
    "compress": _KEEP_SHAPE,
    "insert": "write np.concatenate([x[:k], new, x[k:]]) for each of several places",
    "delete": "write np.concatenate([x[:k], x[k + 1:]]) for each of several places",
    "trim_zeros": _OF_VALUES,
    "polymul": "write np.convolve(a, b), which keeps leading zeros",
    "polydiv": f"{_CALL_OUTSIDE}, as leading zeros that it drops depend on values",
    "poly": "fold (x - root) over the roots with np.convolve",
    "real_if_close": "write x.real, as the dtype here depends on values",
    "unpackbits": "write x[:, None] >> arange(7, -1, -1) & 1, arange of nfuser.numpy",
    "diag_indices_from": "write np.diagonal(x) to read them; "
    "where(eye(n, dtype=bool), new, x) to set them",
    "tril_indices_from": "write tril(x), or where(tri(n, dtype=bool), x, fill)",
    "triu_indices_from": "write triu(x), or where(tri(n, k=-1, dtype=bool), fill, x)",
    "frexp": "write e = np.floor(np.log2(np.abs(x))) + 1 and x / 2.0**e",
    "spacing": "write np.nextafter(x, np.inf) - x",
    "logical_or.accumulate": "write np.maximum.accumulate(x != 0)",
    "logical_and.accumulate": "write np.minimum.accumulate(x != 0)",
    "subtract.accumulate": "write 2 * x[:1] - np.cumsum(x, 0)",
    "nditer": "write array operations on the whole array",
}


def attribute(name: str) -> Exception:
    """Return the error for an attribute that traced arrays do not have."""
    if name.startswith("__"):
        # Protocols are probed for by name; their absence is an answer.
        return AttributeError(name)
    if name in _NUMPY_METHODS:
        advice = _NUMPY_METHODS[name].format(name=name)
        message = f"{advice}: x.{name} has no fused form"
        return UnsupportedAttributeError(message)
    if (advice := instead(name)) is not None:
        message = f"write {advice}: x.{name} is a torch spelling"
        return TraceAttributeError(message)
    message = f"a traced array has no attribute {name!r}"
    return TraceAttributeError(message)


def attribute_of_tensor(name: str) -> Exception:
    """Return the error for an attribute that traced tensors do not have."""
    if (advice := instead(name)) is None:
        return attribute(name)
    message = f"write {advice} in place of x.{name}, which has no fused form"
    return TraceAttributeError(message)


def endless(name: str) -> EndlessError:
    """Return the error for a function that calls itself without end."""
    message = (
        "end the recursion by sizes, Python numbers or constants, which are known "
        f"while tracing, or write a loop: {name} calls itself, directly or through "
        "others, deeper than Python can follow"
    )
    return EndlessError(message)


def repeated() -> UnsupportedError:
    """Return the error for a list that an open number of Python's would repeat."""
    return UnsupportedError(
        "write np.array([...]) for a list that is computed with: beside one of "
        "Python's numbers it would be repeated, as often as no trace knows"
    )


def hashed() -> TraceError:
    """Return the error for a traced array in a set, or as the key of a dict."""
    message = (
        "use a tuple or a list, or make the array a value of the dict: a traced array "
        "has no hash, as NumPy's have none, and can be neither in a set, nor the key "
        "of a dict, nor the argument of a function that caches"
    )
    return TraceError(message)


def returned(item: object) -> TraceError:
    """Return the error for something in the result that is no array."""
    kind = type(item).__name__
    if isinstance(item, Coroutine):
        item.close()  # lest Python warn that nobody awaited it
    message = (
        f"{_INSTEAD.get(kind, _OUTSIDE)}; expected arrays, numbers, None, and tuples, "
        f"lists and dicts of them as results of a fused function, found {kind}"
    )
    return TraceError(message)


_OUTSIDE = "return its arrays and numbers, and build it from them after the call"
_INSTEAD = {
    "set": "return a tuple or a list",
    "frozenset": "return a tuple or a list",
    "generator": "return a tuple or a list: [*items], and `return` in place of `yield`",
    "map": "return a tuple or a list: [*items]",
    "zip": "return a tuple or a list: [*items]",
    "filter": "return a tuple or a list: [*items]",
    "coroutine": "fuse a plain function and await around it, not inside",
    "str": "leave the text to the caller",
    "function": "return what it gives",
}


def function(name: str, module: str = "numpy") -> UnsupportedError:
    """Return the error for a function that has no fused form."""
    advice = _NUMPY_FUNCTIONS.get(name, _CALL_OUTSIDE)
    return UnsupportedError(f"{advice}: {module}.{name} has no fused form")


def pad_mode(mode: object) -> UnsupportedError:
    """Return the error for a mode of pad that no map of indices gives."""
    found = "a function" if callable(mode) else repr(mode)
    message = (
        "use the mode constant, edge, reflect, symmetric or wrap, or concatenate the "
        f"borders: pad has no fused form in mode {found}, whose values are computed"
    )
    return UnsupportedError(message)


def counts() -> UnsupportedError:
    """Return the error for a repeat whose counts are an array."""
    message = (
        "pass one count to repeat, or take with an index array made outside the fused "
        "function: an array of counts gives a shape that depends on values"
    )
    return UnsupportedError(message)


def out_of_range(number: int, axis: int, extent: int | None, name: str) -> AxisError:
    """Return the error for an index outside its axis."""
    message = (
        f"{name}: index {number} is out of bounds for axis {axis} with size {extent}"
    )
    return AxisError(message)


def not_an_index(found: str) -> str:
    """Return the message for something that is no index."""
    return (
        "index by integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) or "
        f"one array or list of integers, which alone are valid indices, found {found}"
    )


def keyword(function_name: str, name: str) -> UnsupportedError:
    """Return the error for a keyword that is not honoured."""
    advice = {
        "where": "use where(condition, x, fill)",
        "initial": "combine the result with the initial value",
        "out": "return the result instead",
        "dim": "write axis= for the torch spelling",
        "keepdim": "write keepdims= for the torch spelling",
        "order": "write C or F, as memory orders of arrays are unknown while tracing",
        "reflect_type": "write 2 * edge - x for the odd extension",
        "unbiased": "write correction= for the torch spelling",
    }.get(name, f"leave {name}= out")
    return UnsupportedError(f"{advice}: {function_name}: {name}= is not supported")


def assignment(what: str) -> MutationError:
    """Return the error for a write of the user's line, ``what`` being where."""
    return MutationError(f"{_written()}: a fused function cannot assign {what}")


def _written() -> str:
    """Say what to write in place of the assignment on the user's line."""
    found = running()
    if found is None:
        return "write y = x + 1 in place of x += 1, and return the new array"
    if (update := found.update) is not None:
        target, line = ast.unparse(update.target), found.text
        if isinstance(update.target, ast.Name):
            whole = ast.BinOp(ast.Name(target), update.op, update.value)
            return f"write {target} = {ast.unparse(whole)} in place of {line}"
    elif (target := found.assigned) is not None:
        line = f"{target} = ..."
    else:
        return "write y = x + 1 in place of x += 1, and return the new array"
    name, _, key = target.partition("[")
    if key.rstrip("] ") in (":", "..."):
        return f"write {name} = ..., a new array, in place of {line}, and return it"
    return (
        f"write {name} = np.where(condition, new, {name}), or join parts by "
        f"np.concatenate, in place of {line}"
    )


def mismatch(message: str) -> ShapeError:
    """Return the error for index arrays that do not meet: NumPy's is an IndexError."""
    return AxisError(message)


def does_not_fit(before: str, after: str, *, is_item: bool = False) -> ShapeError:
    """Return the error for an array of shape ``after`` written into a smaller one."""
    if is_item:
        message = (
            f"could not broadcast input array from shape {after} into shape {before}"
        )
        return ShapeError(message)
    message = (
        f"{_written()}: non-broadcastable output operand with shape {before} doesn't "
        f"match the broadcast shape {after}"
    )
    return ShapeError(message)


def plain_output(name: str, *, is_in_place: bool, is_made: bool) -> MutationError:
    """Return the error for a write into an array of plain NumPy's."""
    what = "the array that it updates in place" if is_in_place else "out="
    write = "write y = y + x in place of y += x" if is_in_place else "leave out= out"
    if not is_made:
        message = (
            f"{write}, return the new array, and copy it after the call: {name}: "
            f"{what} is from outside the fused function, which cannot write it"
        )
        return MutationError(message)
    message = (
        f"{write}, or make the array by nfuser.numpy, whose zeros, ones and full can "
        f"be written: {name}: {what} was made by plain NumPy while tracing, and is a "
        "constant"
    )
    return MutationError(message)


def written_unseen(what: str) -> MutationError:
    """Return the error for an array from outside that no code of a trace writes."""
    message = (
        "write it in the fused function itself, or call module.forward(x) in place of "
        f"module(x): what is from outside is written in place, found {what}, by a "
        "function that Python or a library calls: once, while tracing, and in no later "
        "call"
    )
    return MutationError(message)


def written_constant(name: str) -> MutationError:
    """Return the error for a method that writes into a tensor torch made itself."""
    message = (
        "make the tensor of a traced one, as by x.new_zeros(shape) or "
        f"torch.zeros_like(x): {name} writes into one that torch made while tracing, "
        "which is a constant"
    )
    return MutationError(message)


def formatted(spec: str) -> TraceError:
    """Return the error for a traced array that text wants the value of."""
    message = (
        "return x and format it after the call, or write f'{x}', which shows the "
        f"dtype: format(x, {spec!r}), as in f'{{x:{spec}}}', asks for the value of an "
        "array, which is not known while tracing"
    )
    return TraceError(message)


def of_torch(name: str) -> TraceError:
    """Return the error for a function of torch that was given a traced array."""
    advice = instead(name)
    if advice is None and hasattr(np, name):
        advice = f"np.{name}, or the function of that name in nfuser.numpy"
    advice = advice or "it with array operations, or call it outside"
    return TraceError(f"write {advice}: torch.{name} does not take a traced array")


def torch_options(name: str, error: TypeError) -> TraceError:
    """Return the error for arguments of a function of torch that are not known."""
    told = str(error).partition(") ")[2] or str(error)
    return TraceError(f"write {name} with fewer options: torch.{name}: {told}")


def torch_meaning(name: str) -> TraceError:
    """Return the error for a method that is another in torch than in NumPy."""
    return TraceError(
        f"write {instead(name)}: of a tensor x.{name} means what torch's does, and "
        "these arguments have no fused form"
    )


def unknown_array(shape: tuple[int, ...], source: object = None) -> TraceError:
    """Return the error for an array that may change unseen; ``source`` gave it."""
    given = "" if source is None else f", and {source} may have given it"
    message = (
        f"pass the array of shape {shape} as an argument: expected one that plain "
        "NumPy made here of numbers and of captured arrays, which are watched; found "
        f"one whose later changes would go unseen{given}"
    )
    return TraceError(message)


def called() -> TraceError:
    """Return the error for a call of a number, as torch spells sizes."""
    message = "write x.shape[0] for x.size(0): a size is a number, and cannot be called"
    return TraceError(message)
