"""``kgbench check`` with a real session on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kgbench.cli.main import main

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180), pytest.mark.usefixtures("commands_share_it")]

RIGHT = """
import torch


def rms_norm(out, input, weight, epsilon):
    x = input.to(torch.float32)
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    out.copy_(y * weight.to(torch.float32))
"""


def check(path: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["check", str(path), "--device", "cpu", "--policy", "off", *options])


@pytest.mark.in_turn("kgbench/cli/check.py", turns=3)
def test_check_tells_right_from_wrong_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kernel = tmp_path / "kernel.py"
    kernel.write_text(RIGHT)
    done = check(kernel, "--json")
    data = json.loads(done.stdout)
    assert (done.exit_code, data["outcome"], data["problem"]) == (0, "passed", "vllm/rms_norm"), done.stderr
    assert data["guess"] is None

    kernel.write_text(RIGHT.replace("out.copy_(y *", "out[..., :-1].copy_((y *").replace("32))\n", "32))[..., :-1])\n"))
    done = check(kernel)
    assert done.exit_code == 1, done.stderr
    assert "kernel.py as vllm/rms_norm: wrong value" in done.stdout
    assert "got nan, wanted " in done.stdout
    assert "guess: perhaps the last column is left out" in done.stdout
    assert list(tmp_path.iterdir()) == [kernel]


def test_check_with_a_syntax_error_is_a_verdict(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("def rms_norm(out, input, weight, epsilon)\n    pass\n")
    done = check(kernel)
    assert done.exit_code == 1, done.stderr
    assert "kernel.py as vllm/rms_norm: compile error" in done.stdout
