# SPDX-License-Identifier: Apache-2.0

# SciPy carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

import nfuser
from nfuser.errors import DTypeError, OptionError, RangeError, ShapeError
from nfuser.random.distributions import choices, exponential, normal, uniform
from tests.random.philox import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.random.distributions.words import Words

COUNT = 100_000
DRAW = words_of(0x0123456789ABCDEF, 7, (COUNT,))

CONTINUOUS: dict[str, tuple[Callable[[Words], Any], Any]] = {
    "random": (uniform.random, stats.uniform()),
    "uniform": (lambda w: uniform.uniform(w, -2, 5), stats.uniform(-2, 7)),
    "standard_normal": (normal.standard_normal, stats.norm()),
    "normal": (lambda w: normal.normal(w, 3.0, 2.0), stats.norm(3, 2)),
    "lognormal": (
        lambda w: normal.lognormal(w, 0.5, 0.25),
        stats.lognorm(0.25, 0, 1.6487212707),
    ),
    "truncated": (lambda w: normal.truncated_normal(w, -1, 2), stats.truncnorm(-1, 2)),
    "truncated tail": (
        lambda w: normal.truncated_normal(w, 5, np.inf),
        stats.truncnorm(5, np.inf),
    ),
    "exponential": (lambda w: exponential.exponential(w, 2.0), stats.expon(0, 2)),
    "laplace": (lambda w: exponential.laplace(w, 1, 2), stats.laplace(1, 2)),
    "logistic": (lambda w: exponential.logistic(w, 1, 2), stats.logistic(1, 2)),
    "cauchy": (exponential.standard_cauchy, stats.cauchy()),
    "gumbel": (lambda w: exponential.gumbel(w, 1, 2), stats.gumbel_r(1, 2)),
    "rayleigh": (lambda w: exponential.rayleigh(w, 2), stats.rayleigh(0, 2)),
    "weibull": (lambda w: exponential.weibull(w, 1.5), stats.weibull_min(1.5)),
    "pareto": (lambda w: exponential.pareto(w, 3), stats.lomax(3)),
    "power": (lambda w: exponential.power(w, 3), stats.powerlaw(3)),
    "triangular": (
        lambda w: exponential.triangular(w, 1, 2, 5),
        stats.triang(0.25, 1, 4),
    ),
}


def fused(draw: Callable[..., Any]) -> Callable[[], Any]:
    """Return a call of ``draw`` fused, its words an array argument."""
    asked: list[Any] = []

    def note(bits: Any, slot: int = 0) -> Any:
        asked.append(DRAW(bits, slot))
        return asked[-1]

    draw(note)
    assert len(asked) == 1

    @nfuser.fuse
    def call(word: Any) -> Any:
        def words(bits: Any, slot: int = 0) -> Any:
            return word

        return draw(words)

    return lambda: call(asked[0])


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_follow_the_distribution_in_closed_form(name: str) -> None:
    draw, law = CONTINUOUS[name]
    numbers = draw(DRAW)
    assert numbers.dtype == np.float64
    assert stats.kstest(numbers, law.cdf).pvalue > 1e-3
    if np.isfinite(law.var()):
        error = law.std() / np.sqrt(COUNT)
        assert abs(numbers.mean() - law.mean()) < 4 * error


@pytest.mark.parametrize("name", CONTINUOUS)
def test_fused_numbers_are_those_of_numpy_within_rounding(name: str) -> None:
    draw, _ = CONTINUOUS[name]
    np.testing.assert_allclose(fused(draw)(), draw(DRAW), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "draw",
    [
        normal.standard_normal,
        exponential.standard_exponential,
        exponential.standard_cauchy,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_small_floats_follow_the_same_distributions(
    draw: Callable[..., Any], dtype: Any
) -> None:
    law = {
        normal.standard_normal: stats.norm,
        exponential.standard_exponential: stats.expon,
        exponential.standard_cauchy: stats.cauchy,
    }[draw]
    with np.errstate(over="ignore"):  # Cauchy's numbers leave f16
        numbers = draw(DRAW, dtype)
    assert numbers.dtype == dtype
    # Rounding to 8 bits shifts the distribution function by up to its own step.
    wide = numbers.astype(np.float64)
    most = 0.006 + (0.003 if dtype is ml_dtypes.bfloat16 else 0)
    assert stats.kstest(wide, law.cdf).statistic < most


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float64, 53), (np.float32, 24), (np.float16, 11), (ml_dtypes.bfloat16, 8)],
)
def test_uniform_numbers_are_multiples_below_one(dtype: Any, kept: int) -> None:
    for numbers in (
        uniform.random(DRAW, dtype),
        fused(lambda words: uniform.random(words, dtype))(),
    ):
        whole = numbers.astype(np.float64) * 2.0**kept
        assert (whole == np.floor(whole)).all()
        assert whole.min() >= 0
        assert whole.max() <= 2**kept - 1

    ones: Words = lambda bits, slot=0: np.array([2**bits - 1], f"uint{bits}")  # noqa: E731
    assert float(uniform.random(ones, dtype)[0]) == 1 - 2.0**-kept


