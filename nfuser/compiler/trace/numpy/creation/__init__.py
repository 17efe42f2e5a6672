# SPDX-License-Identifier: Apache-2.0
"""Arrays that a function makes while it is traced."""
