# SPDX-License-Identifier: Apache-2.0
"""Fixtures and markers that every test shares."""

from __future__ import annotations

import ctypes
import gc
import re
import tempfile
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from nfuser import config as settings
from nfuser.execution.runtime.caches.shared_cache import forget_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

HERE = Path(__file__).parent

# A plugin that pretends another system: it takes away what others need.
collect_ignore = ["elsewhere.py"]

# Derandomized, so that a run says something about the change and not about the dice;
# `--hypothesis-profile=explore` looks further.
hypothesis.settings.register_profile(
    "nfuser", deadline=None, derandomize=True, database=None
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("nfuser")

CACHE = pytest.StashKey[Path]()
_cache_numbers = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden"
    )


def _device_count() -> int:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    found = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(found)):
        return 0
    return found.value


def _names_torch(item: pytest.Item) -> bool:
    """Tell whether a test speaks of torch: in its name, parameters, code or module."""
    if "torch" in item.nodeid:
        return True
    code = getattr(getattr(item, "function", None), "__code__", None)
    words = () if code is None else (*code.co_consts, *code.co_names)
    return any(isinstance(word, str) and "torch" in word for word in words)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _names_torch(item):
            item.add_marker("torch")
    needs = {"gpu": 1, "multigpu": 2}
    if not any(item.get_closest_marker(name) for item in items for name in needs):
        return
    devices = _device_count()
    for item in items:
        for name, least in needs.items():
            if item.get_closest_marker(name) and devices < least:
                reason = f"needs {least} CUDA device(s), found {devices}"
                item.add_marker(pytest.mark.skip(reason=reason))


def _clean(cache: Path) -> AbstractContextManager[object]:
    """Settings as if no variable were set, the IR verified after every pass."""
    plain = settings.from_environment({})
    changes = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    return settings.override(**changes | {"cache_dir": str(cache), "verify": 2})


def pytest_collection_finish() -> None:
    # Thousands of tests, and libraries, stay to the end: to look through all of them
    # after every 700 objects takes a twentieth of the suite.
    gc.collect()
    gc.set_threshold(20_000, 20, 50)


def pytest_configure(config: pytest.Config) -> None:
    # For the doctests of nfuser/, which the fixture below does not reach.
    stack = ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="nfuser-tests-"))
    stack.enter_context(_clean(Path(folder)))
    # And for the processes that tests start.
    stack.enter_context(pytest.MonkeyPatch.context()).setenv("NFUSER_CACHE_DIR", folder)
    config.add_cleanup(stack.close)
    config.stash[CACHE] = Path(folder)


@pytest.fixture(autouse=True)
def clean_config(pytestconfig: pytest.Config) -> Iterator[None]:
    """Give each test default settings, empty caches and full verification.

    Kernels stay: to compile them takes time, and which test did so changes nothing.
    """
    forget_all(kernels=False)
    with _clean(pytestconfig.stash[CACHE] / str(next(_cache_numbers))):
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare a text with the file in tests/golden named after the test."""
    folder = request.path.relative_to(HERE).with_suffix("")
    name = re.sub(r"[^\w.-]+", "_", request.node.name).strip("_")
    path = HERE / "golden" / folder / f"{name}.txt"

    def check(actual: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual)
        assert path.exists(), f"no golden file; run pytest --update-golden ({path})"
        assert actual == path.read_text()

    return check
