# SPDX-License-Identifier: Apache-2.0
"""CUDA primitives that move 2 to 16 bytes in one access, to and from local arrays.

The address must be a multiple of the packet's bytes. Narrow elements travel as 32-bit
words: NVVM splits vectors of eight 16-bit elements into two accesses.
"""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.convert import widen_bf16, widen_f16
from nfuser.codegen.primitives.cuda.define import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INTEGER,
    NUMBER,
    Site,
    Value,
    primitive,
    types,
)
from nfuser.codegen.primitives.cuda.memory import (
    is_array,
    is_pointer,
    shared_address,
    unchanging,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTHS = (2, 4, 8, 16)
COPIED_BYTES = frozenset({4, 8, 16})  # by one instruction, to shared memory
PACKET_BYTES = frozenset({2, 4, 8, 16})
ACROSS_BYTES = frozenset({8, 16})  # of which two are read for what lies between them
ZERO = ir.Constant(I32, 0)


@dataclass(frozen=True, slots=True)
class _Format:
    """How elements lie in memory: a suffix, the storage and the local array's type."""

    suffix: str
    storage: Any = None  # any number, stored as itself
    value: Any = None

    def fits(self, length: int, array: Any, k: Any, p: Any, i: Any) -> bool:
        """Return whether a packet of ``length`` moves between ``p`` and ``array``."""
        if not is_array(array) or not is_pointer(p, self.storage):
            return False
        value = self.value or p.dtype
        size = length * p.dtype.bitwidth // 8
        matches = array.dtype == value and (value in NUMBER or self.value is not None)
        return matches and size in PACKET_BYTES and k in INTEGER and i in INTEGER


_PLAIN = _Format("")
_F16 = _Format("_f16", types.uint16, types.float32)
_BF16 = _Format("_bf16", types.uint16, types.float32)
_BOOL = _Format("_bool", types.uint8, types.boolean)


def _carrier(storage: Any, length: int) -> tuple[Any, int]:
    """Return the LLVM type of one transferred piece and how many of them there are."""
    bits = storage.width if isinstance(storage, ir.IntType) else 0
    if bits == 0 or bits >= 32:
        return storage, length
    total = bits * length
    return (I16, 1) if total == 16 else (I32, total // 32)


def _address(site: Site, p: Value, i: Value, position: int, length: int) -> Any:
    storage = p.type.pointee
    piece, count = _carrier(storage, length)
    kind = ir.VectorType(piece, count) if count > 1 else piece
    target = site.element(p, i, position)
    return site.builder.bitcast(target, kind.as_pointer()), piece, count


def _bytes(pointer: Value) -> int:
    kind = pointer.type.pointee
    piece, count = (
        (kind.element, kind.count) if isinstance(kind, ir.VectorType) else (kind, 1)
    )
    width = 8 if piece == F64 else 4 if piece == F32 else piece.width // 8
    return width * count


def _pieces(site: Site, p: Value, i: Value, position: int, length: int) -> list[Value]:
    b = site.builder
    pointer, _, count = _address(site, p, i, position, length)
    if p.type.pointee == I8 and count > 1:
        return _words_of_bytes(site, pointer, count)
    packet = unchanging(site, b.load(pointer, align=_bytes(pointer)))
    if count == 1:
        return [packet]
    return [b.extract_element(packet, ir.Constant(I32, k)) for k in range(count)]


def _words_of_bytes(site: Site, pointer: Value, count: int) -> list[Value]:
    """Load by inline PTX what NVVM must not take a byte out of for another load.

    It lets the first byte stand for a load of that byte alone, and adds to it another
    byte of the packet in 16 bits, of which it then forgets to extend the lower eight
    (13.0 and 13.5 at least): ``x[1:] + x[:-1]`` of int8 would not wrap.
    """
    outputs = ", ".join(f"${k}" for k in range(count))
    code = f"ld.global.nc.v{count}.u32 {{{outputs}}}, [${count}];"
    kind = ir.LiteralStructType([I32] * count)
    words = site.assembly(code, "=r," * count + "l", kind, [pointer])
    return [site.builder.extract_value(words, k) for k in range(count)]


def _split(site: Site, pieces: Sequence[Value], storage: Any) -> list[Value]:
    """Return the elements of ``storage`` type that lie in ``pieces``, lowest first."""
    if pieces[0].type == storage:
        return list(pieces)
    b = site.builder
    per_piece = pieces[0].type.width // storage.width
    return [
        b.trunc(b.lshr(piece, ir.Constant(piece.type, k * storage.width)), storage)
        for piece in pieces
        for k in range(per_piece)
    ]


def _join(site: Site, elements: Sequence[Value], piece: Any) -> list[Value]:
    """Return ``elements`` packed into values of type ``piece``, lowest first."""
    if elements[0].type == piece:
        return list(elements)
    b = site.builder
    width = elements[0].type.width
    per_piece = piece.width // width
    joined: list[Value] = []
    for start in range(0, len(elements), per_piece):
        word = b.zext(elements[start], piece)
        for k in range(1, per_piece):
            part = b.zext(elements[start + k], piece)
            word = b.or_(word, b.shl(part, ir.Constant(piece, k * width)))
        joined.append(word)
    return joined


def _widened(site: Site, kind: _Format, element: Value) -> Value:
    if kind is _F16:
        return widen_f16(site, element)
    if kind is _BF16:
        return widen_bf16(site, element)
    if kind is _BOOL:
        b = site.builder
        return b.zext(b.icmp_unsigned("!=", element, ir.Constant(I8, 0)), I8)
    return element


def _packed(site: Site, kind: _Format, values: list[Value], piece: Any) -> list[Value]:
    if kind is _F16 or kind is _BF16:
        name = "f16x2" if kind is _F16 else "bf16x2"
        code = f"cvt.rn.{name}.f32 $0, $1, $2;"  # the upper half comes first
        return [
            site.assembly(code, "=r,f,f", I32, [values[k + 1], values[k]])
            for k in range(0, len(values), 2)
        ]
    return _join(site, values, piece)


def _slots(
    site: Site, array: Value, position: int, k: Value, length: int
) -> list[Value]:
    b = site.builder
    first = site.element(site.data(array, position), k, position + 1)
    return [b.gep(first, [ir.Constant(I32, n)]) for n in range(length)]


def _load_packet(length: int, kind: _Format) -> Any:
    def rule(a: Any, k: Any, p: Any, i: Any) -> Any:
        return types.void(a, k, p, i) if kind.fits(length, a, k, p, i) else None

    def emit(site: Site, a: Value, k: Value, p: Value, i: Value) -> None:
        elements = _split(site, _pieces(site, p, i, 3, length), p.type.pointee)
        slots = _slots(site, a, 0, k, length)
        for slot, element in zip(slots, elements, strict=True):
            site.builder.store(_widened(site, kind, element), slot)

    return primitive(f"load_packet_{length}{kind.suffix}", rule, emit)


def _load_packet_across(length: int, kind: _Format) -> Any:
    def rule(a: Any, k: Any, p: Any, i: Any) -> Any:
        size = length * p.dtype.bitwidth // 8 if is_pointer(p, kind.storage) else 0
        fits = size in ACROSS_BYTES and kind.fits(length, a, k, p, i)
        return types.void(a, k, p, i) if fits else None

    def emit(site: Site, a: Value, k: Value, p: Value, i: Value) -> None:
        storage = p.type.pointee
        size = 4 if storage == F32 else 8 if storage == F64 else storage.width // 8
        words = _words_across(site, site.element(p, i, 3), size, length * size)
        b = site.builder
        if size == 8:
            pairs = zip(words[::2], words[1::2], strict=True)
            elements = [b.bitcast(_joined(site, *pair), storage) for pair in pairs]
        elif size == 4:
            elements = [b.bitcast(w, storage) for w in words]
        else:
            elements = _split(site, words, storage)
        slots = _slots(site, a, 0, k, length)
        for slot, element in zip(slots, elements, strict=True):
            b.store(_widened(site, kind, element), slot)

    return primitive(f"load_packet_across_{length}{kind.suffix}", rule, emit)


def _joined(site: Site, low: Value, high: Value) -> Value:
    b = site.builder
    upper = b.shl(b.zext(high, I64), ir.Constant(I64, 32))
    return b.or_(upper, b.zext(low, I64))


def _words_across(site: Site, first: Value, size: int, total: int) -> list[Value]:
    """Return the ``total`` bytes from ``first`` on, out of the two packets around them.

    Words are moved down by two and by one, and by the bits of a narrow element that are
    left, as the address has it.
    """
    b, count = site.builder, total // 4
    kind = ir.VectorType(I32, count).as_pointer()
    begin, place = (
        b.bitcast(first, I8.as_pointer()),
        b.trunc(b.ptrtoint(first, I64), I32),
    )
    past = b.and_(place, ir.Constant(I32, total - 1))
    last = b.add(past, ir.Constant(I32, total - size))
    words: list[Value] = []
    for where in (ZERO, b.and_(last, ir.Constant(I32, -total))):
        whole = b.bitcast(b.gep(begin, [b.sub(where, past)]), kind)
        packet = unchanging(site, b.load(whole, align=total))
        words += [b.extract_element(packet, ir.Constant(I32, n)) for n in range(count)]
    step = count // 2
    while step:
        moved = b.icmp_unsigned("!=", b.and_(place, ir.Constant(I32, 4 * step)), ZERO)
        words = [
            b.select(moved, high, low)
            for low, high in zip(words, words[step:], strict=False)
        ]
        step //= 2
    if size >= 4:
        return words[:count]
    bits = b.shl(b.and_(place, ir.Constant(I32, 3)), ir.Constant(I32, 3))
    return [
        site.assembly("shf.r.wrap.b32 $0, $1, $2, $3;", "=r,r,r,r", I32, [*pair, bits])
        for pair in pairwise(words)
    ]


def _landing(site: Site, array: Value, position: int, k: Value) -> Value:
    """Return the address of ``array[k]``, an element of shared memory."""
    return site.element(site.data(array, position), k, position + 1)


def _copy_packet(length: int) -> Any:
    def rule(a: Any, k: Any, p: Any, i: Any) -> Any:
        if not is_array(a) or not is_pointer(p, a.dtype):
            return None
        fits = length * a.dtype.bitwidth // 8 in COPIED_BYTES
        return types.void(a, k, p, i) if fits and {k, i} <= INTEGER else None

    def emit(site: Site, a: Value, k: Value, p: Value, i: Value) -> None:
        kind = p.type.pointee
        size = length * (4 if kind == F32 else 8 if kind == F64 else kind.width // 8)
        where = shared_address(site, _landing(site, a, 0, k))
        path = "cg" if size == 16 else "ca"
        site.assembly(
            f"cp.async.{path}.shared.global [$0], [$1], {size};",
            "r,l,~{memory}",
            ir.VoidType(),
            [where, site.element(p, i, 3)],
            effect=True,
        )

    return primitive(f"copy_packet_{length}", rule, emit)


def _await_copies(site: Site) -> None:
    site.assembly("cp.async.wait_all;", "~{memory}", ir.VoidType(), [], effect=True)


def _take_packet(length: int, kind: _Format) -> Any:
    def rule(a: Any, k: Any, s: Any, i: Any) -> Any:
        if not is_array(s):
            return None
        fits = kind.fits(length, a, k, types.CPointer(s.dtype), i)
        return types.void(a, k, s, i) if fits else None

    def emit(site: Site, a: Value, k: Value, s: Value, i: Value) -> None:
        b = site.builder
        first = _landing(site, s, 2, i)
        piece, count = _carrier(first.type.pointee, length)
        carrier = ir.VectorType(piece, count) if count > 1 else piece
        pointer = b.bitcast(first, carrier.as_pointer())
        packet = b.load(pointer, align=_bytes(pointer))
        pieces = [packet]
        if count > 1:
            numbers = (ir.Constant(I32, n) for n in range(count))
            pieces = [b.extract_element(packet, n) for n in numbers]
        elements = _split(site, pieces, first.type.pointee)
        for slot, element in zip(_slots(site, a, 0, k, length), elements, strict=True):
            b.store(_widened(site, kind, element), slot)

    return primitive(f"take_packet_{length}{kind.suffix}", rule, emit)


def _store_packet(length: int, kind: _Format) -> Any:
    def rule(p: Any, i: Any, a: Any, k: Any) -> Any:
        return types.void(p, i, a, k) if kind.fits(length, a, k, p, i) else None

    def emit(site: Site, p: Value, i: Value, a: Value, k: Value) -> None:
        b = site.builder
        values = [b.load(slot) for slot in _slots(site, a, 2, k, length)]
        pointer, piece, count = _address(site, p, i, 1, length)
        pieces = _packed(site, kind, values, piece)
        packet = pieces[0]
        if count > 1:
            packet = ir.Constant(pointer.type.pointee, ir.Undefined)
            for n, value in enumerate(pieces):
                packet = b.insert_element(packet, value, ir.Constant(I32, n))
        b.store(packet, pointer, align=_bytes(pointer))

    return primitive(f"store_packet_{length}{kind.suffix}", rule, emit)


await_copies = primitive("await_copies", types.void, _await_copies)
_OF_BYTES = _PLAIN, _BOOL  # 16 of them are a packet; of halves eight are
for _length in LENGTHS:
    _copy_packet(_length)
    for _kind in _OF_BYTES if _length == 16 else (*_OF_BYTES, _F16, _BF16):
        for _make in (_load_packet, _load_packet_across, _store_packet, _take_packet):
            _make(_length, _kind)
