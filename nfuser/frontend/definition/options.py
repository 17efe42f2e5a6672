# SPDX-License-Identifier: Apache-2.0
"""Arguments of ``execute`` that nvFuser takes: checked, as they change nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.errors import DeviceError, OptionError
from nfuser.frontend.definition.refused import OPTIONS

if TYPE_CHECKING:
    from nfuser.execution.device.describe.descriptor import Device


def check_options(*names: str) -> None:
    """Refuse a name that is no option of nvFuser's compiler."""
    unknown = sorted(set(names) - OPTIONS)
    if unknown:
        message = (
            "set NFUSER_DISABLE to turn a feature of nfuser off: expected options of "
            f"nvFuser's compiler, found {', '.join(unknown)}"
        )
        raise OptionError(message)


def check_device(asked: object, found: Device) -> None:
    """Refuse arrays that are not on the device that was asked for.

    >>> from nfuser.execution.device.describe.descriptor import CPU
    >>> check_device("cpu", CPU)
    """
    name = f"cuda:{asked}" if type(asked) is int else str(asked)
    if name not in (str(found), found.kind):
        message = (
            f"pass arrays that are on {name}, or leave device out: calls run where the "
            f"arrays are, which is {found}"
        )
        raise DeviceError(message)
