# SPDX-License-Identifier: Apache-2.0
"""Functions that put elements elsewhere."""
