# SPDX-License-Identifier: Apache-2.0
"""Dask's side: its arrays, layers, trees, files. It is imported at its first use."""
