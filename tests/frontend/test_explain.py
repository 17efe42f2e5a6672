# SPDX-License-Identifier: Apache-2.0
"""``explain`` says what a call moves, and why it is several kernels."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import inspect
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser import Spec, config
from nfuser import __main__ as command_line
from nfuser.execution.device.native.layout import MOST_OBJECTS
from nfuser.execution.device.native.shared import is_as_expected
from nfuser.frontend.explain.traffic import Traffic

if TYPE_CHECKING:
    from nfuser.frontend.explain.explanation import Operation

X = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)  # 80 bytes, a row is 20
Y = np.ones(5)
HERE = Path(__file__).name


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def two_ways(x: Any) -> Any:
    shares = x / x.sum(axis=1, keepdims=True)
    return shares.max(axis=0)  # the other way


def layer(x: Any, w: Any) -> Any:
    product = x @ w.T
    return np.maximum(product, 0)


def _line(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + k for k, line in enumerate(lines) if text in line)


def _number(operation: Operation | None) -> int:
    assert operation is not None
    assert operation.line is not None
    assert Path(operation.line.file).name == HERE
    return operation.line.line


def test_softmax_is_one_kernel_and_moves_its_input_and_its_output() -> None:
    fused = nfuser.fuse(softmax)
    told = fused.explain(X)
    assert (told.operations, told.kernels, told.cuts) == (5, 1, ())
    assert told.fused == Traffic(80, 80)
    # max, subtract, exp, sum, divide; a number a row is 16 bytes.
    read = 80 + (80 + 16) + 80 + 80 + (80 + 16)
    assert told.unfused == Traffic(read, 16 + 80 + 80 + 16 + 80)
    (piece,) = told.pieces
    (kernel,) = fused.kernels(X)
    assert (piece.name, piece.schedule) == (kernel.name, kernel.schedule)
    names = [o.name for o in piece.operations]
    assert names == ["max", "subtract", "exp", "sum", "divide"]
    first = _line(softmax, "powers = ")
    assert [_number(o) for o in piece.operations] == [first] * 3 + [first + 1] * 2


def test_a_cut_names_what_crosses_it_and_the_operation_at_fault() -> None:
    told = nfuser.fuse(two_ways).explain(X)
    assert (told.operations, told.kernels) == (3, 2)
    assert [p.traffic for p in told.pieces] == [Traffic(80, 80), Traffic(80, 20)]
    (cut,) = told.cuts
    assert (cut.stored_by, cut.pieces, cut.bytes) == (0, (1,), 80)
    assert cut.tensor == "f32[4, 5]"
    assert _number(cut.operation) == _line(two_ways, "shares = ")
    (reason,) = cut.reasons
    assert reason.operation is not None
    assert reason.operation.name == "max"
    assert _number(reason.operation) == _line(two_ways, "the other way")
    assert reason.text == "it reduces other axes than the rest"
    assert f"max at {HERE}:{_number(reason.operation)}: it reduces" in str(told)


def test_two_kernels_that_read_the_same_array_have_a_reason_too() -> None:
    told = nfuser.fuse(lambda x: (x.max(0), x.max(1))).explain(X)
    assert [p.traffic for p in told.pieces] == [Traffic(80, 20), Traffic(80, 16)]
    (cut,) = told.cuts
    assert (cut.operation, cut.stored_by, cut.pieces) == (None, None, (0, 1))
    assert str(cut) == "x: f32[4, 5]: pieces 0 and 1 read it, each for itself"


def test_what_is_computed_twice_is_said() -> None:
    told = nfuser.fuse(lambda x: ((x * 2).max(0), (x * 2).max(1))).explain(X)
    texts = [str(cut) for cut in told.cuts]
    assert any("pieces 0 and 1 compute it, each for itself" in t for t in texts)
    assert told.fused == Traffic(160, 36)


def test_an_empty_array_moves_nothing_and_has_no_ratio() -> None:
    text = str(nfuser.fuse(lambda x: x * (x.sum() + 1)).explain(np.ones((0, 4))))
    assert "fused   0 bytes" in text
    assert "times as many" not in text


def test_what_has_nothing_in_common_is_not_cut() -> None:
    told = nfuser.fuse(lambda x, y: (x + 1, y.sum())).explain(X, X)
    assert (told.kernels, told.cuts) == (2, ())
    assert told.notes == tuple(
        f"piece {k} has nothing in common with the others" for k in range(2)
    )


def test_a_product_is_no_kernel() -> None:
    fused = nfuser.fuse(layer)
    told = fused.explain(X, X[:3])
    assert (told.operations, told.kernels) == (2, 1)
    product, rest = told.pieces
    assert (product.is_kernel, rest.is_kernel) == (False, True)
    assert product.traffic == Traffic(80 + 60, 48)
    assert rest.traffic == Traffic(48, 48)
    assert told.unfused == told.fused
    (cut,) = told.cuts
    assert _number(cut.operation) == _line(layer, "product = ")
    assert cut.reasons[0].text == "the library computes the product, and nothing else"


def test_a_result_that_is_only_a_view_is_a_copy_and_says_so() -> None:
    told = nfuser.fuse(lambda x: (x.T, x + 1)).explain(X)
    assert told.unfused == Traffic(80, 80)  # a view moves nothing
    assert told.fused == Traffic(80, 160)
    assert told.notes == ("result 0 is a copy of a view of x: it shares no memory",)
    told = nfuser.fuse(lambda x: x.copy()).explain(X)
    assert (told.operations, told.unfused) == (1, Traffic(80, 80))
    assert told.notes == ()


BYTES: dict[str, tuple[Any, tuple[Any, ...], Traffic, Traffic]] = {
    "a slice": (lambda x: x[1:3, 1:] * 2, (X,), Traffic(32, 32), Traffic(32, 32)),
    "rows gathered": (
        lambda x, i: x[i] + 1,
        (X, np.array([2, 0])),
        Traffic(40 + 16, 40),
        Traffic(40 + 16 + 40, 80),
    ),
    "stretched in memory": (
        lambda x: x + 1,
        (np.broadcast_to(X[0], (4, 5)),),
        Traffic(20, 80),
        Traffic(20, 80),
    ),
    "stretched": (
        lambda x, b: (x + b) * b,
        (X, X[0]),
        Traffic(80 + 20, 80),
        Traffic(200, 160),
    ),
    "promoted in passing": (
        lambda x, y: x + y,
        (X, X.astype(np.float64)),
        Traffic(240, 160),
        Traffic(240, 160),
    ),
    "bfloat16 between operations": (
        lambda x: np.exp(x * x),
        (X.astype(ml_dtypes.bfloat16),),
        Traffic(40, 40),
        Traffic(80, 80),
    ),
    "complex": (lambda x: x * 2j, (X + 0j,), Traffic(160, 160), Traffic(160, 160)),
    "numbers that are passed": (
        lambda x, a, b: x * a + b,
        (X, 2.0, 3),
        Traffic(80, 80),
        Traffic(160, 160),
    ),
    "made of nothing": (
        lambda x: np.ones_like(x) * 2,
        (X,),
        Traffic(0, 80),
        Traffic(80, 160),
    ),
    "without elements": (
        lambda x: x + 1,
        (X[:0],),
        Traffic(0, 0),
        Traffic(0, 0),
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_those_counted_by_hand(name: str) -> None:
    function, arrays, fused, unfused = BYTES[name]
    told = nfuser.fuse(function).explain(*arrays)
    assert told.fused == fused
    assert told.unfused == unfused


def test_nothing_runs_and_nothing_is_compiled() -> None:
    fused = nfuser.fuse(lambda x, y: (x - y).sum(1) / 3)
    told = fused.explain(Spec((4, 5)), y=X)
    assert "x: f32[4, 5], y: f32[4, 5]" in str(told)
    info = fused.cache_info()
    assert (info.calls, info.traces, info.compiled, info.runtimes) == (0, 1, 0, 0)
    np.testing.assert_allclose(fused(X + 1, X), np.full(4, 5 / 3), rtol=1e-6)
    assert fused.cache_info().traces == 1


def test_the_gpu_is_explained_without_one() -> None:
    told = nfuser.fuse(softmax, backend="interpret").explain(X)
    assert told.where == "cpu, interpret"
    assert "up to" in told.pieces[0].schedule


def test_lines_are_those_of_the_function_that_is_asked() -> None:
    def twin(x: Any) -> Any:
        shares = x / x.sum(axis=1, keepdims=True)
        return shares.sum(axis=0)

    nfuser.fuse(two_ways)(X)  # it builds what both use
    fused = nfuser.fuse(twin)
    told = fused.explain(X)
    assert _number(told.cuts[0].operation) == _line(twin, "shares = ")
    assert [p.name for p in told.pieces] == [k.name for k in fused.kernels(X)]


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(X, X[:, :2]),
        lambda f: f(X),
        lambda f: f(X, z=X),
        lambda f: f(X, {1}),
    ],
)
def test_bad_arguments_are_refused_as_in_a_call(call: Any) -> None:
    fused = nfuser.fuse(lambda x, y: x + y)
    said: list[tuple[type, str]] = []
    for door in (fused, fused.explain):
        with pytest.raises(nfuser.NfuserError) as caught:
            call(door)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


def test_html_shows_the_same_and_escapes_it() -> None:
    told = nfuser.fuse(lambda x: (np.where(x < 0, 0, x), x.max(0), x.max(1))).explain(X)
    html = told._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert html.count("<tr>") == 1 + len(told.pieces)
    assert "x &lt; 0" in html
    assert "x < 0" not in html
    assert all(line in html for line in told.summary)
    assert "it reduces other axes than the rest" in html


def test_definitions_explain_themselves() -> None:
    def define() -> nfuser.FusionDefinition:
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor(shape=[-1, -1])
            shares = fd.ops.div(x, fd.ops.sum(x, 1, keepdim=True))
            fd.add_output(fd.ops.sum(shares, 0))
            fd.add_output(shares, x)
        return fd

    told = define().explain([X.copy()])
    assert told.kernels == 2
    assert _number(told.cuts[0].operation) == _line(define, "shares = ")
    assert told.notes == ("result 1 is copied into T0, after all was read",)
    assert str(define().explain([X.copy()])) == str(told)
    with pytest.raises(nfuser.NfuserError, match="expected 1 inputs"):
        define().explain([])


def test_each_concretization_of_a_script_is_explained_once(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np, nfuser\n"
        "@nfuser.fuse\n"
        "def scaled(x, y):\n"
        "    return x * y\n"
        "for n in (3, 4, 4, 1):\n"  # 1 stretches: another concretization
        "    print(scaled(np.ones((n, 2)), np.ones((4 if n == 1 else n, 2))).shape)\n"
        "with nfuser.FusionDefinition() as fd:\n"
        "    fd.add_output(fd.ops.neg(fd.define_tensor(shape=[-1])))\n"
        "fd.execute([np.ones(3, np.float32)])\n"
        "print(__name__, sys.argv[1:])\n"
    )
    monkeypatch.setattr("sys.argv", ["nfuser"])
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    before = config.current()
    assert command_line.main(["explain", str(script), "-v", "one"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("scaled(x: f64[") == 2
    assert "script.py:4  return x * y" in shown.err
    assert shown.err.count("definition(T0: f32[3]) on cpu") == 1
    assert shown.out.endswith("__main__ ['-v', 'one']\n")
    assert config.current() is before
    assert command_line.main(["kernels", str(script)]) == 0
    assert "def scaled_kernel(" in capsys.readouterr().err
    assert command_line.main(["explain", str(tmp_path / "none.py")]) == 2


@pytest.mark.filterwarnings("ignore:fuse the body of this loop:RuntimeWarning")
def test_views_of_views_may_be_many() -> None:
    def turned(x: Any) -> Any:
        for _ in range(1001):
            x = x.T
        return x + 1

    told = nfuser.fuse(turned).explain(np.ones((3, 5), np.float32))
    assert (told.operations, told.unfused.total) == (1, 2 * 60)


def test_the_command_line_tells_the_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["--version"])
    assert capsys.readouterr().out == f"nfuser {config.VERSION}\n"


def _many(x: Any, count: int = 257) -> Any:
    return [np.sort(x) * k for k in range(count)]


def _added(x: Any, others: Any) -> Any:
    x += others[0]
    return x * 2


def test_whether_calls_are_native_is_told_with_the_reason() -> None:
    doubled = nfuser.fuse(lambda x: x * 2)
    told = doubled.explain(X)
    if is_as_expected():
        assert told.calls == "native from the third on"
    assert told.calls is not None
    assert told.calls in str(told)
    interpreted = nfuser.fuse(lambda x: x * 2, backend="interpret")
    listed = [X]
    reasons = {
        "interpreter": interpreted.explain(X),
        "OrderedDict": nfuser.fuse(lambda d: d["x"] * 2).explain(OrderedDict(x=X)),
        "float16": nfuser.fuse(lambda x, s: x * s).explain(X, np.float16(2)),
        "32 arguments": nfuser.fuse(lambda xs: sum(xs)).explain([X] * 40),
        "listed": nfuser.fuse(lambda x: x * listed[0]).explain(X),
        "more than 256 arrays": nfuser.fuse(_many).explain(np.ones(5)),
        "share memory": nfuser.fuse(_added).explain(np.ones(5), [np.ones(5)]),
    }
    for word, found in reasons.items():
        assert found.calls is not None
        assert found.calls.startswith("through Python: ")
        assert word in found.calls


@pytest.mark.skipif(not is_as_expected(), reason="no native calls here")
@pytest.mark.parametrize(
    "given",
    [(X,), ([X, X],), ({"x": X},), (X, 2.0), (X, np.float32(2)), (X, np.int64(3))],
    ids=str,
)
def test_calls_that_are_told_to_be_native_are(given: tuple[Any, ...]) -> None:
    def every(*parts: Any) -> Any:
        flat = [*parts[0].values()] if isinstance(parts[0], dict) else [*parts]
        total = 0.0
        for part in flat:
            total = total + (part[0] if isinstance(part, list) else part) * 2
        return total

    fused = nfuser.fuse(every)
    assert fused.explain(*given).calls == "native from the third on"
    for _ in range(4):
        fused(*given)
    assert fused.native_calls >= 1


@pytest.mark.skipif(not is_as_expected(), reason="no native calls here")
@pytest.mark.filterwarnings("ignore:fuse the body of this loop:RuntimeWarning")
@pytest.mark.parametrize("extra", [0, 1])
def test_calls_that_make_too_many_arrays_are_told_to_go_through_python(
    extra: int,
) -> None:
    many = nfuser.fuse(_many)
    count = MOST_OBJECTS + extra - 1  # beside the sorted array
    told = many.explain(np.ones(5), count).calls
    for _ in range(4):
        many(np.ones(5), count)
    assert told is not None
    assert told.startswith("through Python" if extra else "native")
    assert (many.native_calls == 0) == bool(extra)


@pytest.mark.skipif(not is_as_expected(), reason="no native calls here")
@pytest.mark.parametrize("shared", [Y, [Y], (), None])
def test_calls_that_write_are_told_to_be_what_they_are(shared: Any) -> None:
    def doubled(x: Any, given: Any) -> Any:
        x *= 2
        return x + (Y if given is None else 1)

    fused = nfuser.fuse(doubled)
    told = fused.explain(np.ones(5), shared).calls
    for _ in range(4):
        fused(np.ones(5), shared)
    assert told is not None
    assert told.startswith("native") == bool(fused.native_calls)
