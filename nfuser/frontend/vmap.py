# SPDX-License-Identifier: Apache-2.0
"""``nfuser.vmap``: a function of one row, for all rows together."""

# What is mapped has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.transforms.rows import run_rows
from nfuser.frontend.gradients.transform import (
    check_function,
    fused_like,
    remembered,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.fuse.fused import Fused


def vmap(
    function: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Fused[..., Any]:
    """Return a fused function that gives ``function`` of each row, stacked.

    ``function`` is traced once, for one row; what it computes is raised by one axis, so
    that one kernel serves all rows, and products of matrices stay products.

    Parameters
    ----------
    function
        Takes arrays, or nests of arrays, without the axis that is mapped over.
    in_axes
        The axis along which rows lie, None for what all rows share: one for all
        arguments, or a tuple with one for each, which may be a nest like the argument.
        Arguments that are passed by name are mapped over their first axes.
    out_axes
        Where the rows of a result lie; None for results that are the same for all.
    axis_size
        The number of rows, where no argument says it.

    Raises
    ------
    ArgumentError, ShapeError, AxisError
        If the axes do not fit the arguments, or these have not equally many rows.

    Examples
    --------
    >>> import numpy as np, nfuser
    >>> def distance(x, y):
    ...     return np.sqrt(((x - y) ** 2).sum())
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> nfuser.vmap(distance, in_axes=(0, None))(points, np.zeros(2))
    array([0., 5.])
    """
    check_function("vmap", function)
    return _mapped(function, _fixed(in_axes), _fixed(out_axes), axis_size)


@remembered
def _mapped(
    function: Callable[..., Any], in_axes: Any, out_axes: Any, axis_size: Any
) -> Fused[..., Any]:
    def derived(*args: Any, **kwargs: Any) -> Any:
        tracer = current_tracer()
        assert tracer is not None
        axes = in_axes, out_axes, axis_size
        return run_rows(tracer, function, args, kwargs, axes)

    again = _mapped, (function, in_axes, out_axes, axis_size)
    return fused_like("vmap", function, derived, again=again)


def _fixed(axes: Any) -> Any:
    """Return axes in which lists are tuples, which can be keys."""
    if isinstance(axes, (tuple, list)):
        return tuple(map(_fixed, axes))
    return axes
