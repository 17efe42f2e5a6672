# SPDX-License-Identifier: Apache-2.0
"""Jacobi's method in one dimension: two arrays in turn are the mean of neighbours."""

import numpy as np


def initialize(N, datatype=np.float64):
    A = np.fromfunction(lambda i: (i + 2) / N, (N,), dtype=datatype)
    B = np.fromfunction(lambda i: (i + 3) / N, (N,), dtype=datatype)
    return A, B


def jacobi_1d(TSTEPS, A, B):
    for t in range(1, TSTEPS):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
