"""The objects that a server's routes share."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from kgbench.service.changes import Changes
from kgbench.service.judging import Judging
from kgbench.service.metrics import Metrics
from kgbench.service.problems import Problems
from kgbench.service.queue import Queue
from kgbench.service.runs import Runs
from kgbench.service.tokens import Caller, Tokens


@dataclass
class Service:
    """One server's parts."""

    queue: Queue
    tokens: Tokens
    problems: Problems
    changes: Changes
    judging: Judging
    runs: Runs
    metrics: Metrics


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def caller_of(request: Request) -> Caller:
    """The caller that the guard accepted."""
    found: Caller = request.state.caller
    return found
