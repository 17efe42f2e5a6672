# SPDX-License-Identifier: Apache-2.0
"""What is found by sorting and searching, and taken by its place."""
