# SPDX-License-Identifier: Apache-2.0
"""What Python calls by itself and writes into an array from outside is refused."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEEN = np.zeros(3)
X = np.ones(3)


class Filled(dict[str, float]):
    def __missing__(self, key: str) -> float:
        SEEN[1:] = SEEN[1:] + 1
        return 2.0


class Counted:
    def __len__(self) -> int:
        SEEN[0] += 1
        return 3

    def __iter__(self) -> Iterator[int]:
        SEEN.fill(SEEN[0] + 1)
        return iter((1, 2))


class Clean(dict[str, float]):
    def __missing__(self, key: str) -> float:
        own = np.zeros(2)
        own[0] = 2.0
        return float(own.sum())


def _made() -> float:
    np.copyto(SEEN, SEEN + 1)
    return 2.0


def missing(x: Any) -> Any:
    return x * Filled()["a"]


def default(x: Any) -> Any:
    return x * defaultdict(_made)["a"]


def length(x: Any) -> Any:
    return x * len(Counted())


def listed(x: Any) -> Any:
    return x * sum(list(Counted()))


@pytest.mark.parametrize("function", [missing, default, length, listed])
def test_a_write_that_no_later_call_repeats_is_refused(
    function: Callable[[Any], Any],
) -> None:
    with pytest.raises(MutationError, match="that Python or a library calls"):
        nfuser.fuse(function)(X)


def test_arrays_of_its_own_may_be_written() -> None:
    def function(x: Any) -> Any:
        return x * Clean()["a"] + SEEN[0]

    np.testing.assert_array_equal(nfuser.fuse(function)(X), function(X))


NAMELESS = """
class Base:
    @property
    def counted(self):
        self.a[0] += 1
        return 2.0
    def scale(self, x):
        return x * self.factor
    def given(self, x):
        return x * getattr(self, "more", 5)
    def count(self, x):
        return x * self.counted
class Kept(Base):
    factor = 2.0
"""


def _nameless() -> Any:
    """Return a class that was made without ``__name__``: it is of builtins."""
    space: dict[str, Any] = {}
    exec(NAMELESS, space)  # noqa: S102 (our own)
    assert space["Kept"].__module__ == "builtins"
    return space["Kept"]


def test_writes_in_methods_of_a_class_without_a_module_are_not_lost() -> None:
    kept = _nameless()()
    kept.a = np.zeros(3)
    with pytest.raises(MutationError):
        nfuser.fuse(kept.count)(X)


def test_a_class_without_a_module_is_watched() -> None:
    kind = _nameless()
    kept = kind()
    scaled = nfuser.fuse(kept.scale)
    given = nfuser.fuse(kept.given)
    np.testing.assert_array_equal((scaled(X), given(X)), (2 * X, 5 * X))
    kind.factor, kind.more = 3.0, 4.0
    np.testing.assert_array_equal((scaled(X), given(X)), (3 * X, 4 * X))
