# SPDX-License-Identifier: Apache-2.0
"""Translate what changes memory: declarations, stores, packets, and barriers."""

from __future__ import annotations

import ast
import re

import numpy as np

from nfuser.execution.interpret.expressions import (
    DTYPES,
    ArrayKind,
    KnownNames,
    access_suffix,
    expression,
    integer,
    pointer,
    sent,
    stored_box,
    stored_counter,
    stored_kind,
)

_PACKET = re.compile(r"(load|store)_packet(_across)?_(2|4|8|16)(_f16|_bf16|_bool|)")
_COPY = re.compile(r"copy_packet_(2|4|8|16)")
_DRAW = re.compile(r"draw_packet_(2|4|8|16)")
_TAKE = re.compile(r"take_packet_(2|4|8|16)(_f16|_bf16|_bool|)")


def declaration(name: str, value: ast.expr) -> tuple[str, ArrayKind, bool] | None:
    """Return the line that makes an array, its kind, and whether it is shared."""
    match value:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="cuda"), attr=space),
                attr="array",
            ),
            args=[ast.Constant(value=int(length)), ast.Name(id=kind)],
        ) if space in ("local", "shared") and kind in DTYPES:
            pass
        case _:
            return None
    dtype = DTYPES[kind]
    size = f"{length}" if length else f"w.shared_bytes // np.{dtype}().itemsize"
    maker = "LocalArray" if space == "local" else "SharedArray"
    line = f"v_{name} = {maker}({name!r}, {size}, {dtype!r}, w)"
    return line, ArrayKind(dtype), space == "shared"


def write_element(
    node: ast.stmt, array: str, index: ast.expr, value: ast.expr, names: KnownNames
) -> str:
    """Return the line that assigns an element of a local or shared array."""
    kind = names.kinds.get(array)
    if not isinstance(kind, ArrayKind):
        raise names.refusal(node, f"{array} is not an array")
    term = expression(value, names)
    if term.kind != kind.element and not term.static:
        raise names.refusal(node, f"{array} holds {kind.element}, not {term.kind}")
    where = f"{names.here(node)}, {integer(index, names)}"
    return f"v_{array}.write({where}, {term.code})"


def effect(call: ast.Call, names: KnownNames) -> str:
    """Return the line of a call that is a statement."""
    match call:
        case ast.Call(func=ast.Attribute(ast.Name(id="cuda"), attr=name), args=[]):
            if name in ("syncthreads", "syncwarp"):
                return f"w.{name}({names.place(call)})"
            if name in ("threadfence", "threadfence_block"):
                return "pass"
            raise names.refusal(call, f"cuda.{name} is outside the kernel language")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if packet := _PACKET.fullmatch(name):
                return _packet(call, packet, names)
            if copy := _COPY.fullmatch(name):
                return _copy(call, int(copy[1]), names)
            if take := _TAKE.fullmatch(name):
                return _take(call, take, names)
            if draw := _DRAW.fullmatch(name):
                return _draw(call, int(draw[1]), names)
            if name == "await_copies" and not arguments:
                return f"w.await_copies({names.place(call)})"
            if (name, len(arguments)) in _MEETINGS:
                return _MEETINGS[name, len(arguments)](call, names)
            if name in ("reset", "wait"):
                return _counter(call, name, names)
            return _store(call, name, names)
        case _:
            raise names.refusal(call, "this call is outside the kernel language")


def _store(call: ast.Call, name: str, names: KnownNames) -> str:
    suffix = access_suffix(name, "store")
    if suffix is None or len(call.args) != 3:
        given = len(call.args)
        raise names.refusal(call, f"{name} of {given} arguments is no statement")
    source, element = pointer(call.args[0], names)
    index, value = integer(call.args[1], names), expression(call.args[2], names)
    kind = stored_kind(suffix, element, call, names)
    rounded = suffix in ("_f16", "_bf16") and value.kind == "float64"
    if value.kind != kind and not rounded:
        raise names.refusal(call, f"{name} does not take {value.kind} for {kind}")
    return f"{source}.store({names.here(call)}, {index}, {value.code}, {suffix!r})"


def _element(node: ast.expr, names: KnownNames) -> str:
    """Return the dtype of the elements of an array, "" if ``node`` names none."""
    kind = names.kinds.get(node.id) if isinstance(node, ast.Name) else None
    return kind.element if isinstance(kind, ArrayKind) else ""


def _array(node: ast.expr, element: str, names: KnownNames) -> str:
    """Return the array that ``node`` names, of elements of dtype ``element``."""
    if not element or _element(node, names) != element:
        reason = f"{ast.unparse(node)} is not an array of {element}"
        raise names.refusal(node, reason)
    return f"v_{ast.unparse(node)}"


