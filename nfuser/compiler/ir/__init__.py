# SPDX-License-Identifier: Apache-2.0
"""Nouns of the fusion IR: scalars, axes, tensors, expressions, fusions."""
