"""All that is CUDA's own stands behind one interface: who else names it, and what the one implementation calls."""

from __future__ import annotations

import ast
import contextlib
import mmap
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kgbench.core.paths import PACKAGE
from kgbench.harness.machine import visible
from kgbench.harness.machine.environment import environment

SEAM = {
    "harness/wire/cuda.py": "the implementation",
    "harness/machine/devices.py": "finds GPUs, by nvidia-smi",
    "harness/machine/visible.py": "hides GPUs from a process",
}
EXCEPTIONS = {
    "backend/runtime/caller.py": "part of exported packages, which need no kgbench",
    "baselines/aten.py": "a library of CUDA's: PyTorch's own kernels",
    "baselines/cublas.py": "a library of CUDA's, through its C functions",
    "baselines/vllm.py": "a library of CUDA's, by its compiled operators",
    "harness/candidate/ahead.py": "stands in for torch.cuda where there is no GPU",
}
"""Modules outside of it, with the reason. What a candidate writes, as examples and exploits, is no module of ours."""
NOT_OURS = ("examples/", "selftest/exploits/files/")
WORDS = ("libcuda", "libcupti", "nvidia-smi", "cuda.bindings", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""In a text that is no docstring. What messages say to users is not looked at."""
MAY_NAME = ("cuda", "CUDA", "libcupti", "nvidia-smi", "pynvml")
"""A module without any of these names nothing of CUDA's: parsing all modules takes seconds."""


def named(tree: ast.Module) -> Counter[str]:
    """CUDA's names in a module: attributes of torch.cuda, imports, and words in texts."""
    found: Counter[str] = Counter()
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("cuda", "_cuda", "CUDA") and ast.unparse(node) in (
            "torch.cuda", "torch.version.cuda", "torch._C._cuda", "_profiler.ProfilerActivity.CUDA",
            "ProfilerActivity.CUDA",
        ):  # fmt: skip
            found[ast.unparse(node)] += 1
        elif isinstance(node, ast.Import):
            found.update(each.name for each in node.names if each.name.partition(".")[0] in ("cuda", "pynvml"))
            found.update(each.name for each in node.names if each.name.startswith("torch.cuda"))
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
            found.update(each for each in whole if each.partition(".")[0] in ("cuda", "pynvml") or each == "torch.cuda")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found.update(word for word in WORDS if word in node.value)
    return found


def modules() -> Iterator[tuple[str, Counter[str]]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(NOT_OURS) and "messages" not in name:
            text = path.read_text(encoding="utf-8")
            yield name, named(ast.parse(text)) if any(word in text for word in MAY_NAME) else Counter()


def test_no_other_module_names_cuda() -> None:
    found = {name: dict(words) for name, words in modules() if words and name not in {**SEAM, **EXCEPTIONS}}
    assert found == {}


def test_every_exception_is_one() -> None:
    naming = {name for name, words in modules() if words}
    assert {*SEAM, *EXCEPTIONS} - naming == set()


@pytest.mark.parametrize(
    "text",
    ["import torch\ntorch.cuda.synchronize()\n", "from torch import cuda\n", "from cuda.bindings import driver\n",
     "import cuda.bindings.driver\n", "import torch.cuda as c\n", "import torch\nx = torch.version.cuda\n",
     "import ctypes\nctypes.CDLL('libcuda.so.1')\n", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"],
)  # fmt: skip
def test_the_search_finds_what_it_is_for(text: str) -> None:
    assert named(ast.parse(text))


def test_what_is_no_use_of_cuda_is_not_found() -> None:
    assert not named(ast.parse('"""torch.cuda and libcuda."""\nimport torch\nkind = torch.device("cuda").type\n'))


@pytest.mark.torch
def test_every_call_stands_in_the_design_document() -> None:
    from kgbench.harness.wire.gpu import Gpu

    rows = (PACKAGE.parent / "docs" / "design" / "0010-devices.md").read_text(encoding="utf-8").splitlines()
    first = " ".join(row.split("|")[1] for row in rows if row.startswith("| `"))
    assert {name for name in Gpu.__abstractmethods__ if f"`{name}`" not in first} == set()


def test_processes_see_the_gpus_that_they_are_meant_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment("cpu")["CUDA_VISIBLE_DEVICES"] == ""  # type: ignore[arg-type]
    assert "CUDA_VISIBLE_DEVICES" not in environment("cuda")  # type: ignore[arg-type]
    assert environment("cuda")["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"  # type: ignore[arg-type]
    assert visible.only("GPU-1") == {"CUDA_VISIBLE_DEVICES": "GPU-1"}


# --- the implementation's calls of the driver ---


class Driver:
    """Stands in for cuda.bindings.driver: answers each call and writes it down."""

    def __init__(self, fails: str = "", status: str = "CUDA_ERROR_OUT_OF_MEMORY") -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails, self.status = fails, status
        self.answers = {
            "cuMemGetAllocationGranularity": 4096, "cuMemCreate": "handle", "cuMemExportToShareableHandle": 77,
            "cuMemImportFromShareableHandle": "opened", "cuMemAddressReserve": 0x1000,
            "cuMemHostGetDevicePointer": 0x2000,
        }  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            return _Flags(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *(str(each) if isinstance(each, _Flags) else each for each in arguments)))
            if name == self.fails:
                return (_Status(2, self.status),)
            return (_Status(0, "CUDA_SUCCESS"), *([self.answers[name]] if name in self.answers else []))

        return call


class _Status(int):
    name: str

    def __new__(cls, value: int, name: str) -> _Status:
        found = super().__new__(cls, value)
        found.name = name
        return found


class _Flags:
    """An enumeration, a structure, or a constant of the driver's."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _Flags:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Flags(f"{self._name}.{name}")

    def __call__(self) -> Any:
        return SimpleNamespace(location=SimpleNamespace())

    def __str__(self) -> str:
        return self._name


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    return replaced(monkeypatch, Driver())


def replaced(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> Driver:
    bindings: Any = ModuleType("cuda.bindings")
    bindings.driver = driver
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    return driver


torch_only = pytest.mark.torch


@torch_only
def test_shared_memory_is_made_mapped_and_given_back_as_the_driver_wants_it(driver: Driver) -> None:
    from kgbench.harness.wire.buffers import create_buffer

    made = create_buffer("cuda", 5000, 0)
    assert (made.nbytes, made.address, made.fd) == (8192, 0x1000, 77)
    names = [call[0] for call in driver.calls]
    assert names == ["cuMemGetAllocationGranularity", "cuMemCreate", "cuMemExportToShareableHandle",
                     "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemRelease"]  # fmt: skip
    assert driver.calls[1][1] == 8192
    assert driver.calls[4] == ("cuMemMap", 0x1000, 8192, 0, "handle", 0)
    (access,) = driver.calls[5][3]
    assert access.location.id == 0
    assert str(access.flags).endswith("PROT_READWRITE")
    made.fd = os.open(os.devnull, os.O_RDONLY)
    made.release()
    assert driver.calls[-2:] == [("cuMemUnmap", 0x1000, 8192), ("cuMemAddressFree", 0x1000, 8192)]


@torch_only
def test_the_other_side_opens_what_came_over_the_socket(driver: Driver) -> None:
    from kgbench.harness.wire.buffers import open_buffer

    assert open_buffer("cuda", 77, 8192, 0).address == 0x1000
    assert driver.calls[0][:2] == ("cuMemImportFromShareableHandle", 77)
    assert ("cuMemMap", 0x1000, 8192, 0, "opened", 0) in driver.calls


@torch_only
def test_streams_wait_for_words_of_the_page_that_is_registered_once(driver: Driver) -> None:
    from kgbench.harness.wire.buffers import ControlPage

    page = ControlPage.create()
    page.stream_wait(5, page.RELEASE, 9)
    page.stream_write(5, page.DONE, 9)
    page.stream_write(5, page.SECURED, 9)
    assert [call[0] for call in driver.calls].count("cuMemHostRegister") == 1
    assert driver.calls[0][2] == mmap.PAGESIZE
    waits = [call for call in driver.calls if call[0].startswith("cuStream")]
    assert [call[:4] for call in waits] == [
        ("cuStreamWaitValue32", 5, 0x2000, 9),
        ("cuStreamWriteValue32", 5, 0x2000 + 64, 9),
        ("cuStreamWriteValue32", 5, 0x2000 + 128, 9),
    ]
    assert waits[0][4].endswith("WAIT_VALUE_EQ")


@torch_only
@pytest.mark.parametrize("status", ["CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_INVALID_VALUE"])
def test_a_driver_that_refuses_is_named_and_exhausted_memory_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    import torch

    from kgbench.harness.wire.buffers import create_buffer

    replaced(monkeypatch, Driver("cuMemCreate", status))
    with pytest.raises(RuntimeError, match=status) as raised:
        create_buffer("cuda", 1, 0)
    assert isinstance(raised.value, torch.OutOfMemoryError) == (status == "CUDA_ERROR_OUT_OF_MEMORY")


@torch_only
def test_torchs_part_is_asked_of_torch_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from kgbench.harness.wire.device import GPU

    asked: list[Any] = []

    def answers(name: str, value: Any) -> None:
        monkeypatch.setattr(torch.cuda, name, lambda *a, **k: (asked.append((name, *a, *k.items())), value)[1])

    facts = SimpleNamespace(total_memory=10**9, L2_cache_size=77)
    for name, value in {
        "synchronize": None, "empty_cache": None, "memory_reserved": 5, "get_device_name": "a GPU", "_sleep": None,
        "get_device_capability": (9, 0), "get_device_properties": facts, "is_initialized": False,
        "current_stream": SimpleNamespace(cuda_stream=42), "Event": "event", "set_rng_state": None,
        "Stream": "new", "stream": "block", "CUDAGraph": SimpleNamespace(replay="repeats"),
        "graph": contextlib.nullcontext(),
    }.items():  # fmt: skip
        answers(name, value)
    device = torch.device("cuda", 0)
    GPU.wait()
    GPU.wait(device)
    GPU.release_cached()
    GPU.idle(100)
    assert asked == [("synchronize", None), ("synchronize", device), ("empty_cache",), ("_sleep", 100)]
    assert (GPU.name(), GPU.capability(), GPU.memory_bytes(), GPU.l2_bytes(device)) == ("a GPU", 90, 10**9, 77)
    assert (GPU.cached_bytes(), GPU.stream(), GPU.is_touched()) == (5, 42, False)
    GPU.set_random_state(torch.zeros(1), device)
    assert asked[-1][0] == "set_rng_state"
    assert asked[-1][2] == device
    assert GPU.events() == ("event", "event")
    assert ("Event", ("enable_timing", True)) in asked
    assert GPU.another_stream() == "block"
    assert ("stream", "new") in asked
    assert GPU.recorded(lambda: "result") == ("repeats", "result")
    assert GPU.version() == torch.version.cuda
    assert GPU.activity() is torch._C._profiler.ProfilerActivity.CUDA


@torch_only
def test_the_harness_asks_the_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a GPU would be waited for, and its memory given back."""
    import torch

    from kgbench.harness.clock import outputs, peaks, quiet
    from kgbench.harness.verdict import placed_call

    asked: list[str] = []

    class Fake:
        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: asked.append(name)

    for module in (outputs, peaks, quiet, placed_call):
        monkeypatch.setattr(module, "GPU", Fake())
    placed_call.synchronize(torch.device("cuda", 0))
    placed_call.synchronize(torch.device("cpu"))
    assert asked == ["wait"]
    device = quiet.QuietDevice(torch.device("cpu"), None, random.Random(1))  # type: ignore[arg-type]
    assert device.flush() == 0.0
    assert asked == ["wait"]
    device.cuda = True
    monkeypatch.setattr(quiet, "FLUSH_BYTES", 8)
    device.flush()
    assert asked == ["wait"] * 3
    device.release()
    device.flush()
    assert asked == ["wait"] * 5, "a flush after its memory was given back is one like any other"
    mark = SimpleNamespace(record=lambda: None, synchronize=lambda: None, elapsed_time=lambda other: 1500.0)
    monkeypatch.setattr(peaks, "GPU", SimpleNamespace(events=lambda: (mark, mark), wait=lambda device: None))
    assert peaks._seconds(lambda: None, torch.device("cuda", 0)) == 1.5
