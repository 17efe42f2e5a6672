# SPDX-License-Identifier: Apache-2.0
"""The names of ``numpy.linalg`` that have a fused form."""

from __future__ import annotations

from nfuser.compiler.trace.numpy.names.eager_or_traced import function

cross = function("linalg.cross")
diagonal = function("linalg.diagonal")
matmul = function("linalg.matmul")
matrix_norm = function("linalg.matrix_norm")
matrix_transpose = function("linalg.matrix_transpose")
norm = function("linalg.norm")
outer = function("linalg.outer")
tensordot = function("linalg.tensordot")
trace = function("linalg.trace")
vecdot = function("linalg.vecdot")
vector_norm = function("linalg.vector_norm")
cholesky = function("linalg.cholesky")
det = function("linalg.det")
eigh = function("linalg.eigh")
eigvalsh = function("linalg.eigvalsh")
inv = function("linalg.inv")
lstsq = function("linalg.lstsq")
matrix_power = function("linalg.matrix_power")
matrix_rank = function("linalg.matrix_rank")
pinv = function("linalg.pinv")
qr = function("linalg.qr")
slogdet = function("linalg.slogdet")
solve = function("linalg.solve")
svd = function("linalg.svd")
svdvals = function("linalg.svdvals")
