# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 (a form is a line, with all the ways to write it)
"""Statements as people write them, one to eight lines each: what form programs are of.

``A`` and ``B`` stand for matrices of one shape, ``X`` for a row of them and ``Y`` for
a column, ``P`` for numbers of rows, ``M`` for a mask of them; ``K`` is a small integer,
``T`` a number, ``R`` and ``S`` are names for what is made. ``{one|other}`` is either.
"""

from __future__ import annotations

_VALUES = """
R = {A + B|A - B|A * B|A / 2|A * 2 - B|A + X|X - A|A * Y[:, None]|-A|abs(A)|A + T|T - A}

R = {A // 2|A % 3|A % -3|A // -2|A ** 2|A ** K|np.floor(A)|np.sign(A)|np.rint(A)|A + K}

R = np.{exp|tanh|sqrt|sin|log1p|arctan|cbrt}(abs(A) + 1)

R = np.{maximum|minimum|hypot|arctan2|fmax|copysign|logaddexp|subtract}(A, {B|X|T|1})

R = A{[0]|[-1]|[K]|[:, 0]|[:, -1]|[:, K]|[K - 1]|[-K]|[0, 0]|[-1, K]|[K, -1]|[K][0]}

R = A{[1:]|[:-1]|[::2]|[1::2]|[::-1]|[1:-1]|[K:]|[:K]|[-K:]|[:-K]|[2:]|[::3]|[-2::-1]}

R = A[:, {1:|:-1|::2|1::2|::-1|1:-1|K:|:K|-2:|::-2}]

R = A[{1:|::2|::-1|:-1|K:}, {1:|::2|::-1|:K|K|-1}] + {1|T}

R = {A[1:] - A[:-1]|A[:, 1:] + A[:, :-1]|A[::-1] - A|A[:, ::-1] * 2 + A|A - A[0]|A - A[:, -1:]}

R = A{.T|.T + 1|.T * 2|[::-1].T|.T[1:]|.T[::-1]|.T[K]|.T[:, 1]}

R = {A[None]|A[:, None]|A[..., None]|A[None, :, None]|A[..., 0]|A[..., 1:]|A[:, None, 1:]}

R = A[P]{|[:, 1:]|[::-1]|.T}

R = A[{P, 0|P, -1|P, K|P, :|P, 1:|::-1}] * 1

R = A{[:1]|[-1:]|[K : K + 1]|[:, :1]|[:, K - 1 : K]|[1:2, 1:2]|[:0]|[K:K]} {* 2|+ X[:1]|}

R = A[:, P % A.shape[1]]{|[1:]| + 0}

R = {A[P, P % A.shape[1]]|A[P[:, None], [0, 1]]|A[np.ix_(P, [1, 0])]|A[[1, 0]]|A[[-1, 0, 1]]}

R = np.take(A, P, axis=0){| + 1}

R = {Y[P]|Y[P] * 2|Y[P[::-1]]|X[P % X.shape[0]]|Y[P - 1]|Y[-P - 1]|np.take(Y, P)}

R = np.take_along_axis(A, np.argsort(A, axis={0|1}), axis={0|1})

R = A.{sum|max|min|mean|prod|any|all}({|axis=0|axis=1|axis=-1})

R = A.{sum|mean|max}(axis={0|1}, keepdims=True) {+ A|- A|* 2}

R = A - A.{mean|sum|max|min}({|axis=0})

R = A.{argmax|argmin}({|axis=0|axis=1})

R = {Y.sum()|Y.max()|Y.argmin()|X.sum() / 2|(X > T).sum()|X.min() - X|X @ X|Y.mean()}

R = np.{cumsum|cumprod}(A, axis={0|1})

R = {np.cumsum(Y)|np.cumsum(X[::-1])|np.cumsum(A)|np.diff(Y)|np.diff(A, axis={0|1})|np.cumsum(A > T)}

R = {A.std()|A.var(axis=0)|np.linalg.norm(A)|np.median(A, axis=1)|np.ptp(A, axis={0|1})|A.var(axis=1, ddof=1)}

R = {A > T|A >= B|A == B|A != 0|A < X|(A > 0) & (B > 0)|~(A > T)|np.logical_xor(A > 0, B < 0)|A <= 0}

R = np.where({A > T|A > B|M|A > X}, {A|B|T|A * 2}, {B|0|-A|X|-0.0})

R = np.clip(A, {-1|T|B - 1}, {1|2|B + 1})

R = {np.concatenate((A, B))|np.concatenate((A, B), axis=1)|np.concatenate((A[1:], B[:1]))|np.vstack((A, X))|np.hstack((A, B))}

R = np.{stack((A, B))|stack((A, B), axis=1)|stack((A, B), axis=-1)|column_stack((A, Y))|dstack((A, B))|append(X, Y)}

R = np.roll(A, {1|-1|K}, axis={0|1})

R = {np.roll(Y, K)|np.roll(A, 1)|np.flip(A)|np.flip(A, 1)|np.fliplr(A)|np.rot90(A)|np.rot90(A, 3)}

R = np.pad(A, {1|((1, 0), (0, 2))|((0, K), (1, 0))}{|, mode="edge"|, mode="wrap"|, mode="reflect"})

R = A.{reshape(-1)|ravel()|reshape(A.shape[1], -1)|reshape(-1, 1)|flatten()|reshape(1, *A.shape)|swapaxes(0, 1)} + 0

R = {np.repeat(A, 2, axis={0|1})|np.tile(A, (2, 1))|np.repeat(X, 3)|np.tile(Y, 2)|np.broadcast_to(X, A.shape) + 1}

R = {A @ B.T|A.T @ B|A @ X|Y @ A|np.dot(A, X)|np.outer(Y, X)|np.einsum("ij,j->i", A, X)|np.einsum("ij->j", A)}

R = {A @ B[:K].T|A[:K] @ X|(A + 1) @ (B - 1).T|A[::-1] @ X|A[:, ::2] @ X[::2]|np.tensordot(A, B, (1, 1))}

R = {np.sort(A, axis={0|1})|np.sort(Y)|np.argsort(A, axis={0|1}, kind="stable")|np.sort(Y)[::-1]|np.argsort(X, kind="stable")}

R = {np.searchsorted(np.sort(X), Y)|np.searchsorted(np.sort(Y), X, side="right")|np.digitize(A, [-1, 0, 1])|np.interp(A, [-2, 0, 2], [1, 0, 3])}

R = {np.histogram(A, bins=4, range=(-2, 2))[0]|np.histogram(A, bins=[-2, -1, 0, 2])[0]|np.bincount(P % 3, minlength=4)|np.bincount(P % 2, weights=P * 0.5, minlength=3)}

R = {np.diag(A @ A.T)|np.trace(A)|np.triu(A)|np.tril(A, -1)|np.diagonal(A)|np.tril(A @ A.T)}

R = A.astype({float|int|bool|"f4"|"i1"|"u1"|"i2"|"f2"|complex|"i4"})

R = {A.copy()|+A|np.array(A)|np.asarray(A) + 1|np.zeros_like(A)|np.ones_like(A) * T|np.full_like(A, K)|np.full(A.shape, T)}

R = {np.isnan(A)|np.isfinite(A).all()|np.nan_to_num(A)|np.nansum(A)|np.nanmax(A, axis=0)|np.signbit(A)|np.isinf(A)}

R = {np.count_nonzero(A > T, axis=0)|np.gradient(Y)|np.convolve(Y, [1, 2, 1], "same")|np.trapezoid(A, axis=0)|np.meshgrid(X, Y)[0]|np.cross(A[:, :3], B[:, :3])}

R = {A.real + 1|A.imag|(A + 1j * B).imag|abs(A + 1j * B)|(A * 1j).conj()|np.angle(A + 1j)}

R = {len(A)|A.shape[1]|A.size|A.ndim|A.shape[0] * T|K * 2|T + 1|K > 1|K / 2|K // 2|-K|K * T}

R = {K + A[0, 0]|T * A[0, 0]|max(K, 2)|min(T, 1.0)|abs(T)|float(K)|int(T)|A[0, 0] > T|A[0, 0] * A[-1, -1]|round(T)}

R = np.{histogram(A[:, 0], bins=3, range=(-2, 2))|histogram2d(A[0], X, bins=3, range=[[-2, 2], [-2, 2]])}[0]

R = {np.empty(A.shape, int).shape|np.arange(K)|np.arange(K) * T|np.linspace(0, T, 3)|np.eye(K)|np.arange(len(A)) - Y|np.indices(A.shape)[0] + A}

R = (A > T){.sum()|.sum(axis=0)|.any(axis=1)|.mean()|.all()|.astype(int)|.argmax(axis=0)|.cumsum()}

R, S = A.min(), {A.max(axis=0)|A[0]|A + 1|A.sum()}

R = [A{|[0]| + 1}, B.sum()]

R = {"u": A + 1, "n": X.sum(), "b": B}

R = (A + B, (X, {"z": Y * 2}))

R, S = divmod(A, {3|2|-2})

R, S = np.modf(A)

R = np.linalg.{inv|det}(A @ A.T + 99 * np.eye(A.shape[0]))

R = {np.fft.rfft(A, axis=0)|np.fft.fft(X)|np.quantile(A, 0.25, axis=0)|np.partition(Y, 1)[:2]|np.percentile(X, 40)}

R = np.array([A[0, 0], {T|A.sum()|1.5}, {A[-1, 0]|K|Y[1]}])

R = {X[:, None] * Y|np.add.outer(Y, X)|np.subtract.outer(X, Y)|X[None, :] - Y[:, None]|np.multiply.outer(X, X)}

R = A{[:, :, None] * X[:2]|[:, None, :] - B[None]|[None] + B[:, None]}
R = R.{sum|max}(axis={0|1|2|-1|(0, 2)|(0, 1)})
"""

