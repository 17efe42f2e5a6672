# SPDX-License-Identifier: Apache-2.0
"""What one thread takes in turns: loops inside a kernel, element by element."""
