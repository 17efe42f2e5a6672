# SPDX-License-Identifier: Apache-2.0
"""From a scheduled segment to kernel IR."""
