# SPDX-License-Identifier: Apache-2.0
"""What derivatives each operation has: one kind of operations a file."""
