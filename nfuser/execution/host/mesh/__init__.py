# SPDX-License-Identifier: Apache-2.0
"""Programs that several ranks run, each on its part of the arrays."""