_WRITES = """
A[{0|-1|K|1|-K|K - 1}] = {X|B[0]|T|0|B[-1] * 2|A[1]|A[1] + X|B[K]}

A[:, {0|-1|K|1|-2}] = {Y|B[:, 0]|T|A[:, 1]|A[:, -1] * 2|Y[::-1]}

A[{1:|::2|:-1|::-1|K:|:K|-2:}] = {T|X|0|2 * X}

A[{1:|2:}] = {T|A[:-1][-1]|B[0]}

A[1:] = {A[:-1]|B[:-1]|B[1:]|A[:-1] * 2|A[1:] + A[:-1]|A[:0:-1]}

A[:-1] = {A[1:]|B[1:]|A[1:] - B[:-1]|A[-2::-1]}

A[:, 1:] = {A[:, :-1]|B[:, 1:]|A[:, :-1] + 1|B[:, :0:-1]|A[:, :0:-1]}

A[:, :-1] = {A[:, 1:]|B[:, :-1] - A[:, 1:]|Y[:, None]}

A[::2] = {A[::2] * 2|B[::2]|A[::-2][::-1]|X * 2}

A[:, {::2|1::2|::3|::-1|K:|-2:|:1|::-2}] {=|+=|*=} {T|Y[:, None]|K|A[:, :1]|Y[::-1, None]}

A[:, ::2] {=|-=} {B[:, ::2]|A[:, ::2] * 2|A[::-1, ::2]|A[:, ::-1][:, ::2]}

A[{::2, 1:|1:, ::2|::2, ::2|:1|-1:|K : K + 1|K - 1 : K|:, K : K + 1|:, :1|1:, 1:}] {=|+=} {T|K|A[-1:, -1:]}

A[np.ix_({Y > 0|[0, 1]|P}, {X > T|[1, 0]|[0, -1]})] {=|+=} {T|0}

A[1::2] {+=|-=|*=} {A[0]|B[1::2]|T|X}

A[::-1] = {A|B|A + 1|X}

A[1:-1] = {A[:-2] + A[2:]|0.5 * (A[2:] - B[:-2])|B[1:-1]|X}

A[1:-1, 1:-1] = {0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])|T|B[1:-1, 1:-1]}

A[{0, 0|-1, -1|K, 0|0, K|K, -1}] = {T|K|B[1, 1]|A[0, 1] + A[1, 0]|A.sum()|X[0]}

A[{0, 0|K, K|-1, 0}] {+=|-=|*=} {T|A[1, 1]|2}

A {+=|-=|*=} {1|T|B|X|A|Y[:, None]|A[0]|A.sum()|A[::-1]|K}

A[...] = {B|X|T|A[::-1]|B[::-1]|A * 2|B.T.T|A[:, ::-1]}

A[:] = {B * 2|T|A + X|B - A}

A[{A > T|A < 0|B > 0|M|A > B|A == 0|(A > 0) & (B > 0)|~M}] {=|+=|*=} {0|T|K|-1}

A[{A > T|M|B > 0}] = {B[A > T]|A[A > T] * 2|A[M]|B[M] + 1|B[B > 0]}

A[Y > {T|0}] {=|+=} {0|X|T}

A[:, X > {T|0}] = {0|T|K}

A[Y > 0, {0|1:|K|::2}] = {T|0}

A[1:][A[1:] > T] = {0|K}

X[X > {T|0}] = {T|0|-1}

A[P] {=|+=|-=|*=} {X|T|B[P]|0|A[P] + 1|B[0]}

A[P, {0|-1|K|P % A.shape[1]}] {=|+=} {T|K|Y[P]|1}

A[:, P % A.shape[1]] {=|+=} {T|Y[:, None]|0}

A[{K|0|-1}, P % A.shape[1]] {=|+=} {T|1|Y[P]}

np.{add|subtract|maximum|minimum}.at(A, P, {X|1|T|B[P]})

np.add.at(A, ({P, 0|P, P % A.shape[1]|slice(None), P % A.shape[1]|K, P % A.shape[1]}), {1|T|2})

np.{add|multiply|maximum}.at(Y, P, {1|T|Y[P]|P})

Y[P] {=|+=} {1|T|Y[P[::-1]]|P}

A[0], A[1] = {A[1], A[0]|A[1].copy(), A[0].copy()|B[0], B[1]|A[1] * 1, A[0] * 1}

A[:, 0], A[:, 1] = {A[:, 1], A[:, 0]|Y, Y * 2}

A[[0, 1]] = {A[[1, 0]]|B[[1, 0]]|T}

Y[0], Y[-1] = Y[-1], Y[0]

A[0] = A[-1] = {T|X}

A, B = B, A
{A[0] = 1|A += B|A[1:] *= 2|B[0] = A[1]}

np.{add|multiply|subtract|maximum}({A|B|A[::-1]}, {B|T|X|A}, out=A)

np.{sqrt|exp|negative|abs}({abs(B)|B * 0.5|A * 0 + 1}, out=A)

np.{add|divide}({A|B}, {2|T}, out=A, where={A > T|M})

np.{copyto(A, B)|copyto(A, T)|copyto(A, X)|copyto(A, B, where=M)|copyto(A, T, where=A > 0)|putmask(A, A > T, B)|putmask(A, M, 7)|place(A, A > T, [1, 2, 3])|fill_diagonal(A, T)|put(A, [0, -1], T)|put(A, P, 9)}

A.{sort()|sort(axis=0)|fill(T)|fill(0)|partition(1, axis=1)|put([1, 2], T)}

A[1:].{sort(axis=0)|fill(2)}

R = np.stack((A, B), axis={0|1|2|-1})
R[{M[:2, :2].sum()|0|:, 0|:, :, 0|..., 1|1, ..., ::-1|:, 1:, 0|...}] {=|+=} {T|R[0, 0, 0]|K}

R = np.{stack((A, A + 1), axis=2)|repeat(A[:, :, None], 3, axis=2)}
R[{M|A > T|R > T|Y > 0|:, X > 0|0, X > T|Y > T, 1:|Y > 0, :, 0}] {=|+=|*=} {T|0|2}
S = R.{sum()|sum(axis=0)|max(axis=(0, 1))|sum(axis=1)|copy()}

R = A[{0|1:|:, 0|::2|::-1|:-1|:, 1:|K|:1}]
{R[0] = T|R += 1|R[...] = 2|A[0] = 7|R[:] = R[::-1]|R *= 2|R[-1] = R[0]}

R = A.T
{R[0] = T|R[1:] = R[:-1]|R += 1|R[:, 0] = X|A[0] = 5}

R = {A.copy()|A * 1|np.zeros_like(A)|A + B|np.zeros(A.shape)|np.ones(A.shape, A.dtype)}
R[{0|1:|:, 0|::2|-1|K|...|0, 0|A > T|:, K:}] {=|+=} {T|1|K}

R = np.zeros({len(A)|A.shape|A.shape[::-1]|(2, *A.shape)|A.shape[1]|(len(A), 2)|len(A) + 1})
R[{0|1|-1|1:|::2|:-1}] = {T|K|1}

R = A[0, 0]
A[0, 0] = {A[1, 1]|T|R + 1|2 * R}
A[1, 1] = R

R = A[{0|K|:, 1}].copy()
A[{0|1|K}] = {A[-1]|0|A[1]}
S = {R|R + 1|R * 2}

A[0] = 1
R = A{.sum()|.copy()|[1:]|[0]|.T|[::-1]|}
A[{1|0|-1}] = {2|T}

R = A + 1
A[{0|1:}] {=|+=} {R[0]|R[-1] * 2}
R[0] = A[{0|1|-1}]

A += 1
A *= 2
A[{0|1:|:, 0}] {=|-=} {0|X[0]|A[1, 1]}

for R in (A, B):
    R[{0|1:|...}] {+=|=} {T|1}

R = {A[::2]|A[1:]|A[:, ::2]|A[::-1]}[{1:|::-1|:-1|::2}]
R[{...|0|1:}] {=|+=} {T|R + 1|3}

A[1:, 0] = A[:-1, {1|0}]
A[0, 1:] = A[{0|1}, :-1]

A = A + {1|B|T}
A[0] = {T|B[0]|B[-1]}

A = {A[::-1]|A[1:]|A.T|A[:, ::2]}
A[0] = {T|A[1]|A[-1] * 2}
"""

