"""Judging for a service: a session of this machine, or the devices of a Ray cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kgbench.cluster.connection import Cluster
from kgbench.cluster.session import RaySession
from kgbench.harness.session.session import Session, Settings
from kgbench.service.judging import Backend


@contextlib.contextmanager
def local_backend(settings: Settings) -> Iterator[Backend]:
    """One session for as long as the server runs. Raises MachineError where this machine cannot judge."""
    with Session(settings) as session:
        yield session


@contextlib.contextmanager
def ray_backend(settings: Settings, cluster: Cluster, folders: tuple[str, ...]) -> Iterator[Backend]:
    """The devices of a cluster; all are of one model.

    ``folders``: of the user's own problems, which every node has at the same place. Raises MachineError.
    """
    with RaySession(cluster, settings, folders=folders) as session:
        yield session
