# SPDX-License-Identifier: Apache-2.0

# torch's functions have no known types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import BackendError
from nfuser.nn import dropout
from nfuser.random import default_rng
from nfuser.random.distributions import uniform
from tests.random.philox import words_at, words_of

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

KEY = 0x0123456789ABCDEF


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (37, 65), (3, 4, 5, 6), (1000, 1001)])
def test_devices_give_the_numbers_of_the_specification(
    name: str, shape: tuple[int, ...]
) -> None:
    dtype = np.dtype(name)
    fused = nfuser.fuse(lambda x, rng: rng.random(x.shape, dtype))
    wanted = uniform.random(words_of(KEY, 0, shape), dtype)
    x = torch.zeros(shape, device="cuda", dtype=getattr(torch, name))
    turned = torch.zeros(shape[::-1], device="cuda").permute(*range(len(shape))[::-1])
    for given in (x, turned):
        found = fused(given, default_rng(KEY)).cpu().numpy()
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (37, 65), (1000, 1001), (64, 4096)])
def test_dropout_on_a_device_drops_what_the_specification_says(
    name: str, shape: tuple[int, ...]
) -> None:
    fused = nfuser.fuse(lambda x, rng: dropout(x + 1, 0.3, rng=rng))
    dropped = words_of(KEY, 0, shape)(16) < round(0.3 * 2**16)
    x = torch.zeros(shape, device="cuda", dtype=getattr(torch, name))
    turned = torch.zeros(shape[::-1], device="cuda").permute(*range(len(shape))[::-1])
    for given in (x, turned):
        found = fused(given, default_rng(KEY)).cpu() == 0
        np.testing.assert_array_equal(found.numpy(), dropped)


def test_torchs_generator_of_a_device_makes_a_run_repeat() -> None:
    x = torch.ones(64, 128, device="cuda")
    fused = nfuser.fuse(lambda x: torch.nn.functional.dropout(x + 1, 0.5))
    found: list[Any] = []
    for _ in range(2):
        torch.manual_seed(3)
        found += [fused(x), fused(x)]
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[3])
    assert not torch.equal(found[0], found[1])


def test_places_beyond_32_bits_have_words_of_their_own() -> None:
    count = (1 << 32) + 5
    fused = nfuser.fuse(lambda x, rng: rng.integers(0, 256, x.shape, np.uint8))
    found = fused(
        torch.empty(count, dtype=torch.uint8, device="cuda"), default_rng(KEY)
    )
    places = np.concatenate([np.arange(100), np.arange(count - 100, count)])
    words = words_at(KEY, 0, 0, places.astype(np.uint64), 64)
    taken = found[torch.from_numpy(places).cuda()].cpu().numpy()
    np.testing.assert_array_equal(taken, words >> np.uint64(56))


def test_what_a_graph_would_repeat_is_not_drawn_in_it() -> None:
    fused = nfuser.fuse(lambda x, rng: x + rng.random(x.shape, np.float32))
    x, rng = torch.zeros(8, device="cuda"), default_rng(KEY)
    fused(x, rng)
    with nfuser.capture():
        x.add_(1)
        with pytest.raises(BackendError, match=r"^draw from a generator of torch"):
            fused(x, rng)
    assert rng.state["call"] == 1


@pytest.mark.parametrize("given", [False, True])
def test_replays_of_a_graph_draw_anew_from_torchs_generator(given: bool) -> None:
    generator = torch.Generator("cuda") if given else None
    seeded = generator or torch.cuda.default_generators[0]
    fused = nfuser.fuse(lambda x, g: torch.bernoulli(x, generator=g))
    x = torch.full((1000,), 0.5, device="cuda")
    fused(x, generator)
    graph = torch.cuda.CUDAGraph()
    if given:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        made = fused(x, generator)
    runs: list[Any] = []
    for _ in range(2):
        seeded.manual_seed(7)
        for _ in range(3):
            graph.replay()
            runs.append(made.clone())
    for one, other in zip(runs[:3], runs[3:], strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(runs[0], runs[1])
    assert 0.4 < float(runs[0].mean()) < 0.6


@pytest.mark.parametrize("keeps", [False, True])
def test_a_graph_of_a_step_of_training_drops_anew(keeps: bool) -> None:
    x = torch.rand(64, 100, device="cuda").add_(0.5).requires_grad_()
    w = torch.eye(100, device="cuda")

    def dropped(x: Any) -> Any:
        made = torch.nn.functional.dropout(x + 1, 0.5)
        return (made @ w * 0.5).sinh() if keeps else made  # a product is kept

    fused = nfuser.fuse(dropped)

    def step() -> tuple[Any, Any]:
        made = fused(x)
        return made, torch.autograd.grad(made.sum(), x)[0]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
        made, grad = step()
    masks: list[Any] = []
    for _ in range(3):
        graph.replay()
        torch.cuda.synchronize()
        masks.append(made != 0)
        assert torch.equal(grad != 0, masks[-1])
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[1], masks[2])


def test_nfusers_own_graph_draws_anew() -> None:
    fused = nfuser.fuse(lambda x: torch.nn.functional.dropout(x + 1, 0.5))
    x = torch.ones(64, 100, device="cuda")
    fused(x)
    with nfuser.capture() as graph:
        made = fused(x)
    graph.replay()
    first = made.clone()
    graph.replay()
    assert not torch.equal(first, made)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_gradients_on_a_device_draw_what_the_call_drew(name: str) -> None:
    x = torch.rand(300, 257, device="cuda").add(0.5).to(getattr(torch, name))
    x.requires_grad_()
    rng = default_rng(KEY)
    fused = nfuser.fuse(
        lambda x: dropout(torch.nn.functional.dropout(x, 0.25), 0.5, rng=rng)
    )
    for call in range(3):
        made = fused(x)
        before = torch.cuda.get_rng_state()
        torch.rand(5, device="cuda")
        (grad,) = torch.autograd.grad(made.sum(), x, retain_graph=True)
        assert torch.equal(grad == 0, made == 0)
        torch.testing.assert_close(grad * x, made)
        assert rng.state["call"] == call + 1
        torch.cuda.set_rng_state(before)
        made.sum().backward()
        assert torch.equal(torch.cuda.get_rng_state(), before)


def test_gradients_of_gradients_on_a_device_see_one_mask() -> None:
    x = torch.rand(40, 65, device="cuda", dtype=torch.float64).add_(0.5)
    x.requires_grad_()
    made = nfuser.fuse(lambda x: torch.nn.functional.dropout(x**3, 0.5))(x)
    (first,) = torch.autograd.grad(made.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    mask = (made != 0) * 2.0
    torch.testing.assert_close(first, 3 * x**2 * mask)
    torch.testing.assert_close(second, 6 * x.detach() * mask)


def test_a_sum_with_dropout_is_saved_in_the_place_of_its_terms() -> None:
    def normed(x: Any, y: Any) -> Any:
        held = torch.nn.functional.dropout(x, 0.5) + y
        return held / torch.sqrt((held * held).mean(-1, keepdim=True) + 0.1)

    x, y = (torch.rand(64, 256, device="cuda", requires_grad=True) for _ in range(2))
    made = nfuser.fuse(normed)(x, y)
    saved = [t for t in made.grad_fn.saved_tensors if t is not None]
    assert [t.shape for t in saved if t.numel() > 64] == [(64, 256)]
    slopes = torch.autograd.grad(made.sum(), (x, y))
    dropped = slopes[0] == 0
    torch.testing.assert_close(slopes[0][~dropped], 2 * slopes[1][~dropped])
    assert 0.4 < dropped.float().mean().item() < 0.6
