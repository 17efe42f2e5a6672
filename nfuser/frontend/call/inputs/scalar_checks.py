# SPDX-License-Identifier: Apache-2.0
"""Integers that met a narrow dtype while tracing, looked at again in each call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import holds
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import RangeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ops import ScalarFits


def check_scalars(checks: Iterable[ScalarFits], values: Mapping[Scalar, int]) -> None:
    """Refuse the first integer that its dtype cannot hold."""
    for fits in checks:
        number = scalar_walk.evaluate(fits.scalar, values)
        if not holds(fits.dtype, number):
            raise RangeError(fits.message.replace("{}", str(number), 1))
