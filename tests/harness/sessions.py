"""What the fixture ``session_of`` is: makes a session with settings of its own on the tests' shared fork server."""

from __future__ import annotations

from collections.abc import Callable

from kgbench.harness.session.session import Session, Settings

SessionOf = Callable[[Settings], Session]
