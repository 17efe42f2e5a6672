# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs with keys of any form, and of parts of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.growing import Lines, Program, Step

_SLICES = (":", ":", "1:", ":-1", "::2", "::-1", "1:3", "-3:", ":-3:-1")
_WRITTEN = (
    "{x}[{key}] = {y}[{key}] * 2 + 1",
    "{x}[{key}] = {y}[{key}]",
    "{x}[{key}] += {y}[{key}] - t",
    "{x}[{key}] -= {x}[{key}] * 0.5",
    "{x}[{key}] = {x}[{other}]",
    "{x}[{key}] = {x}[{other}] + {y}[{key}]",
    "{x}[{key}] = np.cumsum({y}[{key}], axis=-1)",
    "{x}[{key}] = {x}[{key}][..., ::-1]",
    "{x}[{key}] *= t",
    "{x}[{key}] = {c}",
    "np.add.at({x}, ({at}), {c})",
    "np.subtract.at({x}, ({at}), {y}[{key}])",
)
_READ = (
    "{e} = {x}[{key}]",
    "{e} = {x}[{key}] * 0.5 + {y}[{key}]",
    "{e} = {x}[{key}].sum(axis=0)",
    "{e} = {x}[{key}] + 0\n{x}[{key}] = {e} * 2\n{f} = {x}[{other}] - {e}",
    "{e} = {x}[{key}]\n{x} += 1\n{f} = {e} + 1",
    "{e} = {x}[{key}].T + t",
)


def _index(made: Program, forms: tuple[str, ...]) -> str:
    rng = made.rng
    three = [rng.choice((0, 1, -1, 2, 0)) for _ in range(3)]
    two = [rng.choice((0, 1, -1)) for _ in range(2)]
    form = rng.choice(forms)
    return form.format(three=three, two=two, column=[[k] for k in two])


_LISTED = ("np.array({three})", "np.array({three})", "{three}")
_MESHED = (
    "np.array({three})",
    "np.array({column})",
    "np.array({column})",
    "np.array([1])",
)


def key_of(made: Program, x: str, fancy: int) -> str:
    """Return a key with so many index arrays, among slices and the like."""
    rng, ndim = made.rng, made.space[x].ndim
    forms = _MESHED if rng.random() < 0.25 else _LISTED
    places = set(rng.sample(range(ndim), min(fancy, ndim)))
    parts: list[str] = []
    for axis in range(ndim):
        if axis in places:
            parts.append(_index(made, forms))
        elif rng.random() < 0.2:
            parts.append(rng.choice(("0", "-1", "1")))
        else:
            parts.append(rng.choice(_SLICES))
    form = rng.random()
    if form < 0.3:  # ... for some axes
        first = rng.randint(0, ndim)
        last = rng.randint(first, ndim)
        if not any(first <= axis < last for axis in places):
            parts[first:last] = ["..."]
    elif form < 0.45 and parts[-1] == ":":
        parts.pop()
    if rng.random() < 0.15:
        parts.insert(rng.randint(0, len(parts)), "None")
    return ", ".join(parts) or "..."


def _masked(made: Program, x: str, y: str) -> str:
    """Return a key with a mask of some axes, among slices and integers."""
    rng, ndim = made.rng, made.space[x].ndim
    first = rng.randrange(ndim)
    last = rng.randint(first + 1, ndim)
    whole = [":"] * ndim
    for axis in (*range(first), *range(last, ndim)):
        whole[axis] = rng.choice(("0", "-1"))
    mask = f"({y}[{', '.join(whole)}] > {rng.randint(-1, 1)})"
    lead = [rng.choice((":", ":", "0", "1:")) for _ in range(first)]
    tail = [rng.choice((":", ":", "-1", ":-1")) for _ in range(ndim - last)]
    if rng.random() < 0.3:
        lead = ["..."] if rng.random() < 0.5 else lead
        tail = tail if lead == ["..."] else ["..."]
    return ", ".join([*lead, mask, *tail])


