"""Judging from Python: ``with Evaluator() as evaluator: evaluator.check("cublas/cublasSgemm_v2", text)``.

The same processes as in ``kgbench run``, kept warm between calls. Never imports torch.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from kgbench.core import user_modules
from kgbench.core.errors import to_stderr
from kgbench.core.kinds import PolicyMode
from kgbench.core.paths import hidden_dirs
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Deadlines, Job
from kgbench.harness.session.cancellation import Cancellation
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.session import Session, Settings
from kgbench.problem.model import Problem
from kgbench.problem.problem_cache import ProblemCache
from kgbench.scores.samples import is_fast
from kgbench.scores.speedups import speedup


class Checked(Result):
    """A Result with speedup and reward, for trainers."""

    @property
    def speedup(self) -> float | None:
        """Library time / candidate time over the bench cases, by ``speedups.speedup``; None when not timed."""
        estimate = speedup(self)
        return None if self.interpreted or estimate is None else estimate.point

    def reward(self, p: float = 1.0) -> float:
        """1.0 when this counts in fast_p: correct, and the lower end of the speedup's interval is above p; else 0.0.

        With p = 0, 1.0 when it is correct. The mean over all problems of a source is its fast_p.
        """
        return float(is_fast(self, p))


class Evaluator:
    """Judges kernels until it is closed. May be used from many threads at once; a fork of it may not.

    While it is open it holds its GPUs: another kgbench on the machine, whoever started it, waits or takes others. An
    interrupted ``check`` (Ctrl-C, or a notebook's stop button) ends what that check had started; the next one works.

    Args:
        device: ``auto`` (a GPU where there is one), ``cpu``, ``cuda``, or GPUs by number as in ``cuda:0,2``.
        gpus: how many of these GPUs to use, at most; 0 takes all that ``device`` numbers, or one.
        jobs: kernels to prepare at once on each device; 0 takes what cores and memory allow.
        timing: False judges correctness only, which is several times faster.
        problem_dirs: folders of further problems, ``<source>/<name>.yaml``.
        deadlines: seconds by phase; None takes the defaults of the device.
        require_sandbox: the least sandbox level (docs/sandbox.md); empty takes what there is.
        policy: what becomes of a kernel that has others do its work: ``strict`` rejects it, ``report`` keeps the
            evidence in ``Checked.evidence``, ``off`` does not look (docs/policy.md).
        say: told what takes long or went wrong without ending anything; None prints it on stderr.
        server: a fork server to share with other evaluators; ``close`` leaves it running. None starts one.

    Raises MachineError where this machine cannot, at once and not at the first check.
    """

    def __init__(
        self,
        device: str = "auto",
        *,
        gpus: int = 0,
        jobs: int = 0,
        timing: bool = True,
        problem_dirs: Sequence[Path | str] = (),
        deadlines: Deadlines | None = None,
        require_sandbox: str = "",
        policy: str = PolicyMode.STRICT,
        say: Callable[[str], None] | None = None,
        server: ForkServer | None = None,
    ) -> None:
        folders = tuple(Path(each).resolve() for each in problem_dirs)
        user_modules.offer(folders)
        self._problems = ProblemCache(folders)
        self._numbers = itertools.count()
        self._session = Session(
            Settings(
                device=device,
                gpus=gpus,
                jobs=jobs,
                deadlines=deadlines,
                hidden=hidden_dirs(*folders),
                timing=timing,
                require_sandbox=require_sandbox,
                policy=PolicyMode(policy),
                say=say or to_stderr,
            ),
            server=server,
        )
        self._session.__enter__()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all its processes. A check that another thread waits for raises SessionClosed."""
        self._session.close()

    @property
    def facts(self) -> Mapping[str, Any]:
        """The device, its software and the sandbox, as in run.json."""
        return self._session.facts

    @property
    def jobs(self) -> int:
        """How many checks run at once; further ones wait."""
        return self._session.jobs

    def check(
        self,
        problem: str,
        source: str,
        *,
        timing: bool = True,
        on_event: Callable[[str, str], None] = lambda phase, detail: None,
        cancellation: Cancellation | None = None,
    ) -> Checked:
        """Judge one kernel and time it beside the library.

        Args:
            problem: an id such as ``cublas/cublasSgemm_v2``, or a name that ``kgbench show`` takes.
            source: the text of a Python file that defines the problem's entry.
            timing: False judges only the correctness of this one, where the evaluator times.
            on_event: told of each phase and its detail, from this thread.
            cancellation: its ``cancel()``, called from another thread, ends the candidate and this check.

        The same text gets other inputs each time. Raises UsageError for a problem that there is not, MachineError when
        no device is left that works, SessionClosed after ``close``, Cancelled.
        """
        loaded = self.problem(problem)
        job = Job(loaded, "evaluator", next(self._numbers), source, timing=timing)
        result = self._session.evaluate(job, on_event, cancellation)
        return Checked(**{field.name: getattr(result, field.name) for field in dataclasses.fields(result)})

    def problem(self, name: str) -> Problem:
        """The problem of an id, or of a name that ``kgbench show`` takes. Raises UsageError where there is none."""
        return self._problems.load(name)
