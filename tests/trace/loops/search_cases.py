# SPDX-License-Identifier: Apache-2.0
"""What searches are called with."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations

import numpy as np

import tests.trace.loops.searches as s

UP = np.array([1, 3, 4, 6, 9, 11, 15])
MIXED = np.array([3, -1, 2, 7, 0, -5, 2, 8])
LINKS = np.array([3, 1, -1, 2, 4])
LOST = np.array([3, 1, 9, 2, 4])
NONE = np.zeros(0, int)
TABLE = np.arange(12).reshape(3, 4)
FLOATS = UP / 2
_SEARCHED = [
    (UP, 6), (UP, 15), (UP, 16), (UP, -3), (NONE, 1), (UP[:1], 1), (FLOATS, 9.0),
]  # fmt: skip

CASES = {
    s.first_at_least: _SEARCHED,
    s.first_at_least_bounded: _SEARCHED,
    s.first_of_two: [(MIXED, 7), (MIXED, 5), (MIXED, 40), (NONE, 1)],
    s.either_goes_on: [(UP, 6), (UP, 11), (UP, 12), (UP, 99)],
    s.backwards: [(UP, 6), (UP, 0), (UP, -1), (NONE, 0)],
    s.by_steps: [(UP, 4), (UP, 14), (UP, 16)],
    s.doubling: [(UP, 4), (UP, 9), (UP, 12), (UP[:1], 5)],
    s.binary: _SEARCHED,
    s.binary_found: [(UP, 6), (UP, 99), (UP, -4), (NONE, 1)],
    s.gallop: _SEARCHED[:-1],
    s.probe: [(MIXED, 7), (MIXED, 2), (MIXED, 40)],
    s.probe_round: [(MIXED, 3), (MIXED, 2), (MIXED, 40)],
    s.probe_put: [(MIXED, 7), (MIXED, 3), (UP, 5)],
    s.two_pointers: [(UP, 15), (UP, 2), (UP, 99), (UP, -9), (UP, 5)],
    s.two_pointers_bounded: [(UP, 15), (UP, 2), (UP, 99), (UP, -9)],
    s.merged_until: [(UP, UP + 1, 9), (UP, UP, 15), (UP, UP[:3], 9), (UP, NONE, 9)],
    s.linked: [(LINKS, 0), (LINKS, 2), (LOST, 0), (LOST, 2), (LINKS, 7), (LINKS, -5)],
    s.linked_last: [(np.array([3, 1, 2, 1]), 0), (LOST, 0), (LOST, 4), (NONE, 0)],
    s.linked_twice: [(LINKS, 0), (LOST, 0), (LOST, 3), (np.array([1, 2, 3, -1]), 0)],
    s.linked_from_array: [
        (LINKS, np.array([0])), (LINKS, np.array([5])), (LOST, np.array([3])),
        (LINKS, np.array([-6])),
    ],
    s.cycle: [(np.array([1, 2, 0]), 0), (np.array([1, 2, 5]), 0), (LOST, 0)],
    s.matched: [(UP, UP[:3]), (UP[:3], UP), (UP, MIXED), (NONE, UP), (UP, NONE)],
    s.matched_somewhere: [(UP, UP[2:4]), (UP, MIXED), (MIXED, MIXED[-2:]), (NONE, UP)],
    s.matched_by_nested: [(UP, UP[2:4]), (UP, MIXED), (MIXED, MIXED[-2:]), (UP, NONE)],
    s.common_prefix: [(UP, MIXED), (UP, UP), (UP, UP[:3]), (NONE, UP)],
    s.partition_ends: [(UP, 6), (UP, 0), (UP, 99), (NONE, 0)],
    s.partition: [(MIXED, 2), (UP, 6), (UP, 99), (UP, -9)],
    s.broken: [(MIXED, 7), (MIXED, 99), (NONE, 1)],
    s.broken_later: [(MIXED, 6), (MIXED, 7), (MIXED, 9), (NONE, 1)],
    s.continued: [(MIXED, 8), (MIXED, 22), (MIXED, 23), (MIXED, -1)],
    s.broken_for: [(UP, 6), (UP, 3), (UP, 99), (NONE, 4)],
    s.returned: [(UP, 6), (UP, 15), (UP, 16), (NONE, 3)],
    s.guarded_branch: [(UP, 3), (UP, 20), (NONE, 3)],
    s.guarded_sum: [(MIXED, 3), (MIXED, 20), (NONE, 3)],
    s.unguarded_branch: [(UP, 3), (UP, 20), (-UP, 20), (NONE, 3)],
    s.guarded_by_number: [(UP, 5), (MIXED, 5), (UP, 7), (UP, 9), (NONE, 0)],
    s.guarded_by_not: [(MIXED, 7), (MIXED, 99), (NONE, 1)],
    s.chained: [(UP, 7), (UP, 16), (MIXED, 4)],
    s.negative_places: [(MIXED, 7), (MIXED, 3), (MIXED, 99)],
    s.around_zero: [(MIXED, 3), (MIXED, 7), (MIXED, 99)],
    s.in_two: [(TABLE, 6), (TABLE, 11), (TABLE, 12), (TABLE[:0], 1)],
    s.along_diagonal: [(TABLE, 5), (TABLE, 10), (TABLE, 11), (TABLE.T, 11)],
    s.staircase: [(TABLE, 6), (TABLE, 4), (TABLE, 99), (TABLE + 1, 0)],
    s.row_by_row: [(TABLE, 20), (TABLE, 38), (TABLE, 39)],
    s.nested: [(UP, UP, 9), (UP, UP[:3], 9), (UP, UP, 99)],
    s.nested_in_for: [(UP, UP), (UP, UP[:3]), (NONE, UP), (UP, NONE)],
    s.nested_twice: [(UP, UP, -3), (UP, UP, 0), (UP, UP, 1), (UP, UP[:4], 0)],
    s.for_in_while: [(UP, 6), (UP, 40), (UP, 127), (UP, 128), (NONE, 1)],
    s.one_after_other: [(MIXED, 5), (MIXED, 8), (MIXED, 9), (UP, 3)],
    s.in_branch: [(UP, 6), (UP, 99), (-UP, 6), (-UP, 99)],
    s.no_turn: [(UP, 5), (NONE, 5)],
    s.started_beyond: [(UP, 3), (UP + 9, 3), (UP, 100), (UP + 9, 100)],
    s.filled: [(MIXED, 5), (UP, 5), (NONE, 5)],
    s.filled_later: [(UP, 5), (NONE + 1, 5)],
    s.filled_before: [(MIXED, UP), (UP, UP), (UP, UP + 5)],
    s.filled_in_nested: [(UP, UP), (UP[:2], UP), (UP[:3], UP)],
    s.filled_in_for: [(UP, UP), (UP[:2], UP), (UP[:3], UP)],
    s.filled_in_branch: [(UP, UP), (MIXED, UP), (-UP, UP)],
    s.insertion: [(MIXED,), (UP,), (NONE,)],
    s.unguarded_insertion: [(UP,), (MIXED,), (np.array([0, 4, 2, 9, 1]),)],
    s.sieve: [(np.zeros(30, int),), (np.zeros(3, int),)],
    s.counted_runs: [(np.array([1, 1, 2, 2, 2, 3]),), (NONE,)],
    s.jumps: [(UP,), (np.array([2, 0, 1, 9]),), (np.array([1, 0]),)],
}  # fmt: skip
