# SPDX-License-Identifier: Apache-2.0
"""The namespaces: which names there are, and what is said of those that are not."""
