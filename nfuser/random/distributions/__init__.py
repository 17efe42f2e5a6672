# SPDX-License-Identifier: Apache-2.0
"""Distributions as functions of random words, one family a file.

Each is written with NumPy's functions: it runs on arrays of words at once, and within
a fused function on their stand-ins, as part of the kernel that makes the words.
"""
