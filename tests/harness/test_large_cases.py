"""Calls that need most of a device's memory: left out with the reason where it is too small."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.details.sentences import words_of
from kgbench.harness.referee.checking import COPIES, LARGE_SHARE, lacks_memory
from kgbench.problem.cases import bind, case_bytes, expand_cases
from kgbench.problem.registry import load_problem

pytestmark = pytest.mark.torch


def test_a_device_that_is_too_small_is_named(problem_path: Path) -> None:
    (overload,) = load_problem(problem_path / "cublas" / "cublasSscal_v2.yaml").overloads
    (case,) = [case for case in expand_cases(overload, "cuda", 80.0, "s") if case.phase == "large"]
    bound = bind(overload, case)
    least_gb = COPIES * case_bytes(bound) / 1e9 / LARGE_SHARE
    assert case_bytes(bound) > 4 * 2**31, "its last offset fits in 32 bits"
    assert lacks_memory(bound, least_gb * 1.001) is None
    found = lacks_memory(bound, 24.0)
    assert found is not None
    assert words_of(found) == f"needs a GPU with {least_gb:.0f} GB, this one has 24 GB"
