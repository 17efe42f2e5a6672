# SPDX-License-Identifier: Apache-2.0
"""Which types are computed with: casts, 16-bit floats, complex numbers."""
