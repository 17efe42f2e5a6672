# SPDX-License-Identifier: Apache-2.0
"""Which extents are compiled into kernels: those of resized axes, all, or none."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import nfuser.config as config
from nfuser.errors import ArgumentError

ResizePolicy: TypeAlias = Literal["static", "dynamic", "exact"]
DEFAULT_RESIZE: ResizePolicy = "dynamic"


def check_policy(resize: str) -> None:
    """Refuse a policy that there is not."""
    if resize not in get_args(ResizePolicy):
        message = f"resize must be one of {get_args(ResizePolicy)}, not {resize!r}"
        raise ArgumentError(message)


def policy_in_force(resize: ResizePolicy) -> ResizePolicy:
    """Return ``resize``, or "dynamic" where NFUSER_DISABLE turns the others off."""
    is_off = "concretize_resize_extents" in config.current().disable
    return "dynamic" if is_off else resize