def _copy(call: ast.Call, length: int, names: KnownNames) -> str:
    array, k, target, i = call.args
    source, element = pointer(target, names)
    if length * np.dtype(element).itemsize not in (4, 8, 16):
        raise names.refusal(call, f"{length} elements of {element} are not copied")
    where = f"{_array(array, element, names)}, {integer(k, names)}"
    order = f"{where}, {integer(i, names)}, {length}"
    return f"{source}.copy_packet({names.here(call)}, {order})"


def _take(call: ast.Call, take: re.Match[str], names: KnownNames) -> str:
    length, suffix = int(take[1]), take[2]
    array, k, source, i = call.args
    element = _element(source, names)
    stored = _array(source, element, names)
    target = _array(array, stored_kind(suffix, element, call, names), names)
    order = f"{target}, {integer(k, names)}, {integer(i, names)}"
    return f"{stored}.take_packet({names.here(call)}, {order}, {length}, {suffix!r})"


def _draw(call: ast.Call, length: int, names: KnownNames) -> str:
    array, k, *drawn = call.args
    element = _element(array, names)
    if element not in ("uint16", "uint32", "uint64"):
        raise names.refusal(call, f"{ast.unparse(array)} is not an array of words")
    terms = [expression(x, names) for x in drawn]
    if [x.kind for x in terms] != ["uint64"] * 3:
        raise names.refusal(call, "a place, a key and a draw call are words")
    given = ", ".join(x.code for x in terms)
    where = f"{names.here(call)}, {integer(k, names)}"
    held = _array(array, element, names)
    return f"{held}.draw_packet({where}, ({given}), {length})"


def _post(call: ast.Call, names: KnownNames) -> str:
    source, element = pointer(call.args[0], names)
    stored_box(element, call, names)
    index, value = integer(call.args[1], names), expression(call.args[2], names)
    held = f"{value.code}, {value.kind!r}"
    return f"{source}.post({names.here(call)}, {index}, {held})"


def _cluster_post(call: ast.Call, names: KnownNames) -> str:
    boxes, index, block, value, turn = call.args
    held = expression(value, names)
    where = f"{_array(boxes, 'uint64', names)}.name, {integer(index, names)}"
    sent = f"{integer(block, names)}, {held.code}, {held.kind!r}"
    given = f"{where}, {sent}, {integer(turn, names)}"
    return f"w.cluster.post({names.here(call)}, {given})"


def _cluster_barrier(call: ast.Call, names: KnownNames) -> str:
    met = f"w.cluster.has_met({names.here(call)})"
    return f"while not {met}: yield {call.lineno}"


_MEETINGS = {
    ("post", 3): _post,
    ("cluster_post", 5): _cluster_post,
    ("cluster_barrier", 0): _cluster_barrier,
}


def waiting(call: ast.expr, names: KnownNames) -> str | None:
    """Return the line that waits for what ``call`` receives, if it does."""
    match call:
        case ast.Call(func=ast.Name(id="receive"), args=[boxes, index, like]):
            source, _ = pointer(boxes, names)
            kind = expression(like, names).kind
            where = f"{integer(index, names)}, {kind!r}"
            full = f"{source}.full({names.here(call)}, {where})"
            return f"while not {full}: yield {call.lineno}"
        case ast.Call(func=ast.Name(id="cluster_receive")):
            full = f"w.cluster.is_full({names.here(call)}, {sent(call, names)})"
            return f"while not {full}: yield {call.lineno}"
        case _:
            return None


def _counter(call: ast.Call, name: str, names: KnownNames) -> str:
    if len(call.args) != (2 if name == "reset" else 3):
        raise names.refusal(call, f"{name} does not take {len(call.args)} call.args")
    source, element = pointer(call.args[0], names)
    stored_counter(element, call, names)
    index, *least = (integer(argument, names) for argument in call.args[1:])
    if name == "reset":
        return f"{source}.reset({names.here(call)}, {index})"
    test = f"{source}.ready({names.here(call)}, {index}, {least[0]})"
    return f"while not {test}: yield {call.lineno}"


def _packet(call: ast.Call, packet: re.Match[str], names: KnownNames) -> str:
    verb, across, length, suffix = packet.groups()
    if len(call.args) != 4:
        reason = "a packet takes an array, its index, a pointer, and an index"
        raise names.refusal(call, reason)
    of_array = 0 if verb == "load" else 2
    array, k = call.args[of_array : of_array + 2]
    target, i = call.args[2 - of_array : 4 - of_array]
    source, element = pointer(target, names)
    stored = _array(array, stored_kind(suffix, element, call, names), names)
    if int(length) * np.dtype(element).itemsize > 16:
        raise names.refusal(call, f"{length} elements of {element} exceed 16 bytes")
    held = f"{stored}, {integer(k, names)}"
    index = integer(i, names)
    order = f"{held}, {index}" if verb == "load" else f"{index}, {held}"
    method = f"{verb}_packet{across or ''}"
    return f"{source}.{method}({names.here(call)}, {order}, {length}, {suffix!r})"
