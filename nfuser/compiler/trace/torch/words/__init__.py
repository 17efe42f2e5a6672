# SPDX-License-Identifier: Apache-2.0
"""Torch's own words: methods of tensors, functions of ``torch`` and ``nn.functional``.

A word is a function of a trace and of what torch's takes. One table serves methods and
functions alike; what has another meaning in NumPy stands in ``methods.py`` beside.
"""
