"""On a GPU: compiled, the kernels find what kgbench's interpreter finds on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

from tests.harness.test_interpreter import PROGRAM, WANTED, with_nan_by_name  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(300)]
ITS_OWN: Final = ("copies_by_pytorch", "largest_grid", "nan_alone_has_an_index", "what_is_lacking")
"""Findings that are about the interpreter, or that a GPU answers in words of its own."""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(PROGRAM.parents[2])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), "cuda"],
        env=environment, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    loaded: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return loaded


@pytest.mark.parametrize("name", [name for name in WANTED if name not in ITS_OWN])
def test_a_gpu_finds_the_same(found: dict[str, Any], name: str) -> None:
    assert with_nan_by_name(found[name]) == WANTED[name]


def test_a_gpu_launches_no_larger_grid(found: dict[str, Any]) -> None:
    assert found["largest_grid"] != "launched"
