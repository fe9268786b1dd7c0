"""Judging from Python on a Ray cluster: ``RayEvaluator``, with the interface of ``Evaluator``. Never imports torch.

The queue and what starts devices live in an actor, so that every process of a trainer can use one evaluator.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from kgbench.cluster.connection import connected
from kgbench.cluster.session import RaySession
from kgbench.core import user_modules
from kgbench.core.errors import KgbenchError, MachineError, to_stderr
from kgbench.core.kinds import PolicyMode
from kgbench.core.types import Result
from kgbench.evaluation.evaluator import Checked
from kgbench.harness.machine.settings import Deadlines, Job
from kgbench.harness.session.cancellation import Cancellation, Cancelled
from kgbench.harness.session.session import Settings
from kgbench.problem.model import Problem
from kgbench.problem.problem_cache import ProblemCache

MOST_AT_ONCE: Final = 1 << 16
"""Most concurrent calls of the actor, from all processes together; a call that waits for its verdict needs no thread.
"""

_CANCELLED_S: Final = 0.5
"""Seconds between two looks whether a check was cancelled."""


class Front:
    """The actor: a ``RaySession`` for every process with a handle. It returns kgbench's errors, and the caller raises
    them.
    """

    def __init__(self, settings: Settings, folders: Sequence[str], mixed: bool) -> None:
        self._settings, self._folders, self._mixed = settings, folders, mixed
        self._numbers = itertools.count()
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._session: RaySession | None = None
        self._opening: asyncio.Task[KgbenchError | None] | None = None

    async def open(self) -> KgbenchError | None:
        """Returns once the first device is ready. Whoever calls it again waits for the same devices."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> KgbenchError | None:
        loop = asyncio.get_running_loop()

        def say(words: str) -> None:
            loop.call_soon_threadsafe(self._said.put_nowait, words)

        with connected("auto") as cluster:  # an actor is connected; nothing ends with this block
            try:
                settings = replace(self._settings, say=say)
                session = RaySession(cluster, settings, folders=self._folders, mixed=self._mixed)
                self._session = await asyncio.to_thread(session.__enter__)
            except KgbenchError as error:
                return error
        return None

    async def check(self, job: Job) -> Result | KgbenchError:
        assert self._session is not None  # open() came before
        try:
            future = self._session.submit(replace(job, sample=next(self._numbers)))
            return await asyncio.wrap_future(future)
        except KgbenchError as error:
            return error

    async def said(self) -> str:
        """The next message for the user."""
        return await self._said.get()

    async def facts(self) -> dict[str, Any]:
        return {} if self._session is None else dict(self._session.facts)

    async def jobs(self) -> int:
        return 1 if self._session is None else self._session.jobs

    async def close(self) -> None:
        if self._session is not None:
            await asyncio.to_thread(self._session.close)


