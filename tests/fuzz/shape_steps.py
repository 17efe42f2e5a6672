# SPDX-License-Identifier: Apache-2.0
"""Drafts of steps that fold or move axes."""

from __future__ import annotations

from typing import Any

from tests.fuzz.state import Draft, Node, State, broadcast

_FOLDS = ("sum", "sum", "prod", "max", "min", "mean", "var", "std", "any", "all")
_SCANS = (
    *("cumsum", "cumsum", "cumprod", "cumulative_sum"),
    *("maximum.accumulate", "minimum.accumulate", "add.accumulate"),
)
_MOST_RANK = 6


def _axes(s: State, x: Node) -> tuple[int, ...]:
    count = int(s.rng.integers(1, len(x.dims) + 1))
    chosen = s.rng.permutation(len(x.dims))[:count]
    return tuple(sorted(int(a) for a in chosen))


def _folded(
    dims: tuple[str, ...], axes: tuple[int, ...], keepdims: bool
) -> tuple[str, ...]:
    if keepdims:
        return tuple("1" if k in axes else d for k, d in enumerate(dims))
    return tuple(d for k, d in enumerate(dims) if k not in axes)


def _spelled(s: State, axes: tuple[int, ...], rank: int) -> str:
    """Write axes as a number, as negative numbers, or as None for all."""
    if len(axes) == rank and s.chance(0.5):
        return "None"
    shown = [a - rank if s.chance(0.4) else a for a in axes]
    if len(shown) == 1 and s.chance(0.7):
        return str(shown[0])
    return repr(tuple(shown))


def reduction(s: State) -> Draft | None:
    """Fold some axes."""
    x = s.pick(lambda node: bool(node.dims))
    if x is None:
        return None
    name = s.choose(("sum", "mean") if x.kind == "complex" else _FOLDS)
    axes, keepdims = _axes(s, x), s.chance(0.5)
    options = f"axis={_spelled(s, axes, len(x.dims))}"
    if keepdims:
        options += ", keepdims=True"
    if name in ("sum", "prod") and x.kind in ("int", "float") and s.chance(0.2):
        options += f", dtype=np.{s.choose(('float32', 'float64'))}"
    method = s.chance(0.4)
    if name in ("var", "std") and s.chance(0.4):
        options += ", ddof=1" if method or s.chance(0.3) else ", correction=1"
    text = f"{{0}}.{name}({options})" if method else f"np.{name}({{0}}, {options})"
    return Draft(text, (x.name,), _folded(x.dims, axes, keepdims))


def scan(s: State) -> Draft | None:
    """Keep what there is after each element along an axis."""
    x = s.pick(lambda node: bool(node.dims))
    if x is None:
        return None
    names = ("cumsum",) if x.kind == "complex" else _SCANS
    name, axis = s.choose(names), int(s.rng.integers(0, len(x.dims)))
    spelled = f"axis={axis - len(x.dims) if s.chance(0.4) else axis}"
    if name in ("cumsum", "cumprod"):
        if x.kind in ("int", "float") and s.chance(0.2):
            spelled += f", dtype=np.{s.choose(('float32', 'float64'))}"
        if s.chance(0.4):
            return Draft(f"{{0}}.{name}({spelled})", (x.name,), x.dims)
    return Draft(f"np.{name}({{0}}, {spelled})", (x.name,), x.dims)


def position(s: State) -> Draft | None:
    """Find where an extreme is, or count."""
    x = s.pick(lambda node: bool(node.dims) and node.kind != "complex")
    if x is None:
        return None
    if s.chance(0.3):
        axes = _axes(s, x)
        text = f"np.count_nonzero({{0}}, axis={_spelled(s, axes, len(x.dims))})"
        return Draft(text, (x.name,), _folded(x.dims, axes, False))
    axis = int(s.rng.integers(0, len(x.dims)))
    name, keepdims = s.choose(("argmax", "argmin")), s.chance(0.4)
    if s.chance(0.2):
        dims = ("1",) * len(x.dims) if keepdims else ()
        return Draft(f"np.{name}({{0}}, keepdims={keepdims})", (x.name,), dims)
    text = f"np.{name}({{0}}, axis={axis}, keepdims={keepdims})"
    return Draft(text, (x.name,), _folded(x.dims, (axis,), keepdims))


