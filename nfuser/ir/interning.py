# SPDX-License-Identifier: Apache-2.0
"""The lock under which scalars are interned; no fork happens while it is held.

It has a file of its own so that whoever holds a lock of an upper layer while scalars
are made can have this one registered first: a fork takes them in the reverse order.
"""

from __future__ import annotations

from threading import RLock

from nfuser.locks import waited_for

INTERNING = RLock()
waited_for(INTERNING)
