"""One device of a cluster as the driver sees it: starts its actor, asks it and ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from kgbench.cluster.actor import DeviceActor, Hello, Judged, Opened, Refusal
from kgbench.cluster.connection import Cluster, Node
from kgbench.core.errors import numbered
from kgbench.core.kinds import DeviceKind
from kgbench.core.text import number_of
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.pools import MAX_SLOTS
from kgbench.harness.session.session import Settings

PENDING_S: Final = 60.0
"""Seconds after which it is said that an actor has not started."""
CLOSE_S: Final = 15.0
"""Seconds that an actor has to end its session."""
POLL_S: Final = 1.0
"""Seconds between two questions what a session that is being opened has to say."""


class Lost(Exception):
    """The actor is gone, or its node."""


class Refused(Exception):
    """The device is not used, and trying again would not help."""


class Device:
    """Used by one thread, except ``judge``, ``end`` and reading attributes."""

    def __init__(
        self,
        cluster: Cluster,
        node: Node,
        number: int,
        kind: DeviceKind,
        settings: Settings,
        folders: Sequence[str],
        say: Callable[[str], None],
    ) -> None:
        self.node = node
        self.name = f"{node.name} GPU {number}" if kind == DeviceKind.CUDA else node.name
        self.model = ""
        self.jobs = 0
        """Candidates at once; 0 until it is ready."""
        self.timed_s = 0.0
        self.starts = 0
        """How often its actor was started since its last verdict."""
        self.why = ""
        """Why the present actor gets no further work; empty while it does."""
        self.refused = False
        """True where the actor itself says that it cannot judge."""
        self._cluster, self._ray, self._say = cluster, cluster.ray, say
        self._folders = tuple(folders)
        cores = max(1, node.cpus // max(1, node.gpus)) if kind == DeviceKind.CUDA else node.cpus
        self._settings = replace(settings, device=str(kind), gpus=1, cores=cores)
        self._cpus = min(settings.jobs or MAX_SLOTS, cores, node.cpus)
        self._gpus = int(kind == DeviceKind.CUDA)
        self._actor: Any = None
        self._told = False
        """True once the user was told that it has not started."""

    def alive(self) -> bool:
        """Whether its node is alive. Raises MachineError where the cluster does not answer."""
        return self.node.id in self._cluster.nodes()

    @contextlib.contextmanager
    def started(self) -> Iterator[Hello]:
        """An actor on this node, and what it says of itself; it is ended with the block. Raises Lost, Refused."""
        here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(self.node.id, soft=False)
        self.starts += 1
        self.why = ""
        made = self._ray.remote(DeviceActor).options(
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=(self._settings.jobs or MAX_SLOTS) + 2,
            scheduling_strategy=here,
        )
        self._actor = made.remote()
        try:
            yield self._answer(self._actor.hello.remote(self._folders), self._pending)
        finally:
            self.kill()

    def open(self) -> Opened:
        """Has it take its device, however long that is another's. Raises Lost, Refused."""
        answer = self._answer(self._actor.open.remote(self._settings, self._folders), lambda waited_s: self._tell())
        self._tell()
        if isinstance(answer, Refusal):
            raise Refused(answer.words)
        return cast(Opened, answer)

    def judge(self, job: Job) -> Judged | Refusal:
        """Raises Lost."""
        answer = cast(Judged | Refusal, self._got(self._actor.judge.remote(job)))
        if isinstance(answer, Judged):
            self.starts = 0
            self.timed_s = max(self.timed_s, answer.timed_s)
        return answer

    def end(self, why: str, *, refused: bool = False) -> None:
        """No further work for the present actor."""
        self.why = self.why or why
        self.refused = self.refused or refused

    def _answer(self, ref: Any, waiting: Callable[[float], None]) -> Any:
        """The actor's answer; ``waiting`` is called now and then with the seconds waited. Raises Lost, Refused."""
        waited_s = 0.0
        try:
            while not self._ray.wait([ref], timeout=POLL_S)[0]:
                if self.why:
                    raise Lost(self.why)
                waited_s += POLL_S
                waiting(waited_s)
            return self._got(ref)
        except self._ray.exceptions.RayTaskError as error:
            raise Refused(f"kgbench cannot work there: {_last_line(error)}") from error

    def _got(self, ref: Any) -> Any:
        """Raises Lost, and RayTaskError where the method raised."""
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as error:
            words = _last_line(error)
            # A class that cannot be imported there ends the actor before its first method.
            if "failed to import" in str(error) or "ModuleNotFoundError" in str(error):
                raise Refused(f"kgbench cannot be imported there: {words}; install the driver's version") from error
            raise Lost(words) from error

    def _pending(self, waited_s: float) -> None:
        if not self.alive():
            raise Lost("its node is gone")
        if not self._told and waited_s >= PENDING_S:
            self._told = True
            wanted = f"{'a GPU and ' * self._gpus}{number_of(self._cpus, 'core')}"
            words = f"{self.name} has not started yet: perhaps Ray has given {wanted} there to others"
            self._say(numbered("KGB645", f"{words}; `ray status` shows it, --jobs asks for fewer cores"))

    def _tell(self) -> None:
        """Passes on what the session says."""
        for words in self._got(self._actor.said.remote()):
            self._say(f"{self.name}: {words}")

    def kill(self) -> None:
        """Ends the actor, with a moment to tidy up. From any thread."""
        if self._actor is None:
            return
        with contextlib.suppress(Exception):  # it may be gone, or the cluster
            self._ray.wait([self._actor.close.remote()], timeout=CLOSE_S)
        with contextlib.suppress(Exception):
            self._ray.kill(self._actor)


def _last_line(error: Exception) -> str:
    """Ray puts whole tracebacks into its errors."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
