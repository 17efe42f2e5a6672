# SPDX-License-Identifier: Apache-2.0
"""What is said to LLVM itself: its language, its passes, how wide loops are."""
