"""A real server process whose backend judges by what a kernel's text says: ``python -m tests.unit.service_process``.

Routes, guard, queue, threads and pages are the service's own; only the session is a stand-in, since torch takes
seconds to start. Every verdict carries secrets where a session's would carry hidden calls.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kgbench.core.details.values import Mismatch
from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.errors import SessionClosed

SECRET: Final = "secret7351"
"""Stands in every verdict of the stand-in where a hidden size, value or limit would."""
HEADERS_S: Final = 0.5
BODY_S: Final = 0.5
MAX_BODY: Final = 3 << 20


class StandIn:
    """``passes`` in a kernel's text makes it right, ``waits N`` takes N seconds; everything else is wrong."""

    jobs = 2
    facts: dict[str, Any] = {"name": "stand-in", "kind": "cpu", "hostname": SECRET, "sandbox": {"files": SECRET}}  # noqa: RUF012

    def __init__(self) -> None:
        self._closed = threading.Event()

    def close(self) -> None:
        self._closed.set()

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result:
        source = job.source or ""
        waits = re.search(r"waits ([0-9.]+)", source)
        if waits and self._closed.wait(float(waits[1])):
            raise SessionClosed("KGB316", "closed")
        on_event(SECRET, SECRET)
        on_event("check", SECRET)
        if "does not compile" in source:
            return self._compile_error(job, source)
        outcome = Outcome.PASSED if "passes" in source else Outcome.WRONG_VALUE
        wrong = Mismatch("return", (7351,), SECRET, SECRET, SECRET, 0.7351, (7351,), SECRET)
        where = Where(Purpose.CALL, "", SECRET, sizes={"n": SECRET})
        hidden = {"n": SECRET}
        case = CaseResult(SECRET, "", Phase.FUZZ, "float32", hidden, outcome, detail=wrong, where=where)
        return Result(
            problem=job.problem_id,
            model=job.model,
            sample=job.sample,
            outcome=outcome,
            detail=None if outcome is Outcome.PASSED else wrong,
            where=where,
            candidate_sha256=job.candidate_sha256,
            problem_sha256=job.problem.sha256,
            source=job.problem.source,
            kind=job.problem.kind,
            device="cpu",
            cases=(case,),
            sandbox={"files": SECRET},
            memory_mb={SECRET: 1.0},
            log_tail=SECRET,
        )

    def _compile_error(self, job: Job, source: str) -> Result:
        """Its log is the kernel's own text."""
        where = Where(Purpose.IMPORT)
        return Result(
            job.problem_id, job.model, job.sample, Outcome.COMPILE_ERROR, where=where, device="cpu", log_tail=source
        )


@contextlib.contextmanager
def stand_in() -> Iterator[StandIn]:
    yield StandIn()


class Server:
    """The process, on a folder; it may be killed and begun again on its port."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", runs: Path | None = None) -> None:
        self.folder, self._host, self._runs, self.port = folder, host, runs, 0
        self.begin()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        command = [sys.executable, "-m", "tests.unit.service_process", str(self.folder), self._host, str(self.port)]
        command += [str(self._runs)] * (self._runs is not None)
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r":(\d+) answers", line)
        assert found, line + self._process.stderr.read()
        self.port = int(found[1])
        self._said = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._said.start()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def close(self) -> int:
        """In order; its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        self._process.send_signal(number)
        code = self._process.wait(20)
        self._said.join()
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code


def main() -> None:
    from kgbench.service.problems import Problems
    from kgbench.service.server import Shows, serve
    from kgbench.service.settings import Listening

    folder, host, port, *runs = sys.argv[1:]
    listening = Listening(host, int(port), MAX_BODY, HEADERS_S, BODY_S)
    serve(listening, Path(folder), stand_in, Shows(Problems(), Path(runs[0]) if runs else None))


if __name__ == "__main__":
    os.environ.pop("KGBENCH_TOKEN", None)
    main()
