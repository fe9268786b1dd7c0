"""The chance that a kernel passes which leaves out some timed calls, of a run's share of the problems."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.problem.registry import Registry, load_problem
from kgbench.torchtools.left_out import chance_left_out
from tests.sampling import sample

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]
MOST = 0.01
"""Chance at which a kernel that leaves out one in twenty of its timed calls may pass."""


@pytest.mark.parametrize("problem_id", [each for each in Registry().ids() if each in sample()])
def test_who_leaves_out_calls_is_found(problem_id: str) -> None:
    chance = chance_left_out(load_problem(Registry().paths[problem_id]))
    assert chance is None or chance <= MOST
