# SPDX-License-Identifier: Apache-2.0
"""What runs while a function is traced, seen from beside it."""
