# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import pytest

from nfuser.errors import BackendError
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.streams import DeviceGuard, current_stream, guard
from nfuser.execution.device.describe.descriptor import CPU, Device, Library

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    driver.library.cache_clear()
    driver.device_count.cache_clear()
    monkeypatch.setattr(driver, "_LIBRARY", "libcuda-that-is-not-there.so")
    yield
    driver.library.cache_clear()
    driver.device_count.cache_clear()


@pytest.mark.usefixtures("no_driver")
def test_a_missing_driver_is_named_with_its_remedy() -> None:
    with pytest.raises(BackendError, match="install the NVIDIA driver"):
        driver.device_count()
    assert "libcuda-that-is-not-there.so" in (driver.why_missing() or "")


@pytest.mark.usefixtures("no_driver")
def test_the_cpu_needs_no_driver() -> None:
    assert current_stream(Library.TORCH, CPU) == 0
    with guard(CPU):
        pass


def test_jax_launches_on_the_default_stream() -> None:
    assert current_stream(Library.JAX, Device("cuda", 0)) == 0


class Contexts:
    """Two devices and the context that is current."""

    def __init__(self) -> None:
        self.current: int | None = None

    def primary(self, index: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(100 + index)

    def set(self, context: int) -> None:
        self.current = context

    def make_current(self, index: int) -> None:
        self.current = 100 + index

    def get(self) -> int | None:
        return self.current


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> Contexts:
    found = Contexts()
    replaced: dict[str, Any] = {
        "current_context": found.get,
        "primary_context": found.primary,
        "make_current": found.make_current,
        "set_context": found.set,
        "device_count": lambda: 2,
    }
    for name, function in replaced.items():
        monkeypatch.setattr(driver, name, function)
    return found


def test_a_guard_changes_the_device_and_changes_it_back(contexts: Contexts) -> None:
    contexts.current = 100
    with guard(Device("cuda", 1)):
        assert contexts.current == 101
        with guard(Device("cuda", 0)):
            assert contexts.current == 100
        assert contexts.current == 101
    assert contexts.current == 100


def test_a_guard_undoes_what_a_library_does_inside(contexts: Contexts) -> None:
    contexts.current = 101
    with DeviceGuard(1):
        contexts.current = 7
    assert contexts.current == 101


def test_a_thread_without_a_context_has_none_afterwards(contexts: Contexts) -> None:
    with DeviceGuard(1):
        assert contexts.current == 101
    assert contexts.current is None
