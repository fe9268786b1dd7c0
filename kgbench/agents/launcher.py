"""The process above one agent: ``python -m kgbench.agents.launcher FD``. Starts it shut off, and ends all of it.

Standard input brings one line of JSON, what to start, and is then held open: when more comes, or it ends for whatever
reason, the agent's whole tree is killed. Standard output and error are the agent's own. Lines of JSON go to FD:
``confined``, then ``error`` or, once the agent has ended by itself, ``exit``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final, NoReturn

from kgbench.agents.confinement import Confinement, Places, plan
from kgbench.core.files import remove_tree
from kgbench.harness.machine import processes
from kgbench.harness.sandbox import linux

KILL_DEADLINE_S: Final = 10.0
"""Seconds in which a tree of processes is signalled again until it is gone."""


def main(fd: int) -> None:
    """Run until the agent or standard input has ended; then nothing that it started is left."""
    with open(0, "rb", buffering=0, closefd=False) as control:
        # Unbuffered: what comes behind the line is for ``_wait``.
        spec: dict[str, Any] = json.loads(control.readline())
    places = Places.of(Path(spec["base"]), spec["hidden"], spec["visible"], spec["command"])
    chosen = plan(places, spec["visible"], spec["confine"])
    _say(fd, confined=chosen.words, not_confined=chosen.reason)
    try:
        chosen.enter_launcher()
        first = os.fork()
        if first == 0:
            _become_first(chosen, spec, fd)
        is_alone = _wait(first)
    finally:
        _kill_all()
    if is_alone:
        # Whoever made the folder, and would have taken the kernel from it, is gone.
        remove_tree(spec["base"])


def _wait(first: int) -> bool:
    """Wait until the agent has ended or is to be ended. Returns whether the coordinator is gone."""
    ended = os.pidfd_open(first)
    readable, _, _ = select.select([ended, 0], [], [])
    return 0 in readable and not os.read(0, 1)


def _kill_all() -> None:
    """Kill all descendants. Orphans become children of this process, so that in the end all have been seen."""
    deadline = time.monotonic() + KILL_DEADLINE_S
    while time.monotonic() < deadline:
        processes.signal_tree(os.getpid(), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _become_first(chosen: Confinement, spec: dict[str, Any], fd: int) -> NoReturn:
    """Become the first process of the agent's PID namespace: it adopts orphans, and when it ends, all end."""
    try:
        linux.die_with_parent()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.closerange(3, fd)
        os.closerange(fd + 1, 65536)
        os.set_inheritable(fd, False)
        chosen.enter_files()
        agent = os.fork()
        if agent == 0:
            _become_agent(chosen, spec, fd)
        # Nothing of this process may hold the agent's output open.
        for number in (1, 2):
            os.dup2(0, number)
        status = _reap_until(agent)
        _say(fd, exit=os.waitstatus_to_exitcode(status))
    except BaseException as error:
        _say(fd, error=f"{type(error).__name__}: {error}")
    os._exit(0)


def _reap_until(agent: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == agent:
            return status


def _become_agent(chosen: Confinement, spec: dict[str, Any], fd: int) -> NoReturn:
    """Become the agent. Raises nothing: an error is written to ``fd``, which is closed when a program starts."""
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(spec["work"])
        prompt = os.open("PROMPT.md", os.O_RDONLY)
        os.dup2(prompt, 0)
        os.closerange(3, fd)
        environment = {"TMPDIR": "/tmp", **spec["env"], **chosen.environment(), "PWD": spec["work"]}
        chosen.enter_agent()
        os.execvpe(spec["argv"][0], spec["argv"], environment)
    except BaseException as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _say(fd, error=words)
    os._exit(0)


def _say(fd: int, **facts: Any) -> None:
    with contextlib.suppress(OSError):
        os.write(fd, json.dumps(facts).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