_LOOPS = """
for i in range({len(A)|A.shape[0]|K}):
    A[i] {=|+=|*=} {X|T|B[i]|B[-1 - i]|i|A[i] * 2|Y[i]|B[i] + i}

for i in range({len(A)|1, len(A)|len(A) - 1|K}):
    A[i] = {A[i - 1]|A[i - 1] + B[i]|A[-i]|0.5 * A[i - 1] + X} {|* 2|+ 1}

for i in range(len(A) - {2|1}, -1, -1):
    A[i] {=|+=} {B[i]|0.5 * A[(i + 1) % len(A)]|A[i] + i}

for i in range({A.shape[1]|1, A.shape[1]|A.shape[1] - 1}):
    A[:, i] {=|+=} {Y|B[:, i]|A[:, i - 1]|i|0.5 * A[:, i - 1] + Y}

for i in range({0, len(A), 2|1, len(A), 2|0, len(A), 3|len(A) - 1, 0, -2}):
    A[i] {=|+=} {T|X|B[i] + 1|i}

for i in range({K|3|len(Y)|1, len(Y)}):
    Y[i] {=|+=|-=} {T|Y[i - 1]|i|Y[i] * 2|Y[-1]|A[i, 0]}

R = {0.0|0|np.float64(0)|1.5|T|X[0]|np.zeros(())}
for i in range(len({X|Y|P})):
    R {+=|-=} {X[i % len(X)]|i|T}

R = {0.0|np.float64(0)|1.0|np.float64(1)|Y[0]|0}
for i in range(len(Y)):
    R {+= Y[i]|= R * 0.5 + Y[i]|= max(R, Y[i])|-= Y[i] * 2|= Y[i]|= R + Y[i] * i|= min(R, Y[-1 - i])}

R = {0.0|0}
for i in range(A.shape[0]):
    for j in range({A.shape[1]|i|i + 1|i, A.shape[0]|1, A.shape[1]|K}):
        R {+= A[i, j % A.shape[1]]|= R * 0.5 + A[i, j % A.shape[1]] - j|+= i - j}

for i in range(A.shape[0]):
    for j in range(A.shape[1]):
        A[i, j] {=|+=} {B[i, j]|i - j|X[j]|Y[i]|A[i, j - 1]|A[i - 1, j]|T * j + i|B[i, -1 - j]|A[i - 1, j - 1] + 1|B[-1 - i, j]}

for i in range(1, A.shape[0] {|- 1}):
    for j in range(1, A.shape[1] {|- 1}):
        A[i, j] = {0.25 * (A[i - 1, j] + A[i - 1, j - 1])|A[i - 1, j] + B[i, j]|max(A[i, j - 1], A[i - 1, j])|A[0, j] - A[i, 0]}

R = np.zeros({A.shape|A.shape[::-1]|(A.shape[0], A.shape[0])})
for i in range(A.shape[0]):
    for j in range({A.shape[0]|i|i, A.shape[0]}):
        R[{i % R.shape[0], j % R.shape[1]|j % R.shape[0], i % R.shape[1]}] = {A[i, 0] - A[j, 1]|i + 2 * j|Y[i] * Y[j] + i}

R = np.zeros({len(A)|len(Y)})
for i in range(len(A)):
    R[i] {=|+=} {A[i].sum()|Y[i]|A[i, 0] * 2|i|A[i] @ X|A[i].max()|A[-1 - i, K]|A[i, i % A.shape[1]]}

R = np.zeros({4|len(A)|5, int})
for i in range(len(P)):
    R[{P[i] % len(R)|i % len(R)|P[-1 - i] % len(R)}] {+=|=} {1|i|P[i]|2}

R = 0
for i in P:
    R {= R * 2 + i|+= i|= i|= max(R, i)}

R = 0.0
for S in {X|Y|Y[::-1]|A[0]|A[:, 1]|A[:, ::2][0]}:
    R {+= S|= R * 0.5 + S|= S|= max(R, S)}

R = X * 0
for S in {A|A[::-1]|A[1:]|reversed(A)|A[:, ::-1]}:
    R {+= S|= R * 0.5 + S|= S * 2|= R + S * S}

for i, S in enumerate({A|A[::-1]|A[1:]}):
    {S += i|S[0] = i|S *= B[i]|S[...] = X + i|S[1:] -= S[:-1]}

for R, S in zip(A, B):
    {R += S|R[0] = S[-1]|R *= 2|S -= R|R[...] = S}

for i, (R, S) in enumerate(zip({Y|Y[::-1]}, {Y[1:]|Y})):
    Y[i] = {R - S|R * 2 + i|S}

R = 0
while R < {K|len(Y)|3}:
    {Y[R] += 1|A[R] = T|A[R] = A[R - 1]|A[:, 0] *= 0.5|Y[R] = R}
    R += 1

R = 0
while R < len(Y) and {Y[R] > T|Y[R] < 99|A[R, 0] != T}:
    R += 1
else:
    Y[0] = R

R, S = 0, {1|1.0|len(A)}
while {R < 9 and S < 20|S > 0 and R < 5|R < 4 or R < 0}:
    R, S = {R + 1, S - 1|R + 1, R + S|R + 2, S * 0.5|R + 1, R}

while {1 < abs(A).max() < 999|0.1 < A.sum() < 999}:
    A *= 0.5

for i in range(len(Y)):
    if {Y[i] > T|i % 2|i == K|A[i, 0] > 0|Y[i] < Y[i - 1]|i > 1 and Y[i] > 0}:
        Y[i] = {T|0|i|Y[i - 1]}
        {pass|continue|break}
    {Y[i] += 1|A[i] = i|pass}

for i in range(len(Y)):
    if {Y[i] > T|i < K}:
        A[i] {=|+=} {X|1}
    {elif Y[i] < 0|elif i == 1|elif A[i, 0] > 0}:
        A[i] = {2|B[i]}
    else:
        A[i] {= B[0]|-= 1}

R = S = {0.0|0}
for i in range(len(Y)):
    R, S = {S, R + Y[i]|S + 1, R|R + Y[i], S + R|Y[i], R}

R = -1
for i in range(len(Y)):
    if Y[i] {>|==|>=} {T|Y[K]|0}:
        R = i
        {break|continue|pass}

R = np.zeros(len(Y) {+ 1|})
for i in range(len(Y)):
    R[i {+ 1|}] {= R[i] + Y[i]|= R[i - 1] - Y[i]|= Y[i] * i}
""".replace("R[i {+ 1|}]", "R[(i + 1) % len(R)]")

