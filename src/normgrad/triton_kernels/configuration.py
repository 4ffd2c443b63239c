"""Tiles, warps and programs of every launch: a table over N and the dtype of the sums, never over M.

The order in which a row is summed follows from its tile, so y and dx of a row are the same bits whatever batch the row
stands in. The number of programs decides the order of the sums dw and db, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch

from .interpreter import INTERPRETED

# Elements of a tile and of a thread: 16 float32 values of each live vector are 16 registers. The backward holds p,
# dy, dw and db so, 64 of the 128 registers that a thread has when 16 warps share a multiprocessor of 65536.
BACKWARD_TILE, BACKWARD_ELEMENTS = 4096, 16
# The forward holds one such vector. On an H200 tiles of 4096 with 16 elements a thread take 78 us for (65536, 1024) in
# bfloat16 and 113 for (98304, 768), these 70 and 80; from 4096 columns on the two are within 3 %.
FORWARD_TILE, FORWARD_ELEMENTS = 2048, 32
# Threads of a program, and its warps. Under HIP they are counted as warps of 64 threads, which AMD's data-centre GPUs
# have up to MI355X; gfx1250 and its consumer GPUs (RDNA) have 32, and could run twice as many: for them the limit is
# stricter than it must be.
MOST_THREADS = 1024
MOST_WARPS = MOST_THREADS // (64 if torch.version.hip else 32)
# The longest rows that a program holds whole, by the bytes of an accumulator. The backward's dw and db alone are 32 of
# a thread's 128 registers at 8192 columns; at 16384 a thread has 64, and the compiler spills.
FORWARD_COLUMNS = {4: 32768, 8: 16384}
BACKWARD_COLUMNS = {4: 8192, 8: 4096}
# A block of a longer row, and of the columns that a program of its backward owns.
SWEEP_BLOCK, SWEEP_ELEMENTS = 4096, 16
# Loads of the tiles to come live in shared memory: two of them beside the one that is computed with, where they fit.
MOST_STAGES = 3
# Bytes of them on a multiprocessor, which is what bandwidth times latency asks for several times over; beyond it one
# tile to come is enough, and more of them cost registers.
MOST_BYTES_AHEAD = 96 << 10
# Bytes of shared memory in which the warps of a tile put their sums together.
SUMS_MEMORY = 4096
# Warps that a multiprocessor runs at 128 registers a thread, and threads of a warp.
WARPS_PER_MULTIPROCESSOR, THREADS = 16, 32
# The registers of a thread that holds whole rows in the backward, as an option of its launch: where a tile has several
# rows NVIDIA's compiler would take up to 171, and a multiprocessor run half the programs that are counted on. AMD's has
# no such option, nor has the interpreter.
REGISTERS = (
    {}
    if INTERPRETED or torch.version.hip
    else {"maxnreg": 65536 // (WARPS_PER_MULTIPROCESSOR * THREADS)}
)
# Partial sums of dw and db under portable_sums, whatever the GPU: enough to fill 128 multiprocessors twice.
PORTABLE_PROGRAMS = 256
# Partial sums that a program of the reduction loads at once, all of them on NVIDIA's GPUs up to a B200, and its
# columns: 64 bytes of float32 a row, so that 4096 columns give 128 multiprocessors two programs each for dw and for db,
# with up to 32 KiB in flight. The interpreter takes milliseconds for each program.
REDUCTION_TILE, REDUCTION_WARPS = (128, 1024) if INTERPRETED else (512, 16), 8


@dataclass(frozen=True)
class Device:
    """What a launch needs to know of a GPU: multiprocessors and the shared memory of a block in bytes."""

    multiprocessors: int
    shared_memory: int


@dataclass(frozen=True)
class Tile:
    """Rows and columns that a program holds, and the warps that share them.

    sweeps: whether BLOCK < N; twice: whether the backward reads its rows again after it has their sums
    """

    rows: int
    block: int
    warps: int
    sweeps: bool
    twice: bool = False


# The interpreter runs programs one after another: one multiprocessor, so that the backward has two partial sums.
INTERPRETER = Device(multiprocessors=1, shared_memory=1 << 16)


def device_of(tensor) -> Device:
    """The Device that a tensor lives on."""
    return INTERPRETER if INTERPRETED else _device(tensor.device)


@lru_cache
def _device(device):
    found = torch.cuda.get_device_properties(device)
    # AMD's properties have no limit to opt in to: what a block has is 64 KiB, and 160 KiB on gfx950.
    shared = (
        getattr(found, "shared_memory_per_block_optin", None)
        or found.shared_memory_per_block
    )
    return Device(found.multi_processor_count, shared)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _tile(n, accumulator_bytes, most_columns, elements, per_thread, twice=False):
    sweeps = n > most_columns
    block = SWEEP_BLOCK if sweeps else _power_of_two(n)
    rows = max(1, elements // block)
    if sweeps:
        per_thread = SWEEP_ELEMENTS
    threads = rows * block * accumulator_bytes // (4 * per_thread)
    warps = max(1, min(MOST_WARPS, threads // THREADS))
    return Tile(rows, block, warps, sweeps, twice)


def forward_tile(n: int, accumulator_bytes: int, mixed: bool = False) -> Tile:
    """The forward's tile for rows of n columns, with sums in float32 (4) or float64 (8).

    Args:  mixed: whether rows of two dtypes are read, or written: their layouts take registers that the longest rows
           have not
    """
    most = FORWARD_COLUMNS[accumulator_bytes] // (1 + mixed)
    return _tile(n, accumulator_bytes, most, FORWARD_TILE, FORWARD_ELEMENTS)


def backward_tile(n: int, accumulator_bytes: int, light: bool = False) -> Tile:
    """The backward's tile for rows of n columns, with sums in float32 (4) or float64 (8).

    Args:  light: whether the rows are not centred and dy and p have one dtype of 16 bits: then a program holds rows
           twice as long, and reads them twice
    """
    most = BACKWARD_COLUMNS[accumulator_bytes]
    # Where 16 bytes are loaded at once; addresses of single elements take the registers.
    longest = 2 * most if light and n % 8 == 0 else most
    return _tile(
        n,
        accumulator_bytes,
        longest,
        BACKWARD_TILE,
        BACKWARD_ELEMENTS,
        twice=most < n <= longest,
    )


def _resident(tile):
    """Programs that a multiprocessor runs at once."""
    return max(1, WARPS_PER_MULTIPROCESSOR // tile.warps)


def stages(tile: Tile, bytes_per_column: int, device: Device) -> int:
    """How many tiles are in flight or in use at once: as many as shared memory holds, 1 where none fits.

    Where rows are read twice a tile is in use alone: what came ahead would lie in registers until the sums are there.
    """
    if tile.twice:
        return 1
    bytes_of_tile = tile.rows * tile.block * bytes_per_column
    fitting = (device.shared_memory - SUMS_MEMORY) // bytes_of_tile
    enough = max(1, MOST_BYTES_AHEAD // (_resident(tile) * bytes_of_tile))
    return 1 + max(0, min(MOST_STAGES - 1, fitting, enough))


def programs(
    m: int, n: int, tile: Tile, device: Device, portable: bool, heads: int = 1
) -> int:
    """How many partial sums of dw and db the backward makes; with portable the same number on every device.

    One for each program that the device runs at once; where programs own blocks of columns, one for each row of them.
    Where they own heads, the m rows and the partial sums are those of each head.
    """
    resident = device.multiprocessors * _resident(tile)
    wanted = (PORTABLE_PROGRAMS if portable else resident) // (
        -(-n // tile.block) * heads
    )
    return max(1, min(-(-m // tile.rows), wanted))
