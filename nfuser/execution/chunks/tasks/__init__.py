# SPDX-License-Identifier: Apache-2.0
"""What tasks run, and on which threads."""
