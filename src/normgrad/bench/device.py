"""The one module that knows the GPU: streams, graphs, events and properties, through torch.cuda.

The harness asks a device for nothing but the methods of `Cuda`, so that a stand-in on a CPU can run all of it.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import time

import torch


class NoDevice(RuntimeError):
    """There is no GPU to measure on; the message says what is needed."""


def refusal() -> str | None:
    """Why nothing can be measured on the current device; None where it can."""
    if not torch.cuda.is_available():
        built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
        return (
            f"got no CUDA device (torch {torch.__version__}, {built}), needs an NVIDIA GPU, its driver and a torch "
            "built for CUDA; `bench compile` and `bench plot` need no GPU"
        )
    capability = torch.cuda.get_device_capability()
    if capability < (7, 0):
        return f"got compute capability {capability[0]}.{capability[1]}, needs 7.0 or later for Triton"
    return None


class Cuda:
    """The current CUDA device.

    Everything runs on one stream of its own: a backward runs on the stream of its forward, and a capture must see both.

    Raises:  NoDevice where torch sees no CUDA device, or one that Triton does not compile for
    """

    def __init__(self):
        why = refusal()
        if why:
            raise NoDevice(why)
        from ..triton_kernels import INTERPRETED

        if INTERPRETED:
            raise NoDevice("got Triton's interpreter, needs TRITON_INTERPRET=0 before triton is first imported")
        self.torch_device = torch.device("cuda", torch.cuda.current_device())
        self._properties = torch.cuda.get_device_properties(self.torch_device)
        self._stream = torch.cuda.Stream(self.torch_device)
        self._pool = None

    @property
    def l2_bytes(self) -> int:
        """The size of the L2 cache."""
        return self._properties.L2_cache_size

    @property
    def half(self) -> str:
        """The 16-bit dtype to measure first: bfloat16 where the device computes in it."""
        return "bfloat16" if torch.cuda.get_device_capability(self.torch_device) >= (8, 0) else "float16"

    def free_bytes(self) -> int:
        """Device memory that is free, what torch's allocator holds unused counted as free."""
        unused = torch.cuda.memory_reserved(self.torch_device) - torch.cuda.memory_allocated(self.torch_device)
        return torch.cuda.mem_get_info(self.torch_device)[0] + unused

    def describe(self) -> dict:
        """What the results file says about the device; None where this torch cannot read a property."""
        found = self._properties
        kilohertz = getattr(found, "memory_clock_rate", None)
        return {
            "name": found.name,
            "capability": list(torch.cuda.get_device_capability(self.torch_device)),
            "multiprocessors": found.multi_processor_count,
            "memory_bytes": found.total_memory,
            "l2_bytes": self.l2_bytes,
            "memory_clock_mhz": None if kilohertz is None else kilohertz / 1000,
            "memory_bus_bits": getattr(found, "memory_bus_width", None),
            "driver": _driver(),
            "cuda": torch.version.cuda,
        }

    @contextlib.contextmanager
    def session(self):
        """The stream as the current one."""
        self._stream.wait_stream(torch.cuda.current_stream(self.torch_device))
        with torch.cuda.stream(self._stream):
            yield
        self.synchronize()

    def fresh(self):
        """Give back what is no longer used, and begin a graph memory pool, for graphs that live at the same time.

        Such graphs may share it: they are replayed one after the other, and none reads what another wrote.
        """
        self.synchronize()
        gc.collect()
        torch.cuda.empty_cache()
        self._pool = torch.cuda.graph_pool_handle()

    def synchronize(self):
        """Wait until the device is idle."""
        torch.cuda.synchronize(self.torch_device)

    def clock(self) -> float:
        """The host's clock, in seconds."""
        return time.perf_counter()

    def capture(self, work):
        """A function that replays what `work` launches; it has run before, so that nothing is compiled here.

        What work returns lives until the capture ends, so no two of its results share memory.

        Raises:  whatever torch raised first, where the work cannot be captured
        """
        graph, reason = torch.cuda.CUDAGraph(), None
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                try:
                    kept = work()
                except Exception as error:
                    reason = error
                    raise
        except Exception as error:
            self._end_capture()
            # the end of a broken capture raises, too, and says nothing of the reason
            raise reason or error from None
        del kept
        return graph.replay

    def _end_capture(self):
        """Undo what a broken capture leaves: the allocator still serves the graph's pool, and refuses the next capture.

        torch's CUDAGraph::capture_end raises before it hands the allocator back; the function has two names, of 2.6 and
        of 2.8. It raises where the capture did end, after an error that did not concern the GPU.
        """
        self.synchronize()
        for name in ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool"):
            if self._pool is not None and hasattr(torch._C, name):
                with contextlib.suppress(RuntimeError):
                    getattr(torch._C, name)(self.torch_device.index, self._pool)
        self._pool = torch.cuda.graph_pool_handle()

    def seconds(self, run, repeats: int) -> float:
        """Device time of one run, from events around all of them."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(self._stream)
        for _ in range(repeats):
            run()
        end.record(self._stream)
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / repeats


def _driver():
    """The driver's version as nvidia-smi reads it; None where that tool is missing or says nothing."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return said[0] if said else None
