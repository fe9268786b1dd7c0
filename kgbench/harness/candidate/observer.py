"""Records what a candidate's calls made PyTorch and the device do, by PyTorch's tracer (Kineto, with CUPTI on a GPU).

It runs in the candidate's process, so its record is only a hint: docs/policy.md says what can hide from it and how that
is detected. The tracer is used through torch's C functions, for all threads; ``torch.profiler`` would first import
PyTorch's compiler, which takes seconds.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from time import perf_counter_ns, process_time_ns, thread_time_ns  # a candidate may replace those of the module
from typing import Any, ClassVar, Final

import torch

from kgbench.harness.candidate.host_functions import OWN_CALLERS, HostFunction
from kgbench.harness.candidate.source import MODULE
from kgbench.harness.wire.device import GPU
from kgbench.harness.wire.protocol import Message

MOST_NAMES: Final = 150
"""Different operators, and different kernels, of a record at most: those that took longest."""
NAME_CHARS: Final = 240
"""Characters of an operator's or a kernel's name at most."""
COMPILED: Final = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction", "entire_frame_compile")
"""Prefixes of the names of events of PyTorch's compiler."""
LAUNCHERS: Final = (
    ("triton.runtime.jit", "JITFunction", "run"),
    ("triton.runtime.interpreter", "InterpretedFunction", "run"),
    ("triton.compiler.compiler", "CompiledKernel", "__getitem__"),
)
"""Triton's methods that launch a kernel. Packages that keep compiled kernels themselves go past the first."""
SWITCHES: Final = ("_enable_record_function", "_toggle_collection_dynamic")
"""Names of torch's C functions that end or interrupt the recording of operators and leave no trace of that."""
BYSTANDERS: Final = (*OWN_CALLERS, "torch")
"""Packages whose functions may lie between a candidate and its kernel: ``Module.__call__``, the stub."""


