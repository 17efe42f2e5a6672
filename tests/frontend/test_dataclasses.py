# SPDX-License-Identifier: Apache-2.0
"""Dataclasses as they are written first: they compare by value and have no hash."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, NfuserError

Array = np.ndarray[Any, np.dtype[Any]]
X = np.arange(4.0)


@dataclass
class Settings:
    rate: float = 0.5
    steps: int = 3
    name: str = "plain"
    more: dict[str, float] = field(default_factory=dict[str, float])

    @nfuser.fuse
    def scaled(self, x: Array) -> Array:
        return x * self.rate


@dataclass
class Body:
    place: Array
    speed: Array
    mass: float = 1.0

    def step(self, force: Array, dt: float) -> None:
        self.speed += force / self.mass * dt
        self.place += self.speed * dt


@dataclass(slots=True)
class Slotted:
    rate: float


@dataclass
class Number(float):
    rate: float = 1.0


@dataclass
class Listed(list[float]):
    rate: float = 1.0


def stepped(settings: Settings, x: Array) -> Array:
    for _ in range(settings.steps):
        if settings.name == "sign":
            x = x - settings.rate * np.sign(x)
        else:
            x = x - settings.rate * x
    return x * settings.more.get("k", 1.0)


def rated(item: Any, x: Array) -> Any:
    return x * item.rate


def moved(bodies: list[Body], force: Array) -> Any:
    for body in bodies:
        body.step(force, 0.5)
    return sum(0.5 * body.mass * (body.speed**2).sum() for body in bodies)


def test_what_changes_in_one_is_seen() -> None:
    fused, settings = nfuser.fuse(stepped), Settings()
    changes: tuple[tuple[str, Any], ...] = (
        *(("rate", 0.25), ("steps", 2), ("name", "sign"), ("more", {"k": 3.0})),
    )
    for name, value in (("rate", 0.5), *changes):
        setattr(settings, name, value)
        for _ in range(3):
            np.testing.assert_allclose(fused(settings, X), stepped(settings, X))
    settings.more["k"] = 7.0
    np.testing.assert_allclose(fused(settings, X), stepped(settings, X))


def test_equal_ones_are_two() -> None:
    fused = nfuser.fuse(stepped)
    first, second = Settings(), Settings()
    assert first == second
    for rate in (0.5, 0.25):
        second.rate = rate
        for settings in (first, second, replace(first, steps=1)):
            np.testing.assert_allclose(fused(settings, X), stepped(settings, X))
            np.testing.assert_allclose(settings.scaled(X), X * settings.rate)


def test_arrays_inside_are_read_and_written_where_they_are() -> None:
    fused = nfuser.fuse(moved)
    mine, theirs = (
        [Body(np.arange(2.0) + k, np.ones(2), k + 1.0) for k in range(2)]
        for _ in range(2)
    )
    for turn in range(4):
        if turn == 2:
            for bodies in (mine, theirs):
                bodies[0].place = np.zeros(2)
                bodies[1].mass = 5.0
        found, wanted = fused(mine, np.ones(2)), moved(theirs, np.ones(2))
        np.testing.assert_allclose(found, wanted)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one.place, other.place)
            np.testing.assert_allclose(one.speed, other.speed)


def test_a_new_one_is_not_taken_for_one_that_is_gone() -> None:
    fused = nfuser.fuse(stepped)
    for k in range(6):
        settings = Settings(rate=k / 8)
        np.testing.assert_allclose(fused(settings, X), stepped(settings, X))
        del settings
    gc.collect()
    assert len(fused.cache_table().splitlines()) <= 3


@pytest.mark.parametrize("item", [Slotted(1.0), Listed(), Number(3.0)])
def test_what_cannot_be_known_by_itself_is_refused(item: Any) -> None:
    with pytest.raises(ArgumentError, match="argument item of"):
        nfuser.fuse(rated)(item, X)


def test_an_attribute_that_is_set_is_refused() -> None:
    def changed(settings: Settings, x: Array) -> Array:
        settings.rate = settings.rate + 1
        return x * settings.rate

    settings = Settings()
    with pytest.raises(NfuserError, match="rate"):
        nfuser.fuse(changed)(settings, X)
