# SPDX-License-Identifier: Apache-2.0
"""What cloudpickle takes apart runs in a process that knows nothing of the sender's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes.scripts import run_script

if TYPE_CHECKING:
    from pathlib import Path

SENT = """
    import os
    import subprocess
    import sys

    import cloudpickle
    import numpy as np

    import nfuser

    WEIGHT = np.arange(3.0)
    TIMES = 5


    @nfuser.fuse(resize="static")
    def recursive(x, n=2):
        return x * WEIGHT * TIMES if n == 0 else recursive(x, n - 1)


    def made(shift):
        @nfuser.fuse
        def inner(x, n=1):
            return x + shift if n == 0 else inner(x, n - 1)

        return inner


    class Layer:
        def __init__(self, weight):
            self.weight = weight

        @nfuser.fuse
        def apply(self, x):
            return x * self.weight


    class Steeper(Layer):
        factor = 3.0

        @nfuser.fuse
        def apply(self, x):
            return super().apply(x) * self.factor

        @classmethod
        @nfuser.fuse
        def of_class(cls, x):
            return x * cls.factor


    RECEIVER = '''
    import sys
    import cloudpickle
    import numpy as np

    functions = cloudpickle.load(sys.stdin.buffer)
    for function in functions:
        again = cloudpickle.loads(cloudpickle.dumps(function))
        print(function(np.ones(3)).tolist(), again(np.ones(3)).tolist())
    first = getattr(functions[0], "__func__", functions[0])
    in_globals = first.__wrapped__.__globals__["recursive"]
    print(first.__qualname__, first._resize, in_globals is first)
    '''

    if __name__ == "__main__":
        layer = Steeper(2.0)
        functions = [recursive, made(1.0), nfuser.fuse(lambda x: x - WEIGHT),
                     Layer(4.0).apply, layer.apply, Steeper.of_class]
        sent = cloudpickle.dumps(functions)
        found = subprocess.run([sys.executable, "-c", RECEIVER], input=sent,
                               capture_output=True, cwd="/")
        print(found.stdout.decode() + found.stderr.decode(), end="")
        for function in functions:
            print([function(np.ones(3)).tolist()] * 2)
"""

TOKENS = """
    import numpy as np
    from dask.base import tokenize

    import nfuser

    WEIGHT = 2.0
    scaled = nfuser.fuse(lambda x: x * WEIGHT)


    @nfuser.fuse
    def named(x):
        return x * WEIGHT


    if __name__ == "__main__":
        for function in (scaled, named):
            before = tokenize(function)
            function(np.ones(3))
            assert tokenize(function) == before
            WEIGHT += 1
            assert tokenize(function) != before
        print("done")
"""


def test_a_fresh_process_computes_what_the_sender_does(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    *lines, names = (printed := run_script(SENT, tmp_path))[:7]
    here = printed[7:]
    assert names == "recursive static True"
    assert [f"[{line.replace('] [', '], [')}]" for line in lines] == here
    assert lines[:3] == [
        "[0.0, 5.0, 10.0] [0.0, 5.0, 10.0]",
        "[2.0, 2.0, 2.0] [2.0, 2.0, 2.0]",
        "[1.0, 0.0, -1.0] [1.0, 0.0, -1.0]",
    ]


def test_dask_tells_functions_apart_by_what_they_compute(tmp_path: Path) -> None:
    pytest.importorskip("dask")
    assert run_script(TOKENS, tmp_path) == ["done"]
