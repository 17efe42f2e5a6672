# SPDX-License-Identifier: Apache-2.0
"""Random numbers and clocks: what a trace draws, and from which streams."""
