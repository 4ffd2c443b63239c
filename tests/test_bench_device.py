"""The GPU's own module without a GPU: each call checked against the signature of the installed torch, in its order."""

import contextlib
import subprocess
import types
from unittest import mock

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from normgrad import triton_kernels  # noqa: E402
from normgrad.bench import device  # noqa: E402

PROPERTIES = types.SimpleNamespace(
    name="some GPU", multi_processor_count=132, total_memory=2**37, L2_cache_size=60 * 2**20, memory_clock_rate=3201000,
    memory_bus_width=6144,
)  # fmt: skip
FUNCTIONS = (
    "get_device_properties current_stream stream synchronize empty_cache graph_pool_handle memory_reserved "
    "memory_allocated mem_get_info graph CUDAGraph Event Stream"
).split()
EVENT = torch.cuda.Event


class Cuda:
    """torch.cuda as autospecs of the real one, so that a call it would refuse is refused; `log` has the order."""

    def __init__(self, monkeypatch):
        self.log, self.pools, self.fails = [], 0, None
        fake = {name: mock.create_autospec(getattr(torch.cuda, name)) for name in FUNCTIONS}
        fake["get_device_properties"].return_value = PROPERTIES
        fake["current_stream"].return_value = "the default stream"
        fake["stream"].side_effect = self._stream
        fake["graph_pool_handle"].side_effect = self._pool
        fake["memory_reserved"].return_value, fake["memory_allocated"].return_value = 50, 20
        fake["mem_get_info"].return_value = (100, 1000)
        fake["graph"].side_effect = self._graph
        fake["synchronize"].side_effect = lambda device=None: self.log.append("synchronize")
        fake["empty_cache"].side_effect = lambda: self.log.append("empty cache")
        self.events = fake["Event"]
        self.events.side_effect = lambda enable_timing=False: self._event(enable_timing)
        self.made = fake
        known = {"is_available": lambda: True, "current_device": lambda: 3,
                 "get_device_capability": lambda device=None: (9, 0)}  # fmt: skip
        for name, value in {**fake, **known}.items():
            monkeypatch.setattr(torch.cuda, name, value)
        ends = ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool")
        monkeypatch.setattr(torch._C, ends[0], lambda *where: self.log.append(("end", *where)), raising=False)
        monkeypatch.delattr(torch._C, ends[1], raising=False)
        monkeypatch.setattr(triton_kernels, "INTERPRETED", False)

    @contextlib.contextmanager
    def _stream(self, stream):
        self.log.append("stream")
        yield
        self.log.append("no stream")

    def _pool(self):
        self.pools += 1
        return (0, self.pools)

    @contextlib.contextmanager
    def _graph(self, graph, pool=None, stream=None, **options):
        self.log.append(("capture", pool, stream))
        try:
            yield
        finally:
            self.log.append("end")
            if self.fails:
                raise self.fails

    def _event(self, timing):
        event = mock.create_autospec(EVENT, instance=True)
        event.record.side_effect = lambda stream=None: self.log.append(("record", timing, stream))
        event.synchronize.side_effect = lambda: self.log.append("wait")
        event.elapsed_time.side_effect = lambda end: 6000.0
        return event


@pytest.fixture
def cuda(monkeypatch):
    return Cuda(monkeypatch)


def test_what_is_said_of_the_device(cuda, monkeypatch):
    def smi(command, **options):
        assert command[:2] == ["nvidia-smi", "--query-gpu=driver_version"]
        return subprocess.CompletedProcess(command, 0, "580.1\n580.1\n")

    monkeypatch.setattr(subprocess, "run", smi)
    here = device.Cuda()
    assert here.torch_device == torch.device("cuda", 3)
    cuda.made["get_device_properties"].assert_called_once_with(here.torch_device)
    found = here.describe()
    assert (found["memory_clock_mhz"], found["memory_bus_bits"], found["driver"]) == (3201.0, 6144, "580.1")
    assert (found["multiprocessors"], found["l2_bytes"], found["capability"]) == (132, 60 * 2**20, [9, 0])
    assert here.free_bytes() == 100 + 50 - 20 and here.half == "bfloat16"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 5))
    assert here.half == "float16"


