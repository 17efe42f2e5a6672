# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions: ``nfuser.grad`` and its like."""
