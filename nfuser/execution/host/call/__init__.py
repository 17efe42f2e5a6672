# SPDX-License-Identifier: Apache-2.0
"""The program of one fused call, and how it runs."""
