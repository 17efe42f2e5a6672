# SPDX-License-Identifier: Apache-2.0
"""Each kind of step a program may take: drafts of elementwise operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.state import COMPLEX, FLOATS, INTEGERS, Draft, Node, State, broadcast

if TYPE_CHECKING:
    from collections.abc import Callable

    Maker = Callable[[State], Draft | None]

_FLOAT_FUNCTIONS = (
    *("np.exp", "np.exp2", "np.expm1", "np.log", "np.log2", "np.log10", "np.log1p"),
    *("np.sqrt", "np.sin", "np.cos", "np.tan", "np.arcsin", "np.arccos", "np.arctan"),
    *("np.sinh", "np.cosh", "np.tanh", "np.arcsinh", "np.arccosh", "np.arctanh"),
    *("np.floor", "np.ceil", "np.trunc", "np.rint", "xp.rsqrt", "xp.erf", "xp.erfc"),
    *("xp.sigmoid", "xp.silu", "xp.gelu", "xp.relu", "xp.exp", "xp.tanh", "xp.acos"),
    *("xp.atan", "xp.asinh"),
)
_SAFE = ("np.sqrt(np.abs({0}))", "np.log(np.abs({0}) + 0.5)", "np.exp(-np.abs({0}))")
_ANY_FUNCTIONS = ("-{0}", "np.abs({0})", "np.sign({0})", "np.square({0})", "abs({0})")
_TESTS = ("np.isnan({0})", "np.isinf({0})", "np.isfinite({0})", "np.signbit({0})")
_COMPLEX = (
    "{0}.real",
    "{0}.imag",
    "np.conj({0})",
    "np.abs({0})",
    "np.exp({0})",
    "-{0}",
    "np.square({0})",
)
_COMPARE = ("<", "<=", ">", ">=", "==", "!=")
_INFIX = ("{0} + {1}", "{0} - {1}", "{0} * {1}")
_FLOAT_BINARY = (
    "{0} / {1}",
    "{0} // {1}",
    "{0} % {1}",
    "np.fmod({0}, {1})",
    "np.maximum({0}, {1})",
    "np.minimum({0}, {1})",
    "np.fmax({0}, {1})",
    "np.fmin({0}, {1})",
    "np.arctan2({0}, {1})",
    "np.hypot({0}, {1})",
    "np.logaddexp({0}, {1})",
    "np.copysign({0}, {1})",
    "np.nextafter({0}, {1})",
    "np.power({0}, {1})",
    "np.power(np.abs({0}), {1})",
)
_INTEGER_BINARY = (
    "{0} // {1}",
    "{0} % {1}",
    "np.fmod({0}, {1})",
    "np.maximum({0}, {1})",
    "np.minimum({0}, {1})",
    "{0} & {1}",
    "{0} | {1}",
    "{0} ^ {1}",
    "{0} << {1}",
    "{0} >> {1}",
    "{0} / {1}",
    "np.gcd({0} | 0, {1})",
    "np.lcm({0} | 0, {1})",
)
_FLOAT_LITERALS = ("0.5", "2.0", "-1.5", "3", "0.1", "1e-3", "1", "-2", "0.25")
_INTEGER_LITERALS = ("0", "1", "2", "3", "7", "100")


def _is(*kinds: str) -> Callable[[Node], bool]:
    return lambda node: node.kind in kinds


def unary_float(s: State) -> Draft | None:
    """Apply a float function."""
    x = s.pick(_is("float") if s.chance(0.85) else _is("float", "int", "bool"))
    if x is None:
        return None
    function = s.choose(_FLOAT_FUNCTIONS)
    if x.kind == "bool" and function == "xp.relu":
        return None
    text = s.choose(_SAFE) if s.chance(0.15) else f"{function}({{0}})"
    if s.chance(0.04):
        text = 'xp.gelu({0}, approximate="tanh")'
    return Draft(text, (x.name,), x.dims)


def unary_any(s: State) -> Draft | None:
    """Apply what is there for every kind of number."""
    x = s.pick()
    if x is None:
        return None
    texts: tuple[str, ...] = _ANY_FUNCTIONS
    if x.kind == "complex":
        texts = _COMPLEX
    elif x.kind == "bool":
        texts = ("np.logical_not({0})", "~{0}")
    elif x.kind == "int" and s.chance(0.3):
        texts = ("~{0}", "np.logical_not({0})")
    elif x.kind == "float" and s.chance(0.25):
        texts = _TESTS
    return Draft(s.choose(texts), (x.name,), x.dims)


def meets(x: Node, y: Node) -> bool:
    """Tell whether two nodes broadcast whatever their sizes."""
    return broadcast(x.dims, y.dims) is not None


def met(x: Node, y: Node) -> tuple[str, ...]:
    """Return the symbolic sizes of an operation of two nodes that do."""
    dims = broadcast(x.dims, y.dims)
    assert dims is not None
    return dims


def partner(s: State, x: Node, kinds: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return another operand for ``x`` and the sizes of the result."""
    literals = _FLOAT_LITERALS if x.kind in ("float", "complex") else _INTEGER_LITERALS
    if s.chance(0.3):
        if s.scalars and s.chance(0.5):
            name = s.choose(list(s.scalars))
            return name, x.dims
        return s.choose(literals), x.dims
    found = [y for y in s.pool if y.kind in kinds and meets(x, y)]
    if x.dims and len(found) > 1 and s.chance(0.6):
        found = [y for y in found if y.name != x.name] or found
    if not found:
        return s.choose(literals), x.dims
    y = s.choose(found)
    return y.name, met(x, y)


