# SPDX-License-Identifier: Apache-2.0
"""Neighbours and frequencies: windows, convolutions, Fourier transforms."""
