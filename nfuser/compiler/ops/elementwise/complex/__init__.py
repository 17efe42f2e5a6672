# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers, in real ones."""
