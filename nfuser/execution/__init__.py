# SPDX-License-Identifier: Apache-2.0
"""What calls run: devices, host programs, caches, and arrays in chunks."""
