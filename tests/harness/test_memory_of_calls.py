"""A call's memory is free as soon as it was judged, not when Python next looks for reference cycles: on a GPU others
need it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.core.kinds import Phase  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.problem.cases.expand import phase_cases  # noqa: E402
from kgbench.problem.model import Problem  # noqa: E402


@pytest.mark.parametrize("problem_id", ["aten/stack", "aten/softmax", "cublas/cublasSgemmBatched_64", "vllm/rms_norm"])
def test_nothing_holds_a_call_that_nobody_uses(
    problem_path: Path, shipped: Callable[[Path], Problem], problem_id: str
) -> None:
    overload = shipped(problem_path / f"{problem_id}.yaml").overloads[0]
    judge = OverloadJudge(overload, torch.device("cpu"))
    case = phase_cases(overload, Phase.CHECK, overload.check, overload.dtypes)[0]
    judge.place(case, torch.Generator().manual_seed(1))
    gc.collect()
    gc.disable()
    try:
        call = judge.place(case, torch.Generator().manual_seed(2))
        judge.expected(call.inputs)
        call.inputs.stored_arguments(), call.inputs.judged_arguments(), call.inputs.encoded()
        images = [weakref.ref(chunk.image) for chunk in call.inputs.chunks.values()]
        assert images
        del call
        assert not any(image() is not None for image in images)
    finally:
        gc.enable()
