"""Messages between the grader and a student's process: a JSON header and raw float64 numbers.

Nothing that a student's process sends is ever unpickled or unpacked: a message has a length, and the length is limited.
The student's process loads this file by its path, so it imports nothing of normgrad.
"""

from __future__ import annotations

import json
import math
import struct

import numpy as np

LENGTHS = struct.Struct(">QQ")
LARGEST = 32 * 2**20
# One of its own: what json.dumps uses can be changed from everywhere.
ENCODER = json.JSONEncoder()


class Garbled(Exception):
    """What arrived is not a message."""


def pack(header: dict, arrays=()) -> bytes:
    """One message: the lengths of its two parts, the header with the arrays' shapes, the numbers.

    Raises:  Garbled where the message would be longer than LARGEST
    """
    arrays = [np.ascontiguousarray(array, np.float64).reshape(np.shape(array)) for array in arrays]
    text = ENCODER.encode(header | {"shapes": [array.shape for array in arrays]}).encode()
    size = sum(array.nbytes for array in arrays)
    if len(text) + size > LARGEST:
        raise Garbled(f"{len(text) + size} bytes, at most {LARGEST} are read")
    return b"".join([LENGTHS.pack(len(text), size), text, *(array.tobytes() for array in arrays)])


def exactly(stream, count: int) -> bytes:
    """So many bytes of a stream; EOFError where it ends before."""
    parts = []
    while count:
        part = stream.read(count)
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read(stream) -> tuple[dict, list[np.ndarray]]:
    """The next message of a stream.

    Raises:  EOFError where the stream ends, Garbled for anything that is not a message
    """
    header_size, size = LENGTHS.unpack(exactly(stream, LENGTHS.size))
    if header_size + size > LARGEST:
        raise Garbled(f"a message of {header_size + size} bytes, at most {LARGEST} are read")
    text, numbers = exactly(stream, header_size), exactly(stream, size)
    try:
        header = json.loads(text)
        arrays, at = [], 0
        for shape in header["shapes"]:
            if not all(isinstance(n, int) and 0 <= n <= LARGEST for n in shape):
                raise ValueError(f"a shape of {shape}")
            count = math.prod(shape)
            arrays.append(np.frombuffer(numbers, np.float64, count, at).reshape(shape).copy())
            at += 8 * count
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        raise Garbled(str(error)) from error
    return header, arrays