@pytest.mark.parametrize(
    "dtype", [f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)]
)
def test_integers_reach_both_ends_of_their_dtype_and_no_further(dtype: str) -> None:
    limits = np.iinfo(dtype)
    low, high = int(limits.min), int(limits.max)
    ends = np.array([0, 2**64 - 1], np.uint64)
    drawn = uniform.integers(lambda bits, slot=0: ends, low, high, dtype, endpoint=True)
    assert drawn.tolist() == [low, high]
    drawn = uniform.integers(lambda bits, slot=0: ends, low + 1, high, dtype)
    assert drawn.tolist() == [low + 1, high - 1]
    with pytest.raises(RangeError, match="write bounds that"):
        uniform.integers(DRAW, low, high + 2, dtype)
    with pytest.raises(RangeError, match="write bounds that"):
        uniform.integers(DRAW, low - 1, high, dtype)


@pytest.mark.parametrize("size", [2, 1000, 2**32, 2**32 + 1, 3 * 2**61, 2**64])
def test_an_integer_is_the_high_half_of_its_word_times_the_range(size: int) -> None:
    def draw(words: Words) -> Any:
        return uniform.integers(words, 0, size, np.uint64)

    exact = [int(word) * size >> 64 for word in DRAW(64, 0)]
    assert draw(DRAW).tolist() == exact
    assert fused(draw)().tolist() == exact


def test_bounds_of_integers_may_be_arrays() -> None:
    low = np.resize(np.array([-5, 0, -(2**63)]), COUNT)
    high = np.resize(np.array([5, 2, 2**63 - 1]), COUNT)
    exact = [
        int(a) + (int(word) * (int(b) - int(a)) >> 64)
        for word, a, b in zip(DRAW(64, 0), low, high, strict=True)
    ]
    assert uniform.integers(DRAW, low, high).tolist() == exact


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_trials_succeed_with_their_probability(p: float) -> None:
    drawn = uniform.bernoulli(DRAW, p)
    assert drawn.dtype == bool
    assert abs(drawn.mean() - p) < 4 * np.sqrt(p * (1 - p) / COUNT) + 1e-12


def test_trials_until_success_are_geometric() -> None:
    drawn = exponential.geometric(DRAW, 0.3)
    law: Any = stats.geom(0.3)
    counts = np.bincount(drawn, minlength=31)[1:20]
    assert (
        stats.chisquare(
            counts, law.pmf(range(1, 20)) * counts.sum() / law.cdf(19)
        ).pvalue
        > 1e-3
    )
    assert exponential.geometric(DRAW, 1.0).max() == 1


def test_choices_follow_their_weights() -> None:
    p = np.array([0.0, 0.5, 0.2, 0.0, 0.3])
    for drawn in (
        choices.choice(DRAW, 5, p),
        choices.categorical(DRAW, 7 * p),
        choices.categorical_logits(DRAW, np.log(p + 1e-300)),
        fused(lambda words: choices.categorical(words, p))(),
    ):
        counts = np.bincount(drawn, minlength=5)
        assert counts[[0, 3]].tolist() == [0, 0]
        kept = [1, 2, 4]
        assert stats.chisquare(counts[kept], COUNT * p[kept]).pvalue > 1e-3
    assert np.bincount(choices.choice(DRAW, 3)).min() > COUNT * 0.32


