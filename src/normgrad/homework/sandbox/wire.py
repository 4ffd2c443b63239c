"""Messages between the grader and a student's process: a length, then arrays in the format of `.npy`, never a pickle.

The first array is the header, a JSON text; the others are numbers. Nothing of normgrad is imported here.
"""

from __future__ import annotations

import io
import json
import struct

import numpy as np

LENGTH = struct.Struct(">Q")
LARGEST = 32 * 2**20
# One of its own: what json.dumps uses can be changed from everywhere.
ENCODER = json.JSONEncoder()


class Garbled(Exception):
    """What arrived is not a message."""


def pack(header: dict, arrays=()) -> bytes:
    """One message.

    Raises:  Garbled where it would be longer than LARGEST
    """
    text = np.frombuffer(
        ENCODER.encode({**header, "arrays": len(arrays)}).encode(), np.uint8
    )
    if (size := text.nbytes + sum(array.nbytes for array in arrays)) > LARGEST:
        raise Garbled(f"{size} bytes, at most {LARGEST} are read")
    stream = io.BytesIO()
    for array in (text, *arrays):
        np.lib.format.write_array(stream, array, allow_pickle=False)
    return LENGTH.pack(stream.tell()) + stream.getvalue()


def receive(stream) -> bytes:
    """The next message of a stream, without its length.

    Raises:  EOFError where the stream ends, Garbled where it does so before the message, or that is too long
    """
    (size,) = LENGTH.unpack(_exactly(stream, LENGTH.size))
    if size > 2 * LARGEST:
        raise Garbled(f"{size} bytes")
    try:
        return _exactly(stream, size)
    except EOFError:
        raise Garbled("no more than a length") from None


def _exactly(stream, count):
    read = stream.read(count)
    if not read and count:
        raise EOFError
    if len(read) < count:
        raise Garbled(f"{len(read)} bytes of {count}")
    return read


def unpack(message: bytes) -> tuple[dict, list[np.ndarray]]:
    """(header, arrays) of what `receive` returned.

    Raises:  Garbled for anything that is no message
    """
    stream = io.BytesIO(message)
    try:
        header = json.loads(
            np.lib.format.read_array(stream, allow_pickle=False).tobytes()
        )
        arrays = [
            np.lib.format.read_array(stream, allow_pickle=False)
            for _ in range(header["arrays"])
        ]
    except Exception as error:  # whatever a reader says of bytes that somebody made up
        raise Garbled(str(error)) from error
    if any(array.dtype.kind not in "fiub" for array in arrays):
        raise Garbled("arrays that are no numbers")
    return header, arrays
