# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's tensors mean by their methods, operators and dtypes."""
