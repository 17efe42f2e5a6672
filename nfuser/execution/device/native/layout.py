# SPDX-License-Identifier: Apache-2.0
"""Where things lie in memory, in bytes: objects, the frame of a call, its records.

Offsets into objects are those that the C interfaces of Python and NumPy have promised
to compiled extensions; ``checks`` looks whether this process keeps them.
"""

from __future__ import annotations

import time

# -- objects -----------------------------------------------------------------

OBJECT_TYPE = 8
NUMBER = 16  # the value of a float, and of a NumPy scalar
REFERENT = 16  # of a weak reference
NUMPY_DATA, NUMPY_NDIM, NUMPY_DIMS, NUMPY_STRIDES = 16, 24, 32, 40
NUMPY_DTYPE, NUMPY_FLAGS = 56, 64
NUMPY_CHECKED = 0x0500  # ALIGNED and WRITEABLE
DL_DATA, DL_DEVICE, DL_TYPE, DL_DIMS, DL_STRIDES, DL_OFFSET = 0, 8, 16, 24, 32, 40

# -- what all calls share: words of the table --------------------------------

(
    SLOW,
    SLOT,
    BOUND_SLOW,
    BOUND_SLOT,
    CONFIG,
    RECORDER,
    TRACER,
    NONE,
    TRUE,
    FLOAT,
    INT,
    TUPLE,
    LIST,
    DICT,
    NDARRAY,
    MEMMAP,
    NEW_ARRAY,
    RETURN_ARRAY,
    TENSOR,
    PARAMETER,
    READ_TENSOR,
    TORCH_STREAM,
    GRAD_MODE,
    FORWARD_MODE,
    DUAL_LEVEL,
    NO_LEVEL,
    REQUIRES_GRAD,
    IS_NEG,
    IS_CONJ,
    CUPY,
    CUPY_DATA,
    CUPY_POINTER,
    CUPY_DEVICE,
    DTYPE,
    SHAPE,
    STRIDES,
    CONTEXT,
    OWNED,
    OWNED_WORDS,
    SCALARS,
) = range(0, 8 * 40, 8)
MOST_SCALARS = 16  # of NumPy's types: the type, its bits, and whether it has a sign
SCALAR_BYTES = 24
POOL_STATE = SCALARS + SCALAR_BYTES * (MOST_SCALARS + 1)

# -- threads that help with CPU kernels: the end of the table ------------------

H_JOBS, H_WANTED, H_SIZE, H_STARTED, H_BACK = 0, 8, 16, 24, 32
H_MUTEX, H_WORK, H_DONE, POOL_BYTES = range(64, 64 * 5, 64)  # as large as any C's
TABLE_BYTES = POOL_STATE + POOL_BYTES
MOST_YIELDS = 200  # some 50 us: a kernel that one thread runs between shared ones

# -- a kernel's range, shared out in chunks -------------------------------------

(
    J_LINK,
    J_INVITED,
    J_INSIDE,
    J_EACH,
    J_LANES,
    J_CUTS,
    J_CALLER,
    J_KERNEL,
    J_VALUES,
    J_FAILED,
    J_STATUS,
    J_TAKEN,
) = range(0, 8 * 12, 8)
MOST_LANES = 8
CHUNK_BYTES = 16  # its first index, and the one behind it
LANE_BYTES = 64  # how many chunks of a lane are taken, in a line of memory of its own
JOB_WORDS = (J_TAKEN + LANE_BYTES * MOST_LANES) // 8

# -- one argument in the frame -----------------------------------------------

(
    F_KIND,
    F_OBJECT,
    F_META,
    F_FLAGS,
    F_NDIM,
    F_DIMS,
    F_STRIDES,
    F_DATA,
    F_ROOM,
) = range(0, 72, 8)
NEST = -1  # in the place of flags
MOST_AXES = 16
FRAME_BYTES = F_ROOM + 8 * 2 * MOST_AXES
FRAME_WORDS = FRAME_BYTES // 8
MOST_ARGUMENTS = 32
NUMBERS = FRAME_BYTES * MOST_ARGUMENTS  # behind the arguments: what is worked out
MOST_NUMBERS = 240
# Then how many rows arguments take, and what is held of what lists and dicts hold.
C_ROWS = NUMBERS + 8 * MOST_NUMBERS
C_COUNT = C_ROWS + 8
C_HELD = C_COUNT + 8
CALL_WORDS = C_HELD // 8 + MOST_ARGUMENTS
ALIGNMENT = 15
GREATEST = (1 << 63) - 1

# -- the state of a fused function -------------------------------------------

S_CALLS, S_BUCKETS = 0, 8
BUCKETS = 128
S_OPEN = S_BUCKETS + 8 * BUCKETS  # records of calls of many sizes
STATE_WORDS = 2 + BUCKETS

# -- the state of a bound call: its record, how many items come from outside, its own --

B_RECORD, B_GIVEN, B_HELD, B_ITEMS = 0, 8, 16, 24

# -- a record ----------------------------------------------------------------

