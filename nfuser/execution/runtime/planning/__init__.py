# SPDX-License-Identifier: Apache-2.0
"""From pieces and the numbers of one call to a host program."""
