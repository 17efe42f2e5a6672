# SPDX-License-Identifier: Apache-2.0
"""Functions of functions, while they are traced: derivatives, and rows at once."""
