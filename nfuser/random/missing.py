# SPDX-License-Identifier: Apache-2.0
"""What NumPy's generators have and these have not, with what to write instead."""

from __future__ import annotations

from typing import NoReturn

from nfuser.errors import MissingError

_BY_NUMPY = (
    "write numpy.random.default_rng(seed).{name}(...), which fused functions take too: "
    "its draws are calls of NumPy between kernels"
)
_MISSING = {
    **dict.fromkeys(
        (
            *("hypergeometric", "logseries", "multinomial", "zipf", "wald"),
            *("multivariate_hypergeometric", "noncentral_chisquare", "noncentral_f"),
        ),
        _BY_NUMPY,
    ),
    "bytes": "write rng.integers(0, 256, n, np.uint8).tobytes(), outside",
    "bit_generator": "write rng.state, which shows and sets the key and the count",
    "spawn": "write nfuser.random.split(key)",
    "rand": "write rng.random(size)",
    "randn": "write rng.standard_normal(size)",
    "randint": "write rng.integers(low, high, size)",
    "seed": "write nfuser.random.default_rng(seed)",
}


def refuse(kind: str, name: str) -> NoReturn:
    """Refuse a name that is no method."""
    instead = _MISSING.get(name)
    message = f"{kind} of nfuser.random has no {name}"
    if instead is not None:
        message = f"{instead.format(name=name)}; {message}"
    raise MissingError(message)
