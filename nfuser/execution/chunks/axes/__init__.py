# SPDX-License-Identifier: Apache-2.0
"""How tensors lie in chunks, axis by axis, and which part of each is needed."""
