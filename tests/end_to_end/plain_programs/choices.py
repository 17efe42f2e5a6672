# SPDX-License-Identifier: Apache-2.0
"""Graphs, tables of dynamic programming, sparse and dense matrices."""

# Users annotate nothing.
# pyright: basic, reportArgumentType=false

import numpy as np

from tests.end_to_end.plain_programs import motions, pictures

INFINITY = np.inf
calls = {"count": 0}


def row_total(q):
    return q.sum(axis=-1)


def distance_to_true(mask):
    n = len(mask)
    away = np.where(mask, 0, n)
    for i in range(1, n):
        away[i] = min(away[i], away[i - 1] + 1)
    for i in range(n - 2, -1, -1):
        away[i] = min(away[i], away[i + 1] + 1)
    return away


def csr_times(data, indices, indptr, x):
    n = len(indptr) - 1
    y = np.zeros(n)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[indices[k]]
    return y


def csr_rows(data, indices, indptr, x):
    y = np.empty(len(indptr) - 1)
    for i in range(len(y)):
        mine = slice(indptr[i], indptr[i + 1])
        y[i] = data[mine] @ x[indices[mine]]
    return y


def pagerank(source, target, n, damping=0.85, tolerance=1e-8):
    degree = np.bincount(source, minlength=n)
    rank = np.full(n, 1.0 / n)
    for _ in range(100):
        share = np.where(degree > 0, rank / np.maximum(degree, 1), 0)
        new = np.full(n, (1 - damping) / n)
        np.add.at(new, target, damping * share[source])
        new += damping * rank[degree == 0].sum() / n
        if np.abs(new - rank).sum() < tolerance:
            return new
        rank = new
    return rank


def bellman_ford(source, target, weight, n, start):
    distance = np.full(n, INFINITY)
    distance[start] = 0
    for _ in range(n - 1):
        before = distance.copy()
        np.minimum.at(distance, target, before[source] + weight)
        if (distance == before).all():
            break
    else:
        return distance, (distance[source] + weight < distance[target]).any()
    return distance, False


def bfs(adjacency, start):
    level = np.full(len(adjacency), -1)
    frontier = np.zeros(len(adjacency), dtype=bool)
    frontier[start] = True
    depth = 0
    while frontier.any():
        level[frontier] = depth
        frontier = adjacency[frontier].any(axis=0) & (level < 0)
        depth += 1
    return level


def dijkstra(weights, start):
    n = len(weights)
    distance = np.full(n, INFINITY)
    distance[start] = 0.0
    done = np.zeros(n, dtype=bool)
    parent = -np.ones(n, dtype=int)
    for _ in range(n):
        u = np.argmin(np.where(done, INFINITY, distance))
        if np.isinf(distance[u]):
            break
        done[u] = True
        through = distance[u] + weights[u]
        closer = through < distance
        distance[closer] = through[closer]
        parent[closer] = u
    return distance, parent


def components(i, j, n):
    label = np.arange(n)
    while True:
        old = label.copy()
        least = np.minimum(label[i], label[j])
        np.minimum.at(label, i, least)
        np.minimum.at(label, j, least)
        label = label[label]
        if np.array_equal(label, old):
            return label


def edit_distance(a, b):
    previous = np.arange(len(b) + 1)
    for i in range(len(a)):
        current = np.empty_like(previous)
        current[0] = i + 1
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            current[j + 1] = min(
                previous[j + 1] + 1, current[j] + 1, previous[j] + cost
            )
        previous = current
    return previous[-1]


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1)
    for w, v in zip(weights, values):
        for c in range(capacity, w - 1, -1):
            if best[c - w] + v > best[c]:
                best[c] = best[c - w] + v
    return best[capacity]


