# SPDX-License-Identifier: Apache-2.0
"""Arrays with labels, of xarray: their data are leaves, and all else is structure.

A function is traced with objects of xarray's own whose data are stand-ins: names of
dimensions, coordinates and attributes mean what xarray makes of them. Nothing here is
imported before a call has an argument of xarray's.
"""

# Data of any library have no static type, and xarray need not be there.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportMissingImports=false

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.ir.base import value
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLASSES = ("DataArray", "Dataset")


def learn(kind: type) -> bool:
    """Let ``kind`` be taken apart if it is a class of xarray's; tell whether it is."""
    module: Any = sys.modules.get("xarray")
    if module is None or kind not in [getattr(module, n, None) for n in _CLASSES]:
        return False
    tree.NODES[module.DataArray] = tree.Node(_array_apart, _array_together)
    tree.NODES[module.Dataset] = tree.Node(_dataset_apart, _dataset_together)
    return True


def learn_all() -> None:
    """Let a function return objects of xarray's that it makes, if that is imported."""
    if (module := sys.modules.get("xarray")) is not None and not tree.NODES:
        learn(getattr(module, "DataArray", type(None)))


@value
class LabelledPart:
    """A variable without its elements: names of its dimensions, attributes."""

    name: Any
    dims: tuple[Any, ...]
    attrs: Attributes


@value
class Labels:
    """What an object of xarray's holds beside arrays.

    ``parts`` are the variables whose data are leaves, the coordinates among them last;
    ``rest`` holds all others. Settings of xarray's say what its functions do.
    """

    name: Any
    attrs: Attributes
    parts: tuple[LabelledPart, ...]
    coordinates: int
    rest: Rest
    settings: str

    @property
    def steps(self) -> tuple[str, ...]:
        """How a caller would write each part."""
        return tuple(f"[{part.name!r}]" for part in self.parts)

    def __hash__(self) -> int:
        return hash((tuple((p.name, p.dims) for p in self.parts), self.coordinates))


class Attributes:
    """Attributes, compared by what they hold."""

    def __init__(self, held: Mapping[Any, Any]) -> None:
        self.held = copy.deepcopy(dict(held))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and _same(self.held, other.held)

    def __hash__(self) -> int:
        return hash(tuple(map(str, self.held)))


class Rest:
    """Coordinates and variables that no kernel reads, as a data set of their own."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rest):
            return False
        mine, theirs = self.held, other.held
        return mine is theirs or (
            mine.identical(theirs)
            and {n: v.dtype for n, v in mine.variables.items()}
            == {n: v.dtype for n, v in theirs.variables.items()}
            and list(mine.xindexes) == list(theirs.xindexes)
        )

    def __hash__(self) -> int:
        return hash(tuple(map(str, self.held.variables)))


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_same(a, b) for a, b in pairs)
    if isinstance(one, np.ndarray):
        is_one_kind = one.dtype == other.dtype and one.shape == other.shape
        return is_one_kind and one.tobytes() == other.tobytes()
    return bool(one == other) or (one != one and other != other)


def _array_apart(x: Any) -> tuple[list[Any], Labels]:
    main = LabelledPart(None, x.dims, Attributes(x.attrs))
    rest, parts, data = _coordinates_apart(x.coords)
    labels = Labels(
        x.name, Attributes({}), (main, *parts), len(parts), rest, _settings()
    )
    return [x.variable.data, *data], labels


def _array_together(labels: Labels, data: list[Any]) -> Any:
    xarray: Any = sys.modules["xarray"]
    main, *parts = labels.parts
    made = xarray.DataArray(
        data[0],
        coords=labels.rest.held.coords,
        dims=main.dims,
        attrs=copy.deepcopy(main.attrs.held),
    )
    made.name = labels.name  # xarray would take that of Dask's array for None
    more = {
        p.name: (p.dims, x, copy.deepcopy(p.attrs.held))
        for p, x in zip(parts, data[1:], strict=True)
    }
    return made.assign_coords(more) if more else made


def _dataset_apart(x: Any) -> tuple[list[Any], Labels]:
    rest, coordinates, coordinate_data = _coordinates_apart(x.coords)
    parts: list[LabelledPart] = []
    data: list[Any] = []
    for name, held in x.data_vars.items():
        if held.dtype.kind in "biufc":
            parts.append(LabelledPart(name, held.dims, Attributes(held.attrs)))
            data.append(held.variable.data)
        else:
            rest.held[name] = held.variable.copy(deep=True)
    labels = Labels(
        None,
        Attributes(x.attrs),
        (*parts, *coordinates),
        len(coordinates),
        rest,
        _settings(),
    )
    return [*data, *coordinate_data], labels


def _dataset_together(labels: Labels, data: list[Any]) -> Any:
    xarray: Any = sys.modules["xarray"]
    filled = [
        (p.name, (p.dims, x, copy.deepcopy(p.attrs.held)))
        for p, x in zip(labels.parts, data, strict=True)
    ]
    count = len(filled) - labels.coordinates
    others = {name: v.variable for name, v in labels.rest.held.data_vars.items()}
    made = xarray.Dataset(
        {**dict(filled[:count]), **others},
        coords=labels.rest.held.coords,
        attrs=copy.deepcopy(labels.attrs.held),
    )
    return made.assign_coords(dict(filled[count:])) if labels.coordinates else made


def _coordinates_apart(coords: Any) -> tuple[Rest, tuple[LabelledPart, ...], list[Any]]:
    """Return coordinates as they are, but those whose elements are not here yet."""
    lazy = [name for name, held in coords.items() if _is_lazy(held.variable)]
    known = coords.to_dataset().drop_vars(lazy).copy(deep=True)
    for held in known.variables.values():
        if type(held.data) is np.ndarray and held.data.flags.owndata:
            held.data.flags.writeable = False  # a trace would not see it change
    parts = [LabelledPart(n, coords[n].dims, Attributes(coords[n].attrs)) for n in lazy]
    return Rest(known), tuple(parts), [coords[n].variable.data for n in lazy]


def _is_lazy(variable: Any) -> bool:
    held = variable._data
    return isinstance(held, Standin) or hasattr(type(held), "__dask_graph__")


def _settings() -> str:
    return repr(sorted(map(repr, sys.modules["xarray"].get_options().items())))
