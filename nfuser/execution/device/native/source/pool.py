# SPDX-License-Identifier: Apache-2.0
"""Native source: threads that help with CPU kernels, and never run Python.

A job is a kernel and a range in chunks. It lies in its caller's frame and, while it is
open, in a list of the pool's; who has the pool's mutex may change the list, and what a
job says of its helpers. Its chunks stand in lanes, of which each thread has one to
begin with. The caller takes chunks too, closes the job when none is left
and waits for the helpers inside: after that nobody knows the job.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import (
    call_kernel,
    pthread_cond_broadcast,
    pthread_cond_signal,
    pthread_cond_wait,
    pthread_mutex_lock,
    pthread_mutex_unlock,
    sched_yield,
)
from nfuser.execution.device.native.layout import (
    CHUNK_BYTES,
    H_BACK,
    H_DONE,
    H_JOBS,
    H_MUTEX,
    H_STARTED,
    H_WANTED,
    H_WORK,
    J_CALLER,
    J_CUTS,
    J_EACH,
    J_FAILED,
    J_INSIDE,
    J_INVITED,
    J_KERNEL,
    J_LANES,
    J_LINK,
    J_STATUS,
    J_TAKEN,
    J_VALUES,
    LANE_BYTES,
    MOST_YIELDS,
    POOL_STATE,
)
from nfuser.execution.device.native.words import (
    add_atomically,
    look,
    store,
    table,
    word,
)


def share(job: int) -> int:
    """Run a job in this thread and in all that come to help; return a status."""
    pool = table() + POOL_STATE
    lane = 0
    while lane < word(job + J_LANES):
        store(job + J_TAKEN + LANE_BYTES * lane, 0)
        lane += 1
    store(job + J_INSIDE, 0)
    store(job + J_STATUS, 0)
    pthread_mutex_lock(pool + H_MUTEX)
    store(job + J_LINK, word(pool + H_JOBS))
    store(pool + H_JOBS, job)
    wanted = word(job + J_INVITED)
    store(pool + H_WANTED, word(pool + H_WANTED) + wanted)
    # Each second job goes back through its range: it begins where the one before ended,
    # with what that left in the caches.
    back = word(pool + H_BACK)
    store(pool + H_BACK, 1 - back)
    chunks = word(job + J_LANES) * word(job + J_EACH)
    store(job + J_CUTS, word(job + J_CUTS) + CHUNK_BYTES * chunks * back)
    pthread_mutex_unlock(pool + H_MUTEX)
    _wake(pool, wanted)
    _work(pool, job, 0)
    pthread_mutex_lock(pool + H_MUTEX)
    _close(pool, job)
    pthread_mutex_unlock(pool + H_MUTEX)
    # The last chunks are short: to sleep and be woken would take longer.
    turns = 0
    while turns < MOST_YIELDS and look(job + J_INSIDE):
        sched_yield()
        turns += 1
    if look(job + J_INSIDE):
        pthread_mutex_lock(pool + H_MUTEX)
        while word(job + J_INSIDE):
            pthread_cond_wait(pool + H_DONE, pool + H_MUTEX)
        pthread_mutex_unlock(pool + H_MUTEX)
    return word(job + J_STATUS)


def help_others(pool: int) -> int:
    """Help with one job after another, as long as the process lives."""
    me = add_atomically(pool + H_STARTED, 1) + 1
    pthread_mutex_lock(pool + H_MUTEX)
    while 1:
        job = _first_open(pool)
        if job == 0:
            _await_job(pool)
        else:
            others = word(job + J_INVITED) - 1
            store(job + J_INVITED, others)
            store(job + J_INSIDE, word(job + J_INSIDE) + 1)
            store(pool + H_WANTED, word(pool + H_WANTED) - 1)
            pthread_mutex_unlock(pool + H_MUTEX)
            _wake(pool, others)
            _work(pool, job, me)
            # With the mutex, or its caller could fall asleep after the broadcast.
            pthread_mutex_lock(pool + H_MUTEX)
            if add_atomically(job + J_INSIDE, -1) == 1:  # from here it may be gone
                pthread_cond_broadcast(pool + H_DONE)
    return 0


def _wake(pool: int, wanted: int) -> int:
    """Wake two of those that are wanted, who wake two each: few steps for many."""
    if wanted > 0:
        pthread_cond_signal(pool + H_WORK)
    if wanted > 1:
        pthread_cond_signal(pool + H_WORK)
    return 0


def _await_job(pool: int) -> int:
    """Return when there may be one; the kernels of a program come one upon another."""
    pthread_mutex_unlock(pool + H_MUTEX)
    turns = 0
    while turns < MOST_YIELDS and look(pool + H_WANTED) == 0:
        sched_yield()
        turns += 1
    pthread_mutex_lock(pool + H_MUTEX)
    if _first_open(pool) == 0:
        pthread_cond_wait(pool + H_WORK, pool + H_MUTEX)
    return 0


def advance(at: int, count: int) -> int:
    """Add to a word that other threads add to as well; return what was there."""
    return add_atomically(at, count)


def _first_open(pool: int) -> int:
    """Return a job that still wants help, or 0."""
    job = word(pool + H_JOBS)
    while job != 0 and word(job + J_INVITED) == 0:
        job = word(job + J_LINK)
    return job


def _close(pool: int, job: int) -> int:
    """Take a job out of the list: who has not come yet stays out."""
    store(pool + H_WANTED, word(pool + H_WANTED) - word(job + J_INVITED))
    at = pool + H_JOBS
    while word(at) != job:
        at = word(at) + J_LINK
    store(at, word(job + J_LINK))
    return 0


def _work(pool: int, job: int, me: int) -> int:
    """Run chunks until none is left: those of the own lane, then those of the others.

    So a thread has the part of the range that it had in the kernel before, and what
    that left in the memory beside its core.
    """
    lanes = word(job + J_LANES)
    lane = me
    while lane >= lanes:
        lane -= lanes
    done = 0
    while done < lanes:
        _work_in(pool, job, lane)
        done += 1
        lane += 1
        if lane == lanes:
            lane = 0
    return 0


def _work_in(pool: int, job: int, lane: int) -> int:
    """Run chunks of a lane until none is left."""
    taken = job + J_TAKEN + LANE_BYTES * lane
    first = word(job + J_EACH) * lane
    end = first + word(job + J_EACH)
    number = first + add_atomically(taken, 1)
    while number < end:
        cut = word(job + J_CUTS) + CHUNK_BYTES * number
        status = call_kernel(
            word(job + J_CALLER),
            word(job + J_KERNEL),
            word(cut),
            word(cut + 8),
            word(job + J_VALUES),
        )
        if status != 0:
            _fail(pool, job, number, status)
        number = first + add_atomically(taken, 1)
    return 0


def _fail(pool: int, job: int, number: int, status: int) -> int:
    """Keep the status of the first chunk that failed."""
    pthread_mutex_lock(pool + H_MUTEX)
    if word(job + J_STATUS) == 0 or number < word(job + J_FAILED):
        store(job + J_FAILED, number)
        store(job + J_STATUS, status)
    pthread_mutex_unlock(pool + H_MUTEX)
    return 0


FUNCTIONS = (
    share,
    help_others,
    advance,
    _wake,
    _await_job,
    _first_open,
    _close,
    _work,
    _work_in,
    _fail,
)
