# SPDX-License-Identifier: Apache-2.0
"""From a fusion and the answers of a call to pieces that kernels run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.base.debug import dump, timing
from nfuser.base.locks import cached_property
from nfuser.compiler.concretize import answer, concretize, policy_in_force
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.open_integer import closed
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_once
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.segment.segmented import text as segmented_text
from nfuser.execution.runtime.pieces.segmentation import segment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.concretize import Answers, Concrete, Questions, ResizePolicy
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.segment import Segmented, ShouldMerge
    from nfuser.config import Config


@node
class Concretization:
    """A concrete fusion before and after the rewrites, and its pieces."""

    concrete: Concrete
    rewritten: Concrete
    segmented: Segmented


def answers_of(
    fusion: Fusion,
    questions: Questions,
    values: Mapping[Scalar, int],
    resize: ResizePolicy,
) -> Answers:
    """Return the answers of one call, under the policy in force."""
    policy = policy_in_force(resize)
    compiled_in = {"static": policy != "dynamic", "exact": policy == "exact"}
    return closed(answer(fusion, questions, values, **compiled_in))


def concretized(
    fusion: Fusion,
    questions: Questions,
    answers: Answers,
    should_merge: ShouldMerge | None,
) -> Concretization:
    """Return the fusion that ``answers`` make, rewritten, and its pieces.

    It is verified here, and not where it was traced: what was decided for an equal one
    by another process was decided after that.
    """
    if config.current().verify:
        verify_once(fusion)
    with timing.timed("concretize", fusion.name):
        concrete = concretize(fusion, questions, answers)
    with timing.timed("rewrite", fusion.name):
        rewritten = rewrite(concrete)
    with timing.timed("segment", fusion.name):
        segmented = segment(rewritten.fusion, should_merge)
    if dump.wants("concrete"):
        dump.dump("concrete", text(concrete.fusion), fusion.name)
    if dump.wants("segments"):
        dump.dump("segments", segmented_text(segmented), fusion.name)
    return Concretization(concrete, rewritten, segmented)


class KnownConcretization(Concretization):
    """A concretization that nothing has to be read of, made where something is.

    What it is made into depends on settings: on those in force when it became known.
    """

    def __init__(self, make: Callable[[], Concretization]) -> None:
        vars(self).update(_make=make, _settings=config.current())

    @cached_property
    def made(self) -> Concretization:
        """The concretization in full."""
        then: Config = vars(self)["_settings"]
        if config.current().of_kernels == then.of_kernels:
            return self._make()
        kept = {"disable": then.disable, "pass_limit": then.pass_limit}
        with config.override(**kept, numba=then.numba):
            return self._make()

    def __getattr__(self, name: str) -> Any:
        if name not in ("concrete", "rewritten", "segmented"):
            raise AttributeError(name)
        return getattr(self.made, name)
