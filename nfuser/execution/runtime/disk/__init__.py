# SPDX-License-Identifier: Apache-2.0
"""Machine code on disk, shared by processes."""
