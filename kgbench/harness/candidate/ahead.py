"""Compiles a candidate's Triton kernels before it is judged, in a sandbox that has no GPU.

The candidate is imported and called with tensors that have a GPU's sizes and strides and no memory (PyTorch's fake
tensors). Each launch is compiled and not started, and what Triton puts into its cache is appended to a file, from which
the candidate's worker begins. A call that fails here is passed over: its worker compiles what it needs itself. The
candidate shares this process, so nothing here is trusted.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import torch

from kgbench.harness.candidate.calls import decode_argument
from kgbench.harness.candidate.source import entries_of, load_source
from kgbench.harness.wire.ahead import MOST_BYTES, CompileAhead, without_folder, write
from kgbench.harness.wire.buffers import LAZY_BITS
from kgbench.harness.wire.protocol import Channel

MOST_FAILED: Final = 5
"""Launches that may fail to compile before the rest is left to the worker, which says why."""
CALL_S: Final = 20.0
"""Seconds that one call may take, what it compiles included."""
BASE: Final = 1 << 30
"""Address that each storage is said to have: a multiple of what Triton asks for, as in a worker."""


class Compiler:
    """Takes the place of a worker's stub: compiles what it is told to, and ends."""

    def __init__(self, channel: Channel, device_kind: str, folder: Path) -> None:
        self.channel = channel
        self.folder = folder

    def serve(self) -> None:
        """Read the one request, and compile until all calls are done."""
        message, fds = self.channel.receive_with_fds()
        request = CompileAhead.decode(message)
        with os.fdopen(fds[0], "wb") as file:
            made = Made(file, Path(os.environ["TRITON_CACHE_DIR"]))
            self._compile(request, believe_in(request.properties, made.note), made)

    def _compile(self, request: CompileAhead, fake: contextlib.AbstractContextManager[Any], made: Made) -> None:
        with contextlib.suppress(Exception), within(CALL_S), fake:
            module = load_source(request.source, self.folder)
            entries = entries_of(module, request.entries)
            for overload, args, kwargs in request.calls:
                if (entry := entries.get(overload)) is None:
                    continue
                with contextlib.suppress(Exception), within(CALL_S):
                    entry(*map(argument, args), **{name: argument(value) for name, value in kwargs.items()})
                made.hand_out()
                if made.failed > MOST_FAILED:
                    return


class Made:
    """What Triton has put into its cache, and how much of it stands in the file."""

    def __init__(self, file: IO[bytes], cache: Path) -> None:
        self.failed = 0
        """Launches that could not be compiled."""
        self._file = file
        self._cache = cache
        self._written: set[str] = set()
        self._bytes = 0
        self._changed = False

    def note(self, failed: bool) -> None:
        """A launch has been compiled, or could not be."""
        self._changed = True
        self.failed += failed

    def hand_out(self) -> None:
        """Append what is new. Raises OSError."""
        if not self._changed:
            return
        self._changed = False
        for path in sorted(self._cache.glob("*/*")):
            name = f"{path.parent.name}/{path.name}"
            if name in self._written or not path.is_file():
                continue
            content = without_folder(name, path.read_bytes(), str(self._cache))
            self._written.add(name)
            self._bytes += len(content)
            if self._bytes < MOST_BYTES:
                write(self._file, name, content)


def argument(value: Any) -> Any:
    """An argument from what ``session.ahead`` encodes, its tensors without memory. A GPU's generator needs a GPU."""
    return decode_argument(value, lambda told: _tensor(**told["tensor"]), "cuda:0", lambda seed: torch.Generator())


def _tensor(dtype: str, extent: int, shape: list[int], strides: list[int], offset: int, lazy: str, host: bool) -> Any:
    kind = getattr(torch, dtype)
    if host:
        return torch.zeros(shape, dtype=kind)
    return LAZY_BITS[lazy](torch.empty(extent, dtype=kind, device="cuda").as_strided(shape, strides, offset))


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises TimeoutError inside the block once so much time has passed."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def believe_in(properties: Mapping[str, Any], note: Callable[[bool], None]) -> contextlib.AbstractContextManager[Any]:
    """From now on this process believes in a GPU with these properties, and no kernel is started: for a process that
    does nothing else.

    Args:
        properties: by the names of ``torch.cuda.get_device_properties``.
        note: called after each launch, with whether it could not be compiled.

    Returns: PyTorch's mode in which tensors have no memory, to be entered around what is called.
    """
    tensors: Any = importlib.import_module("torch._subclasses.fake_tensor")
    # The mode asks torch.cuda whether there is a GPU to turn to, and there is none.
    tensors.FakeTensorMode.avoid_device_init = True
    _pretend(types.SimpleNamespace(**properties))
    # It would make a tensor on the GPU.
    tensors.init_gpu_context = lambda *device: None
    tensors.FakeTensor.data_ptr = lambda tensor: BASE + tensor.storage_offset() * tensor.element_size()
    _compile_only(10 * properties["major"] + properties["minor"], note)
    mode: contextlib.AbstractContextManager[Any] = tensors.FakeTensorMode(allow_non_fake_inputs=True)
    return mode


def _pretend(properties: Any) -> None:
    """Have ``torch.cuda`` answer as if there were one GPU."""
    stream = types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None, wait_stream=lambda other: None)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "empty_cache": lambda: None,
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (properties.major, properties.minor),
        "get_device_name": lambda device=None: properties.name,
        "device": lambda device=None: contextlib.nullcontext(),
        "device_of": lambda tensor=None: contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


class _Pointer:
    """What Triton looks at of a tensor that is passed to a kernel."""

    def __init__(self, tensor: Any) -> None:
        self.dtype = tensor.dtype
        self.address = int(tensor.data_ptr())

    def data_ptr(self) -> int:
        return self.address


def _pointers(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _Pointer(value)
    return type(value)(map(_pointers, value)) if type(value) in (tuple, list) else value


def _compile_only(capability: int, note: Callable[[bool], None]) -> None:
    """Have Triton compile each launch for such a GPU, with what launches it, and start nothing."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    target = GPUTarget("cuda", capability, 32)
    driver: Any = types.SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        get_current_stream=lambda device=None: 0,
        get_active_torch_device=lambda: torch.device("cuda", 0),
        get_device_interface=lambda: torch.cuda,
        is_active=lambda: True,
        map_python_to_cpp_type=lambda name: name,
    )
    triton.runtime.driver.set_active(driver)
    jit, tuner = JITFunction, Autotuner
    compiled, launcher = jit.run, _launcher()
    seen: set[int] = set()

    def run(function: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        failed = True
        try:
            named = {name: _pointers(value) for name, value in named.items()}
            kernel = compiled(function, *map(_pointers, args), grid=None, warmup=True, **named)
            failed = False
        finally:
            note(failed)
        if kernel is not None and id(kernel) not in seen:
            seen.add(id(kernel))
            with contextlib.suppress(Exception):
                launcher(kernel.src, kernel.metadata)
        return kernel

    def tuned(tuner: Any, *args: Any, **named: Any) -> None:
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        for config in tuner.prune_configs(named):
            with contextlib.suppress(Exception):
                tuner.fn.run(*args, **named, **config.all_kwargs())

    jit.run, tuner.run = run, tuned


def _launcher() -> Callable[..., Any]:
    """What builds the C module that launches kernels of one signature, in versions of Triton that have such."""
    with contextlib.suppress(ImportError, AttributeError):
        found: Callable[..., Any] = importlib.import_module("triton.backends.nvidia.driver").CudaLauncher
        return found
    return lambda source, metadata: None
