# SPDX-License-Identifier: Apache-2.0
"""Settle what must be known of one call, and rebuild the fusion with it."""

from __future__ import annotations

from nfuser.compiler.concretize.answers import Answers, Questions, answer, questions
from nfuser.compiler.concretize.apply import Concrete, concretize
from nfuser.compiler.concretize.policy import (
    DEFAULT_RESIZE,
    ResizePolicy,
    check_policy,
    policy_in_force,
)
from nfuser.compiler.concretize.why import whats_new

__all__ = [
    "DEFAULT_RESIZE",
    "Answers",
    "Concrete",
    "Questions",
    "ResizePolicy",
    "answer",
    "check_policy",
    "concretize",
    "policy_in_force",
    "questions",
    "whats_new",
]
