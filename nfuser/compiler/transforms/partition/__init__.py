# SPDX-License-Identifier: Apache-2.0
"""Cut a program with its derivative in two: what the way there leaves for the way back.

What is left is a cut of the program by bytes, the smallest there is.
"""

from __future__ import annotations

from nfuser.compiler.transforms.partition.cut import Choice, cut
from nfuser.compiler.transforms.partition.policies import Policy, told
from nfuser.compiler.transforms.partition.saved import Saved
from nfuser.compiler.transforms.partition.sums import sums_of_arrays

__all__ = ["Choice", "Policy", "Saved", "cut", "sums_of_arrays", "told"]
