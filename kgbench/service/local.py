"""The backend that is this machine: one session for as long as the server runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kgbench.harness.session.session import Session, Settings
from kgbench.service.judging import Backend


@contextlib.contextmanager
def local_backend(settings: Settings) -> Iterator[Backend]:
    """Raises MachineError where this machine cannot judge."""
    with Session(settings) as session:
        yield session
