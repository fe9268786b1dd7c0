"""Triton's interpreter computes what the compiler's code does; each finding is another one without kgbench's fixes.

``TRITON_INTERPRET=1 python tests/harness/interpreted_kernels.py original`` prints what Triton's own interpreter finds.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("triton")

from kgbench.core.outcomes import Outcome
from kgbench.harness.session.session import Job, Session
from kgbench.problem.registry import load_problem
from tests.harness.candidates import CANDIDATES, honest

pytestmark = [pytest.mark.torch, pytest.mark.timeout(200)]

PROGRAM = Path(__file__).with_name("interpreted_kernels.py")
NAN = "nan"
WANTED: dict[str, Any] = {
    # 1 + 2 ** -8 lies between 1 and 1 + 2 ** -7, and 1 is even; 1 + 3 * 2 ** -8 goes up.
    "bfloat16_arithmetic": {
        "add": [1.0, 1.015625, -0.5, 101.5],
        "mul": [0.00390625, 0.01171875, -7.5, 150.0],
        "neg": [-1.0, -1.0, 3.0, -100.0],
        "maximum": [1.0, 1.0, 2.5, 100.0],
        "less": [0.0, 0.0, 1.0, 0.0],
    },
    "bfloat16_reductions": {
        "sum": [254.0] * 4,
        "max": [256.0] * 4,
        "argmax": [2.0] * 4,
        "cumsum": [-1.0, -3.0, 253.0, 254.0],
    },
    # Triton's own interpreter agrees here, and takes a call of the function for each element.
    "combine_functions": [1.0, 2.5, 10.5, 14.5, 0.0, 1.0, 3.0, 4.0, 3.0, 3.0, 3.0, 3.0],
    "float16_sum": 2050.0,
    "conversions": {
        "bfloat16": [1.0, 1.015625, NAN, -(2.0**-132)],
        # Rounded once: by way of float32, the last bit is lost and the tie goes to 1.
        "float64 to bfloat16": [1.0078125] * 2,
        "int32 to bfloat16": [256.0, 260.0],
        "float8_e4m3fn": [16.0, 20.0, 448.0, NAN],
        "float8_e5m2": [8.0, 12.0, 57344.0, 0.0],
        "from float8_e4m3fn": [NAN, 448.0],
        "int32": [2.0**31 - 1, -(2.0**31), 0.0, 300.0],
        "int64": [2.0**63, -(2.0**63), -(2.0**63), 300.0],
        "uint8": [0.0, 255.0, 0.0, 3.0],
    },
    "flushes": {"floor": 0.0, "sqrt": 0.0, "rsqrt": -math.inf, "exp2": 0.0, "exp": True},
    "nan_alone_has_an_index": [0.0, 0.0],
    "atomics": [0.0, 256.0],
    "arguments": [0.1, -2.0, 2.0**40 + 1, 3 * 0.10000000149011612],
    # The compiler makes a constant of an argument of 1, unless the decorator says do_not_specialize.
    "sizes_of_one": [1, 2, 3, 4, 1, 2, True],
    "loop_variables": [0, -7, 2 * (2**31 - 1), 3 * (2**31 - 1), 0, 4, 0, 1],
    "products": {"tf32": 1.0, "ieee": 1 + 2.0**-12, "torch.bfloat16": 3.0, "torch.float16": 3.0},
    "smallest_products": True,
    "largest_grid": "grid has 65536 programs along axis 1; a GPU launches at most 65535",
    # Triton's own interpreter makes the same ones, anew each time.
    "types_of_values": [
        *([f"<{shape}, {name}>", f"{short}S{'_'.join(shape)}S", name, [*map(int, shape)], math.prod(map(int, shape))]
          for name, short in (("fp32", "fp32"), ("int1", "u1"), ("pointer<fp16>", "Pfp16"),
                              ("const_pointer<fp16>", "Pfp16"), ("pointer<fp16>", "Pfp16"))
          for shape in (["4"], ["2", "8"], ["4", "1"], ["4"])),
        ["int32", "int32", 0, 1], "ValueError", "TypeError", "TypeError",
    ],
    "what_is_lacking": "NotInterpretable",
    "copies_by_pytorch": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    root = PROGRAM.parents[2]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM)], env=environment, capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded: dict[str, Any] = json.loads(done.stdout.splitlines()[-1], parse_constant=lambda text: float(text))
    return loaded


@pytest.mark.xdist_group("interpreted kernels")  # one program runs all of them
@pytest.mark.in_turn("kgbench/harness/candidate/interpreter/", turns=3)
@pytest.mark.parametrize("name", WANTED)
def test_the_interpreter_computes_as_the_compiler(found: dict[str, Any], name: str) -> None:
    assert with_nan_by_name(found[name]) == WANTED[name]


@pytest.mark.xdist_group("interpreted kernels")
def test_nothing_is_found_that_no_test_wants(found: dict[str, Any]) -> None:
    assert found.keys() == WANTED.keys()


def test_what_the_interpreter_lacks_blames_nobody(session: Session, problem_path: Path) -> None:
    known = next(each for each in honest() if each.id.endswith("writes_ptx"))
    problem = load_problem(problem_path / f"{known.problem_id}.yaml")
    result = session.evaluate(Job(problem, "test", source=known.text))
    assert result.outcome is Outcome.NOT_INTERPRETABLE, f"{result.reason}\n{result.log_tail}"
    assert "inline_asm" in result.reason
    assert not result.outcome.is_failure


def test_each_mend_has_its_note() -> None:
    text = (CANDIDATES.parents[1] / "docs/interpreter.md").read_text(encoding="utf-8")
    assert [name for name in WANTED if f"`{name}`" not in text] == []


def with_nan_by_name(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_nan_by_name(each) for key, each in value.items()}
    if isinstance(value, list):
        return [with_nan_by_name(each) for each in value]
    return NAN if isinstance(value, float) and math.isnan(value) else value
