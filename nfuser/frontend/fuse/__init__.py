# SPDX-License-Identifier: Apache-2.0
"""``nfuser.fuse`` and what it returns."""
