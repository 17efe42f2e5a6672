# SPDX-License-Identifier: Apache-2.0
"""Run passes; dump, time and verify between them."""