def composite(s: State) -> Draft | None:
    """Apply one of the normalizations."""
    x = s.pick(lambda node: bool(node.dims) and node.kind == "float")
    if x is None:
        return None
    axes = _axes(s, x) if s.chance(0.3) else (int(s.rng.integers(0, len(x.dims))),)
    axis = _spelled(s, axes, len(x.dims))
    name = s.choose(
        ("softmax", "log_softmax", "layer_norm", "rms_norm", "logsumexp", "var_mean")
    )
    if name == "logsumexp":
        keepdims = s.chance(0.5)
        text = f"xp.logsumexp({{0}}, axis={axis}, keepdims={keepdims})"
        return Draft(text, (x.name,), _folded(x.dims, axes, keepdims))
    if name == "var_mean":
        which = s.choose((0, 1))
        text = f"xp.var_mean({{0}}, axis={axis}, keepdims=True)[{which}]"
        return Draft(text, (x.name,), _folded(x.dims, axes, True))
    uses: tuple[str, ...] = (x.name,)
    text = f"xp.{name}({{0}}, axis={axis})"
    weights = [
        y for y in s.pool if y.kind == "float" and broadcast(x.dims, y.dims) == x.dims
    ]
    if name.endswith("norm") and weights and s.chance(0.5):
        text, uses = (
            f"xp.{name}({{0}}, {{1}}, axis={axis})",
            (x.name, s.choose(weights).name),
        )
    return Draft(text, uses, x.dims)


def view(s: State) -> Draft | None:
    """Move, add or drop axes."""
    x = s.pick()
    if x is None:
        return None
    return s.choose(_VIEWS)(s, x)


def _transpose(s: State, x: Node) -> Draft | None:
    rank = len(x.dims)
    order = [int(k) for k in s.rng.permutation(rank)]
    dims = tuple(x.dims[k] for k in order)
    if s.chance(0.3):
        return Draft("{0}.T", (x.name,), x.dims[::-1])
    spelled = repr(tuple(order))
    text = s.choose(("np.transpose({0}, %s)", "xp.permute_dims({0}, %s)")) % spelled
    return Draft(text, (x.name,), dims) if rank else None


def _swap(s: State, x: Node) -> Draft | None:
    rank = len(x.dims)
    if rank < 2:
        return None
    a, b = (int(k) for k in s.rng.integers(0, rank, 2))
    dims = list(x.dims)
    if s.chance(0.5):
        dims[a], dims[b] = dims[b], dims[a]
        return Draft(f"np.swapaxes({{0}}, {a}, {b - rank})", (x.name,), tuple(dims))
    dims.insert(b, dims.pop(a))
    return Draft(f"np.moveaxis({{0}}, {a}, {b})", (x.name,), tuple(dims))


def _flip(s: State, x: Node) -> Draft | None:
    if not x.dims:
        return None
    axis = int(s.rng.integers(0, len(x.dims)))
    slices = ", ".join("::-1" if k == axis else ":" for k in range(len(x.dims)))
    texts = (f"np.flip({{0}}, axis={axis})", f"{{0}}[{slices}]", "np.flip({0})")
    return Draft(s.choose(texts), (x.name,), x.dims)


def _expand_dims(s: State, x: Node) -> Draft | None:
    rank = len(x.dims)
    if rank >= _MOST_RANK:
        return None
    place = int(s.rng.integers(0, rank + 1))
    dims = (*x.dims[:place], "1", *x.dims[place:])
    index = ", ".join([":"] * place + ["None"] + (["..."] if s.chance(0.5) else []))
    text = s.choose((f"np.expand_dims({{0}}, {place})", f"{{0}}[{index}]"))
    return Draft(text, (x.name,), dims)


def _squeeze(s: State, x: Node) -> Draft | None:
    ones = [k for k, d in enumerate(x.dims) if d == "1"]
    if not ones:
        return None
    place = s.choose(ones)
    dims = x.dims[:place] + x.dims[place + 1 :]
    return Draft(f"np.squeeze({{0}}, axis={place})", (x.name,), dims)


def _stretch(s: State, x: Node) -> Draft | None:
    def fits(y: Node) -> bool:
        return y.name != x.name and broadcast(x.dims, y.dims) == y.dims

    y = s.pick(fits)
    if y is None:
        return None
    # A name for both sizes is one only where they are equal.
    rank = len(x.dims)
    if any(
        d[0] == "n" and e[0] == "m"
        for d, e in zip(x.dims, y.dims[-rank:], strict=False)
    ):
        return None
    return Draft("np.broadcast_to({0}, {1}.shape)", (x.name, y.name), y.dims)


_VIEWS: tuple[Any, ...] = (_transpose, _swap, _flip, _expand_dims, _squeeze, _stretch)


def refused(s: State) -> Draft | None:
    """Ask for something that NumPy refuses, and nfuser has to as well."""
    x = s.pick()
    if x is None:
        return None
    rank = len(x.dims)
    texts = [f"np.sum({{0}}, axis={rank + 1})", f"np.expand_dims({{0}}, {rank + 3})"]
    if x.kind == "bool":
        texts += ["{0} - {0}", "-{0}"]
    if x.kind == "int":
        limit = 2 ** int(x.dtype.lstrip("uint"))
        texts.append(f"{{0}} + {limit}")
        # NumPy raises for negative powers only where it meets an element.
        if all(value.size for value in x.values):
            texts.append("{0} ** -1")
    if x.kind == "float":
        texts += ["~{0}", "{0} & {0}", "{0} << 1"]
    return Draft(s.choose(texts), (x.name,), x.dims, raises=True)
