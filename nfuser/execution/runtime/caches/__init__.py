# SPDX-License-Identifier: Apache-2.0
"""From what is called to what was made for it, in this process and by others."""
