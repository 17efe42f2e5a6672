# SPDX-License-Identifier: Apache-2.0
"""Host programs in words that native code performs, and the calls that it serves."""
