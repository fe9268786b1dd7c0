"""Sessions of tests on one fork server, and commands that are called in the tests' own process."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.session import Session, Settings

SessionOf = Callable[[Settings], Session]
"""What the fixture ``session_of`` is: makes a session with settings of its own on the tests' shared fork server."""


@contextlib.contextmanager
def shared(server: ForkServer) -> Iterator[None]:
    """Whatever opens a session in this process meanwhile has it on this fork server, where that fits."""
    begin = Session.__init__

    def begin_shared(session: Session, settings: Settings, *, server: ForkServer | None = None) -> None:
        begin(session, settings, server=server or everybodys)

    everybodys = server
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "__init__", begin_shared)
        yield


def kgbench(folder: Path, *arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """The command, called in this process from a folder. A variable that is None is not there."""
    before = dict(os.environ)
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, arguments, env=environment)
    os.environ.clear()
    os.environ.update(before)  # without the folders of problems that it named
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)
