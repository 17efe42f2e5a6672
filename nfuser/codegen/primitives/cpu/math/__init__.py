# SPDX-License-Identifier: Apache-2.0
"""Functions of floats that vectorize, within documented bounds."""
