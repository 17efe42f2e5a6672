# SPDX-License-Identifier: Apache-2.0
"""What a trace takes from outside while it runs: found, read, checked at its end."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.captures.randomness.clocks as clocks
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.trace.call.tree import NODES
from nfuser.compiler.trace.captures.captured import (
    Captured,
    CapturedArray,
    CapturedConstant,
    memory_read,
)
from nfuser.compiler.trace.captures.elements import Elements
from nfuser.compiler.trace.captures.lookup.bytecode import PathStep
from nfuser.compiler.trace.captures.lookup.finder import Finder
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.compiler.trace.captures.lookup.stores import may_write
from nfuser.compiler.trace.captures.parts import (
    PLAIN,
    is_array,
    is_silent,
    is_users_class,
)
from nfuser.compiler.trace.captures.randomness.draws import Draws
from nfuser.compiler.trace.captures.randomness.streams import StreamDraws, is_drawn_from
from nfuser.compiler.trace.captures.randomness.torch_seeds import key_origin, like_a_key
from nfuser.compiler.trace.captures.unchanged import same, same_defaults
from nfuser.compiler.trace.captures.versions import Versions
from nfuser.compiler.trace.captures.windows import (
    memory_of,
    sharing,
    window_of,
)
from nfuser.compiler.trace.numpy.creation.tables import (
    Tables,
    can_keep,
    hidden,
    warn_of_compared,
)
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.watch.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType


class Snapshot:
    """The values that a function can read, taken before it is traced."""

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        first_slot: int,
    ) -> None:
        self._draws = Draws()
        self._finder = Finder(self._draws)
        named = _named(function, args, kwargs)
        self._finder.visit(function, named)
        for key, item in (*enumerate(args), *kwargs.items()):
            self._add_held(Origin(Root(None, key), _name_of(key)), item, named)
        self._defaults = _default_objects(function)
        self._first_slot = first_slot
        self._origins: dict[Any, list[Origin]] = {}
        self._indexed = 0
        self._versions = Versions()
        self._index()
        self.elements = Elements(memory_of, self._finder.values.values())
        self._met: dict[Origin, int] = {}
        self._slots: dict[Origin, CapturedArray] = {}
        self._streams = StreamDraws()
        self._taken = 0
        self._tables = Tables()
        self._assigned: set[Origin] = set()
        self._observer = Observer(self._finder, self.elements, self._draws)

    def _index(self) -> None:
        """List by their memory the arrays that were found since last time."""
        values = self._finder.values
        self._versions.add(islice(values.items(), self._indexed, None))
        for origin, found in islice(values.items(), self._indexed, None):
            if is_array(found):
                self._origins.setdefault(memory_of(found), []).append(origin)
        self._indexed = len(values)

    def _add_held(self, origin: Origin, item: Any, named: Mapping[str, Any]) -> None:
        """Add the objects inside an argument, which no name stands for."""
        if isinstance(item, Standin):
            return
        is_watched = clocks.is_generator(item)
        if is_watched or is_drawn_from(item):
            self._finder.values.setdefault(origin, item)
            if is_watched:
                self._draws.add(item)
            return
        if isinstance(item, (list, tuple)):
            parts: Any = enumerate(item)
        elif isinstance(item, dict):
            parts = item.items()
        else:
            is_named = any(item is known for _, known in named.values())
            if _may_hold(item) and not is_named:
                self._finder.add(origin, item)
            return
        for key, part in parts:
            self._add_held(origin.then(PathStep(key, False)), part, named)

    def observe(
        self,
        step: Callable[[], Any],
        is_once: Callable[[], bool] = lambda: False,
        enter: Callable[[CodeType], None] = lambda _: None,
    ) -> Any:
        """Run ``step`` of the trace; what it does adds to what is watched.

        ``enter`` is told of each function of the user's before it runs.
        """
        return self._observer.run(step, is_once, enter)

    def note(self, origin: Origin, found: Any) -> None:
        """Add what the trace depends on, and would read at ``origin``."""
        self._finder.values.setdefault(origin, found)

    def may_write(self, code: CodeType | None = None) -> bool:
        """Tell whether ``code``, or any that is known, may write what is not seen."""
        values = self._finder.values.values()
        if not self._finder.closed and not any(map(is_silent, values)):
            return False
        return any(map(may_write, self._finder.codes if code is None else (code,)))

    def watch(self, code: CodeType) -> None:
        """Look at the arrays from outside before ``code`` runs, which is as it was."""
        if may_write(code):
            self._versions.hold(self._finder.values.items())

    def holds_arrays(self) -> bool:
        """Tell whether there are arrays from outside that NumPy may compute with."""
        self._index()
        return bool(self._origins)

    def holds(self, item: Any) -> bool:
        """Tell whether ``item`` is from outside, and closed."""
        return any(found is item for found in self._finder.closed)

    def may_draw(self) -> bool:
        """Tell whether generators of NumPy's are known, whose draws are to be seen."""
        return any(map(clocks.is_of_numpy, self._finder.values.values()))

    def with_identity(self, wanted: frozenset[int]) -> list[Any]:
        """Return the captured arrays that have one of these identities."""
        values = self._finder.values.values() if wanted else ()
        return [found for found in values if id(found) in wanted]

    def owner(self, item: Any) -> Any:
        """Return the captured array whose memory ``item`` is, or is a part of."""
        self._index()
        values = self._finder.values
        origin = next(iter(self._origins.get(memory_of(item), ())), None)
        if origin is not None:
            return values[origin]
        firsts = [values[origins[0]] for origins in self._origins.values()]
        return max(sharing(item, firsts), key=lambda x: prod(x.shape), default=None)

    def assign(self, item: Any) -> CapturedArray | None:
        """Return the input that a captured array becomes which is assigned to."""
        self._index()
        origins = self._origins.get(memory_of(item), ())
        self._assigned.update(origins)
        return self.meet(item)

    def meet(self, item: Any) -> CapturedArray | None:
        """Return the input that a captured array, or a part of one, becomes."""
        self._index()
        origin = next(iter(self._origins.get(memory_of(item), ())), None)
        whole, step = (origin, None) if origin else self._whole_of(item)
        if whole is None:
            return None
        self._met[whole] = self._met.get(whole, 0) + 1
        if step is None:
            # A view may be of another class than what has a name.
            kind = type(self._finder.values[whole])
            return self._input(whole, item, kind)
        return self._input(whole.then(step), item, np.ndarray, whole)

    def keep(self, item: Any) -> CapturedArray:
        """Return the input that an array becomes which the function itself made."""
        as_dtype(item.dtype)  # says which there are
        source = self._observer.sources.first
        if source is None:
            source = hidden(self._finder.values.items())
        if source is not None or not can_keep(item):
            raise refusals.unknown_array(tuple(item.shape), source)
        self.compare_all()
        origin, held = self._tables.keep(item)
        return self._input(origin, held, type(held))

    def compare_all(self) -> None:
        """Note an array that plain NumPy may have computed of any from outside."""
        self.elements.use_all()
        values = self._finder.values
        known = [origins[0] for origins in self._origins.values()]
        warn_of_compared((origin, values[origin]) for origin in known)

    def draw(self, stream: Any, *, on_device: bool = False) -> tuple[int, int]:
        """Note a draw call; return the slot of the key, and how many came before.

        ``on_device``, it is an input as an array is.
        """
        before = self._taken
        slot, draws = self._streams.add(
            stream, self._first_slot + before, self._finder.values
        )
        if slot == self._first_slot + before:
            self._take_slots(2)
            if on_device:
                self._streams.put_on_device(slot)
                origin = key_origin(stream.device, slot)
                like = like_a_key(stream.device)
                self._slots[origin] = CapturedArray(
                    *(slot, origin, DType.I64, 0, type(like), like.dtype),
                    origin.reader(),
                )
        return slot, draws

    def _take_slots(self, count: int) -> int:
        slot = self._first_slot + self._taken
        self._taken += count
        return slot

    def _input(
        self, origin: Origin, item: Any, kind: type, whole: Origin | None = None
    ) -> CapturedArray:
        if origin not in self._slots:
            self._slots[origin] = CapturedArray(
                self._take_slots(1),
                origin,
                as_dtype(_in_own_order(item.dtype)),
                len(item.shape),
                kind,
                item.dtype,
                origin.reader(),
                whole,
            )
        return self._slots[origin]

    def _whole_of(self, item: Any) -> tuple[Origin | None, PathStep | None]:
        """Return the one array that ``item`` can be a part of, and the step to it."""
        values = self._finder.values
        firsts = [origins[0] for origins in self._origins.values()]
        found = sharing(item, [values[origin] for origin in firsts])
        window = window_of(item, found[0]) if len(found) == 1 else None
        if window is None:
            return None, None
        whole = next(origin for origin in firsts if values[origin] is found[0])
        return whole, PathStep(window, False)

    def freeze(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Captured:
        """Return what the trace depends on; the arguments are those it was taken of."""
        self._draws.check()
        self._versions.check()
        constants = [
            CapturedConstant(origin, test(), origin.reader())
            for origin, test in self._finder.containers.items()
        ]
        constants += self._defaults
        constants += [
            CapturedConstant(origin, _is_true, origin.is_absent)
            for origin in self._finder.absences
        ]
        inputs, aliases = self._inputs()
        for origin in {*inputs, *self._slots, *self._assigned}:
            whole: Any = self._finder.values.get(origin)
            if is_array(whole) and self.elements.was_measured(whole):
                constants.append(_same_shape(origin, tuple(map(int, whole.shape))))
        for origin, found in self._finder.values.items():
            is_input = origin in inputs and not self.elements.was_seen(found)
            is_input |= not origin.is_of_method and self._is_assigned(origin)
            if is_drawn_from(found):
                continue
            if not is_input and not clocks.is_generator(found):
                memory = memory_read(origin, args, kwargs)
                constants.append(
                    CapturedConstant(origin, same(found), origin.reader(), memory)
                )
        streams = self._streams.freeze(self._finder.values)
        arrays = tuple(self._slots.values())
        return Captured(arrays, tuple(constants), aliases, streams)

    def _is_assigned(self, origin: Origin) -> bool:
        return any(origin.is_in(whole) for whole in self._assigned)

    def _inputs(self) -> tuple[set[Origin], tuple[tuple[Origin, Origin], ...]]:
        """Return the origins whose every read went into an operation.

        Their elements are inputs. Elements that Python may have seen are constants.
        """
        self._index()
        inputs: set[Origin] = set()
        aliases: list[tuple[Origin, Origin]] = []
        for first, *others in self._origins.values():
            reads = sum(self._finder.reads.get(o, 0) for o in (first, *others))
            is_met = self._met.get(first, 0) >= max(reads, 1)
            if is_met or first in self._assigned:
                inputs.update((first, *others))
                aliases += [(first, other) for other in others]
        return inputs, tuple(aliases)


def _same_shape(origin: Origin, shape: tuple[int, ...]) -> CapturedConstant:
    """Return the test that an array from outside has the shape that Python read."""
    origin = origin.then(PathStep("shape", True))
    return CapturedConstant(origin, lambda found: found == shape, origin.reader())


def _in_own_order(dtype: Any) -> Any:
    """Return ``dtype`` in the byte order of this machine: that of the copy it gets."""
    is_swapped = isinstance(dtype, np.dtype) and not dtype.isnative
    return dtype.newbyteorder("=") if is_swapped else dtype


def _named(
    function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, tuple[Origin, Any]]:
    """Return the static arguments that may hold arrays, by the name they bind to."""
    plain = getattr(function, "__func__", function)
    plain = getattr(plain, "__nfuser_wrapped__", plain)
    code = getattr(plain, "__code__", None)
    if code is None:
        return {}
    names = code.co_varnames[: code.co_argcount]
    if plain is not function and hasattr(function, "__self__"):
        names = names[1:]
    found: dict[str, tuple[Origin, Any]] = {}
    for k, (name, item) in enumerate(zip(names, args, strict=False)):
        found[name] = (Origin(Root(None, k), name), item)
    for name, item in kwargs.items():
        found[name] = (Origin(Root(None, name), name), item)
    held = {n: pair for n, pair in found.items() if _may_hold(pair[1])}
    defaults = {n: v for n, v in _defaults(plain).items() if n not in found}
    return held | {n: (Origin(Root(defaults, n), n), defaults[n]) for n in defaults}


def _name_of(key: int | str) -> str:
    return key if isinstance(key, str) else f"args[{key}]"


def _default_objects(function: Any) -> list[CapturedConstant]:
    """Return the test that the defaults of ``function`` were not bound anew."""
    found: list[CapturedConstant] = []
    function = getattr(function, "__nfuser_wrapped__", function)
    function = getattr(function, "__func__", function)
    root = Root({"function": function}, "function")
    for name in ("__defaults__", "__kwdefaults__"):
        if values := getattr(function, name, None):
            origin = Origin(root, "function", (PathStep(name, True),))
            found.append(
                CapturedConstant(origin, same_defaults(values), origin.reader())
            )
    return found


def _defaults(function: Any) -> dict[str, Any]:
    """Return the default values of parameters by name."""
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return dict(zip(names, values, strict=True)) | (function.__kwdefaults__ or {})


def _may_hold(item: Any) -> bool:
    if isinstance(item, type):
        return is_users_class(item)
    is_plain = isinstance(item, (*PLAIN, Standin, list, tuple, dict, slice))
    is_plain |= type(item) in NODES  # made for the trace, and known by its structure
    return not is_plain and (hasattr(item, "__dict__") or hasattr(item, "__slots__"))


def _is_true(found: Any) -> bool:
    return found is True
