# SPDX-License-Identifier: Apache-2.0
"""The mean of the pixels of an image by their distance from its centre."""

import numpy as np


def initialize(N):
    from numpy.random import default_rng

    rng = default_rng(42)
    data, radius = rng.random((N,)), rng.random((N,))
    return data, radius


def mean_by_radius(data, radius, npt):
    histu = np.histogram(radius, npt)[0]
    histw = np.histogram(radius, npt, weights=data)[0]
    return histw / histu
