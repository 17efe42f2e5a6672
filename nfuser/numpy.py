# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F403 (this module is the namespace under its public name)
"""The namespace of fused functions: names of NumPy, the array API and a few more.

>>> import numpy as np
>>> from nfuser import numpy as nnp
>>> nnp.softmax(np.array([[0.0, 0.0]]))
array([[0.5, 0.5]])
"""

from __future__ import annotations

from nfuser.trace.namespace import *
from nfuser.trace.namespace import __all__ as __all__
