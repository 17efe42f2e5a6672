# SPDX-License-Identifier: Apache-2.0
"""From a Python function to kernel IR: nouns, verbs, and one folder a stage."""
