# SPDX-License-Identifier: Apache-2.0
"""In whose memory results lie, and in which order."""
