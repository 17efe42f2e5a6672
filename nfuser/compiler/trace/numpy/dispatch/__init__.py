# SPDX-License-Identifier: Apache-2.0
"""How calls reach the functions: protocols, methods, operators."""
