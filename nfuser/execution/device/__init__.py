# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out, memory, streams, launches."""
