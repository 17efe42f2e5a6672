# SPDX-License-Identifier: Apache-2.0
"""Draws of NumPy's generators in fused functions: NumPy's numbers, bit for bit."""

# Lambdas and what is drawn have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, NfuserError, ShapeError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

BITS = (np.random.PCG64, np.random.SFC64, np.random.Philox, np.random.MT19937)


def state_of(rng: np.random.Generator) -> str:
    """Return all that a draw changes."""
    return repr(rng.bit_generator.state)


def agree(
    function: Callable[..., Any], *given: Any, bits: Any = np.random.PCG64
) -> None:
    """Check three calls in a row against the plain function, and the states after."""
    ours, theirs = (np.random.Generator(bits(5)) for _ in range(2))
    fused = nfuser.fuse(function)
    for _ in range(3):
        found, wanted = fused(*given, ours), function(*given, theirs)
        for x, y in zip(_flat(found), _flat(wanted), strict=True):
            np.testing.assert_array_equal(x, y)
            assert np.asarray(x).dtype == np.asarray(y).dtype
        assert state_of(ours) == state_of(theirs)
    assert fused.cache_info().traces == 1


def _flat(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


X = np.linspace(0.5, 4.0, 12).reshape(3, 4)

DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "random": lambda x, rng: x + rng.random(x.shape),
    "random f32": lambda x, rng: rng.random(size=5, dtype=np.float32),
    "standard_normal": lambda x, rng: rng.standard_normal(x.shape[0]),
    "standard_exponential": lambda x, rng: rng.standard_exponential(6, method="inv"),
    "standard_gamma": lambda x, rng: rng.standard_gamma(x),
    "uniform": lambda x, rng: rng.uniform(-x, x * 2),
    "normal": lambda x, rng: rng.normal(x[0], 2.0, size=x.shape) * 2,
    "normal of one": lambda x, rng: x * rng.normal(),
    "lognormal": lambda x, rng: rng.lognormal(0.5, x),
    "exponential": lambda x, rng: rng.exponential(x[0]),
    "gamma": lambda x, rng: rng.gamma(x, 2.0),
    "beta": lambda x, rng: rng.beta(x, x + 1),
    "chisquare": lambda x, rng: rng.chisquare(x),
    "noncentral_chisquare": lambda x, rng: rng.noncentral_chisquare(x, 1.5),
    "f": lambda x, rng: rng.f(x, 3.0),
    "noncentral_f": lambda x, rng: rng.noncentral_f(x, 3.0, 1.0),
    "standard_cauchy": lambda x, rng: rng.standard_cauchy(4),
    "standard_t": lambda x, rng: rng.standard_t(x),
    "vonmises": lambda x, rng: rng.vonmises(0.0, x),
    "pareto": lambda x, rng: rng.pareto(x),
    "weibull": lambda x, rng: rng.weibull(x),
    "power": lambda x, rng: rng.power(x),
    "laplace": lambda x, rng: rng.laplace(x, 1.0),
    "gumbel": lambda x, rng: rng.gumbel(x, 1.0),
    "logistic": lambda x, rng: rng.logistic(x, 1.0),
    "rayleigh": lambda x, rng: rng.rayleigh(x),
    "wald": lambda x, rng: rng.wald(x, 1.0),
    "triangular": lambda x, rng: rng.triangular(-1.0, 0.0, x),
    "binomial": lambda x, rng: rng.binomial(10, x / 8),
    "negative_binomial": lambda x, rng: rng.negative_binomial(3, x / 8),
    "poisson": lambda x, rng: rng.poisson(x * 2) + 1,
    "zipf": lambda x, rng: rng.zipf(x + 1),
    "geometric": lambda x, rng: rng.geometric(x / 8),
    "hypergeometric": lambda x, rng: rng.hypergeometric(5, 7, 4, size=(2, 3)),
    "logseries": lambda x, rng: rng.logseries(x / 8),
    "integers": lambda x, rng: rng.integers(0, 10, size=x.shape),
    "integers of 8 bits": lambda x, rng: rng.integers(0, 9, 7, np.uint8, endpoint=True),
    "integers of bounds": lambda x, rng: rng.integers(0, x.astype(int) + 1),
    "dirichlet": lambda x, rng: rng.dirichlet(x[0], size=x.shape[0]),
    "multinomial": lambda x, rng: rng.multinomial(20, [0.2, 0.3, 0.5], size=4),
    "multivariate_normal": lambda x, rng: rng.multivariate_normal(
        x[0, :2], np.eye(2), size=3
    ),
    "multivariate_hypergeometric": lambda x, rng: rng.multivariate_hypergeometric(
        [3, 4, 5], 6, size=2
    ),
    "choice of many": lambda x, rng: rng.choice(20, 5, replace=False),
    "choice of things": lambda x, rng: rng.choice(x * 2, size=(2, 2), axis=1),
    "choice of one": lambda x, rng: rng.choice(x[0]),
    "choice with weights": lambda x, rng: rng.choice(3, size=8, p=[0.1, 0.2, 0.7]),
    "permutation": lambda x, rng: rng.permutation(x + 1),
    "permutation of many": lambda x, rng: rng.permutation(x.shape[0]),
    "permuted": lambda x, rng: rng.permuted(x, axis=1),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_has_numpys_numbers_and_leaves_numpys_state(name: str) -> None:
    agree(DRAWS[name], X)


@pytest.mark.parametrize("bits", BITS)
def test_any_bit_generator_serves(bits: Any) -> None:
    agree(lambda x, rng: x * rng.normal(size=x.shape), X, bits=bits)


def test_draws_are_made_in_the_order_of_the_program() -> None:
    def function(x: Any, rng: Any) -> Any:
        late = rng.normal(size=3)
        rng.random(5)  # nobody reads it, and it is drawn all the same
        early = rng.poisson(x)
        return early + rng.integers(0, 9, 3), np.sum(late)

    agree(function, np.arange(3.0))


def test_numbers_of_the_call_are_parameters() -> None:
    def function(x: Any, mean: float, count: int, rng: Any) -> Any:
        found = x + rng.normal(mean, mean * 0.5, size=x.shape)
        return found, rng.integers(0, count, size=4), rng.permutation(count)

    ours, theirs = (np.random.default_rng(3) for _ in range(2))
    fused = nfuser.fuse(function)
    for mean, count in ((1.0, 7), (2.0, 7), (3.0, 9)):
        found, wanted = (
            f(X, mean, count, rng) for f, rng in ((fused, ours), (function, theirs))
        )
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_loop_draws_in_each_turn() -> None:
    def function(x: Any, rng: Any) -> Any:
        for _ in range(4):
            x = x + rng.normal(size=x.shape)
        return x

    agree(function, X)


def test_arrays_are_shuffled_and_filled_in_place() -> None:
    def function(x: Any, rng: Any) -> Any:
        y = x * 2
        rng.shuffle(y)
        rng.random(out=x)
        return y

    ours, theirs = (np.random.default_rng(3) for _ in range(2))
    x, y = X.copy(), X.copy()
    found, wanted = nfuser.fuse(function)(x, ours), function(y, theirs)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(x, y)
    assert state_of(ours) == state_of(theirs)


class _Model:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(11)
        self.others = [np.random.default_rng(12)]

    def __call__(self, x: Any) -> Any:
        return x + self.rng.normal(size=3) * self.others[0].random(3)


def test_generators_are_attributes_and_parts() -> None:
    ours, theirs = _Model(), _Model()
    fused = nfuser.fuse(ours)
    for _ in range(2):
        np.testing.assert_array_equal(fused(np.ones(3)), theirs(np.ones(3)))
    ours.rng, theirs.rng = (np.random.default_rng(1) for _ in range(2))
    np.testing.assert_array_equal(fused(np.ones(3)), theirs(np.ones(3)))
    assert fused.cache_info().traces == 1


generator = np.random.default_rng(21)


def test_a_generator_is_a_global_and_one_trace_serves_another() -> None:
    global generator
    fused = nfuser.fuse(lambda x: x + generator.random(3))
    for seed in (21, 22):
        generator = np.random.default_rng(seed)
        wanted = 1 + np.random.default_rng(seed).random(3)
        np.testing.assert_array_equal(fused(np.ones(3)), wanted)
    assert fused.cache_info().traces == 1


def test_two_generators_that_become_one_are_drawn_from_in_order() -> None:
    def function(x: Any, one: Any, other: Any) -> Any:
        return x + one.random(3) - other.random(3)

    fused = nfuser.fuse(function)
    one, other, same, again = map(np.random.default_rng, (1, 2, 3, 3))
    fused(np.ones(3), one, other)
    wanted = function(np.ones(3), again, again)
    np.testing.assert_array_equal(fused(np.ones(3), same, same), wanted)


def test_a_call_that_raises_before_its_kernels_run_draws_nothing() -> None:
    rng = np.random.default_rng(1)
    before = state_of(rng)
    fused = nfuser.fuse(lambda x, y, rng: x + rng.random(3) + y)
    with pytest.raises(NfuserError):
        fused(np.ones(3), np.ones(4), rng)
    assert state_of(rng) == before


def test_what_numpy_refuses_is_refused_with_its_words() -> None:
    fused = nfuser.fuse(lambda x, rng: x + rng.normal(0, -x))
    with pytest.raises(ValueError, match="scale < 0"):
        fused(np.ones(3), np.random.default_rng(1))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x, rng: rng.random(-1), ShapeError, "not negative"),
        (lambda x, rng: rng.normal(low=1), ArgumentError, "low"),
        (lambda x, rng: x + len(rng.bytes(3)), NfuserError, "outside"),
        (lambda x, rng: x + np.random.default_rng(1).random(3), TraceError, "outside"),
        (lambda x, rng: x + np.random.rand(3), TraceError, "outside"),
    ],
)
def test_what_is_no_draw_of_arrays_is_refused(
    function: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        nfuser.fuse(function)(np.ones(3), np.random.default_rng(1))


def test_draws_are_counted_and_the_way_to_fuse_them_is_named() -> None:
    fused = nfuser.fuse(lambda x, rng: x + rng.normal(size=x.shape))
    found = fused.explain(X, np.random.default_rng(1))
    assert [p.name for p in found.pieces if not p.is_kernel] == [
        "random.Generator.normal by numpy"
    ]
    assert "nfuser.random" in str(found)


def test_a_branch_that_is_not_taken_draws_nothing() -> None:
    def function(x: Any, rng: Any, draws: bool) -> Any:
        return x + rng.random(3) if draws else x + 1

    rng = np.random.default_rng(1)
    before, fused = state_of(rng), nfuser.fuse(function)
    fused(np.ones(3), rng, False)
    assert state_of(rng) == before
    fused(np.ones(3), rng, True)
    assert state_of(rng) != before
