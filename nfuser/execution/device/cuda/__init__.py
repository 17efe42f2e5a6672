# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver, and what is launched through it."""
