# SPDX-License-Identifier: Apache-2.0
"""What only GPU kernels need."""
