# SPDX-License-Identifier: Apache-2.0
"""What generators lack is refused by name; threads and layouts change no bit."""

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override
from nfuser.errors import MissingError, TraceError
from nfuser.nn import dropout
from nfuser.random import default_rng, key, of

METHODS = [n for n in dir(np.random.Generator) if not n.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_each_method_of_numpys_is_there_or_says_what_to_write(name: str) -> None:
    for rng in (default_rng(1), of(key(1))):
        if hasattr(rng, name):
            continue
        with pytest.raises(MissingError, match=r"^write "):
            getattr(rng, name)


def test_what_nobody_has_is_an_attribute_error() -> None:
    rng = default_rng(1)
    with pytest.raises(AttributeError, match="has no normalized"):
        _ = rng.normalized
    assert copy.deepcopy(rng).state == rng.state
    assert getattr(rng, "wald", None) is None


def test_a_method_that_is_missing_is_refused_in_a_fused_function() -> None:
    fused = nfuser.fuse(lambda x, rng: x + rng.wald(1.0, 1.0, size=x.shape))
    with pytest.raises(MissingError, match=r"numpy\.random\.default_rng"):
        fused(np.ones(3), default_rng(1))


@pytest.mark.parametrize("name", ["rand", "normal", "seed", "shuffle"])
def test_functions_of_numpys_module_are_refused_inside(name: str) -> None:
    call = {
        "rand": lambda x: x + np.random.rand(3),
        "normal": lambda x: np.random.normal(x),
        "seed": lambda x: (np.random.seed(1), x + 1)[1],
        "shuffle": lambda x: (np.random.shuffle([1, 2, 3]), x + 1)[1],
    }[name]
    state = repr(np.random.get_state())
    with pytest.raises(TraceError, match="outside"):
        nfuser.fuse(call)(np.ones(3))
    assert repr(np.random.get_state()) == state or name in ("seed", "shuffle")


def _all_kinds(x: Any, rng: Any) -> Any:
    return (
        x + rng.random(x.shape, np.float32),
        rng.standard_normal(x.shape),
        rng.integers(0, 1000, x.shape),
        dropout(x, 0.4, rng=rng),
    )


def test_threads_and_orders_of_memory_change_no_bit() -> None:
    x = np.random.default_rng(0).random((301, 1021)).astype(np.float32)
    fused = nfuser.fuse(_all_kinds)
    with override(num_threads=1):
        wanted = fused(x, default_rng(9))
    for threads in range(1, 9):
        for given in (x, np.asfortranarray(x)) if threads in (1, 8) else (x,):
            with override(num_threads=threads):
                found = fused(given, default_rng(9))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)
