# SPDX-License-Identifier: Apache-2.0
"""The names of ``numpy.fft`` that have a fused form."""

from __future__ import annotations

from nfuser.compiler.trace.numpy.names.eager_or_traced import creation, function

fft = function("fft.fft")
fft2 = function("fft.fft2")
fftn = function("fft.fftn")
fftshift = function("fft.fftshift")
ifft = function("fft.ifft")
ifft2 = function("fft.ifft2")
ifftn = function("fft.ifftn")
ifftshift = function("fft.ifftshift")
irfft = function("fft.irfft")
irfft2 = function("fft.irfft2")
irfftn = function("fft.irfftn")
rfft = function("fft.rfft")
rfft2 = function("fft.rfft2")
rfftn = function("fft.rfftn")
fftfreq = creation("fft.fftfreq")
rfftfreq = creation("fft.rfftfreq")
