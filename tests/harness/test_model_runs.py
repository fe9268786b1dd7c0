"""The whole command, from prompt to table, with a model behind real HTTP on loopback: a scripted one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kgbench.problem.registry import Registry
from tests.harness.sessions import kgbench as called_here
from tests.wire import Asked, Said, WireServer

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "kgbench/examples/triton"
pytestmark = [pytest.mark.torch, pytest.mark.timeout(150), pytest.mark.usefixtures("commands_share_it")]

RIGHT = ("aten/t", "aten/softmax", "cublas/cublasSdot_v2", "vllm/rms_norm")
WRONG = {
    "aten/unsqueeze": "def unsqueeze(self, dim):\n    return self.clone()\n",
    "cublas/cublasSscal_v2": "def cublasSscal_v2(n, alpha, x, incx):\n    pass\n",
}
NO_FUNCTION = {"aten/silu": "import torch\n"}
FAST = ("aten/t", "aten/unsqueeze", "aten/select")
"""Host-only problems: judged in a second."""


def fenced(text: str) -> str:
    return f"Here it is.\r\n\r\n```python\r\n{text}```\r\nIt should be fast."


def problem_of(asked: Asked) -> str:
    found = re.search(r"^# ((?:aten|vllm|cublas)/\w+)", asked.turns[0], re.MULTILINE)
    assert found, asked.turns[0][:200]
    return found[1]


def scripted(asked: Asked) -> str | Said:
    """Some right, some wrong, nonsense for all others."""
    problem = problem_of(asked)
    if problem in RIGHT:
        return fenced((EXAMPLES / f"{problem}.py").read_text(encoding="utf-8"))
    if problem in (known := {**WRONG, **NO_FUNCTION}):
        return fenced(known[problem])
    return f"I am sorry, {problem} is beyond me."


def model(server: WireServer) -> str:
    return f"openai-compatible:{server.url}#scripted"


def kgbench(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in this process: starting a fork server takes most of a small run's time."""
    gone = dict.fromkeys(os.environ.keys() - variables({}).keys())
    return called_here(folder, *arguments, **{**gone, **environment})


def variables(more: Mapping[str, str]) -> dict[str, str]:
    """This environment without anybody's keys."""
    own = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return {**own, "PYTHONPATH": str(ROOT), **more}


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {each["problem"]: each["outcome"] for each in report["results"]}


def run_folder(folder: Path) -> Path:
    [found] = (folder / "runs").iterdir()
    return found


