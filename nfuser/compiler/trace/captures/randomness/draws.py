# SPDX-License-Identifier: Apache-2.0
"""The random numbers that a trace drew: those of the traced function, of no other.

Most draws are refused by name (``clocks.py``). This is for the rest: in a library, by a
generator that went from hand to hand. A generator that another state is found in has
been drawn from, by any thread of the process. So only those count that the trace had in
its hands: that the code which it ran names, was given or holds. Generators of NumPy are
written in Cython, and Python says of no call to them who made it.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
import sys
from functools import lru_cache
from types import BuiltinFunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.lookup.bytecode import paths
from nfuser.compiler.trace.captures.randomness.clocks import drawn, is_generator
from nfuser.compiler.trace.standins.standin import Standin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import CodeType, FrameType

    from nfuser.compiler.trace.captures.lookup.bytecode import NamedPath

_OF_NUMPY = ("numpy.random", "numpy.random.mtrand")
# What reads an attribute whose name code does not spell.
_BY_NAME = frozenset({"getattr", "vars", "__dict__", "attrgetter", "__getattribute__"})


class Draws:
    """The generators that one trace had in its hands, and what they were before.

    Those of the process are known from the beginning, others by ``add``. What a library
    keeps for itself, for the names of its files say, is none of them.
    """

    def __init__(self) -> None:
        self._before: dict[int, tuple[Any, Any]] = {}
        self._held: set[int] = set()
        for generator in (*_of_python(), *_of_numpy(), *_of_torch()):
            self._before[id(generator)] = generator, _state(generator)

    def add(self, generator: Any) -> None:
        """Note a generator that the user's code leads to."""
        if isinstance(generator, random.SystemRandom):
            raise drawn("random.SystemRandom")
        if id(generator) not in self._before:
            self._before[id(generator)] = generator, _state(generator)
        self._held.add(id(generator))

    def hold(self, item: Any) -> bool:
        """Note that the trace has ``item``; tell whether it draws from a known one."""
        if isinstance(item, Standin):
            return False
        found = False
        for generator in _behind(item):
            if id(generator) in self._before:
                self._held.add(id(generator))
                found = True
        return found

    def enter(self, frame: FrameType) -> bool:
        """Note what a function that begins to run names, and what it was given.

        Tell whether that may lead it to a generator.
        """
        code = frame.f_code
        is_led = _names(random, code, frame.f_globals)
        for item in _named(code, frame.f_globals):
            is_led |= self.hold(item)
        if code.co_argcount:
            for name in code.co_varnames[: code.co_argcount]:
                is_led |= self.hold(frame.f_locals.get(name))
        return is_led

    def leave(self, names: Mapping[str, Any]) -> None:
        """Note what the variables of a function that ends show."""
        for held in names.values():
            self.hold(held)

    def check(self) -> None:
        """Refuse a trace that drew random numbers."""
        for key in self._held:
            generator, before = self._before[key]
            if _state(generator) != before:
                raise drawn("random numbers were drawn")


def _of_python() -> Iterator[Any]:
    yield random.random.__self__


def _of_numpy() -> Iterator[Any]:
    # NumPy imports it on first use, which another thread may be at.
    module = sys.modules.get("numpy.random.mtrand")
    if (found := getattr(module, "_rand", None)) is not None:
        yield found


def _of_torch() -> Iterator[Any]:
    torch = sys.modules.get("torch")
    if (found := getattr(torch, "default_generator", None)) is not None:
        yield found
        if sys.modules["torch.cuda"].is_initialized():
            yield from sys.modules["torch.cuda"].default_generators


def _behind(item: Any) -> Iterable[Any]:
    """Return the generators that whoever has ``item`` can draw from."""
    if isinstance(item, ModuleType):
        return _of_numpy() if item.__name__ in _OF_NUMPY else ()
    if isinstance(item, (MethodType, BuiltinFunctionType)):
        owner = item.__self__
        if "torch" in sys.modules and _is_of_torch(owner):
            return _of_torch() if _draws_in_torch(item.__name__) else ()
        item = owner
    return (item,) if is_generator(item) else ()


def _named(code: CodeType, names: Mapping[str, Any]) -> Iterator[Any]:
    """Return what ``code`` names that may lead to a generator."""
    spelt = code.co_names
    if "torch" in sys.modules and any(map(_draws_in_torch, spelt)):
        yield from _of_torch()
    if "random" in spelt or "numpy.random" in spelt:
        for path in paths(code):
            held = _first(path, names)
            for step in path.steps:
                if not isinstance(held, ModuleType):
                    break
                held = vars(held).get(step.key)
            yield held
    else:
        yield from map(names.get, spelt)
    if not _BY_NAME.isdisjoint(spelt) and _names(np, code, names):
        yield from _of_numpy()


def _names(module: ModuleType, code: CodeType, names: Mapping[str, Any]) -> bool:
    return any(names.get(name) is module for name in code.co_names)


def _first(path: NamedPath, names: Mapping[str, Any]) -> Any:
    if path.kind == "import":
        return sys.modules.get(path.name)
    return names.get(path.name) if path.kind == "global" else None


@lru_cache(4096)
def _draws_in_torch(name: str) -> bool:
    """Tell whether an operation of torch draws, as its own table says."""
    torch = sys.modules["torch"]
    is_public = not name.startswith("_")
    packet: Any = getattr(torch.ops.aten, name, None) if is_public else None
    if not hasattr(packet, "overloads"):
        return False
    kinds = (getattr(packet, kind).tags for kind in packet.overloads())
    return any(torch.Tag.nondeterministic_seeded in tags for tags in kinds)


def _is_of_torch(owner: Any) -> bool:
    """Tell whether what is bound to ``owner`` may be of torch."""
    if owner is None:  # its functions are of no module
        return True
    kind = owner if isinstance(owner, type) else type(owner)
    name = owner.__name__ if isinstance(owner, ModuleType) else kind.__module__
    return str(name).partition(".")[0] == "torch"


def _state(generator: Any) -> Any:
    """Return a value that a draw changes."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return _frozen(generator.bit_generator.state)
    if hasattr(generator, "state"):
        return _frozen(generator.state)
    if hasattr(generator, "device"):
        return bytes(generator.get_state().numpy())
    return _frozen(generator.get_state(legacy=False))


def _frozen(item: Any) -> Any:
    """Return ``item``, arrays in it as the bytes that they hold now."""
    if isinstance(item, dict):
        return tuple((key, _frozen(held)) for key, held in item.items())
    if isinstance(item, tuple):
        return tuple(_frozen(held) for held in item)
    return item.tobytes() if isinstance(item, np.ndarray) else item
