# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F403 (this module is the namespace under its public name)
"""The namespace of fused functions: names of NumPy, the array API and a few more.

>>> import numpy as np
>>> from nfuser import numpy as nnp
>>> nnp.softmax(np.array([[0.0, 0.0]]))
array([[0.5, 0.5]])
"""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from nfuser.compiler.trace.numpy.names.namespace import *
from nfuser.compiler.trace.numpy.names.namespace import __all__ as __all__
from nfuser.compiler.trace.numpy.names.refusals import function as _refused


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not hasattr(_numpy, name):
        message = f"module 'nfuser.numpy' has no attribute {name!r}"
        raise AttributeError(message)
    raise AttributeError(str(_refused(name, "nfuser.numpy")))
