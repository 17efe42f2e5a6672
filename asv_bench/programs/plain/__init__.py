# SPDX-License-Identifier: Apache-2.0
"""The twelve programs, as their authors would write them, adapted to nothing."""
