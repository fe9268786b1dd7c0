"""Candidates are compiled while they wait for a slot and while they are judged, in sandboxes that have no GPU.

A turn stops whatever could touch the device; these processes cannot, so they go on. They know the problem's calls as
anybody can expand them, with sizes drawn from a seed of their own: nothing that a verdict depends on. Never imports
torch.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.arguments import encoded_call
from kgbench.harness.machine.languages import uses_of
from kgbench.harness.machine.settings import Job, RefereeSettings, default_limits
from kgbench.harness.session.server import ForkServer
from kgbench.harness.wire.ahead import CompileAhead
from kgbench.harness.wire.forks import ForkCompiler, WorkerLimits, WorkerSpec
from kgbench.harness.wire.protocol import Channel, ChannelClosed, ChannelTimeout, pair
from kgbench.problem.cases import TensorSpec, bind, expand_cases
from kgbench.problem.entry_names import entry_names
from kgbench.problem.model import Overload, PassedAs, module_of

STUB: Final = "kgbench.harness.candidate.ahead:Compiler"
"""Dotted path of what compiles."""
CORES_EACH: Final = 2
"""Cores of the machine for each candidate that is compiled ahead at a time."""


@dataclass(eq=False)
class Compilation:
    """One candidate, and what is compiled for it."""

    job: Job
    file: Path
    begun: bool = False
    control: Channel | None = None
    """To the supervisor of what compiles; None before it began, and once it has ended."""

    @property
    def goes_on(self) -> bool:
        """Whether it is being compiled: a supervisor says once that it began, and once that it ended."""
        if self.control is None:
            return False
        with contextlib.suppress(ChannelClosed):
            while select.select([self.control], [], [], 0)[0]:
                self.control.fill()
            return True
        self.end()
        return False

    def end(self) -> None:
        """End its process, if there is one. Its supervisor ends what it watches once nobody listens."""
        if self.control is not None:
            self.control.close()
            self.control = None


@dataclass
class AheadCompiler:
    """Compiles as many candidates at a time as ``most``, first come first."""

    server: ForkServer
    token: str
    """The session's, by which its processes are ended."""
    settings: RefereeSettings
    most: int
    properties: dict[str, Any]
    """The GPU's, by the names of ``torch.cuda.get_device_properties``."""
    memory_gb: float
    at_hand: list[Compilation] = field(default_factory=list)
    """Candidates that wait to be judged, or are; those at the front are compiled, or have been."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._folder = tempfile.TemporaryDirectory(prefix="kgbench-ahead-")

    @contextlib.contextmanager
    def compiling(self, job: Job) -> Iterator[Job]:
        """Compile a job's candidate inside the block, as soon as it is its turn; the job as it is to be judged."""
        mine = self._entered(job) if worth_compiling(job) else None
        try:
            yield job if mine is None else replace(job, compiled=str(mine.file))
        finally:
            if mine is not None:
                self._leave(mine)

    def close(self) -> None:
        """End what is compiled, and remove all files."""
        with self._lock:
            self._closed = True
            for each in self.at_hand:
                each.end()
            self.at_hand.clear()
        self._folder.cleanup()

    def _entered(self, job: Job) -> Compilation | None:
        """A candidate with its file, while there is a folder for that."""
        with self._lock:
            if self._closed:
                return None
            mine = Compilation(job, Path(self._folder.name, secrets.token_hex(8)))
            mine.file.touch()
            self.at_hand.append(mine)
            self._begin_next()
            return mine

    def _leave(self, mine: Compilation) -> None:
        with self._lock:
            mine.end()
            mine.file.unlink(missing_ok=True)
            if mine in self.at_hand:
                self.at_hand.remove(mine)
                self._begin_next()

    def _begin_next(self) -> None:
        """Begin with as many as may be compiled at a time. To be called with the lock held."""
        free = self.most - sum(each.goes_on for each in self.at_hand)
        for each in [each for each in self.at_hand if not each.begun][: max(0, free)]:
            each.begun = True
            # A candidate that cannot be compiled ahead is compiled when it is judged.
            with contextlib.suppress(OSError, ValueError, ChannelClosed, ChannelTimeout):
                self._begin(each)

    def _begin(self, compilation: Compilation) -> None:
        """Raises OSError, ChannelClosed, ChannelTimeout, and ValueError where the problem's calls cannot be bound."""
        asked = request(compilation.job, self.memory_gb, self.properties)
        own_control, control = pair()
        own_worker, worker = pair()
        compilation.control = Channel(own_control)
        told = Channel(own_worker)
        try:
            with open(compilation.file, "wb") as file:
                sent = (control.fileno(), worker.fileno())
                if self.server.try_fork(ForkCompiler(self.token, self._spec()), sent):
                    told.send(asked.encode(), [file.fileno()])
                else:
                    compilation.end()
        except BaseException:
            compilation.end()
            raise
        finally:
            told.close()
            control.close()
            worker.close()

    def _spec(self) -> WorkerSpec:
        limits = WorkerLimits(**{**default_limits(), **self.settings.limits})
        plan, hidden = self.server.plan, list(self.settings.hidden)
        return WorkerSpec("compiler", STUB, DeviceKind.CPU, "", plan.to_json(), hidden, [], limits, without_gpu=True)


def compiler_for(
    server: ForkServer, token: str, settings: RefereeSettings, cores: int, properties: dict[str, Any], memory_gb: float
) -> AheadCompiler | None:
    """What compiles a session's candidates; None where there is no GPU, or a process could open one all the same.

    ``cores``: of the machine. The others: see ``AheadCompiler``.
    """
    most = cores // CORES_EACH
    if not properties or not most or "mount" not in server.plan.namespaces:
        return None
    return AheadCompiler(server, token, settings, most, properties, memory_gb)


def worth_compiling(job: Job) -> bool:
    """Whether a job's candidate has kernels of Triton's, and is called as itself."""
    if job.source is None or job.trusted is not None or job.suite or job.adapted:
        return False
    return "triton" in uses_of(job.source).mentioned and module_of(job.problem) is None


def request(job: Job, memory_gb: float, properties: dict[str, Any]) -> CompileAhead:
    """What compiles a job's candidate for the calls of its problem on a GPU of this size."""
    source = str(job.source)
    calls = [call for overload in job.problem.judged for call in calls_of(overload, memory_gb)]
    # From the last to the first, since the worker comes from the other end.
    calls.reverse()
    return CompileAhead(source, entry_names(job.problem, source), calls, properties)


def calls_of(overload: Overload, memory_gb: float) -> list[list[Any]]:
    """The calls of an overload, each with other layouts or types than those before."""
    found: dict[str, list[Any]] = {}
    for case in expand_cases(overload, DeviceKind.CUDA, memory_gb, secrets.token_hex(8)):
        args, kwargs = encoded_call(bind(overload, case), _tensor)
        found.setdefault(repr((args, kwargs)), [overload.name, args, kwargs])
    return list(found.values())


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    """A tensor as ``candidate.ahead`` makes it."""
    made: dict[str, Any] = {"dtype": spec.dtype, "extent": spec.extent, "shape": spec.shape, "strides": spec.strides,
            "offset": spec.offset, "lazy": spec.lazy, "host": spec.host}  # fmt: skip
    if spec.passed is PassedAs.POINTERS:
        count = spec.shape[0]
        made |= {"dtype": "int64", "extent": count, "shape": (count,), "strides": (1,), "offset": 0}
    elif spec.passed is PassedAs.STORAGE:
        made |= {"shape": (spec.extent - spec.offset,), "strides": (1,)}
    return {"tensor": made}
