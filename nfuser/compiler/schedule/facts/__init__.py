# SPDX-License-Identifier: Apache-2.0
"""What is known of one call when a segment is scheduled."""
