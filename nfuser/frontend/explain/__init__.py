# SPDX-License-Identifier: Apache-2.0
"""What a call would run, and why it is traced anew: in words and numbers."""