class RayEvaluator:
    """Judges kernels on the devices of a Ray cluster until it is closed. May be used from many threads at once.

    It may be passed to tasks and actors of the same Ray job: all of them use one queue and the same devices. Only the
    process that made it closes it. What a node that dies was judging is judged elsewhere.

    Args:
        address: ``auto`` or ``HOST:PORT``; a connection that the process has already is used, and stays.
        device: ``auto`` (the cluster's GPUs where it has any), ``cpu`` or ``cuda``.
        gpus: how many devices to use, at most; 0 takes all that Ray has free, now or later.
        most_in_flight: checks of one process that may be under way; ``submit`` waits where there are more.
        mixed_devices: GPUs may be of several models; ``Checked.device_name`` says which one judged.
        name: processes of a Ray job that give the same name share one evaluator, with the arguments of the first; any
            of them closes it for all. Empty makes one of its own.
        say: told what takes long or went wrong without ending anything; None prints it on stderr.

    The other arguments are those of ``Evaluator``; ``problem_dirs`` have to lie where every node sees them. Raises
    MachineError where no node can judge, at once and not at the first check, UsageError for an address that is none.
    """

    def __init__(
        self,
        address: str = "auto",
        *,
        device: str = "auto",
        gpus: int = 0,
        jobs: int = 0,
        timing: bool = True,
        problem_dirs: Sequence[Path | str] = (),
        deadlines: Deadlines | None = None,
        require_sandbox: str = "",
        policy: str = PolicyMode.STRICT,
        mixed_devices: bool = False,
        most_in_flight: int = 4096,
        name: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        folders = tuple(str(Path(each).resolve()) for each in problem_dirs)
        settings = Settings(
            device=device, gpus=gpus, jobs=jobs, timing=timing, deadlines=deadlines, require_sandbox=require_sandbox,
            policy=PolicyMode(policy), say=print,
        )  # fmt: skip
        user_modules.offer(folders)
        self._connection: contextlib.ExitStack | None = contextlib.ExitStack()
        """The connection to the cluster; None in a process that did not make the evaluator."""
        cluster = self._connection.enter_context(connected(address))
        try:
            ray = cluster.ray
            here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                ray.get_runtime_context().get_node_id(), soft=True
            )
            options = {"num_cpus": 0, "max_concurrency": MOST_AT_ONCE, "scheduling_strategy": here}
            if name:
                options |= {"name": f"kgbench {name}", "get_if_exists": True}
            front = ray.remote(Front).options(**options).remote(settings, folders, mixed_devices)
            self._use(ray, front, folders, most_in_flight)
            threading.Thread(target=self._pass_on, args=(say or to_stderr,), name="said", daemon=True).start()
            self._raised(ray.get(front.open.remote()))
        except BaseException:
            self._connection.close()
            raise

    def _use(self, ray: Any, front: Any, folders: Sequence[str], most_in_flight: int) -> None:
        self._ray, self._front, self._folders = ray, front, tuple(folders)
        self._most_in_flight = most_in_flight
        self._room = threading.BoundedSemaphore(most_in_flight)
        self._problems = ProblemCache([Path(each) for each in folders])

    def __reduce__(self) -> tuple[Any, ...]:
        return _handle, (self._front, self._folders, self._most_in_flight)

    def __enter__(self) -> RayEvaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End judging for every process that uses this evaluator; does nothing in a process that did not make it."""
        if self._connection is None:
            return
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.get(self._front.close.remote(), timeout=60)
        with contextlib.suppress(Exception):
            self._ray.kill(self._front)
        self._connection.close()

    @property
    def facts(self) -> Mapping[str, Any]:
        """The device, its software and the sandbox, as in run.json."""
        found: dict[str, Any] = self._ray.get(self._front.facts.remote())
        return found

    @property
    def jobs(self) -> int:
        """How many checks run at once, on all devices together; it grows with nodes that join."""
        found: int = self._ray.get(self._front.jobs.remote())
        return found

    def check(
        self,
        problem: str,
        source: str,
        *,
        timing: bool = True,
        on_event: Callable[[str, str], None] = lambda phase, detail: None,
        cancellation: Cancellation | None = None,
    ) -> Checked:
        """As ``Evaluator.check``. ``on_event`` is told only that the kernel was handed to the cluster.

        A cancelled check ends within a second, as an interrupted one does at once; its place is free when the kernel
        has its verdict, which nobody gets. Raises UsageError for a problem that there is not, MachineError when no
        device is left, SessionClosed after ``close``, Cancelled.
        """
        future = self.submit(problem, source, timing=timing)
        on_event("cluster", "")
        while cancellation is not None and not wait([future], _CANCELLED_S).done:
            if cancellation.is_cancelled:
                raise Cancelled
        return future.result()

    def submit(self, problem: str, source: str, *, timing: bool = True) -> Future[Checked]:
        """The verdict once it is there, without a thread that waits for it; thousands may be under way.

        Waits while ``most_in_flight`` are. The future raises what ``check`` raises.
        """
        job = Job(self.problem(problem), "evaluator", 0, source, timing=timing)
        self._room.acquire()
        verdict: Future[Checked] = Future()
        verdict.set_running_or_notify_cancel()
        try:
            answer = self._front.check.remote(job).future()
        except BaseException:
            self._room.release()
            raise
        answer.add_done_callback(functools.partial(self._answer, verdict))
        return verdict

    def problem(self, name: str) -> Problem:
        """The problem of an id, or of a name that ``kgbench show`` takes. Raises UsageError where there is none."""
        return self._problems.load(name)

    def _answer(self, verdict: Future[Checked], answer: Future[Any]) -> None:
        """Called in a thread of Ray."""
        self._room.release()
        try:
            result = self._raised(answer.result())
        except self._ray.exceptions.RayError as error:
            words = f"the actor that holds the queue is gone: {str(error).partition(chr(10))[0]}; make a new evaluator"
            verdict.set_exception(MachineError("KGB333", words))
        except BaseException as error:
            verdict.set_exception(error)
        else:
            verdict.set_result(Checked(**{field.name: getattr(result, field.name) for field in fields(result)}))

    @staticmethod
    def _raised(answer: Any) -> Any:
        """The answer; raises it where it is an error."""
        if isinstance(answer, KgbenchError):
            raise answer
        return answer

    def _pass_on(self, say: Callable[[str], None]) -> None:
        """Runs in a thread: pass on the session's messages until its actor is gone."""
        with contextlib.suppress(Exception):
            while True:
                say(self._ray.get(self._front.said.remote()))


def _handle(front: Any, folders: Sequence[str], most_in_flight: int) -> RayEvaluator:
    """An evaluator as another process of the Ray job gets it."""
    import ray

    found = RayEvaluator.__new__(RayEvaluator)
    found._connection = None
    user_modules.offer(folders)
    found._use(ray, front, folders, most_in_flight)
    return found
