# SPDX-License-Identifier: Apache-2.0
"""What ``python -m nfuser`` offers, one command a file."""
