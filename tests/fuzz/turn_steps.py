# SPDX-License-Identifier: Apache-2.0
"""Loops of random programs that hand arrays on, come to rest, and go through rows.

Bodies are put together of words, so that no two of them hand on, copy, exchange and
write alike; whatever a loop knows is read when it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.growing import Lines, Program, Step

_TURNS = ("n", "n + 2", "n + 5", "3", "4", "n * 3", "1", "2 * n - 5")
_BEGUN = (
    *("{x} * 1.0", "{x} * 0.5", "{x} + t", "{x}.copy()", "{y} - {x}", "{y} * 2"),
    *("np.zeros_like({x})", "{x}[::-1] * 0.5", "np.abs({x})", "np.sqrt({x} * {x})"),
)
_PASSED_ON = (
    *("{p}[...] = {q}", "{p}[...] = {q}", "{p}[...] = {q}", "{p} = {q}.copy()"),
    *("{p}[...] = {q} * 0.5 + i", "{p} = {q}", "{p}, {q} = {q}, {p}"),
    *("{p}, {q}, {o} = {q}, {o}, {p}", "{p}, {q} = {o}, {o}", "{p}, {q} = {q}, {q}"),
    *("{p}, {q} = {p} * 0.5 + {q}, {p}", "{p}, {q} = {q} * 0.5, {p} - {o}"),
    "if i % 2 == 1:\n    {p}, {q} = {q}, {p}",
)
_PARTLY = (
    "{p}[1:-1] = ({q}[2:] + {q}[:-2]) * 0.25 + {o}[1:-1] * 0.5",
    "{p}[1:-1] = ({p}[2:] - {p}[:-2]) * 0.25 + {p}[1:-1] * 0.5",
    *("{p}[1:] = {q}[:-1] * 0.5", "{p}[:-1] += {q}[1:] * 0.5"),
    *("{p}[i % 3] = {q}[0] + i", "{p}[0] = {q}[-1] * 0.5 + 1"),
    *("{p}[{p} > {q}] = {c}", "np.copyto({p}, {q}, where={o} > {c})"),
    "if i % 3 == 1:\n    {p}[1:] = {o}[:-1]",
)
_WHOLE = (
    *("{p} = {q} * 0.5 + {o}", "{p} = {p} * 0.5 - {q} + i", "{p} += {q} * 0.25"),
    *("{p} *= 0.5", "{p} = {q}[::-1] * 0.5 - {o}"),
    "{p} = np.roll({q}, 1, axis=0) * 0.5 + {p}",
    "{p} = np.roll({p}, 1, axis=0) * 0.5 + {q}.sum() * 0.01",
    "{p} = {p} * 0.5 + {q}.max() - i",
    "{p} = np.cumsum({q}, axis=0) * 0.1 + {o} * 0.5",
    "{p} = {p} * 0.5 + {q}.sum(axis=0) * 0.1",
    "{p} = {q} - {p}.mean()",
    "{_w} = {p}.copy()\n{_w}[1:] -= {q}[:-1] * 0.5\n{p} = {_w}",
    "{_w} = {p} * 0.5\n{p}[0] += 1\n{q} = {_w} + {p}",
    "if {q}.sum() > {c}:\n    {p} = {q} * 0.5",
    "if i > 1:\n    {p} = {q} + 1\nelse:\n    {p} = {o} * 0.5",
)


def handed_on(made: Program) -> Lines:
    """Hand two or three arrays on from turn to turn: copied, exchanged, written."""
    rng, x = made.rng, made.any()
    y = made.alike(x)
    names = [made.name("h") for _ in range(3)]
    lines = [f"{h} = {rng.choice(_BEGUN).format(x=x, y=y)}" for h in names]
    if rng.random() < 0.3:  # two names of one value, or of one array
        lines[1] = f"{names[1]} = {rng.choice((names[0], f'{names[0]} * 1.0'))}"
    elif rng.random() < 0.2:
        lines[:2] = [f"{names[0]} = {lines[1]}"]
    body: list[str] = []
    p, q, o = rng.sample(names, 3)
    for _ in range(rng.choice((1, 2, 2, 2, 3, 4))):
        forms = rng.choices((_PASSED_ON, _PARTLY, _WHOLE), (5, 4, 5))[0]
        filled = rng.choice(forms).format(
            p=p, q=q, o=o, c=rng.randint(-1, 2), _w=made.name("_w")
        )
        # What was read is often written next, by way of what was written.
        p, q, o = (q, p, o) if rng.random() < 0.65 else rng.sample(names, 3)
        body += filled.split("\n")
    if rng.random() < 0.15:
        body.append(f"{x}[i % 2] = {rng.choice(names)}[0]")
    lines.append(f"for i in range({rng.choice(_TURNS)}):")
    lines += [f"    {line}" for line in body]
    return lines, "handed_on"


_KEPT = (
    *("i % 3 == 2", "i % 2 == 0", "i > 2", "i < 2", "{z} > {c}", "{z} < {c}.5"),
    *("({z} > {c}) & (i % 3 == 1)", "np.abs({z}) > 4", "{d} == 0", "i == {c}"),
    *("np.abs({z}) > {c}", "{z} > {c}", "np.abs({z}) < {c}.5", "{z} * {z} > 9"),
    *("({z} < 0) | (i < 3)", "{z} * {z} < i", "{x} > {c}", "n - i > 1", "{d} > i"),
)
_CHANGED = (
    *("{z} * {z} + {x}", "{z} + np.abs({x}) + 1", "{z} - 0.75"),
    *("{z} * 0.5 + 1", "{z} + {x}", "{z} * {z} + {x}", "-{z}", "{d} - {z}", "{z} - 1"),
    *("{z} * 0.5 + {d} * 0.25", "np.minimum({z} + 1, {x})", "i - {z}", "{x} * i"),
)
_RESTS = (
    "{_k} = {k}\n{z} = np.where({_k}, {z}, {v})",
    "{z} = np.where(np.abs({z}) > {c}, {z}, {z} * {z} + {x})",
    "{z} = np.where({k}, {v}, {z})",
    "{z} = np.where({k}, {z}, {v})",
    "{_k} = {k}\n{z} = np.where({_k}, {z}, {v})\n{d} = np.where({_k}, {d}, {d} + 1)",
    "{_k} = {k}\n{z} = np.where({_k}, {v}, {z})\n{d} = np.where({_k}, {d} - 1, {d})",
    "{z} = np.where({k}, np.where({k2}, {v}, {z}), {z})",
    "{z} = np.where({k}, {z}, np.where({k2}, {z}, {v}))",
    "{z}, {d} = np.where({k}, {z}, {v}), np.where({k2}, {v2}, {d})",
    "{z} = np.where({k}, {v}, {z})\n{d} = np.where({k2}, {d}, {v2})",
    "{z} = np.where({k}, {v}, {v2})",
)


def resting(made: Program) -> Lines:
    """Change elements while a condition holds, or until it does."""
    rng, x = made.rng, made.any()
    z, d = made.name("z"), made.name("d")
    begun = ("{x} * 0.5", "np.zeros({x}.shape)", "{x} - t", "np.ones_like({x})")

    def filled(forms: tuple[str, ...]) -> str:
        return rng.choice(forms).format(x=x, z=z, d=d, c=rng.randint(-1, 3))

    turn = rng.choice(_RESTS).format(
        z=z,
        d=d,
        x=x,
        c=rng.randint(1, 9),
        _k=made.name("_k"),
        k=filled(_KEPT),
        k2=filled(_KEPT),
        v=filled(_CHANGED),
        v2=filled(_CHANGED),
    )
    lines = [f"{z} = {filled(begun)}", f"{d} = {filled(begun)}"]
    lines.append(f"for i in range({rng.choice(('n + 5', '12', '30', '4', 'n'))}):")
    return [*lines, *(f"    {line}" for line in turn.split("\n"))], "resting"


_VIEWS = (  # as many elements of an axis, however they lie
    ("{0}[:-1]", "{0}[1:]", "{0}[-2::-1]", "{0}[:0:-1]"),
    ("{0}[::2]", "{0}[::-2]"),
    ("{0}[1::2]", "{0}[:0:-2]", "{0}[:len({0}) // 2]"),
    ("{0}", "{0}[::-1]", "{0}[...]", "{0}[..., ::-1]", "{0}[:]"),
    ("{0}[1:-1]", "{0}[2:]", "{0}[:-2]", "{0}[-2:0:-1]"),
    ("{0}[..., :-1]", "{0}[..., 1:]", "{0}[..., :0:-1]"),
)
_HEADS = (
    *("for k in range({s}):", "for k in range(1, {s}):", "for k in range({s} - 1):"),
    *("for k in reversed(range({s})):", "for k in range({s} - 2, -1, -1):"),
    *("for k in reversed(range(0, {s}, 2)):", "for k in range(0, {s}, 2):"),
    *("for k in range({s} - 1, 0, -2):", "for k in reversed(range(1, {s} - 1)):"),
    *("for k in range(1, {s}, 3):", "for k, _r in enumerate({q}):"),
    *("for k, _r in enumerate({q}, 1 - {s}):", "for k, _r in enumerate({q}, -1):"),
    *("for k, (_r, _o) in enumerate(zip({q}, {p})):", "for k in range({s} // 2):"),
    *("for k, _r in enumerate(reversed({q})):", "for k in range(-1, {s} - 2):"),
)
_READ_ROWS = ("{q}[k]", "{p}[k - 1]", "{p}[k]", "{q}[k - 1]", "{p}[-k - 1]", "{q}[0]")
_ROWS = (
    "{p}[k] = {a} * 0.5 + {b}",
    "{p}[k] = {a} - {b} * 0.25",
    "{p}[k] += {a} * 0.5",
    "{p}[k - 1] = {a} * 0.5 + k",
    "{q}[k] = {a}\n{p}[k] = {b} * 0.5",
    "{p}[k] = {a}\n{q}[k] = {p}[k] + {b}\n{p}[k] = {q}[k] * 0.5",
    "{p}[k, 1:] = {p}[k - 1, :-1] * 0.5 + {q}[k, 1:]",
    "{p}[k, :-1] = {p}[k - 1, 1:] * 0.5 + k",
    "{p}[k, ..., 1:] = {q}[k, ..., :-1] - {p}[k - 1, ..., 1:]",
    "{p}[k, ..., ::2] = {p}[k - 1, ..., ::2] + 1",
    "{p}[..., k] = {p}[..., k - 1] * 0.5 + {q}[..., k]",
    "{e} = {e} * 0.5 + {a}",
    "{e} = {e} + {a} * k\n{p}[k] = {b} * 0.5",
    "if k % 2 == 1:\n    {p}[k] = {a}",
)


def seen_rows(made: Program) -> Lines:
    """Go through rows of views that lie in many ways, forwards and backwards."""
    rng, x = made.rng, made.any()
    y = made.alike(x)
    ways = rng.choice(_VIEWS)
    p, q, e = made.name("_v"), made.name("_v"), made.name("s")
    lines = [
        f"{p} = {rng.choice(ways).format(x)}",
        f"{q} = {rng.choice(ways).format(y)}",
        f"{e} = {q}[-1] * 0.5",
    ]
    head = rng.choice(_HEADS).format(s=f"len({p})", p=p, q=q)
    read = [form.format(p=p, q=q) for form in _READ_ROWS]
    read += ["_r"] * 3 * ("_r" in head) + ["_o"] * ("_o" in head)
    for _ in range(_TRIES):
        body = rng.choice(_ROWS).format(
            p=p, q=q, e=e, a=rng.choice(read), b=rng.choice(read)
        )
        turns = [head, *(f"    {line}" for line in body.split("\n"))]
        if made.takes([*lines, *turns]):
            lines += turns
            break
    if rng.random() < 0.5:
        lines.append(f"{made.name('y')} = {p} - {q}")
    return lines, "seen_rows"


_TRIES = 4
_WRITTEN_WITH_LAX = (
    "{e} = lax.fori_loop(0, n, lambda i, s: s * 0.5 + {y} * i, {x} + {y})",
    "{e} = lax.fori_loop(1, n + 3, lambda i, s: s[::-1] - {x}[i % 3], {x} + {y})",
    "{e} = lax.fori_loop(0, n, lambda i, s: np.roll(s, 1, axis=0) + i, {x} * 0.5)",
    "{e}, {f} = lax.fori_loop(0, n, lambda i, s: (s[1], s[0] + i), ({x} * 2, {x} + 1))",
    "{e} = lax.while_loop(lambda s: np.abs(s).max() > 1, lambda s: s * 0.5, {x} * 2)",
    "{e}, {f} = lax.scan(lambda c, r: (c * 0.5 + r, c - r), {x}[0] * 0.5, {x})",
    "{e}, {f} = lax.scan(lambda c, r: (c - r, c), {x}[0] * 2, {x}, reverse=True)",
    "{e} = lax.map(lambda r: r * 2 - r.sum(), {x})",
    "{e} = lax.cond({x}.sum() > {c}, lambda p: p - 1.5, lambda p: p * 0.5, {x})",
    "{e} = lax.map(lambda r: r[0] + r[1], ({x}, {y}[::-1]))\n{x} += 1",
)


def with_lax(made: Program) -> Lines:
    """Loop and choose by functions, which Python runs outside of fused functions."""
    rng, x = made.rng, made.any()
    pattern = rng.choice(_WRITTEN_WITH_LAX)
    text = pattern.format(
        x=x, y=made.alike(x), c=rng.randint(-1, 3), e=made.name("l"), f=made.name("l")
    )
    return text.split("\n"), "with_lax"


TURN_STEPS: dict[str, Step] = {
    "handed_on": handed_on,
    "resting": resting,
    "with_lax": with_lax,
    "seen_rows": seen_rows,
}
"""The steps of loops that are put together, by their features."""