def smith_waterman(a, b, match=2, mismatch=-1, gap=-1):
    h = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    top, where = 0, (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            score = match if a[i - 1] == b[j - 1] else mismatch
            h[i, j] = max(
                0, h[i - 1, j - 1] + score, h[i - 1, j] + gap, h[i, j - 1] + gap
            )
            if h[i, j] > top:
                top, where = h[i, j], (i, j)
    return h, top, where


def viterbi(start, transition, emission, observed):
    t, n = len(observed), len(start)
    score = np.log(start) + np.log(emission[:, observed[0]])
    back = np.zeros((t, n), dtype=int)
    for k in range(1, t):
        candidates = score[:, None] + np.log(transition)
        back[k] = candidates.argmax(axis=0)
        score = candidates.max(axis=0) + np.log(emission[:, observed[k]])
    path = np.zeros(t, dtype=int)
    path[-1] = score.argmax()
    for k in range(t - 1, 0, -1):
        path[k - 1] = back[k, path[k]]
    return path, score.max()


def forward(start, transition, emission, observed):
    alpha = start * emission[:, observed[0]]
    likelihood = 0.0
    for o in observed[1:]:
        total = alpha.sum()
        likelihood += np.log(total)
        alpha = (alpha / total) @ transition * emission[:, o]
    return likelihood + np.log(alpha.sum())


def jacobi_eigenvalues(a, sweeps=10):
    a = a.copy()
    n = len(a)
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(a[p, q]) < 1e-14:
                    continue
                theta = 0.5 * np.arctan2(2 * a[p, q], a[q, q] - a[p, p])
                c, s = np.cos(theta), np.sin(theta)
                rp, rq = c * a[p] - s * a[q], s * a[p] + c * a[q]
                a[p], a[q] = rp, rq
                cp, cq = c * a[:, p] - s * a[:, q], s * a[:, p] + c * a[:, q]
                a[:, p], a[:, q] = cp, cq
    return np.sort(np.diag(a))


def lu(a):
    n = a.shape[0]
    order = np.arange(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return order


def householder(a):
    r = a.copy()
    m, n = r.shape
    q = np.eye(m)
    for k in range(min(m - 1, n)):
        x = r[k:, k].copy()
        x[0] += np.copysign(np.sqrt((x**2).sum()), x[0])
        v = x / np.sqrt((x**2).sum())
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ v, v)
    return q, np.triu(r)


def conjugate_gradient(a, b, x=None, tolerance=1e-10):
    x = np.zeros_like(b) if x is None else x
    r = b - a @ x
    p = r
    old = r @ r
    steps = 0
    while np.sqrt(old) > tolerance and steps < 2 * len(b):
        ap = a @ p
        alpha = old / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / old) * p
        old = new
        steps += 1
    return x, steps


def coin_change(coins, amount):
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    for coin in coins:
        for a in range(coin, amount + 1):
            ways[a] += ways[a - coin]
    return ways


def prim(weights):
    n = weights.shape[0]
    inside = np.zeros(n, dtype=bool)
    inside[0] = True
    nearest = weights[0].copy()
    total = 0.0
    order = [0]
    while not inside.all():
        reachable = np.where(inside, INFINITY, nearest)
        k = reachable.argmin()
        total += reachable[k]
        inside[k] = True
        order.append(k)
        nearest = np.minimum(nearest, weights[k])
    return total, order


def sieve(n):
    prime = np.ones(n + 1, dtype=bool)
    prime[:2] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            prime[i * i :: i] = False
        i += 1
    return prime


def sinkhorn(a, b, cost, reg=0.1, rounds=50):
    k = np.exp(-cost / reg)
    u, v = np.ones_like(a), np.ones_like(b)
    for i in range(rounds):
        before = u
        u = a / (k @ v)
        v = b / (k.T @ u)
        if i % 10 == 0 and np.allclose(u, before, rtol=1e-6):
            break
    plan = u[:, None] * k * v
    return plan, np.sum(plan * cost)


def mixture(x, means, sigmas, weights, rounds=10):
    for _ in range(rounds):
        z = (x[:, None] - means) / sigmas
        r = weights * np.exp(-0.5 * z**2) / sigmas
        r /= r.sum(axis=1, keepdims=True)
        n = r.sum(axis=0)
        means[:] = (r * x[:, None]).sum(axis=0) / n
        sigmas[:] = np.sqrt((r * (x[:, None] - means) ** 2).sum(axis=0) / n) + 1e-6
        weights[:] = n / len(x)
    return r.argmax(axis=1)


def perceptron(x, y, epochs=5, rate=0.1):
    w = np.zeros(x.shape[1] + 1)
    errors = np.zeros(epochs, dtype=int)
    for epoch in range(epochs):
        for xi, yi in zip(x, y):
            guess = 1 if xi @ w[1:] + w[0] >= 0 else -1
            if guess != yi:
                w[1:] += rate * yi * xi
                w[0] += rate * yi
                errors[epoch] += 1
        if errors[epoch] == 0:
            break
    return w, errors


def tour(points):
    n = len(points)
    left = np.ones(n, dtype=bool)
    path = np.zeros(n, dtype=int)
    length = 0.0
    here = 0
    left[0] = False
    for k in range(1, n):
        d = np.sqrt(((points - points[here]) ** 2).sum(axis=1))
        d[~left] = np.inf
        here = np.argmin(d)
        length += d[here]
        left[here] = False
        path[k] = here
    return path, length


def isolated(points, mask, reach):
    calls["count"] += 1
    d = np.abs(points[:, None] - points)
    close = (d < reach) & mask
    np.fill_diagonal(close, False)
    alone = ~close.any(axis=1)
    run = motions.longest_run(alone)
    return alone, run, pictures.dilate(close).sum()