def _ordered(s: State, text: str, x: Node, y: str, dims: tuple[str, ...]) -> Draft:
    uses = (y, x.name) if s.chance(0.3) else (x.name, y)
    return Draft(text, uses, dims)


def binary(s: State) -> Draft | None:
    """Apply an operation of two numbers."""
    x = s.pick(_is("float", "int", "complex"))
    if x is None:
        return None
    kinds = {"complex": ("complex", "float")}.get(x.kind, ("float", "int"))
    if s.chance(0.6):
        kinds = (x.kind,)
    y, dims = partner(s, x, kinds)
    both = {n.kind for n in s.pool if n.name in (x.name, y)}
    texts: tuple[str, ...] = _INFIX
    if "complex" in both:
        texts = (*_INFIX, "{0} / {1}")
    elif s.chance(0.45):
        texts = _FLOAT_BINARY if "float" in both else _INTEGER_BINARY
    return _ordered(s, s.choose(texts), x, y, dims)


def power(s: State) -> Draft | None:
    """Raise to a power that is a literal or a run-time number."""
    x = s.pick(_is("float", "int"))
    if x is None:
        return None
    text = s.choose(("{0} ** 2", "{0} ** 3", "{0} ** 0.5", "{0} ** 1", "2.0 ** {0}"))
    if x.kind == "float" and s.chance(0.3):
        text = s.choose(("{0} ** -1", "{0} ** -2", "{0} ** 1.5", "np.abs({0}) ** 0.3"))
    return Draft(text, (x.name,), x.dims)


def comparison(s: State) -> Draft | None:
    """Compare two operands."""
    x = s.pick(_is("float", "int"))
    if x is None:
        return None
    y, dims = partner(s, x, (x.kind,) if s.chance(0.7) else ("float", "int"))
    return _ordered(s, f"{{0}} {s.choose(_COMPARE)} {{1}}", x, y, dims)


def logic(s: State) -> Draft | None:
    """Combine conditions."""
    x = s.pick(_is("bool"))
    if x is None:
        return None
    found = [y for y in s.pool if y.kind == "bool" and meets(x, y)]
    y = s.choose(found)
    texts = ("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "{0} == {1}")
    names = ("and", "or", "xor")
    texts = (*texts, *(f"np.logical_{name}({{0}}, {{1}})" for name in names))
    return Draft(s.choose(texts), (x.name, y.name), met(x, y))


def where(s: State) -> Draft | None:
    """Choose by a condition."""
    x = s.pick()
    if x is None:
        return None
    conditions = [c for c in s.pool if c.kind == "bool" and meets(c, x)]
    if not conditions:
        return None
    c = s.choose(conditions)
    shaped = Node(x.name, met(c, x), x.values)
    y, dims = partner(s, shaped, (x.kind,))
    uses = (c.name, x.name, y) if s.chance(0.5) else (c.name, y, x.name)
    return Draft("np.where({0}, {1}, {2})", uses, dims)


def clip(s: State) -> Draft | None:
    """Keep within limits."""
    x = s.pick(_is("float", "int"))
    if x is None:
        return None
    text = "np.clip({0}, 1, 5)" if x.kind == "int" else "np.clip({0}, -1.0, 1.5)"
    return Draft(text, (x.name,), x.dims)


def cast(s: State) -> Draft | None:
    """Change the dtype."""
    x = s.pick()
    if x is None:
        return None
    names = ("bool", *FLOATS, *INTEGERS, *FLOATS)
    target = s.choose(COMPLEX if x.kind == "complex" or s.chance(0.05) else names)
    if target == x.dtype:
        return None
    spelled = target if target == "bfloat16" else f"np.{target}"
    spelled = "bool" if target == "bool" else spelled
    return Draft(f"{{0}}.astype({spelled})", (x.name,), x.dims)
