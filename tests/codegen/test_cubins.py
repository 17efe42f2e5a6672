# SPDX-License-Identifier: Apache-2.0
"""Every CUDA kernel that the shared cases emit becomes machine code, without a GPU."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from tests.end_to_end.operations import PAIRS, program
from tests.fusions import CASES
from tests.fuzz.arrays import build
from tests.smaller_gpu import use_smaller_gpu

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.explain.kernels import KernelView

compile_cuda = pytest.importorskip("nfuser.codegen.numba.compile_cuda").compile_cuda
pytest.importorskip("numba.cuda.extending")

# libdevice reduces large angles with a table in local memory.
SLOW_PATHS = re.compile(r"\b(sin|cos|tan)\(")
PACKET = re.compile(r"\bload_packet_(\d+)")


def _check(kernel: KernelView) -> None:
    binary = compile_cuda(kernel.source, kernel.name, kernel.signature)
    assert binary.spills == 0, kernel.source
    if binary.local_bytes:
        assert SLOW_PATHS.search(kernel.source), kernel.source
    if PACKET.search(kernel.source):
        loads = re.findall(r"ld\.global(?:\.nc)?(?:\.v[24])?\.[bfsu]\d+", binary.ptx)
        wide = [x for x in loads if ".v" in x or re.search(r"\d\d$", x)]
        assert wide, binary.ptx


@pytest.mark.parametrize("case", CASES)
def test_a_named_fusion_becomes_machine_code(case: str) -> None:
    fused = nfuser.fuse(CASES[case].function, backend="interpret")
    for kernel in fused.kernels(*CASES[case].arguments()):
        _check(kernel)


@pytest.mark.parametrize(("group", "dtype"), PAIRS)
def test_an_operation_becomes_machine_code(group: str, dtype: str) -> None:
    operations = program(group, dtype)
    if operations is None:
        return
    fused = nfuser.fuse(operations.function(xp), backend="interpret")
    for kernel in fused.kernels(*operations.arguments(operations.calls[0])):
        _check(kernel)


def _moments(x: Any) -> Any:
    return x.mean(axis=0), x.var(axis=0)


def _argmax(x: Any) -> Any:
    return x.argmax(axis=-1)


def _total(x: Any) -> Any:
    return x.sum()


def _doubled(x: Any) -> Any:
    return x + x


ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": partial(xp.softmax, axis=-1),
    "layer_norm": partial(xp.layer_norm, axis=-1),
    "columns": partial(xp.softmax, axis=0),
    "moments": _moments,
    "argmax": _argmax,
    "total": _total,
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length_keep_to_their_registers(name: str, dtype: str) -> None:
    fused = nfuser.fuse(ROWS[name], backend="interpret")
    lengths = [(4, 4096), (2, 32768), (2, 70000), (4096, 8)]
    kernels = [k for shape in lengths for k in fused.kernels(build(dtype, shape))]
    for kernel in {kernel.source: kernel for kernel in kernels}.values():
        _check(kernel)


def _backward(gradient: Any, x: Any, weight: Any) -> Any:
    scale = 1 / xp.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    weighted = gradient * weight
    projection = (weighted * x).mean(axis=-1, keepdims=True)
    return scale * weighted - x * scale * scale * scale * projection


def _masked(x: Any, mask: Any) -> Any:
    return xp.softmax(xp.where(mask, x * 0.125, -xp.inf), axis=-1)


def _weighted(x: Any, weight: Any) -> Any:
    return xp.softmax(x * weight, axis=-1)


@pytest.mark.parametrize(
    ("function", "arrays", "length"), [(_backward, 3, 32768), (_weighted, 2, 40960)]
)
def test_long_rows_of_halves_and_their_weights_keep_to_their_registers(
    function: Callable[..., Any], arrays: int, length: int
) -> None:
    shapes = [(64, length)] * (arrays - 1) + [(length,)]
    fused = nfuser.fuse(function, backend="interpret")
    for kernel in fused.kernels(*(build("bfloat16", shape) for shape in shapes)):
        assert "copy_packet" in kernel.source
        _check(kernel)


def _centred(x: Any, weight: Any, bias: Any) -> Any:
    mean, variance = (f(axis=-1, keepdims=True) for f in (x.mean, x.var))
    return (x - mean) / xp.sqrt(variance + 1e-5) * weight + bias


def _room(past: int, *shape: int) -> Any:
    """Return elements of 16 bits that begin so many past where a packet may."""
    room = np.empty(math.prod(shape) + 16, ml_dtypes.bfloat16)
    begin = next(k for k in range(16) if room[k:].ctypes.data % 16 == 2 * past)
    return room[begin : begin + math.prod(shape)].reshape(shape)


@pytest.mark.parametrize(
    ("rows", "past", "form"),
    [
        (100, 0, "in clusters, splits=2"),
        (100, 1, "in clusters, splits=8"),
        (300, 0, "width=8 between ends"),
        (300, 1, "looped"),  # in no packets
    ],
)
def test_long_odd_rows_and_their_weights_keep_to_their_registers(
    rows: int, past: int, form: str
) -> None:
    fused = nfuser.fuse(_centred, backend="interpret")
    shapes = [(rows, 65_537), (65_537,), (65_537,)]
    (kernel,) = fused.kernels(*(_room(past, *s) for s in shapes))
    assert form in kernel.schedule
    _check(kernel)


@pytest.mark.parametrize(("past", "form"), [(0, "between ends"), (1, "looped")])
def test_odd_rows_that_are_read_again_keep_to_their_registers(
    past: int, form: str
) -> None:
    fused = nfuser.fuse(_backward, backend="interpret")
    shapes = [(300, 33_001), (300, 33_001), (33_001,)]
    (kernel,) = fused.kernels(*(_room(past, *s) for s in shapes))
    assert form in kernel.schedule
    _check(kernel)


def _channels(x: Any, weight: Any, bias: Any) -> Any:
    mean, variance = (f(axis=(0, 2, 3), keepdims=True) for f in (x.mean, x.var))
    return (x - mean) / xp.sqrt(variance + 1e-5) * weight + bias


@pytest.mark.parametrize(
    ("most", "form", "copies"), [(8, "in clusters", 2), (1, "in step", 4)]
)
def test_channels_that_blocks_share_keep_to_their_registers(
    monkeypatch: pytest.MonkeyPatch, most: int, form: str, copies: int
) -> None:
    use_smaller_gpu(monkeypatch, most_cluster=most)
    shapes = [(64, 256, 56, 56), (256, 1, 1), (256, 1, 1)]
    fused = nfuser.fuse(_channels, backend="interpret")
    (kernel,) = fused.kernels(*(np.empty(s, np.float32) for s in shapes))
    assert form in kernel.schedule
    assert kernel.source.count("copy_packet_4(") == copies
    _check(kernel)


@pytest.mark.parametrize("past", [0, 1])
def test_long_odd_rows_of_blocks_in_no_cluster_keep_to_their_registers(
    monkeypatch: pytest.MonkeyPatch, past: int
) -> None:
    use_smaller_gpu(monkeypatch, most_cluster=1)
    fused = nfuser.fuse(_centred, backend="interpret")
    shapes = [(100, 65_537), (65_537,), (65_537,)]
    (kernel,) = fused.kernels(*(_room(past, *s) for s in shapes))
    assert "splits=any" in kernel.schedule
    _check(kernel)


def test_the_shape_of_clusters_is_part_of_the_machine_code() -> None:
    fused = nfuser.fuse(ROWS["softmax"], backend="interpret")
    (kernel,) = fused.kernels(np.empty((100, 262_144), np.float32))
    binary = compile_cuda(kernel.source, kernel.name, kernel.signature)
    assert "cluster=(1, 8)" in kernel.source
    assert ".reqnctapercluster 1, 8, 1\n" in binary.ptx
    # Two meetings, of which each warp ends the wait as one.
    assert binary.ptx.count("st.relaxed.cluster.shared::cluster.u64") == 2
    assert binary.ptx.count("ld.relaxed.cluster.shared::cta.u64") == 2
    assert binary.ptx.count("vote.sync.any.pred") == 2


@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        (_backward, ("bfloat16", "bfloat16", "bfloat16")),
        (_masked, ("bfloat16", "bool")),
        (ROWS["layer_norm"], ("float16",)),
    ],
)
def test_rows_of_halves_leave_registers_to_other_blocks(
    function: Callable[..., Any], dtypes: tuple[str, ...]
) -> None:
    fused = nfuser.fuse(function, backend="interpret")
    shapes = [(4, 4096), (4, 4096), (4096,)][: len(dtypes)]
    (kernel,) = fused.kernels(
        *(build(t, s) for t, s in zip(dtypes, shapes, strict=True))
    )
    binary = compile_cuda(kernel.source, kernel.name, kernel.signature)
    # A thread keeps 32 elements of each array: what is narrow, as it is stored.
    assert binary.registers <= 80, kernel.source


@pytest.mark.parametrize(
    ("dtype", "width"), [("float32", 4), ("bfloat16", 8), ("float64", 2), ("uint8", 8)]
)
def test_aligned_rows_are_read_in_packets(dtype: str, width: int) -> None:
    fused = nfuser.fuse(_doubled, backend="interpret")
    aligned, odd = (build(dtype, (64, n)) for n in (64, 63))
    (kernel,) = fused.kernels(aligned)
    assert f"load_packet_{width}" in kernel.source
    (kernel,) = fused.kernels(odd[:, 1:])
    assert "load_packet" not in kernel.source


def _turned_sum(x: Any, y: Any) -> Any:
    return x + y.T


def _images(x: Any, y: Any) -> Any:
    return xp.tanh(x.transpose(0, 2, 1)) * y, x - y.transpose(0, 2, 1)


def _turned_bits(x: Any, y: Any) -> Any:
    return x & y.transpose(0, 2, 1)


VECTORS = {
    "float32": "v4.f32",
    "float64": "v2.f64",
    "float16": "v4.u32",
    "bfloat16": "v4.u32",
    "int16": "v4.u32",
    "uint8": "v2.u32",
}


@pytest.mark.parametrize("dtype", VECTORS)
def test_both_sides_of_a_tile_move_in_packets(dtype: str) -> None:
    fused = nfuser.fuse(_turned_sum, backend="interpret")
    (kernel,) = fused.kernels(build(dtype, (128, 256)), build(dtype, (256, 128)))
    _check(kernel)
    ptx = compile_cuda(kernel.source, kernel.name, kernel.signature).ptx
    # Every access of global memory, on either side of the tile.
    moves = re.findall(r"(?:ld|st)\.global(?:\.nc)?\.(\S+)", ptx)
    assert set(moves) == {VECTORS[dtype]}


@pytest.mark.parametrize("shape", [(2, 64, 96), (2, 65, 63)])
@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32"])
def test_tiles_keep_to_their_registers(dtype: str, shape: tuple[int, int, int]) -> None:
    is_float = "float" in dtype
    fused = nfuser.fuse(_images if is_float else _turned_bits, backend="interpret")
    batch, rows, columns = shape
    arguments = build(dtype, shape), build(dtype, (batch, columns, rows))
    kernels = fused.kernels(*arguments)
    assert any("transpose" in kernel.schedule for kernel in kernels)
    for kernel in kernels:
        _check(kernel)


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (10, 0), (12, 0)])
def test_every_generation_is_compiled_for(cc: tuple[int, int]) -> None:
    fused = nfuser.fuse(ROWS["layer_norm"], backend="interpret")
    (kernel,) = fused.kernels(build("bfloat16", (4, 4096)))
    assert compile_cuda(kernel.source, kernel.name, kernel.signature, cc=cc).cubin


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    return x * cos + xp.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def test_symbolic_extents_take_hardly_more_instructions() -> None:
    x, row = build("bfloat16", (2, 8, 64, 128)), build("bfloat16", (64, 128))
    count: dict[str, int] = {}
    for resize in ("dynamic", "static"):
        fused = nfuser.fuse(_rope, backend="interpret", resize=resize)
        (kernel,) = fused.kernels(x, row, row)
        ptx = compile_cuda(kernel.source, kernel.name, kernel.signature).ptx
        assert len(re.findall(r"\bld\.global", ptx)) == 4  # x twice, cos, sin
        count[resize] = len(re.findall(r"^\t[a-z@].*;", ptx, re.MULTILINE))
    assert count["dynamic"] <= 1.05 * count["static"]
