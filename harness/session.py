"""The coordinator's side: starts fork server and referee, hands out jobs, survives both. Never imports torch."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from kgbench.errors import MachineError
from kgbench.harness import processes
from kgbench.harness.devices import Device, find_device
from kgbench.harness.environment import THREADS, environment
from kgbench.harness.protocol import Channel, ChannelClosed, ChannelTimeout, ProtocolError, pair
from kgbench.harness.settings import SANDBOX_LEVELS, Deadlines, Job, RefereeSettings
from kgbench.types import Outcome, Result, result_from_json

START_S: Final = 180.0
GRACE_S: Final = 120.0
"""How far past a candidate's whole deadline the referee itself may be."""

__all__ = ["Deadlines", "Job", "Session", "Settings"]


@dataclass(frozen=True)
class Settings:
    """How to evaluate."""

    device: str = "auto"
    seed: str = ""
    """Secret; empty draws one."""
    deadlines: Deadlines | None = None
    """None takes the defaults of the device."""
    hidden: tuple[Path, ...] = ()
    """Folders that no candidate may see: problems, baselines, results."""
    log_dir: Path | None = None
    """Where fork server and referee write what they print; None discards it."""
    limits: dict[str, int] | None = None
    timing: bool = True
    require_sandbox: str = ""
    """The least level of SANDBOX_LEVELS that workers must have; empty takes what there is."""


