# SPDX-License-Identifier: Apache-2.0
"""The numbers by which a GPU folds rows and columns."""
