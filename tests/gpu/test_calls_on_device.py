# SPDX-License-Identifier: Apache-2.0
"""Calls on the device: native, bound, recorded; on any stream, from any thread."""

# Libraries without types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda
from nfuser.errors import NfuserError
from tests.smaller_gpu import use_smaller_gpu

pytestmark = pytest.mark.gpu
LIBRARIES = ("torch", "cupy")


def _plain(x: Any, y: Any) -> Any:
    return x * 2 + y


class _Torch:
    def __init__(self) -> None:
        self.torch: Any = pytest.importorskip("torch")

    def array(self, values: Any) -> Any:
        return self.torch.as_tensor(np.ascontiguousarray(values), device="cuda")

    def numpy(self, array: Any) -> Any:
        return array.cpu().numpy()

    def stream(self) -> Any:
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def wait(self) -> None:
        self.torch.cuda.synchronize()


class _Cupy:
    def __init__(self) -> None:
        self.cupy: Any = pytest.importorskip("cupy")

    def array(self, values: Any) -> Any:
        return self.cupy.asarray(values)

    def numpy(self, array: Any) -> Any:
        return self.cupy.asnumpy(array)

    def stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def wait(self) -> None:
        self.cupy.cuda.runtime.deviceSynchronize()


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    return {"torch": _Torch, "cupy": _Cupy}[request.param]()


