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
    place = f"{names.mask}, {node.lineno}"
    return f"v_{array}.write(w, {integer(index, names)}, {term.code}, {place})"


def effect(call: ast.Call, names: KnownNames) -> str:
    """Return the line of a call that is a statement."""
    place = f"{names.mask}, {call.lineno}"
    match call:
        case ast.Call(func=ast.Attribute(ast.Name(id="cuda"), attr=name), args=[]):
            if name in ("syncthreads", "syncwarp"):
                return f"w.{name}({place})"
            if name in ("threadfence", "threadfence_block"):
                return "pass"
            raise names.refusal(call, f"cuda.{name} is outside the kernel language")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if packet := _PACKET.fullmatch(name):
                return _packet(call, packet, arguments, place, names)
            if copy := _COPY.fullmatch(name):
                return _copy(call, int(copy[1]), arguments, place, names)
            if take := _TAKE.fullmatch(name):
                return _take(call, take, arguments, place, names)
            if draw := _DRAW.fullmatch(name):
                return _draw(call, int(draw[1]), arguments, place, names)
            if name == "await_copies" and not arguments:
                return f"w.await_copies({place})"
            if name == "post" and len(arguments) == 3:
                return _post(call, arguments, place, names)
            if name in ("reset", "wait"):
                return _counter(call, name, arguments, place, names)
            return _store(call, name, arguments, place, names)
        case _:
            raise names.refusal(call, "this call is outside the kernel language")


def _store(
    call: ast.Call, name: str, arguments: list[ast.expr], place: str, names: KnownNames
) -> str:
    suffix = access_suffix(name, "store")
    if suffix is None or len(arguments) != 3:
        given = len(arguments)
        raise names.refusal(call, f"{name} of {given} arguments is no statement")
    source, element = pointer(arguments[0], names)
    index, value = integer(arguments[1], names), expression(arguments[2], names)
    kind = stored_kind(suffix, element, call, names)
    rounded = suffix in ("_f16", "_bf16") and value.kind == "float64"
    if value.kind != kind and not rounded:
        raise names.refusal(call, f"{name} does not take {value.kind} for {kind}")
    return f"{source}.store(w, {index}, {value.code}, {place}, {suffix!r})"


def _array(node: ast.expr, element: str, names: KnownNames) -> str:
    """Return the array that ``node`` names, of elements of dtype ``element``."""
    kind = names.kinds.get(node.id) if isinstance(node, ast.Name) else None
    if not isinstance(kind, ArrayKind) or kind.element != element:
        reason = f"{ast.unparse(node)} is not an array of {element}"
        raise names.refusal(node, reason)
    return f"v_{ast.unparse(node)}"


def _copy(
    call: ast.Call,
    length: int,
    arguments: list[ast.expr],
    place: str,
    names: KnownNames,
) -> str:
    array, k, target, i = arguments
    source, element = pointer(target, names)
    if length * np.dtype(element).itemsize not in (4, 8, 16):
        raise names.refusal(call, f"{length} elements of {element} are not copied")
    where = f"{_array(array, element, names)}, {integer(k, names)}"
    order = f"{where}, {integer(i, names)}, {place}, {length}"
    return f"{source}.copy_packet(w, {order})"


def _take(
    call: ast.Call,
    take: re.Match[str],
    arguments: list[ast.expr],
    place: str,
    names: KnownNames,
) -> str:
    length, suffix = int(take[1]), take[2]
    array, k, source, i = arguments
    kind = names.kinds.get(source.id) if isinstance(source, ast.Name) else None
    element = kind.element if isinstance(kind, ArrayKind) else ""
    stored = _array(source, element, names)
    target = _array(array, stored_kind(suffix, element, call, names), names)
    order = f"{target}, {integer(k, names)}, {integer(i, names)}, {place}"
    return f"{stored}.take_packet(w, {order}, {length}, {suffix!r})"


def _draw(
    call: ast.Call,
    length: int,
    arguments: list[ast.expr],
    place: str,
    names: KnownNames,
) -> str:
    array, k, *drawn = arguments
    kind = names.kinds.get(array.id) if isinstance(array, ast.Name) else None
    element = kind.element if isinstance(kind, ArrayKind) else ""
    if element not in ("uint16", "uint32", "uint64"):
        raise names.refusal(call, f"{ast.unparse(array)} is not an array of words")
    terms = [expression(x, names) for x in drawn]
    if [x.kind for x in terms] != ["uint64"] * 3:
        raise names.refusal(call, "a place, a key and a draw call are words")
    given = ", ".join(x.code for x in terms)
    where = f"{_array(array, element, names)}.draw_packet(w, {integer(k, names)}"
    return f"{where}, ({given}), {place}, {length})"


def _post(
    call: ast.Call, arguments: list[ast.expr], place: str, names: KnownNames
) -> str:
    source, element = pointer(arguments[0], names)
    stored_box(element, call, names)
    index, value = integer(arguments[1], names), expression(arguments[2], names)
    return f"{source}.post(w, {index}, {value.code}, {value.kind!r}, {place})"


def waiting(call: ast.expr, names: KnownNames) -> str | None:
    """Return the line that waits for what ``call`` receives, if it does."""
    match call:
        case ast.Call(func=ast.Name(id="receive"), args=[boxes, index, like]):
            source, _ = pointer(boxes, names)
            kind = expression(like, names).kind
            place = f"{names.mask}, {call.lineno}"
            full = f"{source}.full(w, {integer(index, names)}, {kind!r}, {place})"
            return f"while not {full}: yield {call.lineno}"
        case _:
            return None


def _counter(
    call: ast.Call, name: str, arguments: list[ast.expr], place: str, names: KnownNames
) -> str:
    if len(arguments) != (2 if name == "reset" else 3):
        raise names.refusal(call, f"{name} does not take {len(arguments)} arguments")
    source, element = pointer(arguments[0], names)
    stored_counter(element, call, names)
    index, *least = (integer(argument, names) for argument in arguments[1:])
    if name == "reset":
        return f"{source}.reset(w, {index}, {place})"
    test = f"{source}.ready(w, {index}, {least[0]}, {place})"
    return f"while not {test}: yield {call.lineno}"


def _packet(
    call: ast.Call,
    packet: re.Match[str],
    arguments: list[ast.expr],
    place: str,
    names: KnownNames,
) -> str:
    verb, across, length, suffix = packet.groups()
    if len(arguments) != 4:
        reason = "a packet takes an array, its index, a pointer, and an index"
        raise names.refusal(call, reason)
    of_array = 0 if verb == "load" else 2
    array, k = arguments[of_array : of_array + 2]
    target, i = arguments[2 - of_array : 4 - of_array]
    source, element = pointer(target, names)
    kind = names.kinds.get(array.id) if isinstance(array, ast.Name) else None
    wanted = stored_kind(suffix, element, call, names)
    if not isinstance(kind, ArrayKind) or kind.element != wanted:
        reason = f"{ast.unparse(array)} is not an array of {wanted}"
        raise names.refusal(call, reason)
    if int(length) * np.dtype(element).itemsize > 16:
        raise names.refusal(call, f"{length} elements of {element} exceed 16 bytes")
    held = f"v_{ast.unparse(array)}, {integer(k, names)}"
    index = integer(i, names)
    order = f"{held}, {index}" if verb == "load" else f"{index}, {held}"
    method = f"{verb}_packet{across or ''}"
    return f"{source}.{method}(w, {order}, {place}, {length}, {suffix!r})"
