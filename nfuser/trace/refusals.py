# SPDX-License-Identifier: Apache-2.0
"""What the tracer says no to, and what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Coroutine

import numpy as np

from nfuser.errors import (
    AxisError,
    MutationError,
    ShapeError,
    TraceError,
    UnsupportedError,
)
from nfuser.trace.source_line import running

MASK = (
    "indexing by a boolean array gives a shape that depends on values; use "
    "where(condition, x, fill) and reduce that"
)
GATHERS = (
    "indexing by two or more arrays or lists at once is not supported; for one element "
    "of each row, x[np.arange(n), j], np.take_along_axis(x, j[:, None], 1)[:, 0]; "
    "for all pairs, x[i][:, j]; for pairs one by one, take from the flattened array, "
    "x.reshape(-1)[i % x.shape[0] * x.shape[1] + j % x.shape[1]]"
)
_TORCH_METHODS = {
    "unsqueeze": "np.expand_dims(x, axis) or x[:, None]",
    "permute": "x.transpose(order)",
    "contiguous": "nothing: outputs are laid out as NumPy's",
    "to": "x.astype(dtype)",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "half": "x.astype(np.float16)",
    "bfloat16": "x.astype(ml_dtypes.bfloat16)",
    "int": "x.astype(np.int32)",
    "long": "x.astype(np.int64)",
    "type": "x.astype(dtype)",
    "expand": "np.broadcast_to(x, shape)",
    "expand_as": "np.broadcast_to(x, y.shape)",
    "amax": "x.max(axis)",
    "amin": "x.min(axis)",
    "cummax": "np.maximum.accumulate(x, axis)",
    "cummin": "np.minimum.accumulate(x, axis)",
    "logcumsumexp": "np.log(np.exp(x).cumsum(axis))",
    "logsumexp": "nfuser.numpy.logsumexp(x, axis)",
    "softmax": "nfuser.numpy.softmax(x, axis)",
    "log_softmax": "nfuser.numpy.log_softmax(x, axis)",
    "abs": "np.abs(x)",
    "clamp": "np.clip(x, low, high)",
    "numel": "x.size",
    "dim": "x.ndim",
    "detach": "nothing: a fused function has no gradients",
    "cpu": "nothing: results stay where the inputs are",
    "cuda": "nothing: results stay where the inputs are",
    "numpy": "nothing: the traced array is NumPy's already",
    "requires_grad": "nothing: a fused function has no gradients",
}
_ELEMENTWISE = (
    "exp log log2 log10 log1p expm1 sqrt sin cos tan tanh sinh cosh floor ceil sign "
    "square reciprocal maximum minimum pow add sub mul div where isnan isinf isfinite"
)
_TORCH_METHODS.update({name: f"np.{name}(x)" for name in _ELEMENTWISE.split()})
_ACTIVATIONS = ("sigmoid", "relu", "gelu", "silu", "erf", "erfc", "rsqrt")
_TORCH_METHODS.update({name: f"nfuser.numpy.{name}(x)" for name in _ACTIVATIONS})
_OPERATORS = {
    "pow": "x ** y",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
}
_TORCH_METHODS.update(_OPERATORS)
_NUMPY_METHODS = {
    "nonzero": "where(condition, x, fill) keeps the shape",
    "sort": "x = np.sort(x) gives the array that is sorted",
    "partition": "x = np.partition(x, kth) gives the array that is parted",
    "compress": "where(condition, x, fill)",
    "resize": "x.reshape keeps the elements; np.tile or np.pad and a slice change them",
    "fill": "np.full_like(x, value)",
    "view": "x.astype(dtype) converts the values, x.reshape(shape) gives another "
    "shape; take the same bytes in another dtype outside, and pass them",
    "put": "where(condition, new, x)",
    "byteswap": "byteswap outside the fused function",
    "tobytes": "the returned array has it",
    "tofile": "the returned array has it",
    "dump": "the returned array has it",
    "dumps": "the returned array has it",
    "data": "a traced array has no memory yet",
    "ctypes": "a traced array has no memory yet",
    "strides": "a traced array has no memory yet",
    "flags": "a traced array has no memory yet",
    "base": "a traced array has no memory yet",
    "flat": "write it with array operations",
    "setflags": "a traced array has no memory yet",
    "setfield": "where(condition, new, x)",
    "getfield": "x.astype(dtype)",
}
_NUMPY_FUNCTIONS = {
    "apply_along_axis": "call the function on the whole array, with an axis",
    "apply_over_axes": "call the function on the whole array, with its axes",
    "fill_diagonal": "where(eye(n, dtype=bool), value, x), eye of nfuser.numpy",
    "nonzero": "where(condition, x, fill) keeps the shape",
    "argwhere": "where(condition, x, fill) keeps the shape",
    "flatnonzero": "where(condition, x, fill) keeps the shape",
    "unique": "it gives a shape that depends on values: call it outside",
    "extract": "where(condition, x, fill) keeps the shape",
    "compress": "where(condition, x, fill) keeps the shape",
    "insert": "concatenate([x[:k], new, x[k:]])",
    "delete": "concatenate([x[:k], x[k + 1:]])",
    "put_along_axis": "where(condition, new, x)",
    "ix_": "index along one axis at a time: x[i][:, j]",
    "copyto": "where(condition, new, x)",
    "putmask": "where(condition, new, x)",
    "place": "where(condition, new, x)",
    "put": "where(condition, new, x)",
    "trim_zeros": "it gives a shape that depends on values: call it outside",
    "polymul": "convolve(a, b), which keeps leading zeros",
    "polydiv": "it drops leading zeros, a number that depends on values",
    "poly": "fold (x - root) over the roots with convolve",
    "real_if_close": "it gives a dtype that depends on values; take x.real",
    "unpackbits": "x[:, None] >> arange(7, -1, -1) & 1, arange of nfuser.numpy",
    "diag_indices_from": "np.diagonal(x) reads them; where(eye(n, dtype=bool), new, x)",
    "tril_indices_from": "tril(x), or where(tri(n, dtype=bool), x, fill)",
    "triu_indices_from": "triu(x), or where(tri(n, k=-1, dtype=bool), fill, x)",
}


def attribute(name: str) -> Exception:
    """Return the error for an attribute that traced arrays do not have."""
    if name.startswith("__"):
        # Protocols are probed for by name; their absence is an answer.
        return AttributeError(name)
    if name in _TORCH_METHODS:
        message = f"x.{name} is a torch spelling; write {_TORCH_METHODS[name]}"
        return TraceAttributeError(message)
    if name in _NUMPY_METHODS:
        message = f"x.{name} is not supported: {_NUMPY_METHODS[name]}"
        return UnsupportedAttributeError(message)
    message = f"a traced array has no attribute {name!r}"
    return TraceAttributeError(message)


class TraceAttributeError(TraceError, AttributeError):
    """A traced array has no such attribute."""


class UnsupportedAttributeError(UnsupportedError, AttributeError):
    """A method of ndarray that has no fused form."""


class EndlessError(TraceError, RecursionError):
    """The traced function calls itself deeper than Python can follow."""


def endless(name: str) -> EndlessError:
    """Return the error for a function that calls itself without end."""
    message = (
        f"{name} calls itself, directly or through others, deeper than Python can "
        "follow while tracing; expected the recursion to end by sizes, Python numbers "
        "or constants, which are known while tracing; end it so, or write a loop"
    )
    return EndlessError(message)


def hashed() -> TraceError:
    """Return the error for a traced array in a set, or as the key of a dict."""
    message = (
        "a traced array has no hash, as NumPy's have none: it can be neither in a set, "
        "nor the key of a dict, nor the argument of a function that caches; use a "
        "tuple or a list, or make it a value of the dict"
    )
    return TraceError(message)


def returned(item: object) -> TraceError:
    """Return the error for something in the result that is no array."""
    kind = type(item).__name__
    if isinstance(item, Coroutine):
        item.close()  # lest Python warn that nobody awaited it
    message = (
        "a fused function returns arrays, numbers, None, and tuples, lists and dicts "
        f"of them; found {kind}; {_INSTEAD.get(kind, _OUTSIDE)}"
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
    advice = _NUMPY_FUNCTIONS.get(name, "call it outside the fused function")
    return UnsupportedError(f"{module}.{name} has no fused form: {advice}")


def pad_mode(mode: object) -> UnsupportedError:
    """Return the error for a mode of pad that no map of indices gives."""
    found = "a function" if callable(mode) else repr(mode)
    message = (
        f"pad: mode {found} is not supported: its values are computed; use constant, "
        "edge, reflect, symmetric or wrap, or concatenate the borders"
    )
    return UnsupportedError(message)


def counts() -> UnsupportedError:
    """Return the error for a repeat whose counts are an array."""
    message = (
        "repeat: an array of counts gives a shape that depends on values; pass one "
        "count, or take with an index array made outside the fused function"
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
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and "
        f"one array or list of integers are valid indices, found {found}"
    )


def keyword(function_name: str, name: str) -> UnsupportedError:
    """Return the error for a keyword that is not honoured."""
    advice = {
        "where": "use where(condition, x, fill)",
        "initial": "combine the result with the initial value",
        "out": "return the result instead",
        "dim": "a torch spelling; write axis=",
        "keepdim": "a torch spelling; write keepdims=",
        "order": "the memory order of an array is unknown while tracing: write C or F",
        "reflect_type": "write 2 * edge - x for the odd extension",
        "unbiased": "a torch spelling; write correction=",
    }.get(name, "leave it out")
    return UnsupportedError(f"{function_name}: {name}= is not supported: {advice}")


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


def does_not_fit(before: str, after: str) -> ShapeError:
    """Return the error for an array of shape ``after`` written into a smaller one."""
    message = (
        f"{_written()}: non-broadcastable output operand with shape {before} doesn't "
        f"match the broadcast shape {after}"
    )
    return ShapeError(message)


def plain_output(name: str, *, is_in_place: bool, is_made: bool) -> MutationError:
    """Return the error for a write into an array of plain NumPy's."""
    what = "the array that it updates in place" if is_in_place else "out="
    if not is_made:
        message = (
            f"{name}: {what} is from outside the fused function, which cannot write "
            "it; return the new array, as y + x, and write it after the call"
        )
        return MutationError(message)
    write = "write y = y + x in place of y += x" if is_in_place else "leave out= out"
    message = (
        f"{name}: {what} was made by plain NumPy while tracing, and is a constant; "
        f"{write}, or make it by nfuser.numpy: its zeros, ones and full can be written"
    )
    return MutationError(message)


def formatted(spec: str) -> TraceError:
    """Return the error for a traced array that text wants the value of."""
    message = (
        f"format(x, {spec!r}), as in f'{{x:{spec}}}', asks for the value of an array, "
        "which is not known while tracing; return x and format it after the call; "
        "f'{x}' shows its dtype"
    )
    return TraceError(message)


def of_torch(name: str) -> TraceError:
    """Return the error for a function of torch that was given a traced array."""
    advice = "use array operations, or call it outside the fused function"
    if hasattr(np, name):
        advice = f"write np.{name}, or the function of that name in nfuser.numpy"
    elif name in _TORCH_METHODS:
        advice = f"write {_TORCH_METHODS[name]}"
    return TraceError(f"torch.{name} does not take a traced array; {advice}")


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
    message = "a size is a number, and x.size(0) a torch spelling; write x.shape[0]"
    return TraceError(message)
