# SPDX-License-Identifier: Apache-2.0
"""What needs no kernel of its own: assignments, library calls, loops of the host."""
