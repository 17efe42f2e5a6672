# SPDX-License-Identifier: Apache-2.0
"""Kernels without reductions."""
