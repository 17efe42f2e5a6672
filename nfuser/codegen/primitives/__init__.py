# SPDX-License-Identifier: Apache-2.0
"""The primitives that emitted kernels call, one vocabulary a target."""