class Session:
    """Processes that judge, for as long as the block lasts. Raises MachineError where this machine cannot."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.seed = settings.seed or secrets.token_hex(16)
        self.device: Device = find_device(settings.device)
        self.facts: dict[str, Any] = {}
        self._children: list[subprocess.Popen[bytes]] = []
        self._referee: Channel | None = None

    def __enter__(self) -> Session:
        if not sys.platform.startswith("linux"):
            raise MachineError(
                "kernels run on Linux only; use a Linux machine. Here list, show, validate and report work"
            )
        if importlib.util.find_spec("torch") is None:
            words = "torch is not installed: pip install 'kgbench[torch]', or see the README for the CPU build"
            raise MachineError(words)
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def evaluate(self, job: Job, on_event: Callable[[str, str], None] = lambda phase, detail: None) -> Result:
        """Judge one candidate. Our own failure is a result too, ``harness error``; the next job gets new processes."""
        if job.source is None and job.trusted is None:
            return _without_evaluation(job, Outcome.NO_CANDIDATE, "no candidate was handed in for this problem")
        if self._referee is None:
            self._start()
        assert self._referee is not None
        try:
            self._referee.send({"job": asdict(job)})
            result = self._await_result(job, on_event)
        except (ChannelClosed, ChannelTimeout, ProtocolError) as error:
            self.close()
            return _without_evaluation(job, Outcome.HARNESS_ERROR, f"the referee is gone: {error}")
        result.memory_mb["coordinator"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1)
        if self._children:
            result.memory_mb["fork server"] = round(processes.peak_bytes(self._children[0].pid) / 1e6, 1)
        return result

    def close(self) -> None:
        """End every process of this session at once; nothing is left after at most a second."""
        if self._referee is not None:
            self._referee.close()
            self._referee = None
        children, self._children = self._children, []
        # Stopped first, so that nothing new is forked; keepers see their channels close and kill their workers.
        below = [pid for child in children for pid in processes.descendants(child.pid)]
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        deadline = time.monotonic() + 1.0
        while any(_alive(pid) for pid in below) and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for child in children:
            child.wait()

    def _start(self) -> None:
        begun = time.monotonic()
        server_end, referee_server_end = pair()
        coordinator_end, referee_end = pair()
        chosen = environment(self.device.kind)
        self._spawn("forkserver", [server_end], chosen)
        trusted = {**os.environ, **dict.fromkeys(THREADS, "1")}
        trusted["CUDA_VISIBLE_DEVICES"] = self.device.uuid
        self._spawn("referee", [referee_end, referee_server_end], trusted)
        self._referee = Channel(coordinator_end)
        settings = RefereeSettings(
            self.device.kind,
            self.device.uuid,
            self.seed,
            self.settings.deadlines or Deadlines.for_device(self.device.kind),
            tuple(str(path) for path in self.settings.hidden),
            dict(self.settings.limits or {}),
            self.settings.timing,
        )
        try:
            self._referee.send(settings.to_json())
            message = self._referee.receive(START_S)
        except (ChannelClosed, ChannelTimeout, ProtocolError) as error:
            self.close()
            raise MachineError(f"the referee did not start: {error}{self._last_words('referee')}") from None
        except BaseException:
            self.close()
            raise
        if message.get("event") != "ready":
            self.close()
            raise MachineError(f"the referee did not start: {message.get('reason')}{self._last_words('forkserver')}")
        self.facts = {
            **message["facts"],
            "uuid": self.device.uuid,
            "driver": self.device.driver,
            "start_s": round(time.monotonic() - begun, 3),
        }
        self._check_sandbox()

    def _check_sandbox(self) -> None:
        """Raises MachineError, saying what is missing, below the level that was asked for."""
        required, had = self.settings.require_sandbox, self.facts["sandbox"]["level"]
        if not required or SANDBOX_LEVELS.index(had) >= SANDBOX_LEVELS.index(required):
            return
        self.close()
        missing = self.facts["sandbox_missing"]
        asked = SANDBOX_LEVELS[1 : SANDBOX_LEVELS.index(required) + 1]
        lines = [f"  {level}: {what}" for level in asked for what in missing[level]]
        raise MachineError(
            f"the sandbox on this machine is level {had!r}, and --require-sandbox asks for {required!r}. "
            "It lacks:\n" + "\n".join(lines) + "\ndocs/sandbox.md says how to get each"
        )

    def _spawn(self, name: str, sockets: list[socket.socket], env: dict[str, str]) -> None:
        """A trusted process in a session of its own, so that Ctrl-C reaches only the coordinator."""
        fds = [sock.fileno() for sock in sockets]
        command = [sys.executable, "-m", f"kgbench.harness.{name}", *map(str, fds)]
        output: Any = subprocess.DEVNULL
        if self.settings.log_dir is not None:
            self.settings.log_dir.mkdir(parents=True, exist_ok=True)
            output = open(self.settings.log_dir / f"{name}.log", "ab")  # noqa: SIM115
        try:
            env = {**env, "PYTHONPATH": os.pathsep.join(filter(None, (_import_root(), env.get("PYTHONPATH", ""))))}
            self._children.append(
                subprocess.Popen(
                    command,
                    env=env,
                    pass_fds=fds,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )
        finally:
            for sock in sockets:
                sock.close()
            if output is not subprocess.DEVNULL:
                output.close()

    def _await_result(self, job: Job, on_event: Callable[[str, str], None]) -> Result:
        assert self._referee is not None
        deadlines = self.settings.deadlines or Deadlines.for_device(self.device.kind)
        deadline = time.monotonic() + deadlines.whole_s + deadlines.import_s + GRACE_S
        while True:
            message = self._referee.receive(max(deadline - time.monotonic(), 0.0))
            match message.get("event"):
                case "phase":
                    on_event(message["phase"], message["detail"])
                case "result":
                    return result_from_json(message["result"])
                case _:
                    self.close()
                    return _without_evaluation(job, Outcome.HARNESS_ERROR, str(message.get("reason", message)))

    def _last_words(self, name: str) -> str:
        if self.settings.log_dir is None:
            return ""
        with contextlib.suppress(OSError):
            words = (self.settings.log_dir / f"{name}.log").read_text(errors="replace")[-2000:]
            return f"\n{words}" if words else ""
        return ""


def _without_evaluation(job: Job, outcome: Outcome, reason: str) -> Result:
    return Result(
        problem=job.problem_id,
        model=job.model,
        sample=job.sample,
        outcome=outcome,
        reason=reason,
        source=job.problem_id.partition("/")[0],
    )


def _import_root() -> str:
    """The folder that has ``kgbench`` in it: where this very package was imported from."""
    package = importlib.util.find_spec("kgbench")
    assert package is not None
    assert package.origin is not None
    return str(Path(package.origin).parents[1])


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
