# SPDX-License-Identifier: Apache-2.0
"""What the fusion of one call is cut into, and what of a call is new."""
