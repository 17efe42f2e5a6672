# SPDX-License-Identifier: Apache-2.0
"""Records by which native code serves calls, and why it does not serve some."""
