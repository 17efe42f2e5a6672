# SPDX-License-Identifier: Apache-2.0
"""What becomes of a definition: text, calls, kernels, profiles."""
