# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on stand-ins."""
