# SPDX-License-Identifier: Apache-2.0
"""One file of the disk cache: machine code that says what it is and that it is whole.

``magic, length of the header, length of the code, checksum, header, code``. The
checksum is over the entry's key too, so a file under another's name is refused.
"""

from __future__ import annotations

import hashlib
import struct

from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.compiler.ir.base import value
from nfuser.errors import NfuserError

_MAGIC = b"nfuser\0\1"
_FRAME = struct.Struct("<8sIQ32s")


class DamagedEntryError(NfuserError):
    """A file is not the whole entry that its name promises."""


@value
class DiskEntry:
    """A compiled kernel with what ``python -m nfuser cache ls`` shows of it."""

    machine: MachineCode
    kernel: str
    backend: str
    target: str


def pack(key: str, entry: DiskEntry) -> bytes:
    """Return the contents of the file of ``entry``."""
    code = entry.machine.code
    words = (entry.machine.entry, entry.kernel, entry.backend, entry.target)
    header = "\n".join(words).encode()
    checksum = _checksum(key, header, code)
    return _FRAME.pack(_MAGIC, len(header), len(code), checksum) + header + code


def unpack(key: str, data: bytes) -> DiskEntry:
    """Return the entry, or raise ``DamagedEntryError``.

    >>> made = DiskEntry(MachineCode(b"code", "f"), "f", "cpu", "here")
    >>> unpack("key", pack("key", made)) == made
    True
    >>> unpack("key", pack("key", made)[:-1])
    Traceback (most recent call last):
        ...
    nfuser.execution.runtime.disk.entry.DamagedEntryError: it has 67 bytes, not 68
    """
    if len(data) < _FRAME.size:
        raise DamagedEntryError(f"it has {len(data)} bytes, fewer than its frame")
    magic, header_size, code_size, checksum = _FRAME.unpack_from(data)
    if magic != _MAGIC:
        raise DamagedEntryError("it does not begin as an entry does")
    size = _FRAME.size + header_size + code_size
    if len(data) != size:
        raise DamagedEntryError(f"it has {len(data)} bytes, not {size}")
    header = data[_FRAME.size : _FRAME.size + header_size]
    code = data[_FRAME.size + header_size :]
    if _checksum(key, header, code) != checksum:
        raise DamagedEntryError("its checksum is wrong")
    words = header.decode().split("\n")
    if len(words) != 4:
        raise DamagedEntryError(f"its header has {len(words)} words, not 4")
    function, kernel, backend, target = words
    return DiskEntry(MachineCode(code, function), kernel, backend, target)


def _checksum(key: str, header: bytes, code: bytes) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(header)
    digest.update(code)
    return digest.digest()
