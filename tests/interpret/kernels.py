# SPDX-License-Identifier: Apache-2.0
"""Emitted kernels written by hand, run by the interpreter and on the device alike."""

from __future__ import annotations

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"


def _reduced(value: str, combine: str) -> str:
    """Return lines that combine ``value`` over the 64 threads of a block."""
    lines = [
        f"{value} = {combine.format(f'shuffle_xor({value}, {distance})', value)}"
        for distance in (16, 8, 4, 2, 1)
    ]
    lines += [
        "cuda.syncthreads()",
        "if lane == 0:",
        f"    s0[warp] = {value}",
        "cuda.syncthreads()",
        f"{value} = {combine.format('s0[0]', 's0[1]')}",
    ]
    return "".join(f"    {line}\n" for line in lines)


SOFTMAX = (
    HEADER
    + """
@cuda.jit("void(CPointer(float32), CPointer(float32), int32)", launch_bounds=64)
def softmax(T0, T1, n1):
    tx = int32(cuda.threadIdx.x)
    lane = urem(tx, int32(32))
    warp = udiv(tx, int32(32))
    s0 = cuda.shared.array(2, float32)
    r0 = cuda.local.array(4, float32)
    i0 = int32(cuda.blockIdx.x * n1 + tx * 4)
    load_packet_4(r0, 0, T0, i0)
    m = r0[0]
    for k in range(1, 4):
        m = maximum(m, r0[k])
"""
    + _reduced("m", "maximum({}, {})")
    + """
    a = float32(0.0)
    for k in range(4):
        r0[k] = exp(r0[k] - m)
        a = a + r0[k]
"""
    + _reduced("a", "{} + {}")
    + """
    for k in range(4):
        r0[k] = divide(r0[k], a)
    store_packet_4(T1, i0, r0, 0)
"""
)


SPLIT_SUM = (
    HEADER
    + """
@cuda.jit("void(CPointer(float32), CPointer(float32), CPointer(float32), "
          "CPointer(uint32), int32)", launch_bounds=32)
def split_sum(T0, T1, w0, w1, n0):
    tx = int32(cuda.threadIdx.x)
    bx = int32(cuda.blockIdx.x)
    s0 = cuda.shared.array(1, int32)
    a = float32(0.0)
    k = int32(bx * 32 + tx)
    while k < n0:
        a = a + load(T0, k)
        k = int32(k + cuda.gridDim.x * 32)
    a = a + shuffle_xor(a, 16)
    a = a + shuffle_xor(a, 8)
    a = a + shuffle_xor(a, 4)
    a = a + shuffle_xor(a, 2)
    a = a + shuffle_xor(a, 1)
    if tx == 0:
        store(w0, bx, a)
        cuda.threadfence()
        s0[0] = ticket(w1, 0)
    cuda.syncthreads()
    if s0[0] == cuda.gridDim.x - 1:
        a = float32(0.0)
        k = tx
        while k < cuda.gridDim.x:
            a = a + load_volatile(w0, k)
            k = int32(k + 32)
        a = a + shuffle_xor(a, 16)
        a = a + shuffle_xor(a, 8)
        a = a + shuffle_xor(a, 4)
        a = a + shuffle_xor(a, 2)
        a = a + shuffle_xor(a, 1)
        if tx == 0:
            store(T1, 0, a)
            reset(w1, 0)
"""
)


NORMALIZE = (
    HEADER
    + """
@cuda.jit("void(CPointer(float32), CPointer(float32), CPointer(float32), "
          "CPointer(uint32))")
def normalize(T0, T1, w0, w1):
    tx = int32(cuda.threadIdx.x)
    bx = int32(cuda.blockIdx.x)
    i = int32(bx * 32 + tx)
    x = load(T0, i)
    a = x
    a = a + shuffle_xor(a, 16)
    a = a + shuffle_xor(a, 8)
    a = a + shuffle_xor(a, 4)
    a = a + shuffle_xor(a, 2)
    a = a + shuffle_xor(a, 1)
    if tx == 0:
        store(w0, bx, a)
        t = ticket(w1, 0)
    wait(w1, 0, int32(cuda.gridDim.x))
    a = float32(0.0)
    k = int32(0)
    while k < cuda.gridDim.x:
        a = a + load_volatile(w0, k)
        k = int32(k + 1)
    store(T1, i, divide(x, a))
"""
)


CENTRE = (
    HEADER
    + """
@cuda.jit("void(CPointer(float64), CPointer(float64), CPointer(uint64))")
def centre(T0, T1, w0):
    tx = int32(cuda.threadIdx.x)
    bx = int32(cuda.blockIdx.x)
    i = int32(bx * 32 + tx)
    x = load(T0, i)
    a = x
    a = a + shuffle_xor(a, 16)
    a = a + shuffle_xor(a, 8)
    a = a + shuffle_xor(a, 4)
    a = a + shuffle_xor(a, 2)
    a = a + shuffle_xor(a, 1)
    if tx == 0:
        post(w0, bx, a)
    a = float64(0.0)
    if tx < cuda.gridDim.x:
        b = receive(w0, tx, float64(0))
        a = a + b
    a = a + shuffle_xor(a, 16)
    a = a + shuffle_xor(a, 8)
    a = a + shuffle_xor(a, 4)
    a = a + shuffle_xor(a, 2)
    a = a + shuffle_xor(a, 1)
    store(T1, i, x - divide(a, float64(cuda.gridDim.x * 32)))
"""
)


CLUSTERS = (
    HEADER
    + """
@cuda.jit(
    "void(CPointer(float64), CPointer(float64), int32)",
    launch_bounds=32,
    cluster=(1, 4),
)
def clusters(T0, T1, n):
    tx = int32(cuda.threadIdx.x)
    bx = int32(cuda.blockIdx.x)
    by = int32(cuda.blockIdx.y)
    boxes = cuda.shared.array(16, uint64)
    if tx < 16:
        boxes[tx] = uint64(0)
    cluster_barrier()
    k = int32(0)
    while k < n:
        i = int32(((bx * n + k) * 4 + by) * 32 + tx)
        x = load(T0, i)
        a = x
        a = a + shuffle_xor(a, 16)
        a = a + shuffle_xor(a, 8)
        a = a + shuffle_xor(a, 4)
        a = a + shuffle_xor(a, 2)
        a = a + shuffle_xor(a, 1)
        if tx < 4:
            cluster_post(boxes, by + urem(k, int32(2)) * 4, tx, a, int32(k + 1))
        place = urem(tx, int32(4)) + urem(k, int32(2)) * 4
        b = cluster_receive(boxes, place, float64(0), int32(k + 1))
        b = b + shuffle_xor(b, 2)
        b = b + shuffle_xor(b, 1)
        store(T1, i, x - divide(b, float64(128)))
        k = int32(k + 1)
"""
)


KERNELS = {
    "softmax": SOFTMAX,
    "split_sum": SPLIT_SUM,
    "normalize": NORMALIZE,
    "centre": CENTRE,
    "clusters": CLUSTERS,
}
_F = "CPointer(float32)"
SIGNATURES = {
    "softmax": f"void({_F}, {_F}, int32)",
    "split_sum": f"void({_F}, {_F}, {_F}, CPointer(uint32), int32)",
    "normalize": f"void({_F}, {_F}, {_F}, CPointer(uint32))",
    "centre": "void(CPointer(float64), CPointer(float64), CPointer(uint64))",
    "clusters": "void(CPointer(float64), CPointer(float64), int32)",
}
