# SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays as torch's tensors and back, in memory of both where that can be."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from nfuser.compiler.dtypes.dtype import DType

_BF16 = DType.BF16.numpy  # which torch and NumPy do not hand each other


def as_tensor(array: Any) -> Any:
    """Return an array or a scalar of NumPy as a tensor of the CPU."""
    torch: Any = sys.modules["torch"]
    held = np.asarray(array)
    if not (held.flags.writeable and min(held.strides, default=0) >= 0):
        held = held.copy()
    if held.dtype == _BF16:
        return torch.from_numpy(held.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(held)


def as_array(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a tensor of any device as a NumPy array."""
    torch: Any = sys.modules["torch"]
    held = tensor.resolve_conj().resolve_neg().cpu()
    if held.dtype is torch.bfloat16:
        return held.view(torch.int16).numpy().view(_BF16)
    return held.numpy()
