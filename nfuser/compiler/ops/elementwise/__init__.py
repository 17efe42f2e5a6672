# SPDX-License-Identifier: Apache-2.0
"""Verbs that compute each element of a result from those at its place."""
