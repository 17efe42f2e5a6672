# SPDX-License-Identifier: Apache-2.0
"""The operations of ``fd.ops``, one kind a file."""
