"""Kernels compiled by Numba: words of 16 bits, threads and forks, the bits of sums, and their text as plain Python."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
import torch
from processes import python

import normgrad
from normgrad import numba_kernels
from normgrad.numba_kernels import kernels, launch
from normgrad.torch_ops import rows as torch_rows
from normgrad.torch_ops.arguments import kernels_of

WORDS = {
    torch.bfloat16: (torch.uint16, np.uint16),
    torch.float16: (torch.int16, np.int16),
}
# More than one program, and no multiple of their number.
SHAPE = (613, 257)


@pytest.fixture
def threads():
    """Sets torch's number of threads for the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def _gradients(x, weight, bias, dy):
    """y, dx, dw and db of an add + LayerNorm on x and x reversed."""
    leaves = [t.detach().requires_grad_() for t in (x, x.flip(0), weight, bias)]
    y, p = normgrad.add_layer_norm(
        *leaves[:2], x.shape[-1], *leaves[2:], backend="numba"
    )
    return (y.detach(), *torch.autograd.grad((y, p), leaves, (dy, dy.flip(0))))


@pytest.fixture
def inputs(torch_rng):
    """x, weight, bias and dy of SHAPE."""
    shapes = (SHAPE, SHAPE[1:], SHAPE[1:], SHAPE)
    return [torch.randn(shape, generator=torch_rng) for shape in shapes]


def _equal(found, wanted):
    return all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))


def _affine(p, y, mean=0.0, rstd=1.0, bias=None):
    """y = (p - mean) * rstd + bias, by the kernels' own function, for arrays that may hold words."""
    numbers = [np.float32(each) for each in (mean, rstd, 1)]
    bias = np.zeros(len(p), np.float32) if bias is None else bias
    kernels.affine(p, *numbers, np.ones(len(p), np.float32), bias, y)
    return y


@pytest.mark.parametrize("dtype", WORDS)
def test_every_word_is_the_number_that_torch_reads(dtype):
    _, word = WORDS[dtype]
    words = np.arange(2**16, dtype=np.uint16).view(word)
    found = _affine(words, np.empty(2**16, np.float32))
    expected = torch.from_numpy(words.view(np.int16)).view(dtype).float().numpy()
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", WORDS)
def test_numbers_are_rounded_as_torch_rounds_them(dtype, rng):
    """All kinds of float32, among them ties between two words, the largest numbers, subnormal ones and each NaN."""
    bits = rng.integers(0, 2**32, 2**16, dtype=np.uint32)
    words = torch.arange(2**15, dtype=torch.int16).view(dtype).float()
    ties = words.numpy().view(np.uint32)
    limits = np.uint32([0x7F800000, 0x7F800001])
    numbers = np.concatenate([bits, ties | 0x8000, ties | 0x1000, limits])
    numbers = numbers.view(np.float32)
    numbers = numbers[numbers != 0]  # x_hat + bias has no negative zero
    zeros, y = np.zeros((2, len(numbers)), WORDS[dtype][1])
    found = torch.from_numpy(_affine(zeros, y, rstd=0, bias=numbers)).view(dtype)
    expected = torch.from_numpy(numbers).to(dtype)
    assert torch.equal(found.isnan(), expected.isnan())
    number = ~expected.isnan()
    assert torch.equal(found[number], expected[number])


@pytest.fixture(params=["torch's threads", "own threads"])
def team(request, monkeypatch):
    """Who runs the programs; threads of our own serve where torch has no GNU OpenMP, and in a forked process."""
    if request.param == "own threads":
        monkeypatch.setattr(launch, "_openmp", lambda: None)
    elif launch._openmp() is None:
        pytest.skip("torch runs on another OpenMP than GNU's here")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *WORDS], ids=str)
