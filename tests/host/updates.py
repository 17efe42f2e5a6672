# SPDX-License-Identifier: Apache-2.0
"""Random statements that write into one another's operands, views and inputs."""

from __future__ import annotations

import random
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser
from nfuser.execution.host.passes.assign_streams import assign_streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser import HostProgram
    from nfuser.compiler.ir.tensor import TensorView

    Values: TypeAlias = list[Any]
    Shape: TypeAlias = tuple[int, ...]

SIDE = 6
PASSES: dict[str, Callable[[HostProgram], HostProgram]] = {
    "as written": lambda program: program,
    "streams": assign_streams,
}


class Updates:
    """A program of random statements on two matrices, and what NumPy makes of it."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._hc = nfuser.HostIrContainer(f"updates{seed}")
        self._terms = [self._hc.define_tensor([SIDE, SIDE]) for _ in range(2)]
        self._shapes: list[Shape] = [(SIDE, SIDE)] * 2
        self._steps: list[Callable[[Values], None]] = []
        kinds = [self._set, self._sine, self._sum, self._fold, self._product]
        kinds += [self._row_factor, self._turned, self._part, self._view, self._view]
        for _ in range(self._dice.randrange(3, 14)):
            self._dice.choice(kinds)()
        last = len(self._terms) - 1
        self.outputs = sorted({last, *self._dice.choices(range(last), k=2)})
        for k in self.outputs:
            self._hc.add_output(self._terms[k])
        self.program = self._hc.program()

    def meaning(self, inputs: Values) -> Values:
        """Return the outputs; ``inputs`` are updated."""
        values = list(inputs)
        for step in self._steps:
            step(values)
        return [values[k] for k in self.outputs]

    # -- statements ----------------------------------------------------------

    def _pick(self, *shapes: Shape, ndim: int = 2) -> tuple[int, TensorView]:
        """Return a term of one of ``shapes``, or of ``ndim`` axes."""
        fits = [k for k, s in enumerate(self._shapes) if s in shapes or len(s) == ndim]
        k = self._dice.choice(fits)
        return k, self._terms[k]

    def _write(
        self,
        shape: Shape,
        add: Callable[[TensorView | None], TensorView],
        meaning: Callable[[Values], Any],
    ) -> None:
        """Add a statement that gives a new tensor, or writes one that there is."""
        fits = [k for k, s in enumerate(self._shapes) if s == shape]
        if fits and self._dice.random() < 0.5:
            k = self._dice.choice(fits)
            add(self._terms[k])
            self._steps.append(lambda v: np.copyto(v[k], np.array(meaning(v))))
        else:
            self._terms.append(add(None))
            self._shapes.append(shape)
            self._steps.append(lambda v: v.append(np.array(meaning(v))))

    def _set(self) -> None:
        a, x = self._pick()
        self._write(self._shapes[a], lambda out: self._hc.set(x, out), lambda v: v[a])

    def _sine(self) -> None:
        a, x = self._pick()
        self._write(
            self._shapes[a],
            lambda out: self._hc.unary("sin", x, out),
            lambda v: np.sin(v[a]),
        )

    def _sum(self) -> None:
        a, x = self._pick()
        b, y = self._pick(self._shapes[a], ndim=-1)
        self._write(
            self._shapes[a],
            lambda out: self._hc.binary("add", x, y, out),
            lambda v: v[a] + v[b],
        )

    def _fold(self) -> None:
        a, x = self._pick()
        axis, name = self._dice.randrange(2), self._dice.choice(["sum", "max"])
        self._write(
            (self._shapes[a][1 - axis],),
            lambda out: self._hc.reduce(name, x, axis, out),
            lambda v: getattr(v[a], name)(axis),
        )

    def _product(self) -> None:
        a, x = self._pick()
        b, y = self._pick((SIDE, SIDE), ndim=-1)
        if self._shapes[a][1] == SIDE:
            self._write(
                (self._shapes[a][0], SIDE),
                lambda out: self._hc.matmul(x, y, out),
                lambda v: v[a] @ v[b],
            )

    def _row_factor(self) -> None:
        a, x = self._pick()
        fits = (self._shapes[a][1],)
        if fits in self._shapes:
            b, y = self._pick(fits, ndim=-1)
            self._write(
                self._shapes[a],
                lambda out: self._hc.binary("multiply", y, x, out),
                lambda v: v[b] * v[a],
            )

    def _turned(self) -> None:
        """Copy with the axes turned: a view that has memory of its own."""
        a, x = self._pick()
        hc = self._hc
        self._write(
            self._shapes[a][::-1],
            lambda out: hc.permute(x, (1, 0), out or hc.allocate(x.shape[::-1], "f4")),
            lambda v: v[a].T,
        )

    def _part(self) -> None:
        a, x = self._pick((SIDE, SIDE), ndim=-1)
        at, hc = self._dice.randrange(SIDE // 2 + 1), self._hc
        bounds = (at, 0), (at + SIDE // 2, SIDE)
        self._write(
            (SIDE // 2, SIDE),
            lambda out: hc.slice(
                x, *bounds, out=out or hc.allocate((SIDE // 2, SIDE), "f4")
            ),
            lambda v: v[a][at : at + SIDE // 2],
        )

    def _view(self) -> None:
        a, x = self._pick()
        kind, (rows, columns) = self._dice.randrange(3), self._shapes[a]
        at = self._dice.randrange(rows)
        if kind == 0:
            view, shape = self._hc.permute(x, (1, 0)), (columns, rows)
            self._steps.append(lambda v: v.append(v[a].T))
        elif kind == 1:
            view, shape = self._hc.select(x, 0, at), (columns,)
            self._steps.append(lambda v: v.append(v[a][at]))
        else:
            view = self._hc.slice(x, (at, 0), (rows, columns))
            shape = rows - at, columns
            self._steps.append(lambda v: v.append(v[a][at:]))
        self._terms.append(view)
        self._shapes.append(shape)


def _same(array: Any) -> Any:
    return array


def where_more_can_go_wrong() -> Callable[[Any], Any]:
    """Return what makes arrays of torch, which itself does not look what overlaps."""
    if find_spec("torch") is None:
        return _same
    torch: Any = import_module("torch")
    return torch.from_numpy


def check_updates(
    seed: int,
    moved: Callable[[Any], Any] = _same,
    back: Callable[[Any], Any] = np.asarray,
) -> None:
    """Raise unless a program does what NumPy does, after each of the passes.

    ``moved`` gives the array of a library, ``back`` NumPy's.
    """
    made = Updates(seed)
    whole = np.random.default_rng(seed).normal(size=(2 * SIDE, SIDE)).astype("f4") / 2
    # The second matrix may overlap the first one.
    span = slice(SIDE // 2 if seed % 3 == 0 else SIDE, None)
    for name, change in PASSES.items():
        want, held = whole.copy(), moved(whole.copy())
        given = [held[:SIDE], held[span][:SIDE]]
        with np.errstate(all="ignore"):
            terms = made.meaning([want[:SIDE], want[span][:SIDE]])
            found = nfuser.HostIrEvaluator(change(made.program)).run(given)
        for got, term in zip([*found, held], [*terms, want], strict=True):
            np.testing.assert_allclose(
                back(got), term, rtol=2e-4, atol=1e-4, err_msg=name
            )
