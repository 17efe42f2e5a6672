# SPDX-License-Identifier: Apache-2.0
"""Deriche's smoothing filter along the rows of an image, forth and back."""

import numpy as np


def initialize(W, H, datatype=np.float64):
    return np.fromfunction(
        lambda i, j: ((313 * i + 991 * j) % 65536) / 65535.0, (W, H), dtype=datatype
    )


def smooth_rows(alpha, image):
    k = (
        (1.0 - np.exp(-alpha))
        * (1.0 - np.exp(-alpha))
        / (1.0 + 2.0 * alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    )
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)

    y1 = np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, image.shape[1]):
        y1[:, j] = (
            a1 * image[:, j]
            + a2 * image[:, j - 1]
            + b1 * y1[:, j - 1]
            + b2 * y1[:, j - 2]
        )

    y2 = np.empty_like(image)
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * image[:, -1]
    for j in range(image.shape[1] - 3, -1, -1):
        y2[:, j] = (
            a3 * image[:, j + 1]
            + a4 * image[:, j + 2]
            + b1 * y2[:, j + 1]
            + b2 * y2[:, j + 2]
        )

    return y1 + y2
