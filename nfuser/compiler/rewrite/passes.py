# SPDX-License-Identifier: Apache-2.0
"""The rewrites, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.base.debug import dump
from nfuser.base.debug.passes import run_passes
from nfuser.compiler.concretize import Concrete
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.rewrite.assignments.forward_assigned_parts import (
    forward_assigned_parts,
)
from nfuser.compiler.rewrite.assignments.forward_assigned_rows import (
    forward_assigned_rows,
)
from nfuser.compiler.rewrite.assignments.forward_beside_arrays import (
    forward_beside_arrays,
)
from nfuser.compiler.rewrite.assignments.place_assignments import place_assignments
from nfuser.compiler.rewrite.common_subexpressions import merge_common_subexpressions
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from nfuser.compiler.rewrite.insert_axes_last import insert_axes_last
from nfuser.compiler.rewrite.known_choices import take_known_choices
from nfuser.compiler.rewrite.leaf_outputs import copy_leaf_outputs
from nfuser.compiler.rewrite.loops.bodies import with_bodies
from nfuser.compiler.rewrite.loops.unread_of_loops import drop_unread_of_loops
from nfuser.compiler.rewrite.share_derived_sums import share_derived_sums
from nfuser.compiler.rewrite.sum_products import sum_products
from nfuser.compiler.rewrite.types.casts import simplify_casts
from nfuser.compiler.rewrite.types.compute_types import widen_halves
from nfuser.compiler.rewrite.types.split_complex import split_complex

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion

PASSES = (
    take_known_choices,
    drop_dead_code,
    split_complex,
    widen_halves,
    simplify_casts,  # after widen_halves, which leaves casts behind
    forward_assigned_rows,
    forward_assigned_parts,  # after rows, which do not need it then
    drop_dead_code,
    insert_axes_last,
    merge_common_subexpressions,
    sum_products,  # after it: equal matrices are one tensor by then
    share_derived_sums,  # after it: equal factors are one tensor by then
    forward_beside_arrays,  # so are equal parts of arrays
    drop_dead_code,
    copy_leaf_outputs,  # late: it makes what the others take out
    place_assignments,  # so does this, and the order that it leaves is to stay
)


def rewrite_bodies(fusion: Fusion) -> Fusion:
    """Rewrite the body of each loop as a fusion by itself."""
    return with_bodies(fusion, _run)


OF_LOOPS = (drop_unread_of_loops, rewrite_bodies)


def rewrite(concrete: Concrete) -> Concrete:
    """Return ``concrete`` with a fusion that does the same with less."""
    return Concrete(_run(concrete.fusion), concrete.answers)


def _run(fusion: Fusion) -> Fusion:
    passes = (*OF_LOOPS, *PASSES) if fusion.loops else PASSES
    return run_passes("rewrite", fusion, passes, verify=verify_fusion, dump=_dump)


def _dump(name: str, fusion: Fusion) -> None:
    if dump.wants(name):
        dump.dump(name, text(fusion), fusion.name)