class Observer:
    """Watches calls for as long as it is on. ``with observer: call()`` any number of times, then ``record()``."""

    counting: ClassVar[dict[str, HostFunction]] = {}
    """Stand-ins for numpy's functions by name, kept from one observer to the next: making hundreds takes 10 ms."""
    tried: ClassVar[dict[bool, bool]] = {}
    """Whether the tracer works in this process, with and without device kernels."""

    def __init__(self, device_kind: str, kernels: bool, places: bool, mark: str) -> None:
        from torch._C import _autograd, _profiler

        self.tracer, self.profiler = _autograd, _profiler
        self.mark = mark
        self.activities = {_profiler.ProfilerActivity.CPU}
        self.device = torch.zeros(1, device=device_kind) if kernels else None
        if kernels:
            self.activities.add(GPU.activity())
        self.calls = self.wall_ns = self.cpu_ns = self.busy_ns = self.records = 0
        self.lost = False
        self.placing: dict[str, int] | None = {} if places else None
        """Operators and kernels seen while outputs were copied, by name; None where copies are not watched."""
        self.operators: dict[str, list[int]] = {}
        """Count, nanoseconds on the host and on the device, by name."""
        self.kernels: dict[tuple[str, str], list[int]] = {}
        """Count and nanoseconds, by name and the operator that launched it."""
        self.operators_ns = 0
        """Nanoseconds on the host in which at least one operator ran."""
        self.host_ns = [0, 0]
        """Nanoseconds of CPU time in functions of numpy that the candidate called, and how many calls these were."""
        self.launched_ns = 0
        """Nanoseconds of CPU time in Triton's launches; where Triton interprets, in the kernels themselves."""
        self.launched: dict[str, int] = {}
        """Launches of Triton's kernels, by Python module; of a generated one, by every module that led to it."""
        self.compiled: set[str] = set()
        """Names of functions whose kernels Triton launched."""
        self.host: dict[str, int] = {}
        self.undo: list[tuple[Any, str, Any]] = []
        if kernels not in Observer.tried:
            # The first trace of a process sets CUPTI up.
            with self:
                pass
            Observer.tried[kernels] = not self.lost
            self.lost, self.calls, self.wall_ns, self.cpu_ns = False, 0, 0, 0
        self.works = Observer.tried[kernels]
        self._wrap()

    def __enter__(self) -> Observer:
        self._start()
        self._signal("begin")
        self.begun_ns, self.begun_cpu_ns = perf_counter_ns(), process_time_ns()
        return self

    def __exit__(self, *error: object) -> None:
        self.wall_ns += perf_counter_ns() - self.begun_ns
        self.cpu_ns += process_time_ns() - self.begun_cpu_ns
        self.calls += 1
        self._signal("end")
        self._take(self._stop())

    @contextlib.contextmanager
    def while_placing(self) -> Iterator[None]:
        """Outputs are copied in the block; what runs there is recorded by name."""
        if self.placing is None:
            yield
            return
        self._start()
        self._signal("begin")
        yield
        self._signal("end")
        for event in self._between_marks(self._stop()) or ():
            is_host = event.device_type() == torch._C._autograd.DeviceType.CPU
            name = _operator(event.name()) if is_host else _short(event.name())
            if name is not None:
                self.placing[name] = self.placing.get(name, 0) + 1

    def record(self) -> Message:
        """Stop watching and return everything that was seen."""
        for holder, name, function in self.undo:
            setattr(holder, name, function)
        kernels = sorted(self.kernels.items(), key=lambda item: -item[1][1])
        operators = sorted(self.operators.items(), key=lambda item: -item[1][2] - item[1][1])
        return {
            "calls": self.calls,
            "lost": self.lost,
            "wall_us": self.wall_ns / 1e3,
            "cpu_us": self.cpu_ns / 1e3,
            "busy_us": self.busy_ns / 1e3,
            "records": self.records,
            "operators": [[name, n, host / 1e3, device / 1e3] for name, (n, host, device) in operators[:MOST_NAMES]],
            "kernels": [[name, by, n, ns / 1e3] for (name, by), (n, ns) in kernels[:MOST_NAMES]],
            "launched": dict(list(self.launched.items())[:MOST_NAMES]),
            "host": self.host,
            "operators_us": self.operators_ns / 1e3,
            "host_us": self.host_ns[0] / 1e3,
            "host_calls": self.host_ns[1],
            "launched_us": self.launched_ns / 1e3,
            "compiled": sorted(self.compiled)[:MOST_NAMES],
            "placing": dict(list((self.placing or {}).items())[:MOST_NAMES]),
        }

    # --- the tracer ---

    def _start(self) -> None:
        make, profiler = self.profiler.ProfilerConfig, self.profiler
        try:
            special = profiler._ExperimentalConfig(profile_all_threads=True)
        except TypeError:  # a PyTorch that sees the calling thread alone
            special = profiler._ExperimentalConfig()
        config = make(profiler.ProfilerState.KINETO, False, False, False, False, False, special)
        self.tracer._prepare_profiler(config, self.activities)
        self.tracer._enable_profiler(config, self.activities)

    def _stop(self) -> list[Any]:
        try:
            return list(self.tracer._disable_profiler().events())
        except RuntimeError:
            return []

    def _signal(self, which: str) -> None:
        """A mark for the tracer, and on a device the least of work outside of it: what lies between is the calls'."""
        if which == "begin":
            self._touch()
        with self.profiler._RecordFunctionFast(f"{self.mark} {which}"):
            pass
        if which == "end":
            self._touch()

    def _touch(self) -> None:
        if self.device is not None:
            GPU.wait()
            self.device.fill_(1)
            GPU.wait()

    def _between_marks(self, events: list[Any]) -> list[Any] | None:
        """Events of the host between the marks, and the device's without the marks' own; None where a mark is gone."""
        host = torch._C._autograd.DeviceType.CPU
        marks = {event.name(): event for event in events if event.name().startswith(self.mark)}
        begin, end = marks.get(f"{self.mark} begin"), marks.get(f"{self.mark} end")
        on_device = sorted((e for e in events if e.device_type() != host), key=lambda event: event.start_ns())
        if begin is None or end is None or (self.device is not None and len(on_device) < 2):
            self.lost = True
            return None
        inside = [e for e in events if e.device_type() == host and begin.start_ns() <= e.start_ns() <= end.start_ns()]
        return [*inside, *on_device[1:-1]]

    def _take(self, events: list[Any]) -> None:
        host = torch._C._autograd.DeviceType.CPU
        found = self._between_marks(events) or []
        by_number, on_host = {}, []
        for event in found:
            name = _operator(event.name()) if event.device_type() == host else None
            if name is not None:
                by_number[event.correlation_id()] = name
                amount = self.operators.setdefault(name, [0, 0, 0])
                amount[0] += 1
                amount[1] += event.duration_ns()
                on_host.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        self.operators_ns += _union(on_host)
        spans = []
        for event in found:
            if event.device_type() == host:
                continue
            by = by_number.get(event.linked_correlation_id(), "")
            nanoseconds = event.duration_ns()
            amount = self.kernels.setdefault((_short(event.name()), by), [0, 0])
            amount[0] += 1
            amount[1] += nanoseconds
            if by:
                self.operators[by][2] += nanoseconds
            spans.append((event.start_ns(), event.start_ns() + nanoseconds))
        self.records += len(spans)
        self.busy_ns += _union(spans)

    # --- what no tracer sees ---

    def _wrap(self) -> None:
        for module, name, method in LAUNCHERS:
            launcher = getattr(sys.modules.get(module), name, None)
            if launcher is not None and method in vars(launcher):
                self._replace(launcher, method, self._counts_launches(getattr(launcher, method)))
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return
        own = sys.modules.get(MODULE)
        for name, function in [*vars(numpy).items()]:
            if not callable(function) or isinstance(function, type) or name.startswith("_"):
                continue
            counting = Observer.counting.get(name)
            if counting is None or counting.counts_for is not function:
                counting = Observer.counting[name] = HostFunction(f"numpy.{name}", function)
            counting.counts_into(self.host, self.host_ns)
            self._replace(numpy, name, counting)
            # A candidate may have imported it by name.
            for alias in [key for key, value in vars(own).items() if value is function] if own else []:
                self._replace(own, alias, counting)

    def _replace(self, holder: Any, name: str, function: Callable[..., Any]) -> None:
        self.undo.append((holder, name, getattr(holder, name)))
        setattr(holder, name, function)

    def _counts_launches(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def counted(launcher: Any, *args: Any, **kwargs: Any) -> Any:
            self.compiled.add(str(getattr(_function(launcher), "__name__", ""))[:NAME_CHARS])
            for module in _authors(launcher):
                self.launched[module] = self.launched.get(module, 0) + 1
            begun_ns = thread_time_ns()
            try:
                return run(launcher, *args, **kwargs)
            finally:
                self.launched_ns += thread_time_ns() - begun_ns

        return counted


def seal() -> None:
    """Remove from this process, before a candidate is imported, the Python functions that hide operators from the
    tracer.

    C++ still has ways to hide them.
    """
    for module in (torch._C._autograd, torch.autograd, torch.autograd.profiler):
        for name in SWITCHES:
            if hasattr(module, name):
                delattr(module, name)
    _record_redispatches()


def _record_redispatches() -> None:
    """Make calls that are redispatched below the dispatcher leave a record, as calls through it do."""
    handle = getattr(torch._C, "_DispatchOperatorHandle", None)
    redispatch = getattr(handle, "redispatch_boxed", None)
    if handle is None or redispatch is None:
        return
    from torch._C import _profiler

    def recorded(operator: Any, *args: Any, **kwargs: Any) -> Any:
        with _profiler._RecordFunctionFast(operator.schema().name):
            return redispatch(operator, *args, **kwargs)

    handle.redispatch_boxed = recorded


@contextlib.contextmanager
def watched(observer: Observer | None, placing: bool = False) -> Iterator[None]:
    """Watch the block if an observer is on; ``placing``: outputs are copied in it."""
    if observer is None:
        yield
    else:
        with observer.while_placing() if placing else observer:
            yield


def _authors(launcher: Any) -> set[str]:
    """Modules that a Triton kernel belongs to: where it is written and, unless that is the candidate, the modules that
    call it.

    Packages that generate a kernel's text put it into a module of an arbitrary name.
    """
    found = {str(getattr(_function(launcher), "__module__", ""))}
    frame = sys._getframe(2) if MODULE not in found else None
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in BYSTANDERS:
            found.add(module)
        frame = frame.f_back
    return found


def _function(launcher: Any) -> Any:
    """The Python function that a Triton kernel is compiled from."""
    function = getattr(launcher, "fn", None) or getattr(getattr(launcher, "src", None), "fn", None)
    return getattr(function, "fn", function)


def _operator(event: str) -> str | None:
    """The operator that an event is of; None for what is none."""
    if event.startswith(COMPILED):
        return "inductor::compiled"
    namespace, colons, name = event.partition("::")
    return event[:NAME_CHARS] if colons and namespace.isidentifier() and name.isidentifier() else None


def _short(name: str) -> str:
    """The start of a kernel's name and its end, where cuBLAS and cuDNN sign theirs."""
    return name if len(name) <= NAME_CHARS else f"{name[: NAME_CHARS - 43]}...{name[-40:]}"


def _union(spans: list[tuple[int, int]]) -> int:
    """Nanoseconds in which at least one of these was going on."""
    total = end = 0
    for first, last in sorted(spans):
        total += max(0, last - max(first, end))
        end = max(end, last)
    return total
