# SPDX-License-Identifier: Apache-2.0
"""Loops that stay loops: their bodies are traced once, as expressions of their own."""