def _values(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def _warm(*args: Any) -> Any:
    fused = nfuser.fuse(_plain, dialect="numpy")  # all libraries are asked for the same
    for _ in range(3):
        fused(*args)
    assert fused.native_calls == 1
    return fused


def test_native_calls_tell_arguments_apart(library: Any) -> None:
    base = _values(6, 8)
    x = library.array(base)
    fused = _warm(x, x)
    others = (
        (library.array(_values(8, 6)).T, _values(8, 6).T),
        (library.array(_values(12, 8))[::2], _values(12, 8)[::2]),
        (library.array(_values(49))[1:].reshape(6, 8), _values(49)[1:].reshape(6, 8)),
        (library.array(_values(8)), _values(8)),
        (library.array(_values(6, 8, dtype="f8")), _values(6, 8, dtype="f8")),
        (library.array(base.astype("i4")), base.astype("i4")),
        (2.5, 2.5),
        (3, 3),
    )
    for _ in range(3):
        for other, plain in others:
            found = library.numpy(fused(x, other))
            expected = _plain(base, plain)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_calls_follow_the_current_stream(library: Any) -> None:
    x = library.array(_values(1 << 22))
    fused = _warm(x, x)
    expected = library.numpy(x) * 81
    library.wait()
    for _ in range(5):
        with library.stream():
            y = x
            for _ in range(4):
                y = fused(y, y)
            found = library.numpy(y)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_threads_call_at_once(library: Any) -> None:
    plain = [_values(n + 1, seed=n) for n in range(8)]
    arrays = [library.array(v) for v in plain]
    fused = _warm(arrays[0], arrays[0])
    failed: list[Any] = []

    def work(k: int) -> None:
        for n in range(300):
            one = (k + n) % 8
            found = library.numpy(fused(arrays[one], arrays[one]))
            if not np.allclose(found, plain[one] * 3):
                failed.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_bound_calls(library: Any) -> None:
    x, y = library.array(_values(6, 8)), library.array(_values(8, seed=1))
    out = library.array(np.zeros((6, 8), "f4"))
    fused = nfuser.fuse(_plain)
    bound, into = fused.bind(x, y), fused.bind(x, y, out=out)
    for k in range(3):
        x[k] = 2.0 * k
        expected = _plain(library.numpy(x), library.numpy(y))
        np.testing.assert_allclose(library.numpy(bound()), expected, rtol=1e-6)
        assert into() is out
        np.testing.assert_allclose(library.numpy(out), expected, rtol=1e-6)
    shifted = fused.bind(x[:, 1:], x[:, 1:], out=x[:, :-1])
    expected = library.numpy(x)[:, 1:] * 3
    shifted()
    np.testing.assert_allclose(library.numpy(x)[:, :-1], expected, rtol=1e-6)


def test_a_captured_graph_reads_its_inputs_anew(library: Any) -> None:
    x, y = library.array(_values(1024)), library.array(_values(1024, seed=1))
    fused = _warm(x, y)
    rows = library.array(_values(64, 256))
    normal = nfuser.fuse(lambda x: x / np.sqrt((x * x).mean(axis=1, keepdims=True)))
    normal(rows)
    with nfuser.capture("torch" if isinstance(library, _Torch) else "cupy") as graph:
        z = y
        for _ in range(10):
            z = fused(x, z)
        scaled = normal(rows)
    for k in range(3):
        x[:] = k + 1
        rows[:] = k + 2
        graph.replay()
        library.wait()
        np.testing.assert_allclose(
            library.numpy(z), 20 * (k + 1) + library.numpy(y), rtol=1e-5
        )
        np.testing.assert_allclose(library.numpy(scaled), 1, rtol=1e-5)


def test_a_graph_may_take_the_name_of_another(library: Any) -> None:
    x, y = library.array(_values(1024)), library.array(_values(1024, seed=1))
    fused = _warm(x, y)
    wanted = library.numpy(fused(x, fused(x, y)))
    for _ in range(3):
        with nfuser.capture(
            "torch" if isinstance(library, _Torch) else "cupy"
        ) as graph:
            z = fused(x, fused(x, y))
        graph.replay()
        library.wait()
        np.testing.assert_allclose(library.numpy(z), wanted, rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_graph_gives_what_the_calls_would_give_in_their_order(
    library: Any, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    memory = library.array(_values(4096))
    places = [memory[k : k + 1024] for k in range(0, 3073, 512)]  # halves overlap
    fused = nfuser.fuse(lambda x, y: x * 0.5 + y * 0.25)
    steps: list[tuple[int, ...]] = []
    while len(steps) < 30:
        x, y, out = (int(k) for k in draw.integers(0, len(places), 3))
        if abs(x - out) > 1 and abs(y - out) > 1:
            steps.append((x, y, out))
    bound = [fused.bind(places[x], places[y], out=places[z]) for x, y, z in steps]
    for call in bound:
        call()
    expected = library.numpy(memory).copy()
    with nfuser.capture("torch" if isinstance(library, _Torch) else "cupy") as graph:
        for call in bound:
            call()
    for _ in range(3):
        for x, y, out in steps:
            a, b, c = (slice(512 * k, 512 * k + 1024) for k in (x, y, out))
            expected[c] = expected[a] * np.float32(0.5) + expected[b] * np.float32(0.25)
        graph.replay()
        library.wait()
        found = library.numpy(memory)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_rows_that_blocks_share_are_served_natively(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 64)
    use_smaller_gpu(monkeypatch, most_threads=64, cache_bytes=0)
    monkeypatch.setattr(reduction_cuda, "STORED", ())
    x = library.array(_values(33, 9000))
    fused = nfuser.fuse(lambda x: x / np.sqrt((x * x).sum(axis=1, keepdims=True)))
    (kernel,) = fused.kernels(x)
    assert "receive" in kernel.source
    expected = library.numpy(x) / np.linalg.norm(library.numpy(x), axis=1)[:, None]
    for _ in range(5):
        np.testing.assert_allclose(library.numpy(fused(x)), expected, rtol=1e-4)
    assert fused.native_calls >= 3


def test_a_call_as_a_graph(library: Any) -> None:
    x, y = library.array(_values(1024)), library.array(_values(1024, seed=1))
    graphed = nfuser.fuse(_plain).graph(x, y)
    for k in range(3):
        x[:] = k
        found = graphed()
        assert found is graphed.result
        library.wait()
        np.testing.assert_allclose(
            library.numpy(found), 2 * k + library.numpy(y), rtol=1e-6
        )


def test_fused_calls_inside_a_capture_of_torch() -> None:
    library = _Torch()
    x, y = library.array(_values(1000)), library.array(_values(1000, seed=1))
    fused = _warm(x, y)
    graph = library.torch.cuda.CUDAGraph()
    with library.torch.cuda.graph(graph):
        z = fused(fused(x, y), y)
    x.fill_(3)
    graph.replay()
    library.wait()
    np.testing.assert_allclose(library.numpy(z), 12 + 3 * library.numpy(y), rtol=1e-5)


def test_the_device_is_told_apart() -> None:
    library = _Torch()
    x = library.array(_values(6, 8))
    fused = _warm(x, x)
    for _ in range(4):
        for given in (x.cpu(), x):
            found = fused(given, given)
            assert found.device == given.device
            np.testing.assert_allclose(
                library.numpy(found), _values(6, 8) * 3, rtol=1e-6
            )
    before = fused.native_calls
    fused(x, x)
    fused(x.cpu(), x.cpu())
    assert fused.native_calls == before + 2


def test_a_device_array_beside_one_of_the_cpu_is_refused() -> None:
    library = _Torch()
    x = library.array(_values(6, 8))
    fused = _warm(x, x)
    for _ in range(3):
        with pytest.raises(NfuserError, match="device"):
            fused(x, x.cpu())
    scalar = library.torch.tensor(2.5)
    for _ in range(3):
        found = library.numpy(fused(x, scalar))
        np.testing.assert_allclose(found, library.numpy(x) * 2 + 2.5, rtol=1e-6)
