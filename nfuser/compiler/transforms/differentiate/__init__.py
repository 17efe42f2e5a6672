# SPDX-License-Identifier: Apache-2.0
"""Derivatives of symbolic fusions, which are expressions of the same fusion.

``pullback`` takes cotangents of results to those of inputs, ``pushforward`` tangents of
inputs to those of results. Both write into the builder that holds the program, with the
verbs of ``nfuser.compiler.ops``: so derivatives have derivatives, and one fusion
computes all.
"""

from __future__ import annotations

from nfuser.compiler.transforms.differentiate.forward import pushforward
from nfuser.compiler.transforms.differentiate.reverse import pullback

__all__ = ["pullback", "pushforward"]
