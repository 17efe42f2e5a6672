# SPDX-License-Identifier: Apache-2.0
"""What all else stands on: locks, own files, what a system has, watched passes."""
