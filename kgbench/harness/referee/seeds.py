"""Seeds from the run's secret, one per purpose, so that no drawn number tells anything about another."""

from __future__ import annotations

import hashlib
import random

import torch

from kgbench.harness.machine.settings import Job
from kgbench.harness.verdict.secret_draws import SecretGenerator


class Seeds:
    """Seeds of one job's evaluation. A ``purpose`` is free text; equal ones give equal seeds."""

    def __init__(self, secret: str, job: Job, device: torch.device) -> None:
        # What is drawn for practice says nothing about what is drawn for a verdict.
        self._secret = f"{secret}/practice" if job.practice else secret
        self._job = job
        self._device = device

    def own(self, purpose: str) -> str:
        """A seed of this candidate's alone, as hexadecimal text."""
        job = self._job
        again = f"/round {job.round}" if job.round else ""
        return _digest(f"{self._secret}/{job.problem_id}/{job.model}/{job.sample}{again}/{purpose}")

    def shared(self, purpose: str) -> str:
        """A seed that is the same for all candidates of the problem, as hexadecimal text."""
        return _digest(f"{self._secret}/{self._job.problem_id}/{purpose}")

    def chooser(self, purpose: str) -> random.Random:
        return random.Random(self.own(purpose))

    def generator(self, purpose: str) -> torch.Generator:
        return self._seeded(self.own(purpose))

    def shared_generator(self, purpose: str) -> torch.Generator:
        return self._seeded(self.shared(purpose))

    def _seeded(self, seed: str) -> torch.Generator:
        return SecretGenerator(self._device, seed.encode())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
