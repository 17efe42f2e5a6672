# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of random programs that write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.growing import Lines, Program

_COUNTS = (*("3",) * 2, *("n",) * 3, *("n + 1",) * 2, "70")
_BY_STEPS = (
    *("range(0, {0}, 2)", "range({0}, -1, -2)", "range(1, {0}, 3)"),
    *("reversed(range(0, {0}, 2))", "reversed(range({0}))"),
)
_BESIDE = {":": ":", "1:": ":-1", ":-1": "1:", "1:-1": ":-2", "::2": "::2"}


def _turns(made: Program) -> tuple[str, str]:
    """Return what a loop runs over: few turns, an open number, or very many."""
    rng = made.rng
    count = rng.choice(_COUNTS)
    if rng.random() < 0.2:
        return rng.choice(_BY_STEPS).format(count), "loop by steps"
    if rng.random() < 0.2:
        return f"range({count}, 0, -1)", f"loop {count}"
    return f"range({count})", f"loop {count}"


def _stores(made: Program, most: int) -> list[str]:
    found = (made.store() for _ in range(made.rng.randint(1, most)))
    return [line for line in found if line]


def _inside(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def loop(made: Program) -> Lines:
    """A loop whose body writes."""
    rng = made.rng
    turns, feature = _turns(made)
    body = _stores(made, 3)
    if not body:
        return [], feature
    if rng.random() < 0.4:
        x = made.any()
        old = made.name("o")
        shape = made.space[x].shape
        made.space[old] = made.space[x].copy()
        new = f"{x}[...] = {old} * 0.5 + {made.value(shape, x)}"
        body = [f"{old} = {x}.copy()", *body, new]
        del made.space[old]
    if rng.random() < 0.6:
        body.append(_counted(made))
    body.append(f"halve({made.any()})")
    return [f"for i in {turns}:", *_inside(body)], feature


def _counted(made: Program) -> str:
    """Return a line that writes where the turn says, or what it says."""
    rng, x = made.rng, made.any()
    y = made.alike(x)
    forms = (
        f"{x}[i % 2] = i * t",
        f"{x}[(i + 1) % 3] = {y}[i % 2] * 0.5 + i",
        f"{x}[-(i % 2) - 1] += {y}[0] * 0.25",
        f"{x}[...] = {x} * 0.5 + i * {y}",
    )
    return rng.choice(forms)


def _test(made: Program) -> str:
    x = made.any()
    tests = (
        "i == 1",
        "i % 2 == 0",
        "i > n",
        f"{x}.sum() > 1",
        f"{x}.max(initial=0) < t",
    )
    return made.rng.choice(tests)


def jump(made: Program) -> Lines:
    """A loop that leaves a turn, or all of them, in the middle."""
    rng = made.rng
    turns, _ = _turns(made)
    way = rng.choice(("continue", "break"))
    one, two, three = (_stores(made, 1) for _ in range(3))
    leave = _inside([*two, way])
    body = rng.choice(
        (
            [*one, f"if {_test(made)}:", *_inside([way]), *three],
            [f"if {_test(made)}:", *leave, *three],
            [f"if {_test(made)}:", *(_inside(one) or ["    pass"]), "else:", *leave],
            [f"if {_test(made)}:", *_inside([f"if {_test(made)}:", *leave, *one])],
        )
    )
    lines = [f"for i in {turns}:", *_inside([*body, *three, f"halve({made.any()})"])]
    if rng.random() < 0.2 and one:
        lines += ["else:", *_inside(one)]
    return lines, "jump"


def carried(made: Program) -> Lines:
    """A loop that binds arrays anew: what turns leave changes names and places."""
    rng, x = made.rng, made.any()
    y = made.alike(x)
    count = rng.randint(1, 4)
    names = [made.name(rng.choice(("c", "c", "_c"))) for _ in range(count)]
    starts = (f"{x} * 0.5", f"{x} + {y}", f"np.zeros_like({x})", f"{y} - t", x)
    lines = [f"{c} = {rng.choice(starts)}" for c in names]
    rests = rng.random() < 0.35  # where no turn changes anything any more

    def new(own: str) -> str:
        one, two = rng.choice(names), rng.choice(names)
        if rests:
            one = own
        chosen = (  # compared with what no value is: rounding decides no tie
            f"np.where({one} < i - 0.97, {two} + 2, {one})",
            f"np.where(i > 1, {one} * 0.5, {one})",
            f"np.where(({one} < 2.03) & (i % 2 == 1), {one} + 1, {one})",
        )
        forms = (
            *(one, one, one),
            f"{one}[::-1] * 0.5 + {y}",
            f"{one} * 0.5 - {two} * 0.25",
            f"np.cumsum({one}, axis=0) * 0.1 + {two} * 0.5",
            f"np.maximum({one}, {two}[::-1]) * 0.5",
        )
        return rng.choice(chosen if rests else (*forms, *chosen))

    values = [new(c) for c in names]
    if all(value in names for value in values) and rng.random() < 0.7:
        values[-1] = f"{values[-1]} * 0.5 + {y}[::-1]"
    body = [f"{', '.join(names)} = {', '.join(values)}"]
    if rng.random() < 0.2:
        body = [f"{c} = {value}" for c, value in zip(names, values, strict=True)]
    if rng.random() < 0.25:
        body.append(f"{made.any()}[i % 2] = {rng.choice(names)}.sum() * 0.01")
    lines += [f"for i in {_turns(made)[0]}:", *_inside(body)]
    if rng.random() < 0.3:
        lines.append(f"{rng.choice(names)}[0] = t")
    if all(c.startswith("_") for c in names):
        lines.append(f"{made.name('y')} = {names[0]} * 0.5")
    return lines, "carried"


def _row(made: Program, x: str, place: str, rest: list[str], axis: int) -> str:
    return f"{x}[{', '.join([*rest[:axis], place, *rest[axis:]])}]"


def sweep(made: Program) -> Lines:
    """A recurrence along an axis, and sometimes back with what it left."""
    rng, x = made.rng, made.any()
    y, ndim = made.alike(x), made.space[x].ndim
    axis = rng.randrange(ndim)
    rest = [rng.choice((":", ":", "1:", ":-1", "1:-1")) for _ in range(ndim - 1)]
    size = f"{x}.shape[{axis}]"

    def row(name: str, place: str) -> str:
        is_beside = rng.random() < 0.2
        own = [_BESIDE[part] for part in rest] if is_beside else rest
        return _row(made, name, place, own, axis)

    def turn(name: str, before: str, given: str) -> str:
        target = _row(made, name, "i", rest, axis)
        value = f"{row(name, before)} * 0.5 + {row(given, 'i')}"
        if rng.random() < 0.3:
            value += f" * {row(name, before)}"
        return f"    {target} = {value}"

    if rng.random() < 0.5:
        there = rng.choice((f"range(1, {size})", f"range(2, {size} - 1)"))
        return [f"for i in {there}:", turn(x, "i - 1", y)], "sweep"
    own, left = made.name("q"), rng.choice((x, "_r"))
    rest = [":"] * (ndim - 1)
    lines = [f"{name} = np.empty_like({x})" for name in {own: 0, left: 0} if name != x]
    first, last = (_row(made, own, k, rest, axis) for k in ("0", "-1"))
    lines += [f"{first} = {_row(made, y, '0', rest, axis)}"]
    lines += [f"for i in range(1, {size}):", turn(own, "i - 1", y)]
    lines += [f"{_row(made, left, '-1', rest, axis)} = {last}"]
    back = f"range({size} - 2, -1, -1)"
    lines += [f"for i in {back}:", turn(left, "i + 1", own)]
    kept = f"{made.name('y')} = {left} * 0.5"
    return [*lines, *([kept] if left != x else [])], "chain"


def elements(made: Program) -> Lines:
    """A loop inside a loop, over single elements."""
    rng, x = made.rng, made.any()
    y, ndim = made.alike(x), made.space[x].ndim
    rest = ", 0" * (ndim - 2)

    def at(name: str, place: str, column: str = "j") -> str:
        return f"{name}[{place}{f', {column}{rest}' if ndim > 1 else ''}]"

    held = made.name("d")
    few = f"{x}[:6, :7]" if ndim > 1 else f"{x}[:9]"  # an interpreter takes its time
    begin = rng.choice((f"{few} * 0.5", f"{few}.copy()", f"np.zeros_like({few})"))
    lines = [f"{held} = {begin}"]
    values = (
        *(at(held, "i - 1"), at(held, "i", "j - 1"), at(y, "i"), at(held, "0", "0")),
        *(f"{at(y, 'i')} * 0.5", f"np.minimum({at(y, 'i')}, {at(held, 'i - 1')})", "t"),
    )
    one, two = rng.choice(values), rng.choice(values)
    place = rng.choice(("i", "i", "i - 1", "-i - 1"))
    target = at(held, place)
    body = [f"{target} = {one} + {two}"]
    if rng.random() < 0.4:
        body = [f"if {one} > {two}:", f"    {target} = {rng.choice(values)}"]
    if rng.random() < 0.25:
        old = f"_{made.name('o')}"
        body = [f"{old} = {held}.copy()", *body, f"{at(old, 'i')} = t"]
        body.append(f"{at(held, '0', '0')} = {at(old, place)} + {at(held, 'i')}")
    lines += [f"for i in range({held}.shape[0]):"]
    lines += [f"    for j in range({held}.shape[{min(ndim - 1, 1)}]):"]
    return [*lines, *_inside(_inside(body))], "elements"


def while_loop(made: Program) -> Lines:
    """A loop that ends when what it writes says so."""
    x, line = made.any(), made.store()
    if not line:
        return [], "while"
    k = made.name("w")
    body = [f"    {line}", f"    {x} *= 0.5", f"    {k} += 1"]
    return [f"{k} = 0", f"while np.abs({x}).sum() > 3 and {k} < 9:", *body], "while"


def branch(made: Program) -> Lines:
    """A choice between two statements."""
    x, one, two = made.any(), made.store(), made.store()
    if not one or not two:
        return [], "branch"
    test = made.rng.choice((f"{x}.sum() > 1", "n > 2", f"{x}.max(initial=0) < t"))
    return [f"if {test}:", f"    {one}", "else:", f"    {two}"], "branch"