def test_orders_are_permutations_that_are_alike() -> None:
    words = words_of(3, 1, (24_000, 4))
    orders = choices.order(words)
    assert (np.sort(orders, -1) == np.arange(4)).all()
    _, counts = np.unique(orders @ [64, 16, 4, 1], return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > 1e-3
    x = np.arange(96_000).reshape(24_000, 4)
    assert (np.sort(choices.permuted(words, x), -1) == x).all()
    rows = choices.permutation(words_of(3, 2, (24_000,)), x)
    assert (rows[np.argsort(rows[:, 0])] == x).all()


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "scale": (lambda: normal.normal(DRAW, 0, -1), OptionError, "write scale >= 0"),
    "nan": (lambda: exponential.gumbel(DRAW, 0, np.nan), OptionError, "write scale"),
    "shape": (lambda: exponential.weibull(DRAW, 0), OptionError, "write a > 0"),
    "p": (lambda: uniform.bernoulli(DRAW, 1.5), OptionError, "from 0 to 1 as p"),
    "p of 0": (lambda: exponential.geometric(DRAW, 0), OptionError, "write p > 0"),
    "infinite": (lambda: uniform.uniform(DRAW, 0, np.inf), OptionError, "finite"),
    "too wide": (lambda: uniform.uniform(DRAW, -1e308, 1e308), RangeError, "bounds"),
    "empty range": (lambda: uniform.integers(DRAW, 5, 5), OptionError, "low < high"),
    "float": (lambda: uniform.integers(DRAW, 5, dtype="f4"), DTypeError, "integer"),
    "integer": (lambda: uniform.random(DRAW, np.int64), DTypeError, "float32"),
    "mode": (lambda: exponential.triangular(DRAW, 0, 9, 1), OptionError, "mode"),
    "sum": (lambda: choices.choice(DRAW, 2, [0.5, 0.6]), OptionError, "p.sum()"),
    "number of p": (
        lambda: choices.choice(DRAW, 3, [0.5, 0.5]),
        ShapeError,
        "3 things",
    ),
    "negative p": (
        lambda: choices.choice(DRAW, 2, [1.5, -0.5]),
        OptionError,
        "negative",
    ),
    "nothing": (lambda: choices.choice(DRAW, 0), OptionError, "choose from"),
    "bounds": (lambda: normal.truncated_normal(DRAW, 2, 1), OptionError, "low < high"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parameters_out_of_range_are_refused(name: str) -> None:
    ask, kind, says = REFUSED[name]
    with pytest.raises(kind, match=says.replace("(", r"\(").replace(")", r"\)")):
        ask()


@pytest.mark.parametrize(("dtype", "bits"), [(np.float32, 32), (np.float64, 64)])
def test_every_word_gives_a_finite_number_symmetric_about_the_middle(
    dtype: Any, bits: int
) -> None:
    steps = [2**k for k in range(bits)]
    ends = np.array(steps + [s - 1 for s in steps] + [2**bits - 1], f"uint{bits}")
    words: Words = lambda bits, slot=0: ends  # noqa: E731
    mirror: Words = lambda bits, slot=0: ~ends  # noqa: E731
    for draw in (normal.standard_normal, exponential.laplace, exponential.logistic):
        numbers = draw(words, dtype=dtype)
        assert np.isfinite(numbers).all()
        np.testing.assert_allclose(numbers, -draw(mirror, dtype=dtype), rtol=1e-6)
    numbers = exponential.standard_exponential(words, dtype)
    assert np.isfinite(numbers).all()
    assert numbers.min() > 0
    largest = normal.standard_normal(words, dtype).max()
    assert largest > (6.3 if bits == 32 else 9.1)


@pytest.mark.parametrize(("dtype", "bits"), [(np.float32, 32), (np.float64, 64)])
def test_exponential_numbers_are_within_three_ulp_near_zero_and_far(
    dtype: Any, bits: int
) -> None:
    steps = np.arange(64, dtype=np.uint64)
    some = np.array([2**k + 2**k // 3 for k in range(bits)], np.uint64)
    top = np.uint64(2**bits - 1)
    ends = np.concatenate([steps, top - steps, some, top - some, DRAW(64)[:5_000]])
    ends = (ends & top).astype(f"uint{bits}")
    words: Words = lambda bits, slot=0: ends  # noqa: E731
    found = exponential.standard_exponential(words, dtype)
    wide, half = ends.astype(object), 2 ** (bits - 1)
    exact: list[float] = []
    for word in wide:
        rest = np.longdouble(word % half) + np.longdouble(0.5)
        part = rest * np.longdouble(2.0) ** -bits
        exact.append(-(np.log1p(-part) if word >= half else np.log(part)))
    expected = np.array(exact, np.longdouble)
    error = np.abs(found - expected) / np.spacing(expected.astype(dtype))
    assert error.max() < 3


@pytest.mark.parametrize(("dtype", "count"), [(np.float32, 13), (np.float64, 32)])
def test_a_coefficient_of_a_normal_number_is_one_operation(
    dtype: Any, count: int
) -> None:
    @nfuser.fuse
    def drawn(x: Any, rng: Any) -> Any:
        return x + rng.standard_normal(x.shape, dtype)

    (kernel,) = drawn.kernels(np.zeros(4096), nfuser.random.default_rng(7))
    (loop,) = kernel.source.split("interleave(")[-1:]
    assert loop.count("multiply_add(") == count
