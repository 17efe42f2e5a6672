# SPDX-License-Identifier: Apache-2.0
"""What a user says is kept of a part of a function, and what is computed again."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser import checkpoint, checkpoint_name
from nfuser import checkpoint_policies as policies
from nfuser.errors import ArgumentError

RNG = np.random.default_rng(5)
ARRAYS = (RNG.random((9, 4)), RNG.random((4, 3)), RNG.random((3, 2)))
WORD: Any = "dots_saveable"
THREE: Any = 3
BYTES = {"x @ w": 9 * 3 * 8, "hidden": 9 * 3 * 8, "hidden @ v": 9 * 2 * 8}


def _layers(x: Any, w: Any, v: Any) -> Any:
    hidden = checkpoint_name(np.tanh(x @ w), "hidden")
    return np.exp(np.sin(hidden @ v)).sum(axis=1)


def _kept(function: Any, *arrays: Any) -> list[int]:
    """Return the bytes of all that is kept besides arguments."""
    saved = nfuser.fuse(function).saved(*arrays)
    return [item.bytes for item in saved if item.name.startswith("value")]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (None, []),
        (policies.nothing_saveable, []),
        (policies.save_only_these_names("hidden"), ["hidden"]),
        (policies.save_only_these_names("other"), []),
        (policies.dots_saveable, ["x @ w", "hidden @ v"]),
        (policies.save_any_names_but_these("hidden"), ["x @ w", "hidden @ v", "sin"]),
        (policies.everything_saveable, ["hidden", "hidden @ v", "sin"]),
    ],
)
def test_a_policy_says_what_is_kept(policy: Any, kept: list[str]) -> None:
    layers = checkpoint(_layers, policy=policy)
    sizes = BYTES | {"sin": BYTES["hidden @ v"]}
    assert _kept(layers, *ARRAYS) == [sizes[name] for name in kept]
    assert _kept(_layers, *ARRAYS) == [BYTES["x @ w"], BYTES["hidden @ v"]]
    value, back = nfuser.vjp(layers, *ARRAYS)
    plain, plain_back = nfuser.vjp(_layers, *ARRAYS)
    np.testing.assert_array_equal(value, plain)
    cotangent = RNG.random(9)
    for found, wanted in zip(back(cotangent), plain_back(cotangent), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_results_of_a_part_are_kept_by_whoever_reads_them() -> None:
    def whole(x: Any, w: Any) -> Any:
        return np.sin(checkpoint(lambda x: np.exp(np.cos(x @ w)) @ w)(x) @ w)

    w = RNG.random((4, 4))
    # The last product, and nothing of the part: that runs again, its products as well.
    assert len(_kept(whole, ARRAYS[0], w)) == 2
    assert len(_kept(lambda x, w: whole(x, w) @ w, ARRAYS[0], w)) == 2


def test_what_a_part_of_a_part_says_comes_first() -> None:
    inner = checkpoint(lambda x: np.exp(x @ x))
    outer = checkpoint(
        lambda x: np.sin(inner(np.cos(x))) @ x, policy=policies.everything_saveable
    )
    x, plain = RNG.random((5, 5)), vars(outer)["__wrapped__"]
    whys = [item.why for item in nfuser.fuse(outer).saved(x)]
    assert "a product, which is not computed twice" not in whys
    found, wanted = (nfuser.vjp(f, x)[1](x)[0] for f in (outer, plain))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_inside_a_fusion_and_outside_of_one_it_is_the_function() -> None:
    layers = checkpoint(_layers)
    np.testing.assert_allclose(layers(*ARRAYS), _layers(*ARRAYS))
    found, wanted = (
        nfuser.grad(lambda x, w, v, f=f: f(x, w, v).sum(), argnums=1)(*ARRAYS)
        for f in (layers, _layers)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert layers.__name__ == "_layers"
    assert checkpoint(policy=policies.dots_saveable)(_layers)(*ARRAYS).shape == (9,)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: checkpoint(_layers, policy=WORD), "checkpoint_policies"),
        (lambda: checkpoint(THREE), "checkpoint"),
        (lambda: checkpoint_name(ARRAYS[0], THREE), "checkpoint_name"),
    ],
)
def test_wrong_uses_say_what_to_write(wrong: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        wrong()


@pytest.mark.torch
def test_a_recorded_call_keeps_what_a_policy_says() -> None:
    torch = pytest.importorskip("torch")
    given = [torch.tensor(a, requires_grad=True) for a in ARRAYS]
    policy = policies.save_only_these_names("hidden")
    fused = nfuser.fuse(checkpoint(_layers, policy=policy), dialect="numpy")
    assert [k.bytes for k in fused.saved(*given) if k.name.startswith("value")] == [
        BYTES["hidden"]
    ]
    fused(*given).sum().backward()
    slopes = nfuser.vjp(_layers, *ARRAYS)[1](np.ones(9))
    for one, wanted in zip(given, slopes, strict=True):
        np.testing.assert_allclose(one.grad, wanted, rtol=1e-12)
