# SPDX-License-Identifier: Apache-2.0
"""Relations between axes: what is equal, what is contiguous."""
