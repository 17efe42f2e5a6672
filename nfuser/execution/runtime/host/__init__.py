# SPDX-License-Identifier: Apache-2.0
"""Host programs with what they launch."""
