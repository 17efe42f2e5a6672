# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nfuser.execution.device.cuda.driver import DeviceProperties
from nfuser.frontend.commands.doctor import Findings, examine, missing, problems, report

GPU = DeviceProperties(
    "NVIDIA H200",
    (9, 0),
    132,
    32,
    1024,
    2048,
    32,
    65536,
    49152,
    232448,
    233472,
    62914560,
)
OLD = DeviceProperties(
    "Old", (7, 0), 80, 32, 1024, 2048, 32, 65536, 49152, 98304, 98304, 6 << 20
)
TOOLS13 = {
    "numba-cuda": "0.30.4",
    "nvidia-nvvm": "13.4.92",
    "nvidia-nvjitlink": "13.5.37",
    "nvidia-cuda-nvrtc": "13.4.92",
}


def test_a_device_with_all_it_needs() -> None:
    facts = Findings({"numpy": "2.4.6", **TOOLS13}, (13, 0), (GPU,))
    assert problems(facts) == []
    text = report(facts)
    assert "cuda:0 NVIDIA H200, compute capability 9.0, 132 multiprocessors, 60" in text
    assert text.endswith("no problem with what is here")


@pytest.mark.parametrize(
    ("newest", "line"),
    [
        ((13, 1), "pip install 'nfuser[cuda13]'"),
        ((12, 4), "pip install 'nfuser[cuda12]'"),
    ],
)
def test_the_line_to_install_fits_the_driver(
    newest: tuple[int, int], line: str
) -> None:
    (problem,) = problems(Findings({}, newest, (GPU,)))
    assert problem.endswith(line)
    assert f"problem: {problem}" in report(Findings({}, newest, (GPU,)))


def test_the_wrong_toolkit_is_not_enough() -> None:
    facts = Findings(dict(TOOLS13), (12, 4), (GPU,))
    assert "nvidia-nvjitlink-cu12" in missing(facts)


TOOLKIT13 = {
    "nvvm": "/usr/local/cuda/nvvm/lib64/libnvvm.so.4",
    "libdevice": "/usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
    "nvJitLink": "/usr/local/cuda/lib64/libnvJitLink.so.13",
    "nvrtc": "/usr/local/cuda/lib64/libnvrtc.so.13",
}
NUMBA = {"numba-cuda": "0.30.4"}


def test_a_toolkit_stands_in_for_the_packages() -> None:
    facts = Findings(NUMBA, (13, 0), (GPU,), None, TOOLKIT13)
    assert missing(facts) == []
    assert problems(facts) == []
    text = report(facts)
    assert "nvidia-nvvm /usr/local/cuda/nvvm/lib64/libnvvm.so.4" in text
    assert text.endswith("no problem with what is here")


@pytest.mark.parametrize("lost", ["nvvm", "libdevice", "nvJitLink", "nvrtc"])
def test_a_toolkit_without_a_part_is_not_enough(lost: str) -> None:
    part = {name: path for name, path in TOOLKIT13.items() if name != lost}
    facts = Findings(NUMBA, (13, 0), (GPU,), None, part)
    (package,) = missing(facts)
    assert lost.lower().replace("libdevice", "nvvm") in package
    assert f"{package} not found; pip install" in report(facts)


def test_a_toolkit_that_is_newer_than_the_driver_is_not_enough() -> None:
    facts = Findings(NUMBA, (12, 4), (GPU,), None, TOOLKIT13)
    assert len(missing(facts)) == 3
    assert "libnvvm" not in report(facts)


def test_a_toolkit_is_looked_for_where_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numba_cuda")
    versions = {"numba-cuda": "0.30.4", "numpy": "2.4.6"}
    monkeypatch.setattr("nfuser.frontend.commands.doctor._version", versions.get)
    found = examine().toolkit
    # Here the packages are what numba-cuda finds: it knows better than the names do.
    assert {"nvvm", "libdevice", "nvJitLink", "nvrtc"} <= set(found)
    assert all(Path(path).is_file() for path in found.values())


def test_an_old_driver() -> None:
    (problem,) = problems(Findings({}, (11, 8), (GPU,)))
    assert "CUDA 11.8; update" in problem


def test_an_old_device() -> None:
    (problem,) = problems(Findings(dict(TOOLS13), (13, 0), (OLD,)))
    assert "7.0" in problem
    assert "8.0" in problem


@pytest.mark.parametrize(
    ("numpy", "cuda", "clash"),
    [("2.5.2", "0.30.4", True), ("2.4.6", "0.30.4", False), ("2.5.2", "0.31.0", False)],
)
def test_a_numpy_that_numba_cuda_cannot_take(
    numpy: str, cuda: str, clash: bool
) -> None:
    found = problems(Findings({**TOOLS13, "numpy": numpy, "numba-cuda": cuda}, (13, 0)))
    assert any("numpy<2.5" in line for line in found) is clash


def test_no_device_is_no_problem() -> None:
    facts = Findings({}, None, (), "no CUDA driver: libcuda.so.1")
    assert problems(facts) == []
    assert "no device: no CUDA driver: libcuda.so.1" in report(facts)


def test_this_machine() -> None:
    facts = examine()
    assert facts.versions["numpy"].count(".") == 2
    assert bool(facts.devices) == (facts.why_no_device is None)
    assert "threads" in report(facts)


def test_the_report_imports_no_array_library_and_no_numba() -> None:
    code = (
        "import sys; from nfuser.frontend.commands.doctor import main; main();"
        "sys.exit(any(m in sys.modules for m in ('numba', 'torch', 'cupy', 'jax')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    # main's own verdict does not matter here: sys.exit replaces it.
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CPU backend" in done.stdout
