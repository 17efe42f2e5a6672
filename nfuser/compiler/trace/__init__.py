# SPDX-License-Identifier: Apache-2.0
"""From a Python function to a fusion: the array stand-in and its tracer.

``trace_function(function, call)`` takes a ``TracedCall``: the arguments ``(args,
kwargs)`` as a tree, and for each leaf what it is to a trace (``ArrayLeaf``,
``ScalarLeaf``, ``StaticLeaf``). ``call_of(args, kwargs)`` makes one from NumPy arrays
and numbers. The ``Trace`` it returns holds the verified fusion, the template of what
the function returned, and what a later call must satisfy to use it.

>>> import numpy as np
>>> from nfuser.compiler.ir.text import text
>>> from nfuser.compiler.trace import call_of, trace_function
>>> def softmax(x):
...     e = np.exp(x - x.max(axis=-1, keepdims=True))
...     return e / e.sum(axis=-1, keepdims=True)
>>> trace = trace_function(softmax, call_of((np.ones((2, 3), np.float32),)))
>>> [expr.op.name for expr in trace.fusion.exprs if hasattr(expr, "operands")]
['subtract', 'exp', 'divide']
"""

from __future__ import annotations

from nfuser.compiler.trace.call.call import (
    ArrayLeaf,
    ScalarLeaf,
    StaticLeaf,
    Trace,
    TracedCall,
    call_of,
)
from nfuser.compiler.trace.trace_function import trace_function
from nfuser.compiler.trace.tracer import current_tracer

__all__ = [
    "ArrayLeaf",
    "ScalarLeaf",
    "StaticLeaf",
    "Trace",
    "TracedCall",
    "call_of",
    "current_tracer",
    "trace_function",
]
