# SPDX-License-Identifier: Apache-2.0
"""Settle what must be known of one call, and rebuild the fusion with it."""

from __future__ import annotations

from nfuser.concretize.answers import Answers, Questions, answer, questions
from nfuser.concretize.apply import Concrete, concretize

__all__ = ["Answers", "Concrete", "Questions", "answer", "concretize", "questions"]
