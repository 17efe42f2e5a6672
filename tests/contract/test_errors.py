# SPDX-License-Identifier: Apache-2.0
"""Errors that users can catch have their classes in one place."""

from __future__ import annotations

import importlib
import pkgutil

import nfuser
from nfuser.errors import NfuserError

CAUGHT_INSIDE = {
    *("AnewError", "ConversionError", "DamagedEntryError", "UpdateError"),
}  # no user ever sees one


def _below(kind: type[NfuserError]) -> set[type[NfuserError]]:
    found = set(kind.__subclasses__())
    return found.union(*map(_below, found))


def test_every_error_that_users_see_is_found_in_the_module_of_errors() -> None:
    for module in pkgutil.walk_packages(nfuser.__path__, "nfuser."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError:
                continue  # an optional library is missing here
    outside = {
        kind.__name__
        for kind in _below(NfuserError)
        if kind.__module__.startswith("nfuser.") and kind.__module__ != "nfuser.errors"
    }
    assert outside <= CAUGHT_INSIDE