def wait_for(condition: Callable[[], object], seconds: float = 50.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def lines(folder: Path) -> int:
    """Verdicts that are stored."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / "runs").glob("*/results.jsonl"))


@pytest.mark.in_turn("kgbench/models/", "kgbench/llm/")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_from_prompt_to_table_over_all_sources_and_again_without_the_model(tmp_path: Path) -> None:
    with WireServer(scripted) as server:
        done = kgbench(tmp_path, "run", "--source", "all", "--model", model(server), "--device", "cpu", "--json")
        asked = list(server.requests)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    ids = Registry().ids()
    assert Counter(map(problem_of, asked)) == Counter(ids), "each problem is asked once"
    found = outcomes(report)
    assert {each for each in ids if found[each] == "passed"} == set(RIGHT)
    assert {found[each] for each in WRONG} <= {"wrong value", "wrong shape"}
    assert found["aten/silu"] == "compile error"
    assert Counter(found.values())["no code"] == len(ids) - len(RIGHT) - len(WRONG) - len(NO_FUNCTION)
    by_source = {(row["source"], row["kinds"]): row for row in report["scores"]}
    assert by_source["vllm", "compute"]["correct"] == 1
    assert by_source["cublas", "compute"]["problems"] == 50
    assert not by_source["cublas", "compute"]["subset"]
    assert "210 requests to scripted" in done.stderr
    assert "vllm/rms_norm answered" in done.stderr
    folder = run_folder(tmp_path)
    assert len(list((folder / "replies").rglob("*.json"))) == len(ids)
    kept = json.loads((folder / "replies/aten/silu.0.json").read_text(encoding="utf-8"))
    assert "\r\n" in kept["reply"]["text"], "as it was received"
    assert kept["asked"]["prompt"]["turns"][0]["text"].startswith("# aten/silu")

    again = kgbench(
        tmp_path, "run", "--model", f"replay:{folder.name}", "--problems", "aten/t", "--problems", "aten/unsqueeze",
        "--problems", "aten/select", "--device", "cpu", "--json",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr[-3000:]
    repeated = json.loads(again.stdout)
    assert outcomes(repeated) == {each: found[each] for each in FAST}
    assert repeated["run"]["model"] == report["run"]["model"]
    hashes = {each["problem"]: each["generation"] for each in report["results"]}
    for each in repeated["results"]:
        assert each["generation"]["prompt_sha256"] == hashes[each["problem"]]["prompt_sha256"]


def selected(problems: tuple[str, ...]) -> list[str]:
    return [word for each in problems for word in ("--problems", each)]


@pytest.mark.in_turn("kgbench/models/", "kgbench/llm/")
def test_kernels_are_judged_while_another_is_written_and_after_an_interrupt_only_that_one_is_asked(
    tmp_path: Path,
) -> None:
    hold = [True]

    def answer(asked: Asked) -> str | Said:
        if hold[0] and problem_of(asked) == "aten/select":
            wait_for(lambda: server.closing.is_set() or not hold[0], 60)
        return scripted(asked)

    with WireServer(answer) as server:
        command = [sys.executable, "-m", "kgbench", "run", "--model", model(server), *selected(FAST), "--device", "cpu"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=variables({}), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as running:
            # Would never come where verdicts wait for the last reply.
            wait_for(lambda: lines(tmp_path) >= 1 and replies(tmp_path) >= 2)
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        assert running.returncode == 130, said
        assert "kgbench run --resume" in said
        assert wall_s(tmp_path) > 0, "the time of an interrupted part counts"
        hold[0] = False
        before = Counter(map(problem_of, server.requests))
        done = kgbench(tmp_path, "run", "--resume", "last", "--json")
        after = Counter(map(problem_of, server.requests)) - before
    assert done.returncode == 0, done.stderr[-3000:]
    assert dict(after) == {"aten/select": 1}
    assert set(outcomes(json.loads(done.stdout))) == set(FAST)


def wall_s(folder: Path) -> float:
    (file,) = (folder / "runs").glob("*/run.json")
    return float(json.loads(file.read_text())["wall_s"])


def replies(folder: Path) -> int:
    return len(list((folder / "runs").glob("*/replies/*/*.json")))


@pytest.mark.in_turn("kgbench/models/", "kgbench/llm/", turns=3)
def test_rounds_go_from_wrong_to_right(tmp_path: Path) -> None:
    def answer(asked: Asked) -> str | Said:
        right = (EXAMPLES / "aten/t.py").read_text(encoding="utf-8")
        return fenced("def t(self):\n    return self.clone()\n" if len(asked.turns) == 1 else right)

    with WireServer(answer) as server:
        done = kgbench(
            tmp_path, "run", "--model", model(server), "--problems", "aten/t", "--rounds", "3", "--samples", "2",
            "--device", "cpu", "--json",
        )  # fmt: skip
        texts = [asked.turns for asked in server.requests if len(asked.turns) > 1]
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert outcomes(report) == {"aten/t": "passed"}
    assert lines(tmp_path) == 6
    [row] = report["scores"]
    assert row["correct"] == 1
    for turns in texts:
        assert turns[1].startswith("```python\n")
        assert turns[2], "the verdict"


@pytest.mark.in_turn("kgbench/models/", "kgbench/llm/")
def test_one_machine_asks_and_another_one_judges(tmp_path: Path) -> None:
    (tmp_path / "laptop").mkdir()
    with WireServer(scripted) as server:
        done = kgbench(tmp_path / "laptop", "generate", "--model", model(server), *selected(FAST))
        assert done.returncode == 0, done.stderr[-3000:]
    where = tmp_path / "laptop" / done.stdout.strip()
    assert f"kgbench evaluate {done.stdout.strip()}" in done.stderr
    moved = tmp_path / "gpu-machine" / "runs" / where.name
    moved.parent.mkdir(parents=True)
    where.rename(moved)
    judged = kgbench(moved.parents[1], "evaluate", f"runs/{where.name}", "--device", "cpu", "--json")
    assert judged.returncode == 0, judged.stderr[-3000:]
    report = json.loads(judged.stdout)
    assert outcomes(report) == {"aten/t": "passed", "aten/unsqueeze": "wrong shape", "aten/select": "no code"}
    assert report["run"]["status"] == "finished"


CUBLAS = ("cublas/cublasSdot_v2", "cublas/cublasSscal_v2", "cublas/cublasSgemm_v2")
"""Their prompts ask nothing of torch."""


def test_a_rate_limit_leaves_one_question_and_resume_asks_it(tmp_path: Path) -> None:
    refuse = [True]

    def answer(asked: Asked) -> str | Said:
        if refuse[0] and problem_of(asked) == CUBLAS[2]:
            return Said(status=429)
        return scripted(asked)

    with WireServer(answer) as server:
        done = kgbench(tmp_path, "generate", "--model", model(server), *selected(CUBLAS))
        assert done.returncode == 1, done.stderr[-3000:]
        assert "KGB613: 1 question is without a reply" in done.stderr
        assert replies(tmp_path) == 2
        refuse[0] = False
        asked = len(server.requests)
        done = kgbench(tmp_path, "generate", "--resume", "last")
        assert done.returncode == 0, done.stderr[-3000:]
        assert [problem_of(each) for each in server.requests[asked:]] == [CUBLAS[2]]
    assert replies(tmp_path) == 3


def test_a_wrong_key_ends_the_asking_with_2(tmp_path: Path) -> None:
    with WireServer(lambda asked: Said(status=401)) as server:
        done = kgbench(
            tmp_path, "generate", "--model", "claude", *selected(CUBLAS), "--concurrency", "1",
            ANTHROPIC_API_KEY="sk-wrong", ANTHROPIC_BASE_URL=server.url,
        )  # fmt: skip
        assert len(server.requests) == 1
    assert done.returncode == 2
    assert "KGB534" in done.stderr
    assert "sk-wrong" not in done.stderr + done.stdout


class TestBeforeTheFirstRequest:
    def test_a_dry_run_needs_no_key_and_asks_nothing(self, tmp_path: Path) -> None:
        done = kgbench(tmp_path, "run", "--model", "claude", "--source", "cublas", "--dry-run")
        assert done.returncode == 0, done.stderr
        assert re.search(
            r"50 requests to \S+ \(claude\), about [\d,]+ tokens in .*: ≤ \$[\d.]+; --budget-usd", done.stderr
        )
        assert not (tmp_path / "runs").exists()

    def test_a_budget_is_named_as_the_cap(self, tmp_path: Path) -> None:
        done = kgbench(tmp_path, "generate", "--model", "claude", *selected(CUBLAS), "--budget-usd", "0.5", "--dry-run")
        assert done.returncode == 0, done.stderr
        assert re.search(r"3 requests .*: ≤ \$[\d.]+, --budget-usd 0.5 caps it", done.stderr)

    def test_an_option_names_files_of_ones_own(self, tmp_path: Path) -> None:
        """A flag wins over the environment."""
        (tmp_path / "short.toml").write_text('mine = "anthropic:own"\n', encoding="utf-8")
        (tmp_path / "prices.toml").write_text("[anthropic.own]\ninput = 0.0\noutput = 1000.0\n", encoding="utf-8")
        done = kgbench(
            tmp_path, "generate", "--model", "mine", *selected(CUBLAS), "--dry-run", "--max-tokens", "1000",
            "--aliases", "short.toml", "--prices", "prices.toml", KGBENCH_PRICES="missing.toml",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "3 requests to own (mine), " in done.stderr
        assert "≤ $3.00;" in done.stderr

    def test_a_missing_key_is_named_before_anything_is_made(self, tmp_path: Path) -> None:
        done = kgbench(tmp_path, "run", "--model", "gpt", "--problems", "aten/t")
        assert done.returncode == 2
        assert "KGB531" in done.stderr
        assert "OPENAI_API_KEY" in done.stderr
        assert not (tmp_path / "runs").exists()
