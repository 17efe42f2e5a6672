# SPDX-License-Identifier: Apache-2.0
"""What only CPU kernels need."""
