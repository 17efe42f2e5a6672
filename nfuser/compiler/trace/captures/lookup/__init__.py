# SPDX-License-Identifier: Apache-2.0
"""What the names in a function's code stand for, and where that is read again."""
