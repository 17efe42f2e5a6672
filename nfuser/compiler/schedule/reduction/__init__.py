# SPDX-License-Identifier: Apache-2.0
"""Kernels with reductions."""