(
    R_NEXT,
    R_OWNER,
    R_HASH,
    R_USED,
    R_CONFIG,
    R_COUNT,
    R_PATTERNS,
    R_NAMED,
    R_NAMES,
    R_QUICK,
    R_GUARD,
    R_TOTAL,
    R_CAPTURED,
    R_CAPTURES,
    R_CAPTURE_PATTERNS,
    R_CONTEXT,
    R_STREAM,
    R_STREAM_ARGUMENT,
    R_STREAM_READER,
    R_FAILED,
    R_OBJECTS,
    R_BODY,
    R_RESULT,
    R_RESULT_CALL,
    R_RESULT_COUNT,
    R_RESULTS,
    R_NUMBERS,
    RECORD_BYTES,
) = range(0, 8 * 28, 8)
MOST_OBJECTS = 256  # made by a call: what a long function has between kernels
MOST_MOVES = 16  # places that move with the iterations of loops
MOST_SLOTS = MOST_ARGUMENTS + MOST_OBJECTS + MOST_MOVES
# Behind the addresses by slot: the iterations of loops by depth, the state of this
# thread while others may run Python (or 0), and when signals were looked for.
MOST_DEPTH = 8
TURNS = 8 * MOST_SLOTS
RELEASED = TURNS + 8 * MOST_DEPTH
LOOKED = RELEASED + 8
SLOT_WORDS = MOST_SLOTS + MOST_DEPTH + 2
LOOK_EVERY = 10_000_000  # nanoseconds
MONOTONIC: int = getattr(time, "CLOCK_MONOTONIC", 1)  # what this system calls it
MOST_PARAMETERS = 128

# What must be alike; each pattern begins with its tag and its size.
IS_ARRAY, IS_NUMBER, IS_OBJECT, IS_REFERENT, IS_NEST, IS_OPEN_ARRAY = range(6)
P_SIZE, P_KIND, P_META, P_FLAGS, P_ALIGNMENT, P_NDIM, P_DIMS = range(8, 64, 8)
P_LOW, P_HIGH = 24, 32  # of a number: the least and the greatest that is served
P_OBJECT = 16
P_ITEMS, P_KEYS = 24, 32  # of a list, tuple or dict: how many, and a dict's keys

# Captured values; each begins with its size, and with what it is read from. A dict as a
# whole is named with all its keys and values, by turns.
FROM_DICT, FROM_CELL, FROM_ARGUMENT, WHOLE_DICT = range(4)
Q_ROOT, Q_PLACE, Q_KEY, Q_EXPECTED, Q_STEPS = range(8, 48, 8)
Q_ITEMS = 24

# Statements; each begins with its code and its size.
(
    END,
    NEW_NUMPY,
    NEW,
    CLEAR,
    RUN,
    POOL,
    LAUNCH,
    FREE,
    CALL,
    NEW_OPEN,
    RUN_OPEN,
    REPEAT,
    DRAW,
) = range(13)
A_OBJECT, A_SLOT, A_FIRST, A_SECOND, A_THIRD, A_FOURTH = range(16, 64, 8)
C_SLOT, C_BYTES, C_FUNCTION, C_FOOTPRINT = range(16, 48, 8)
V_FUNCTION, V_COUNT, V_OPERANDS = range(16, 40, 8)
MOST_OPERANDS = 4
D_WORDS, D_COUNT, D_PLACE = range(16, 40, 8)  # a stream, how often, where they are put
K_COUNT, K_FUNCTION, K_KERNEL, K_TOTAL, K_RELEASE = range(16, 56, 8)
K_TOGETHER = K_RELEASE  # of a launch
K_EACH, K_CUTS = K_TOTAL, K_RELEASE  # of a shared kernel
K_GRID_Y, K_BLOCK_X, K_BLOCK_Y, K_SHARED, K_FOOTPRINT, K_PARAMETERS = range(56, 104, 8)
K_HELPERS, K_GROW, K_LANES = K_GRID_Y, K_BLOCK_X, K_BLOCK_Y  # of a shared kernel

# A loop: what its swaps and moves take, 4 words each, then its body, and what is done
# if a turn fails, so many bytes from the beginning on, or nothing.
(
    L_TRIPS,
    L_COMPUTED,
    L_FLAG,
    L_DEPTH,
    L_RELEASES,
    L_SWAPS,
    L_MOVES,
    L_SAVES,
    L_FIRST,
) = range(16, 88, 8)
L_ROW_BYTES = 32

# Parameters: a kind and two numbers.
ADDRESS, CONSTANT, GIVEN, GIVEN_SINGLE, AS_DOUBLE, AS_SINGLE, COMPUTED, TURN = range(8)
PARAMETER_BYTES = 24

# Steps that work numbers out: a code, two places of earlier numbers, two constants.
# What reads the call comes first, then what takes integers, then what takes floats.
(
    N_STOP,
    N_GIVEN,
    N_SIZE,
    N_STRIDE,
    N_WORD,
    N_CONSTANT,
    N_ADD,
    N_MULTIPLY,
    N_FLOOR_DIVIDE,
    N_MODULO,
    N_MINIMUM,
    N_MAXIMUM,
    N_LESS,
    N_EQUAL,
    N_SELECT,
    N_BETWEEN,
    N_ADD_FLOATS,
    N_SUBTRACT_FLOATS,
    N_MULTIPLY_FLOATS,
    N_DIVIDE_FLOATS,
    N_POWER,
    N_TO_FLOAT,
    N_NONZERO,
    N_FINITE,
) = range(24)
N_FIRST, N_SECOND, N_THIRD, N_FOURTH, N_STEP_BYTES = range(8, 48, 8)

# Results.
ONE, MANY, CALLED = range(3)
DLPACK_STREAM, CALLED_STREAM = 1, 2
DL_CUDA = 2
