# SPDX-License-Identifier: Apache-2.0
"""Captured objects that show memory by an array protocol, and have attributes."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError

X = np.ones(3)


class Base:
    def __init__(self) -> None:
        self.scale = 2.0
        self.data = np.arange(3.0)


class Host(Base):
    @property
    def __array_interface__(self) -> Any:
        return self.data.__array_interface__


class Device(Base):
    __cuda_array_interface__ = property(lambda _: {})


class Exchanged(Base):
    def __dlpack__(self) -> Any:
        return self.data.__dlpack__()


class Described(Host):
    dtype, shape = np.dtype(float), (3,)


class Subclass(np.ndarray):
    scale: float


class Anything:
    def __init__(self) -> None:
        self.scale = 2.0

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 1


KINDS = (Host, Device, Exchanged, Described, Anything, Subclass)


def _made(kind: Any) -> Any:
    if kind is not Subclass:
        return kind()
    held = np.arange(3.0).view(Subclass)
    held.scale = 2.0
    return held


@pytest.mark.parametrize("kind", KINDS)
def test_an_attribute_of_it_is_read_and_watched(kind: Any) -> None:
    held = _made(kind)
    fused = nfuser.fuse(lambda x: x * held.scale)
    for scale in (2.0, 5.0):
        held.scale = scale
        np.testing.assert_array_equal(fused(X), X * scale)
        np.testing.assert_array_equal(fused(X), X * scale)
    assert fused.cache_info().traces == 2


@pytest.mark.parametrize("kind", [Host, Described])
def test_an_array_that_it_holds_is_read_again(kind: Any) -> None:
    held = kind()
    fused = nfuser.fuse(lambda x: x * held.data)
    np.testing.assert_array_equal(fused(X), held.data)
    held.data[1] = 7
    np.testing.assert_array_equal(fused(X), held.data)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Host, "no dtype and no shape"),
        (Described, "captured held of .*: expected an array of NumPy, PyTorch"),
        (Anything, "expected an array or a number, found Anything"),
    ],
)
def test_as_an_operand_it_is_refused_in_words(kind: Any, words: str) -> None:
    held = kind()
    with pytest.raises(ArgumentError, match=words):
        nfuser.fuse(lambda x: x * held)(X)