@pytest.mark.parametrize("error", [FileNotFoundError("nvidia-smi"), subprocess.CalledProcessError(9, "nvidia-smi")])
def test_no_driver_is_none(cuda, monkeypatch, error):
    monkeypatch.setattr(subprocess, "run", mock.Mock(side_effect=error))
    assert device.Cuda().describe()["driver"] is None


def test_older_torch_knows_no_clock(cuda, monkeypatch):
    known = {name: value for name, value in vars(PROPERTIES).items() if not name.startswith("memory_")}
    cuda.made["get_device_properties"].return_value = types.SimpleNamespace(**known)
    monkeypatch.setattr(subprocess, "run", mock.Mock(side_effect=FileNotFoundError))
    found = device.Cuda().describe()
    assert found["memory_clock_mhz"] is found["memory_bus_bits"] is None


def test_a_session_waits_and_is_waited_for(cuda):
    here = device.Cuda()
    with here.session():
        cuda.log.append("work")
    here._stream.wait_stream.assert_called_once_with("the default stream")
    assert cuda.log == ["stream", "work", "no stream", "synchronize"]


def test_a_capture_into_one_pool_on_the_sessions_stream(cuda):
    here = device.Cuda()
    here.fresh()
    assert cuda.log == ["synchronize", "empty cache"]
    for _ in range(2):
        replay = here.capture(lambda: cuda.log.append("work"))
        assert cuda.log[-3:] == [("capture", (0, 1), here._stream), "work", "end"]
        replay()
    assert cuda.made["CUDAGraph"].return_value.replay.call_count == 2
    here.fresh()
    here.capture(lambda: None)
    assert cuda.log[-2] == ("capture", (0, 2), here._stream)


def test_what_work_returns_lives_until_the_capture_ends(cuda):
    class Result:
        def __del__(self):
            cuda.log.append("freed")

    device.Cuda().capture(Result)
    assert cuda.log[1:] == ["end", "freed"]


def test_a_broken_capture_is_ended_and_its_pool_left(cuda):
    """The reason is raised, not what the end of the capture says; the next capture gets another pool."""
    here = device.Cuda()
    here.fresh()
    cuda.fails = RuntimeError("operation failed due to a previous error during capture")

    def work():
        try:
            raise KeyError("not in a cache")
        except KeyError:
            raise RuntimeError("operation not permitted when stream is capturing") from None

    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        here.capture(work)
    assert cuda.log[-2:] == ["synchronize", ("end", 3, (0, 1))]
    with pytest.raises(RuntimeError, match="previous error"):
        here.capture(lambda: None)
    cuda.fails = None
    here.capture(lambda: None)
    assert cuda.log[-2] == ("capture", (0, 3), here._stream)


def test_a_capture_that_did_end_is_not_ended_again(cuda, monkeypatch):
    """Then torch refuses to end it, by either of the names that the function has had."""
    here = device.Cuda()
    here.fresh()
    refuse = mock.Mock(side_effect=RuntimeError("not currently recording"))
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", refuse, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_endAllocateCurrentStreamToPool", refuse, raising=False)
    with pytest.raises(ValueError, match="the work's own"):
        here.capture(mock.Mock(side_effect=ValueError("the work's own")))
    assert refuse.call_args_list == [mock.call(3, (0, 1))] * 2


def test_seconds_are_those_of_one_run(cuda):
    """6000 ms between the events around three runs."""
    here = device.Cuda()
    assert here.seconds(lambda: cuda.log.append("run"), 3) == 2.0
    mark = ("record", True, here._stream)
    assert cuda.log == [mark, "run", "run", "run", mark, "wait"]


def test_devices_that_cannot_be_measured(cuda, monkeypatch):
    monkeypatch.setattr(triton_kernels, "INTERPRETED", True)
    with pytest.raises(device.NoDevice, match="got Triton's interpreter, needs TRITON_INTERPRET=0"):
        device.Cuda()
    assert device.refusal() is None
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (6, 1))
    with pytest.raises(device.NoDevice, match="got compute capability 6.1, needs 7.0"):
        device.Cuda()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "got no CUDA device" in device.refusal()
