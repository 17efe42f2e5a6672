# SPDX-License-Identifier: Apache-2.0
"""Every public operation once, in groups that fuse into one call."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.fuzz.program import Call, Input, Program, Step
from tests.fuzz.state import Draft, State

GROUPS: dict[str, tuple[str, ...]] = {
    "exponentials": (
        "np.exp({0})",
        "np.exp2({0})",
        "np.expm1({0})",
        "np.log({0})",
        "np.log2({0})",
        "np.log10({0})",
        "np.log1p({0})",
        "np.sqrt({0})",
        "xp.rsqrt({0})",
    ),
    "angles": (
        "np.sin({0})",
        "np.cos({0})",
        "np.tan({0})",
        "np.arcsin({0})",
        "np.arccos({0})",
        "np.arctan({0})",
        "np.arctan2({0}, {1})",
        "np.hypot({0}, {1})",
    ),
    "hyperbolas": (
        "np.sinh({0})",
        "np.cosh({0})",
        "np.tanh({0})",
        "np.arcsinh({0})",
        "np.arccosh({0})",
        "np.arctanh({0})",
    ),
    "activations": (
        "xp.erf({0})",
        "xp.erfc({0})",
        "xp.sigmoid({0})",
        "xp.silu({0})",
        "xp.gelu({0})",
        'xp.gelu({0}, approximate="tanh")',
        "np.logaddexp({0}, {1})",
    ),
    "arithmetic": (
        "{0} + {1}",
        "{0} - {1}",
        "{0} * {1}",
        "{0} / {1}",
        "{0} // {1}",
        "{0} % {1}",
        "np.fmod({0}, {1})",
        "{0} ** 2",
        "{0} ** 3",
        "-{0}",
        "abs({0})",
        "np.sign({0})",
        "np.square({0})",
        "np.real({0})",
        "np.imag({0})",
        "np.conj({0})",
    ),
    "rounding": (
        "np.floor({0})",
        "np.ceil({0})",
        "np.trunc({0})",
        "np.rint({0})",
        "np.copysign({0}, {1})",
        "np.nextafter({0}, {1})",
        "np.isnan({0})",
        "np.isinf({0})",
        "np.isfinite({0})",
        "np.signbit({0})",
    ),
    "choices": (
        "np.maximum({0}, {1})",
        "np.minimum({0}, {1})",
        "np.fmax({0}, {1})",
        "np.fmin({0}, {1})",
        "np.clip({0}, 0, 2)",
        "np.where({0} > {1}, {0}, {1})",
        "{0} < {1}",
        "{0} <= {1}",
        "{0} == {1}",
        "{0} != {1}",
        "{0} * {0} >= -1.0",  # true of every number, and not of NaN
        "abs({0}) > -1.0",
        "np.tanh({0}) < 2.0",
        "2.0 >= np.sin({0})",
        "np.logical_and({0}, {1})",
        "np.logical_not({0})",
        "xp.relu({0})",
    ),
    "bits": (
        "{0} & {1}",
        "{0} | {1}",
        "{0} ^ {1}",
        "~{0}",
        "{0} << {1}",
        "{0} >> {1}",
        "{0} << 3",
        "{0} >> 70",
        "np.gcd({0}, {1})",
        "np.lcm({0}, {1})",
    ),
    "casts": tuple(
        f"{{0}}.astype({name})"
        for name in (
            *("bool", "np.int8", "np.uint8", "np.int32", "np.uint64", "np.float16"),
            *("bfloat16", "np.float32", "np.float64", "np.complex64"),
        )
    ),
    "sums": (
        "np.sum({0}, axis=1)",
        "np.sum({0})",
        "np.sum({0}, axis=0, keepdims=True)",
        "np.prod({0}, axis=1)",
        "np.mean({0}, axis=1)",
        "np.sum({0}, axis=1, dtype=np.float64)",
        "np.count_nonzero({0}, axis=0)",
    ),
    "extremes": (
        "np.max({0}, axis=1)",
        "np.min({0}, axis=0)",
        "np.any({0}, axis=1)",
        "np.all({0}, axis=0)",
        "np.argmax({0}, axis=1)",
        "np.argmin({0})",
    ),
    "scans": (
        "np.cumsum({0}, axis=1)",
        "{0}.cumsum()",
        "np.cumprod({0}, axis=0)",
        "np.maximum.accumulate({0}, axis=1)",
        "np.minimum.accumulate({0})",
        "np.cumulative_sum({0}, axis=1, include_initial=True)",
        "np.cumulative_prod({1}, include_initial=True)",
        "np.multiply.accumulate({1}, axis=0)",
        "np.cumsum({0}, axis=1) * {1} + np.add.accumulate({0}, axis=1)",
    ),
    "statistics": (
        "np.var({0}, axis=1)",
        "np.std({0}, axis=0, correction=1)",
        "xp.logsumexp({0}, axis=1)",
        "xp.softmax({0}, axis=1)",
        "xp.log_softmax({0}, axis=0)",
        "xp.layer_norm({0}, {1})",
        "xp.rms_norm({0}, axis=0)",
        "xp.var_mean({0}, axis=1)[1]",
    ),
    "views": (
        "{0}.T",
        "np.broadcast_to({0}, (2, *{0}.shape))",
        "np.expand_dims({0}, 1)",
        "{0}[None, ..., None]",
        "np.squeeze({0}[:, None], axis=1)",
        "np.moveaxis({0}, 0, 1)",
        "np.swapaxes({0}, 0, 1)",
        "np.flip({0}, axis=1)",
        "{0}[::-1]",
        "xp.permute_dims({0}, (1, 0))",
    ),
}
FLOAT_GROUPS = frozenset(("exponentials", "angles", "hyperbolas", "activations"))
FLOATS = ("float16", "bfloat16", "float32", "float64")
OTHERS = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "complex64")
# A dtype's share of a group repeats another's: the float functions take integers by
# a cast, which one dtype shows.
PAIRS = [
    (group, dtype)
    for group in GROUPS
    for dtype in (*FLOATS, *OTHERS)
    if dtype in FLOATS or dtype == "int8" or group not in FLOAT_GROUPS
    if dtype not in FLOATS or group != "bits"
    if dtype not in ("uint32", "uint64", "bool")
    or group in ("arithmetic", "bits", "casts")
]


@cache
def program(group: str, dtype: str, *, seed: int = 3) -> Program | None:
    """Return the operations of a group that NumPy has for a dtype, as one program."""
    values = "special" if dtype in FLOATS else "extreme"
    values = "normal" if dtype == "complex64" or group == "sums" else values
    inputs = (
        Input("x0", dtype, ("n0", "n1"), values, "contiguous", seed),
        Input("x1", dtype, ("n1",), values, "offset", seed + 1),
    )
    sizes = {"n0": 4, "n1": 17, "m0": 4, "m1": 17}
    calls = (Call(sizes, {}), Call({"n0": 3, "n1": 8, "m0": 3, "m1": 8}, {}))
    state = State(np.random.default_rng(0), list(inputs), list(calls), {}, 1000)
    state.load()
    steps: list[Step] = []
    for text in GROUPS[group]:
        try:
            state.evaluate(Draft(text, ("x0", "x1"), ()))
        except (TypeError, ValueError):  # NumPy has none for this dtype
            continue
        steps.append(Step(f"t{len(steps)}", text, ("x0", "x1")))
    if not steps:
        return None
    names = tuple(step.name for step in steps)
    return Program(inputs, (), tuple(steps), names, calls)