def keys(made: Program) -> Lines:
    """Read or write by a key of any form; of one to three index arrays, or a mask."""
    rng = made.rng
    for _ in range(_TRIES):
        x = made.any()
        if rng.random() < 0.3 and made.space[x].ndim < 3:
            wide = made.name("x")
            parts = ", ".join(form.format(x) for form in _LAYERS)
            begin = f"{wide} = np.stack([{parts}], axis={rng.choice((0, -1))})"
            made.grow(lambda _, line=begin: ([line], "keys"))
            x = wide if wide in made.space else x
        y = made.alike(x)
        if rng.random() < 0.2:
            key = other = _masked(made, x, y)
        else:
            count = rng.choice((1, 1, 2, 2, 2, 3))
            state = rng.getstate()
            key = key_of(made, x, count)
            rng.setstate(state)
            other = rng.choice((key, key.replace("[0", "[1"), key.replace("0]", "-1]")))
        at = key.replace(":", "slice(None)") if set(key) <= set(_PLAIN) else "0"
        if ":" in key and any(f"{s}," in f"{key}," for s in _SLICES[2:]):
            at = "0"
        pattern = rng.choice((*_WRITTEN, *_WRITTEN, *_READ, *_READ))
        text = pattern.format(
            x=x,
            y=y,
            key=key,
            other=other,
            at=at,
            c=rng.randint(-2, 3),
            e=made.name("k"),
            f=made.name("k"),
        )
        if made.takes(text.split("\n")):
            return text.split("\n"), "keys"
    return [], "keys"


_LAYERS = ("{0}", "{0} * 2", "{0} - 1", "{0} + t")
_PLAIN = "0123456789-[], np.array():"
_ALIKE = (
    (":2", "1:3", ":4:2", "-2:", "1::-1", ":-3:-1", "[0, 2]", "[1, 0]", "1:6:3"),
    (":3", "1:4", ":6:2", "-3:", "2::-1", ":-4:-1", "[0, 2, 1]", "[1, 2, 0]", "5::-2"),
    (
        ":3",
        ":6:2",
        "1:4",
        "1:6:2",
        "3:0:-1",
        "2::-1",
        "4::-2",
        "2:5",
        ":-4:-1",
        "0:5:2",
    ),
    (":2", ":4:2", ":6:3", "1:3", "1:5:2", "2:0:-1", "2::-2", "3::-3", "3:1:-1"),
    (":{h}", ":2 * {h}:2", "{h}:2 * {h}", "1:2 * {h}:2", "-{h}:", ":-{h} - 1:-1"),
    (
        "::2",
        ":({n} + 1) // 2",
        "-(({n} + 1) // 2):",
        "::-2",
        "(({n} + 1) // 2 - 1)::-1",
    ),
    ("1:", ":-1", ":0:-1", "-2::-1", "1:", ":-1"),
    (
        ":",
        "::-1",
        "np.arange({n})[::-1]",
        "np.arange({n}) - 1",
        "(np.arange({n}) + 1) % {n}",
    ),
    ("1:-1", "2:", ":-2", "-2:0:-1", "-3::-1", ":1:-1"),
    ("0", "1", "-1", "2", "-2"),
    ("1::2", "-1 - {n} % 2::-2", "1::2", ":{h}"),
    ("np.array([0, 1, 1])", "np.array([2, 0, 1])", ":3", "-3:", "np.array([1, -1, 0])"),
)
"""Keys of one axis that choose as many elements of it."""
_OWN = (
    *("{a} = {b}", "{a} = {b}", "{b} = {a}", "{a} = {b} * 2 - 1", "{b} = 2 * {a}"),
    "{a} = {b} * 0.5",
    "{a} = {b} - {d}",
    "{a} += {b}",
    "{a} -= {d}",
    "{a} = {a} + {b}",
    "{a}, {b} = {b}.copy(), {a}.copy()",
    "{a} = {d}\n{b} = {a} * 2\n{e} = {a} + {b}",
    "{a} = {b} * 2 + 1",
    "{a} = np.maximum({b}, {d})",
    "{_v} = {x} * 0.5\n{x}[...] = {_v}\n{a} = {b}\n{e} = {x} - {_v}",
    "{_v} = {a}\n{_v}[...] = {b}",
    "{_v} = {b}\n{a} = {_v}\n{e} = {_v} + 0",
    "{_v} = {b}\n{a} = t\n{e} = {_v} + 0",
    "{_v} = {b} + 0\n{a} = {d}\n{d} = {_v}",
    "{a} = np.where({b} > {c}, {d}, {b})",
    "{_m} = {b} > {c}\n{_v} = {a}\n{_v}[{_m}] = {c}",
    "{_m} = {b} > {c}\n{_v} = {a}\n{_v}[{_m}] = {_v}[{_m}] + {d}[{_m}]",
    "{_v} = {b}\n{a} = {_v}\n{d} = {_v}",
    "{a} = {b}\n{b} = {d}\n{d} = {a}",
    "np.copyto({a}, {b})",
    "np.copyto({a}, {b}, where={d} > {c})",
    "np.add({b}, {d}, out={a})",
    "for i in range(n):\n    {a} = {b}",
    "for i in range(n):\n    {a} = {b} + i\n    {b} = {d} * 0.5",
    "{x}[...] = {x}[::-1]",
    "{_v} = {x}[::-1]\n{_v}[1:] = {x}[:-1]",
    "{_m} = {x} > {c}\n{x}[{_m}] = {x}[::-1][{_m}]",
    "{_m} = {x}[::-1] > {c}\n{x}[{_m}] += {x}[{_m}]",
)