_LOOPS_TOO = """
for i in range({3|K|2|5}):
    A[1:] {= A[:-1]|+= A[:-1]|= 0.5 * (A[1:] + A[:-1])|*= 0.5} {|+ i}
    B[0] = A[{-1|i % len(A)|0}]

for i in range({3|K}):
    A, B = {B, A|B, A + 1|A + B, A|B * 1, A}

for i in range({4|len(A)}):
    for j in range({i|i, 4|i + 1|2}):
        {A[0] += i - j|A[j % len(A)] += B[i % len(A)]|Y[i % len(Y)] += j + 1|A[i % len(A), j % A.shape[1]] = i + 2 * j}

R = {A|A * 1|X * 0|A.sum()}
for i in range({3|K}):
    R = {R * 0.5 + 1|R + i|R - X.sum()|R * R - i}

R = [A[i]{.sum()|| + i} for i in range({2|K})]

R = sum({A[i, 0] * i|Y[i]|Y[i] * 2} for i in range({3|K}))

R = np.array([{Y[i]|A[i].sum()|A[i, 0] * i} for i in range({2|len(Y)})])

R, S = [], 0
for i in range({2|K}):
    R.append({A[i] + S|S|Y[i]|A[i].sum()})
    S += {1|Y[i]}

if {A.sum() > T|Y[0] > Y[1]|X.max() > 1|K > 1|T > 0|A[0, 0] > A[1, 1]|len(A) > 4|(A > T).any()}:
    {A[0] = T|A += 1|A[1:] = A[:-1]|Y[0] = 9}
{|else:
    A[-1] = 2|else:
    B[0] = 1}

if {A.sum() > T|Y[0] > 0|K > 1|(A > 0).all()}:
    R = {A + 1|A * 2|A.sum()|X + 1}
else:
    R = {A - 1|A * 3|A.min()|X * 2}

R = {A if A.sum() > 0 else B|A[0] if K > 1 else A[1]|T if T > 0 else -T|A.sum() if Y[0] > 0 else A.max()|K if A[0, 0] > T else 2}

R = {A[0, 0] > 0 and A[1, 1] > 0|K > 1 or T > 0|not K|K and T|T or K}

D["u"] {=|+=} {X|A[0]|X + 1|A.sum()|K}

D["u"][{0|1:|...|::2}] {=|+=} {T|K|X[0]}

D["v"], D["u"] = {D["u"], D["v"]|A, D["u"]|D["u"] + 1, A * 2|A[0], A[1]}

R = D{["u"] + 1|["u"]|.get("w")|["v"] * D["n"]|}

D["w"] = {A + 1|A|D["n"] + 1|D.pop("v")|X.sum()}

for R in D:
    {if R == "u":
        D[R] += 1|D["n"] += 1|A[0] += D["n"]}

L[0] {=|+=} {X|X * 2|A[0]|1}

L[1] {=|+=} {K|A.sum()|L[1] + 1}

L.{append(A.sum())|append(A)|append(K)|extend([A[0] + 1, K])|insert(0, X + 1)|pop()|reverse()}

R = L{[0] + L[1]|| + [A + 1]|[::-1]|[1]}

for R in L[:1]:
    R {+= 1|*= K|-= T}

A[0] = 3
{if K > 1:
    raise ValueError("k")|assert K < 2|if T > 1:
    raise KeyError(K)|Y[99] = 1|A.sum(axis=3)|A + np.ones((99, 98))}
A[1] = 4

with np.errstate(all="ignore"):
    A[0] {/=|=} {0|T / (A[1] - A[1])|1 / X}

def S(u):
    u[0] {=|+=} 1
    return u{| * 2|[1:]|.sum()}
R = S({A|A[1:]|A[:, 1]|A.T|A.copy()})

def S(u, v={1|K}):
    if {v > 1|u.sum() > T|len(u) > 4}:
        return u + v
    return u - v
R = S({A|A[0]|Y|X[::2]})

R = (lambda u: {u + 1|u[::-1]|u.sum()|u * K})({A|X|A[1:]})

for i in range(len(A)):
    if Y[i] > {T|0|Y.sum()}:
        return A, i, {Y|X}
    A[i] {+=|=} 1

for i in range(len(A)):
    R = A[i].copy()
    A[i] = {B[i]|R[::-1]|A[i - 1]}
    B[i] = R

for i in range(len(A)):
    for j in range(i{|+ 1}, len(A)):
        if Y[j] {<|>} Y[i]:
            Y[i], Y[j] = Y[j], Y[i]

R = 0
for i in range(len(Y)):
    for j in range(len(X)):
        if {X[j] > Y[i]|A[i, j] > T|j > i|A[i, j] == B[i, j]}:
            {break|continue|R -= 1}
        R += {1|j|i}

for i in range({len(P)|1, len(P)}):
    {A[P[i]] += 1|A[P[i]] = B[i % len(B)]|Y[P[i]] = i|Y[P[i]] -= Y[P[i - 1]]|A[P[i], 0] += T|A[0, P[i] % A.shape[1]] = i}

R = A[0]{.copy()| * 1}
for i in range(1, len(A)):
    R = {R * 0.5 + A[i]|np.maximum(R, A[i])|A[i] - R|np.where(A[i] > R, A[i], R + 1)}
    A[i] = R

for i in range(len(A) - 1):
    A[i + 1] {-=|+=} {A[i]|A[i] * Y[i]|B[i]}
for i in range(len(A) - 2, -1, -1):
    A[i] = {A[i] - A[i + 1]|A[i + 1] * 0.5|A[i] + B[i + 1]}

R = np.zeros_like(A)
for i in range(len(A)):
    R[{i|-1 - i}] = {A[i] * 2|A[i - 1] + R[i - 1]|X * i|A[i, ::-1]|B[i] if i > 1 else A[i]}

R = np.empty({A.shape|len(A)})
for i in range(len(A)):
    R[i] = {Y[i]|A[i, 0] * i|i}

for i in range({2|3}):
    R = A{.sum()|[i]|[0] * i| + i}
    A[{0|i|1:}] {=|+=} {R.sum()|T|i}

R = 0.0
for i in range(1, len(Y)):
    S = Y[i] - Y[i - 1]
    R = {R + S|max(R, S)|S * i|R + S if S > 0 else R}
    Y[i] {=|+=} {S|R|S * 0.5}

A[0] += {np.linalg.inv(B[:2, :2])[0, 0]|np.linalg.solve(B[:2, :2], B[:2, 0])[0]|np.linalg.cholesky(B[:2, :2])[0, 0]}

A[0] = 3
A[{K + 9|P + 1|P * 2}] = {T|1}
A[1] = 4

R = Y[{P + 1|P * 2|-P}]
"""


def _split(text: str) -> list[str]:
    return text.strip().split("\n\n")


VALUES = _split(_VALUES)
WRITES = _split(_WRITES)
LOOPS = _split(_LOOPS) + _split(_LOOPS_TOO)
