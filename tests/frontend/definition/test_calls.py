# SPDX-License-Identifier: Apache-2.0
"""What a definition offers beside its outputs: checks, profiles, repros, insight."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.text
from nfuser import DataType, FusionDefinition
from nfuser.errors import (
    ArgumentError,
    DeviceError,
    OptionError,
    ShapeError,
    UnsupportedError,
)
from nfuser.frontend.definition.refused import DEFINITION, MODULE, OPERATIONS, TENSOR

if TYPE_CHECKING:
    from nfuser.compiler.segment import ShouldMerge

X = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)


def _softmax(should_merge: ShouldMerge | None = None) -> FusionDefinition:
    with FusionDefinition(should_merge=should_merge) as fd:
        t = fd.from_numpy(X)
        grown = fd.ops.exp(fd.ops.mul(t, 0.5))
        total = fd.ops.sum(grown, 1, keepdim=True)
        fd.add_output(fd.ops.div(grown, total))
    return fd


def test_execute_takes_what_nvfusers_takes() -> None:
    fd = _softmax()
    (plain,) = fd.execute([X])
    (found,) = fd.execute(
        [X],
        device="cpu",
        save_repro_inputs=True,
        profile=True,
        _enable_options=["fuse_matmul"],
        _disable_options=["matmul_expr_eval", "kernel_reuse"],
    )
    np.testing.assert_array_equal(found, plain)


def test_a_device_where_the_arrays_are_not_is_refused() -> None:
    with pytest.raises(DeviceError, match="pass arrays that are on cuda:0"):
        _softmax().execute([X], device=0)


def test_options_that_nobody_has_are_refused() -> None:
    with pytest.raises(OptionError, match="NFUSER_DISABLE"):
        _softmax().execute([X], _disable_options=["disk_cash"])


def test_a_saved_call_is_a_program_that_makes_it_again() -> None:
    fd = _softmax()
    with pytest.raises(ArgumentError, match="save_repro_inputs"):
        fd.last_repro_script()
    fd.execute([X], save_repro_inputs=True)
    script = fd.last_repro_script()
    assert script == fd.repro_script_for([X])
    names: dict[str, Any] = {}
    exec(script, names)  # noqa: S102 (a program is what it is)
    (array,) = names["inputs"]
    assert (array.shape, array.strides) == (X.shape, X.strides)
    assert names["fd"].cache_info().calls == 1


def test_outputs_are_validated_against_references() -> None:
    fd = _softmax()
    wanted = np.exp(X * np.float32(0.5))
    wanted /= wanted.sum(1, keepdims=True)
    (found,) = fd.validate([X], [wanted])
    np.testing.assert_allclose(found, wanted, 1e-5)
    with pytest.raises(AssertionError, match="output 0 differs"):
        fd.validate([X], [wanted + 1e-3])


def test_without_references_each_operation_runs_by_itself() -> None:
    with FusionDefinition() as fd:
        t, state = fd.from_numpy(X), fd.define_tensor(shape=[-1])
        total = fd.ops.sum(fd.ops.sin(t), 1)
        fd.add_output(fd.ops.add(state, 1.0), state)
        fd.add_output(total)
    memory = np.zeros(6, np.float32)
    (found,) = fd.validate([X, memory])
    np.testing.assert_allclose(found, np.sin(X).sum(1), 1e-5, 1e-5)
    np.testing.assert_array_equal(memory, np.ones(6))


def test_a_profile_tells_of_pieces_bytes_and_time() -> None:
    fd = _softmax()
    with pytest.raises(ArgumentError, match="profile=True"):
        fd.profile()
    fd.execute([X], profile=True)
    found = fd.profile()
    assert found is nfuser.get_fusion_profile()
    assert found.segments == len(fd.kernels([X]))
    assert found.output_bytes == X.nbytes
    assert found.input_bytes >= X.nbytes
    assert found.host_time_ms >= found.kernel_time_ms > 0
    assert found.kernel_profiles[0].name in str(found)


def test_the_executor_is_asked_about_calls() -> None:
    fd = _softmax()
    fresh = X[:, :33].copy()
    assert not fd.fec.is_compiled([fresh])
    fd.execute([fresh])
    assert fd.fec.is_compiled([fresh])
    assert fd.fec.fusion() is fd.fusion
    assert "def " in fd.fec.get_cuda_kernel([fresh])
    assert "schedule" in fd.fec.get_scheduled_ir([fresh])


def test_a_predicate_tells_what_may_share_a_kernel() -> None:
    apart = _softmax(lambda *_: False)
    assert len(apart.kernels([X])) > len(_softmax().kernels([X]))
    np.testing.assert_allclose(apart.execute([X])[0], _softmax().execute([X])[0], 1e-6)


def test_handles_say_what_they_are() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, 1], dtype=DataType.Half)
        given, fixed = fd.define_scalar(DataType.Int), fd.define_scalar(2.5)
        assert x.dtype() is x.dtype is DataType.Half
        assert [x.is_tensor(), given.is_tensor()] == [True, False]
        assert [given.is_symbolic(), fixed.is_symbolic()] == [True, False]
        rows, ones = x.get_logical_domain()
        assert [rows.is_broadcast(), ones.is_broadcast()] == [False, True]
        assert not rows.is_reduction()
        fd.add_output(fd.ops.zeros([rows.extent()]))
    assert fd.execute([np.ones((3, 1), np.float16), 1])[0].shape == (3,)


def test_a_layout_is_described_as_nvfuser_does() -> None:
    assert nfuser.compute_tensor_descriptor((2, 3), (3, 1)) == ([True, True], [1, 0])
    assert nfuser.compute_tensor_descriptor((2, 3), (1, 2)) == ([True, True], [0, 1])
    assert nfuser.version() == nfuser.__version__


def test_what_is_missing_is_refused_by_name_with_what_to_write() -> None:
    fd = FusionDefinition()
    x = fd.define_tensor(shape=[2, 3])
    for name, instead in OPERATIONS.items():
        with pytest.raises(UnsupportedError) as caught:
            getattr(fd.ops, name)(x)
        assert instead in str(caught.value)
    for owner, table in ((fd, DEFINITION), (x, TENSOR), (nfuser, MODULE)):
        for name, instead in table.items():
            with pytest.raises(UnsupportedError) as caught:
                getattr(owner, name)
            assert instead in str(caught.value)
    assert not hasattr(x, "split")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fd.nothing  # noqa: B018 (it is looked for)
    with pytest.raises(ShapeError):
        fd.ops.squeeze(x, [0])


def test_a_fusion_lists_inputs_and_outputs_and_prints_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fusion = _softmax().fusion
    assert [x.ndim for x in fusion.inputs()] == [2]
    assert fusion.outputs() == [*fusion.outputs]
    fusion.print_math()
    assert capsys.readouterr().out == nfuser.compiler.ir.text.text(fusion)
