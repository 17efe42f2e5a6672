# SPDX-License-Identifier: Apache-2.0
"""What nvFuser has and nfuser has not, with what to write instead: one table.

Keys are names as users write them after ``fd.ops.``, ``fd.``, a tensor and ``nfuser.``.
"""

from __future__ import annotations

from typing import NoReturn

from nfuser.errors import MissingError, UnsupportedError

_PRODUCT = "write matmul or linear of tensors cast to Float, and scale what they give"
_GROUPED = "write matmul of each group: slice the rows of each, and cat what they give"
_QUANTISED = (
    "write the scale of each block with reshape and max, and cast what you divide to a "
    "Float8 type"
)
_ATTENTION = (
    "write softmax of matmul(q, permute(k, ...)) times the scale, and matmul it with v"
)
_SCHEDULE = (
    "leave it out: nfuser schedules every fusion by itself; fd.explain(inputs) "
    "shows how"
)
_MESH = "write it with nfuser.HostIrContainer, whose shardings and exchanges say how"
_CUTLASS = "leave it out: products are the array library's, and fd.ops.matmul calls it"
_SHARED = (
    "leave it out: equal definitions share what they run, as many as NFUSER_CACHE_SIZE "
    "says"
)
OPERATIONS = {
    **dict.fromkeys(("grouped_mm", "cutlass_nvfp4_grouped_mm"), _GROUPED),
    "preprocess_grouped_matmul_input_sf": _GROUPED,
    "scaled_mm": _PRODUCT,
    **dict.fromkeys(("sdpfa_fwd", "sdpfa_bwd"), _ATTENTION),
    **dict.fromkeys(("nv_block_quantize", "nv_grouped_block_quantize"), _QUANTISED),
}
DEFINITION = {
    **dict.fromkeys(("sched", "schedule"), _SCHEDULE),
    **dict.fromkeys(("manual_execute", "manual_validate", "ke"), _SCHEDULE),
    "execute_with_dtensors": _MESH,
    "define_multidevice_schedule": _MESH,
}
TENSOR = {
    **dict.fromkeys(
        (
            *("cache_after", "cache_before", "set_memory_type", "split", "inner_split"),
            *("outer_split", "merge", "reorder", "swizzle", "swizzle1d", "rfactor"),
            *("axis", "get_loop_domain", "get_root_domain", "has_root", "parallelize"),
        ),
        _SCHEDULE,
    ),
    "set_allocation_domain": "write fd.ops.stride_order(x, order) for an output",
    "set_device_mesh": _MESH,
    "definition": "print fd.fusion: it shows which expression gives each tensor",
    "uses": "print fd.fusion: it shows which expressions read each tensor",
}
_PYTHON = "write the expression as a function of arrays in Python, and nfuser.fuse it"
MODULE = {
    **dict.fromkeys(("DeviceMesh", "MultiDeviceExecutor", "Sharding"), _MESH),
    **dict.fromkeys(("Communicator", "multidevice", "execute_with_dtensors"), _MESH),
    "KernelExecutor": "write nfuser.FusionExecutorCache(fd.fusion)",
    "FusionGuard": "write with nfuser.FusionDefinition() as fd",
    **dict.fromkeys(("LruFusionCache", "LRUCache"), _SHARED),
    "PythonProfiler": "write fd.execute(inputs, profile=True), then fd.profile()",
    "ParallelType": _SCHEDULE,
    "SchedulerType": _SCHEDULE,
    "nvf_cutlass": _CUTLASS,
    "translate_fusion": "write repr(fd)",
    # Names of CuPy's fusion and kernels.
    "clear_cache": "write f.cache_clear() for a fused function f",
    **dict.fromkeys(("ElementwiseKernel", "ReductionKernel", "RawKernel"), _PYTHON),
}


def refuse(what: str, instead: str) -> NoReturn:
    """Raise the error for a name of nvFuser's that nfuser has not."""
    message = f"{what} is not supported: {instead}"
    raise UnsupportedError(message)


def missing(what: str, instead: str) -> NoReturn:
    """Raise the error for a part that an object of nvFuser's has, as for no part."""
    message = f"{what} is not supported: {instead}"
    raise MissingError(message)


# Switches of nvFuser's compiler that change no result; nfuser's has nothing to switch.
OPTIONS = frozenset(
    {
        *("cutlass_scheduler", "fast_math", "fuse_matmul", "fuse_multiple_matmuls"),
        *("host_ir_jit", "host_ir_lowering", "id_model", "id_model_extra_validation"),
        *("insert_resharding_after", "io_to_lower_precision", "kernel_db"),
        *("kernel_debug", "kernel_lineinfo", "kernel_profile", "memory_promotion"),
        *("multicast_protocol", "p2p_protocol", "p2p_transport"),
        *("reuse_zeroed_memory", "static_fusion_count", "tma_inner_persistent"),
        *("tma_pointwise", "tma_reduction", "wait_debugger", "warn_register_spill"),
        *("ws_normalization", "compile_to_sass", "contig_indexing", "expr_simplify"),
        *("fallback", "fma", "greedy_scheduler", "grouped_grid_welford_outer_opt"),
        *("index_hoist", "infer_contiguity", "kernel_reuse", "magic_zero"),
        *("matmul_expr_eval", "multidevice", "nvrtc_caching", "nvtx"),
        *("parallel_compile", "predicate_elimination", "python_inline_definitions"),
        *("resize_scheduler", "reuse_mismatched_type_registers"),
        *("var_name_remapping", "welford_vectorization"),
    }
)
