# SPDX-License-Identifier: Apache-2.0
"""Kernels that run a loop inside."""