def _step(key: str) -> str:
    """Return how far apart the elements are that a key chooses."""
    parts = key.split(":")
    return parts[2].strip("-") if len(parts) == 3 else "1"


def own(made: Program) -> Lines:
    """Write a part of an array that other parts of it say."""
    rng = made.rng
    for _ in range(_TRIES):
        x = made.any()
        ndim = made.space[x].ndim
        axis = rng.randrange(ndim)
        lead = [rng.choice((":", ":", "1:", "0", "::-1")) for _ in range(axis)]
        chosen = list(rng.choice(_ALIKE))
        size = f"{x}.shape[{axis}]"

        def part(key: str, lead: list[str] = lead, x: str = x, n: str = size) -> str:
            own = key.format(n=n, h=f"({n} // 2)")
            return f"{x}[{', '.join([*lead, own])}]"

        if ndim == 1:  # NumPy forgets there what it has overwritten by larger steps
            step = _step(rng.choice(chosen))
            chosen = [key for key in chosen if _step(key) == step]
        one, two, three = rng.choices(chosen, k=3)
        begin, _, _ = one.partition(":")
        near = [key for key in chosen if key.startswith(f"{begin}:") and key != one]
        if near and rng.random() < 0.5:  # which begins there, too
            two = rng.choice(near)
        text = rng.choice(_OWN).format(
            x=x,
            a=part(one),
            b=part(two),
            d=part(three),
            c=rng.randint(-1, 1),
            e=made.name("k"),
            _v=made.name("_v"),
            _m=made.name("_m"),
        )
        if made.takes(text.split("\n")):
            return text.split("\n"), "own"
    return [], "own"


_TRIES = 5
_SEEN = (
    *("{0}[1:]", "{0}[::-1]", "{0}[::2]", "{0}[..., ::-1]", "{0}[..., 1:]", "{0}[:-1]"),
    *("{0}.T", "{0}.swapaxes(0, -1)", "{0}[None]", "{0}[0]", "{0}[-1]", "{0}[:, 0]"),
    *(
        "np.moveaxis({0}, 0, -1)",
        "np.swapaxes({0}, 0, 1)",
        "np.flip({0}, 0)",
        "{0}[...]",
    ),
    *("{0}.transpose()", "np.expand_dims({0}, 0)", "{0}.squeeze()", "{0}[2::-1]"),
    *(
        "np.flipud({0})",
        "{0}[..., -1]",
        "{0}[:, ::-1]",
        "{0}[..., None]",
        "np.rollaxis({0}, 1)",
    ),
    *("np.fliplr({0})", "{0}[1:-1]", "{0}[..., 0]", "np.transpose({0})", "{0}[1::2]"),
)
_DONE = (
    "{v}[...] = t",
    "{v} += 1",
    "{v}[0] = {c}",
    "{v}[-1] *= 2",
    "{x} -= t",
    "{x}[0] = {c}",
)
_TOLD = (
    "{e} = {v} + 0",
    "{e} = {v} * 2",
    "{e} = {v}.sum(axis=0)",
    "{v}[...] = {v}[::-1]",
)


def views(made: Program) -> Lines:
    """Look at views of views, and write by way of any of them."""
    rng, x = made.rng, made.any()
    lines: list[str] = []
    seen = [x]
    for _ in range(rng.randint(2, 4)):
        v = made.name("_v")
        line = f"{v} = {rng.choice(_SEEN).format(seen[-1])}"
        if not made.takes([*lines, line, f"{v}[0]"]):
            continue
        lines.append(line)
        seen.append(v)
        if rng.random() < 0.4:
            done = rng.choice(_DONE).format(
                v=rng.choice(seen), x=x, c=rng.randint(-2, 3)
            )
            lines.append(done)
    lines.append(rng.choice(_DONE).format(v=seen[-1], x=x, c=rng.randint(-2, 3)))
    told = rng.choice(_TOLD)
    lines.append(told.format(v=rng.choice(seen), e=made.name("k")))
    return lines, "views"


KEY_STEPS: dict[str, Step] = {"keys": keys, "own": own, "views": views}
