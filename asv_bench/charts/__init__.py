# SPDX-License-Identifier: Apache-2.0
"""Pictures and tables of the documentation, drawn from committed results."""