@pytest.mark.parametrize(
    "columns", [1024, 1000], ids=["whole 64 bytes", "rows that begin between"]
)
def test_rows_that_are_streamed_have_the_bits_of_those_that_are_stored(
    dtype, columns, torch_rng
):
    shape = (kernels.STREAMED // (columns * dtype.itemsize) + 1, columns)
    x, residual, dy, dresidual_out = torch.randn(4, *shape, generator=torch_rng).to(
        dtype
    )
    weight, bias = torch.randn(2, columns, generator=torch_rng).to(dtype)

    def made(rows):
        leaves = [t.requires_grad_() for t in (x[rows], residual[rows])]
        outputs = normgrad.add_layer_norm(
            *leaves, columns, weight, bias, backend="numba"
        )
        grads = torch.autograd.grad(outputs, leaves, (dy[rows], dresidual_out[rows]))
        return *(t.detach() for t in outputs), *grads

    few = [made(rows) for rows in torch.arange(shape[0]).split(64)]
    assert _equal(made(torch.arange(shape[0])), map(torch.cat, zip(*few, strict=True)))


@pytest.mark.parametrize(
    ("off", "streamed"), [(0, True), (1, False), (4, False), (16, True)]
)
def test_what_does_not_begin_at_64_bytes_is_not_streamed(off, streamed, torch_rng):
    """If it were, the processor would end the process."""
    rows, columns = kernels.STREAMED // (4 * 64), 64
    memory = torch.zeros(rows * columns + 64).numpy()
    y = memory[off : off + rows * columns].reshape(rows, columns)
    assert len(kernels.line_for(y)) == streamed and len(kernels.line_for(y[1:])) == 0
    x = torch.randn(rows, columns, generator=torch_rng)
    none = np.empty((rows, 0), np.float32)
    weight, bias = np.ones(columns, np.float32), np.zeros(columns, np.float32)
    mean, rstd = np.empty((2, rows), np.float32)
    outputs = y, none, mean, rstd
    numbers = launch._numbers(normgrad.LAYER_NORM, columns, torch.float32)
    most = launch.MOST[torch.float32]
    kernels.forward(0, 1, x.numpy(), none, weight, bias, *outputs, *numbers, most)
    expected = normgrad.layer_norm(x, columns, backend="numba")
    assert torch.equal(torch.from_numpy(y), expected)


def test_rows_are_sent_past_the_caches_and_a_fence_waits_for_them():
    """On this kind of processor no result shows a fence that is missing: what is compiled is read."""

    @numba.njit
    def sent(line, rows):
        kernels.send(line, rows, 0)
        kernels.arrived()

    sent(*torch.zeros(2, 1, 16).numpy())
    (code,) = sent.inspect_llvm().values()
    _, stored, rest = code.partition("!nontemporal")
    assert stored and "fence seq_cst" in rest


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("count", [1, 2, 3])
def test_programs_run_in_as_many_threads_as_torch_has(count, threads, monkeypatch):
    threads(count)
    barrier, ran_in, asked = threading.Barrier(count, timeout=10), set(), []
    in_threads = launch._in_threads

    def recorded(run, number):
        asked.append(number)
        in_threads(run, number)

    monkeypatch.setattr(launch, "_in_threads", recorded)

    def program(_number, _programs):
        if threading.get_ident() not in ran_in:
            ran_in.add(threading.get_ident())
            barrier.wait()

    launch._launch(program, 16)
    assert asked == [count] and len(ran_in) == count


@pytest.mark.usefixtures("team")
def test_the_number_of_threads_changes_no_bit(inputs, threads):
    found = []
    for count in (1, 2, 3, 20):
        threads(count)
        found.append(_gradients(*inputs))
    assert all(_equal(each, found[0]) for each in found[1:])


@pytest.mark.usefixtures("team")
def test_each_program_is_run_once_and_its_error_is_raised(threads):
    threads(4)
    for count in (1, 2, 16):
        seen = []
        launch._launch(
            lambda program, programs, seen: seen.append((program, programs)),
            count,
            seen,
        )
        assert sorted(seen) == [(program, count) for program in range(count)]

    def fails(program, programs):
        if program == programs - 1:
            raise ValueError("the last one")

    with pytest.raises(ValueError, match="the last one"):
        launch._launch(fails, 16)


@pytest.mark.usefixtures("team")
def test_python_threads_and_torchs_own_at_the_same_time(inputs, threads):
    threads(2)
    wanted, square = _gradients(*inputs), inputs[0].T @ inputs[0]

    def work(_):
        return all(
            _equal(_gradients(*inputs), wanted)
            and torch.equal(inputs[0].T @ inputs[0], square)
            for _ in range(5)
        )

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, range(6)))


def _meet():
    """Two programs that wait for each other: an error unless they run at the same time."""
    barrier = threading.Barrier(2, timeout=10)
    launch._launch(lambda program, programs: barrier.wait(), 2)


class Normalized(torch.utils.data.Dataset):
    """Gradients of the same inputs, computed in a worker."""

    def __init__(self, inputs):
        self.inputs = inputs

    def __len__(self):
        return 4

    def __getitem__(self, _):
        _meet()
        return _gradients(*self.inputs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
def test_a_forked_dataloader_after_threads_ran(inputs, monkeypatch):
    """A worker has one of torch's threads; here its kernels take two of their own, which its parent had already."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    _meet()
    wanted = _gradients(*inputs)
    options = {
        "num_workers": 2,
        "multiprocessing_context": "fork",
        "batch_size": None,
        "timeout": 60,
    }
    found = list(torch.utils.data.DataLoader(Normalized(inputs), **options))
    assert len(found) == 4 and all(_equal(each, wanted) for each in found)
    assert _equal(_gradients(*inputs), wanted)


FORKED = """
import os
import sys
import torch

{before}
torch.set_num_threads(2)
x, dy = torch.randn(2, 1024, 512)
x.requires_grad_()
x.detach() @ x.detach().T
if (child := os.fork()) == 0:
    import normgrad
    results = []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        y = normgrad.layer_norm(x, 512, backend="numba")
        results.append((y, *torch.autograd.grad(y, x, dy)))
    os._exit(not all(map(torch.equal, *results)))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.parametrize("before", ["", "import normgrad.torch_ops.api"])
def test_a_process_that_was_forked_before_the_kernels_were_loaded(before):
    """GNU OpenMP would wait for threads that its parent had."""
    script = FORKED.format(before=before)
    done = python("-c", script, timeout=120)
    assert done.returncode == 0, done.stderr


NO_CACHE = """
from numba.core.caching import CacheImpl

CacheImpl._locator_classes = []
import torch
import normgrad

y = normgrad.layer_norm(torch.ones(2, 3), 3, backend="numba")
assert torch.equal(y, torch.zeros(2, 3))
"""


def test_code_is_compiled_where_there_is_no_place_to_keep_it():
    """As with an installation and a home that are read-only: no place is good enough for Numba."""
    done = python("-c", NO_CACHE, timeout=300)
    assert done.returncode == 0, done.stderr


def test_only_who_asks_for_numba_gets_it():
    cpu = torch.device("cpu")
    assert (
        kernels_of("auto", cpu) is torch_rows
        and kernels_of("numba", cpu) is numba_kernels
    )
