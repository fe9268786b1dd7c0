"""Each message of kgbench comes up where it should: one trigger per number, through a command or a public function.

A number of ``kgbench/core/messages.py`` without a trigger fails. Sessions that cannot begin are real
ones; a small program stands in for the fork server.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import os
import re
import shlex
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.again import Measured
from kgbench.cli.evaluation_run import loaded
from kgbench.cli.main import main
from kgbench.cli.record_claims import enter_records
from kgbench.cluster import connection
from kgbench.cluster import device as device_module
from kgbench.cluster.actor import Refusal
from kgbench.cluster.connection import Cluster
from kgbench.core import plugins
from kgbench.core.details.values import Mismatch
from kgbench.core.errors import KgbenchError, MachineError
from kgbench.core.messages import MESSAGES
from kgbench.core.outcomes import Outcome
from kgbench.core.torch_process import NoAnswer
from kgbench.core.types import CaseResult, Result
from kgbench.evaluation.evaluator import Evaluator
from kgbench.harness.machine.devices import find_devices
from kgbench.harness.machine.gpu_lock import GpuLock
from kgbench.harness.session import pools as pools_module
from kgbench.harness.session import server as server_module
from kgbench.harness.session import session as session_module
from kgbench.harness.session.cancellation import Cancellation
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.llm.conversation import Prompt, Question, Sampling, Turn
from kgbench.mcp.http import listening
from kgbench.mcp.toolbox import Toolbox
from kgbench.models import adapted, layouts
from kgbench.models.providers.anthropic import AnthropicClient
from kgbench.models.providers.exec import AgentClient
from kgbench.models.providers.openai import OpenAIClient
from kgbench.models.providers.openai_compatible import CompatibleClient
from kgbench.problem.expressions import evaluate_reference
from kgbench.problem.kernelbench import Checkout
from kgbench.problem.modules import ModuleSource
from kgbench.problem.problem_cache import ProblemCache
from kgbench.problem.registry import load_problem
from kgbench.prompts.render import PromptOptions, prompt_for
from kgbench.reports.export.folder import write
from kgbench.reports.export.tidy import print_parquet
from kgbench.reports.model import report_of
from kgbench.reports.publishing.folder import publications, write_folder
from kgbench.store.reader import read_run
from kgbench.store.records import read_records
from kgbench.store.writer import RunStore
from tests.unit import service_triggers
from tests.unit.made_results import result
from tests.unit.test_cli_run import FakeSession
from tests.unit.test_cli_verify import winning_run
from tests.unit.test_cluster import Field, Node
from tests.unit.test_cluster import job as cluster_job
from tests.unit.test_loader import COMPLAINTS, GOOD, ROOT
from tests.wire import Said, WireServer

RUN = "20260102T030405Z-ab12cd"
NVIDIA_SMI = """\
#!/bin/sh
echo "0, GPU-kgbench-test-0, NVIDIA H200, 143771, 580.82"
echo "1, GPU-kgbench-test-1, NVIDIA H200, 143771, 580.82"
"""


@dataclass
class Ground:
    """An empty folder to stand in, and what a trigger may bend."""

    here: Path
    bend: pytest.MonkeyPatch

    def file(self, path: str, text: str = "") -> Path:
        written = self.here / path
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text, encoding="utf-8")
        return written

    def problem(self, *changes: str, folder: str = "mine") -> None:
        """``FOLDER/aten/scale.yaml``, right but for the changes: old, new, old, new …"""
        text = GOOD
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text
            text = text.replace(old, new, 1)
        self.file(f"{folder}/aten/scale.yaml", text)

    def run(self, run_id: str = RUN, **changes: Any) -> RunStore:
        """A run of aten/softmax and aten/mm below runs/, with a result of the first; it is still being written."""
        problems = [{"id": name, "kind": "compute", "sha256": "1"} for name in ("aten/softmax", "aten/mm")]
        asked: dict[str, Any] = {key: [] for key in ("sources", "problems", "problem_dirs", "deadlines")}
        asked |= {"model": "baseline", "device": "cpu", "require_sandbox": None, "folder": str(self.here)}
        store = RunStore.create(self.here / "runs", run_id, {"problems": problems, "asked": asked, **changes}, seed="s")
        store.append(result("aten/softmax", problem_sha256="1"))
        return store

    def ended(self, **changes: Any) -> Path:
        store = self.run(**changes)
        store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
        return store.path

    def command(self, text: str) -> str:
        """Exit code and what a command prints."""
        done = CliRunner().invoke(main, shlex.split(text))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return f"{done.exit_code}\n{done.output}"

    def gpus(self) -> None:
        """nvidia-smi lists two."""
        self.file("bin/nvidia-smi", NVIDIA_SMI).chmod(0o755)
        self.bend.setenv("PATH", f"{self.here / 'bin'}:/usr/bin:/bin")
        self.bend.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.chdir(tmp_path)
    return Ground(tmp_path, monkeypatch)


def _of_command(number: str, ground: Ground) -> str:
    """What it prints; its exit code is that of the number's group."""
    prepare, command = COMMANDS[number]
    prepare(ground)
    if number not in ("KGB301", "KGB302"):
        for name in ("evaluation_run", "check", "verify", "reproduce", "try_backend"):
            ground.bend.setattr(f"kgbench.cli.{name}.check_machine", lambda: None)
    shown = ground.command(command)
    if number[:4] != "KGB6":
        assert shown.startswith("3" if number.startswith("KGB3") else "2")
    return shown


def _of_bad_file(number: str, ground: Ground) -> str:
    """test_loader.py reads all of them and compares every word."""
    ground.bend.chdir(ROOT)
    path = next((path for path, line in COMPLAINTS.items() if line.startswith(f"{number}: ")), None)
    assert path, f"{number} has no trigger: add one here, or a file to tests/unit/bad_problems"
    return ground.command(f"validate --no-run {path}")


def _error(act: Callable[[], object]) -> str:
    with pytest.raises(KgbenchError) as caught:
        act()
    return caught.value.printed


# --- commands ---


def _nothing(ground: Ground) -> None:
    pass


_find_spec = importlib.util.find_spec


def _without_torch(name: str) -> Any:
    return None if name == "torch" else _find_spec(name)


def _no_answer(*asked: Any) -> Any:
    raise NoAnswer("expecttest is missing")


def _parquet_without_pyarrow(ground: Ground) -> None:
    ground.file("t.parquet", "PAR1")
    ground.bend.setitem(sys.modules, "pyarrow", None)


def _checkout(answers: Callable[..., Any]) -> Callable[[Ground], object]:
    """A checkout of one file, and what running it is said to have given."""

    def prepared(ground: Ground) -> object:
        ground.bend.setattr("kgbench.problem.kernelbench.ask", answers)
        return ground.file("kb/level1/1_A.py")

    return prepared


def _replies(ground: Ground) -> Path:
    """A run in which somebody was asked, and did not answer."""
    path = ground.ended()
    (path / "replies" / "aten").mkdir(parents=True)
    return path


def _damaged_reply(ground: Ground) -> None:
    asking = {
        "samples": 1, "rounds": 1, "temperature": None, "max_tokens": 1000, "thinking": None, "reply_timeout_s": 1.0,
        "concurrency": 1, "budget_usd": None, "batch": False, "language": "triton", "shots": 0, "bench_shapes": True,
        "target_gpu": "", "agent_checks": 1, "agent_sees": [],
    }  # fmt: skip
    store = ground.run()
    store.update({"asked": {**store.info["asked"], "asking": asking, "model": "m"}})
    store.finish("generated", finished="2026-01-02T04:00:00+00:00", seed="s")
    ground.file(f"runs/{RUN}/replies/aten/softmax.0.json", "{")


def _entry_point(line: str) -> Callable[[Ground], None]:
    """An installed package that offers a provider."""

    def install(ground: Ground) -> None:
        name, value = line.split(" = ")
        found = (plugins.Plugin(plugins.PROVIDERS, name, value, "odd 1.0"),)
        ground.bend.setattr(plugins, "entry_points", lambda group: found if group == plugins.PROVIDERS else ())

    return install


def _kernel(ground: Ground) -> None:
    ground.file("k.py", "def helper(): ...\n")


def _same_name(ground: Ground) -> None:
    for source in ("aten", "vllm"):
        ground.file(f"mine/{source}/same.yaml", GOOD.replace('"scale(', '"same('))
    ground.file("same.py", "def same(): ...\n")


def _unreadable_results(ground: Ground) -> None:
    results = ground.ended() / "results.jsonl"
    results.unlink()
    results.mkdir()


def _older(ground: Ground) -> None:
    path = ground.ended() / "run.json"
    info = json.loads(path.read_text())
    del info["segments"]
    path.write_text(json.dumps(info))


def _several_runs(ground: Ground) -> None:
    ground.ended()
    ground.ended(run_id="20260103T000000Z-ffffff")


def _two_of_three_shards(ground: Ground) -> None:
    for number in (1, 2):
        path = ground.ended(run_id=f"20260103T000000Z-fffff{number}")
        info = json.loads((path / "run.json").read_text())
        info["asked"]["shard"] = f"{number}/3"
        (path / "run.json").write_text(json.dumps(info))
    (path / "results.jsonl").write_text("")


def _no_summary_file(ground: Ground) -> None:
    ground.ended()
    ground.bend.setenv("GITHUB_STEP_SUMMARY", str(ground.here / "none" / "summary.md"))


def _without_pyarrow(ground: Ground) -> None:
    ground.ended()
    ground.bend.setitem(sys.modules, "pyarrow", None)


def _no_charts(ground: Ground) -> None:
    ground.ended()
    ground.bend.setitem(sys.modules, "vl_convert", None)


def _judged(ground: Ground) -> None:
    """Commands judge without processes: everything is correct and 0.83 times as fast."""
    ground.bend.setattr(session_module, "Session", FakeSession)


def _package_without_an_answer(ground: Ground) -> None:
    ground.file("b/b/table.json")
    ground.bend.setattr("kgbench.core.torch_process.ask", _no_answer)


def _winner(ground: Ground, **changes: Any) -> None:
    _judged(ground)
    winning_run(ground.here / "runs", **changes)


def _winner_on_a_gpu(ground: Ground) -> None:
    _winner(ground, device={"kind": "cuda"})


def _info(text: str) -> Callable[[Ground], None]:
    def prepare(ground: Ground) -> None:
        run = ground.ended()
        (run / "run.json").write_text(text)
        (run / "results.jsonl").unlink()

    return prepare


def _results(text: str) -> Callable[[Ground], None]:
    return lambda ground: (ground.ended() / "results.jsonl").write_text(text) and None


def _a_bad_line(ground: Ground) -> None:
    file = ground.ended() / "results.jsonl"
    file.write_text("{}\n" + file.read_text())


def _interrupted(ground: Ground) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    ground.bend.setattr("kgbench.cli.problems.load_summary", interrupt)


def _two_runs(ground: Ground, **changes: Any) -> None:
    """The second one, ``last``, differs from the first."""
    ground.ended(device={"name": "NVIDIA H200", "driver": "1"})
    ground.ended(run_id="20260103T030405Z-ab12cd", **changes)


def _published(ground: Ground) -> None:
    ground.file(f"runs/{RUN}/results.jsonl.gz")
    ground.file(f"runs/{RUN}/run.json", '{"format": 1}')


COMMANDS: dict[str, tuple[Callable[[Ground], object], str]] = {
    "KGB101": (_nothing, "list --kind computes"),
    "KGB102": (_nothing, "lst"),
    "KGB103": (_nothing, "run --model examples --deadline lunch=3"),
    "KGB104": (_nothing, "run --model examples --deadline whole=3 --timeout 4"),
    "KGB105": (_nothing, "run --model examples --timeout 0"),
    "KGB106": (_nothing, "run --model examples --fast-at 0,x"),
    "KGB107": (_nothing, "run --model examples --fail-under fast1=1"),
    "KGB108": (_nothing, "run --model examples --device cpu --source aten --fail-under vllm:right=1"),
    "KGB109": (_kernel, "check k.py --drawn-for mine"),
    "KGB110": (_nothing, "selftest mutants aten/t --mutant zeroes"),
    "KGB111": (_nothing, "run --model examples --problems aten/t --device tpu"),
    "KGB112": (Ground.gpus, "run --model examples --problems aten/t --device cuda:x"),
    "KGB113": (_nothing, "show softmaxx"),
    "KGB114": (_same_name, "show same --problem-dir mine"),
    "KGB115": (_nothing, "list --problems 'x*y*z'"),
    "KGB116": (_nothing, "list --source cudnn"),
    "KGB117": (_nothing, "list --category ropes"),
    "KGB118": (_nothing, "show add.Tenso"),
    "KGB119": (_nothing, "new Mine scale"),
    "KGB120": (_nothing, "new mine 1st"),
    "KGB121": (_nothing, "new aten add"),
    "KGB122": (lambda ground: ground.file("my_problems/mine/scale.yaml"), "new mine scale"),
    "KGB123": (lambda ground: ground.file("file"), "new mine scale --out file"),
    "KGB124": (lambda ground: (ground.here / "empty").mkdir(), "validate empty"),
    "KGB125": (_nothing, "validate nowhere.yaml"),
    "KGB126": (lambda ground: ground.file("mine/aten/scale.yaml"), "validate mine/aten/scale.yaml"),
    "KGB127": (_nothing, "check none.py"),
    "KGB128": (_same_name, "check same.py --problem-dir mine"),
    "KGB129": (_kernel, "check k.py"),
    "KGB130": (_nothing, "new aten aten::scale"),
    "KGB131": (_nothing, "run --model baseline --suite nosuch"),
    "KGB732": (_nothing, "run --model examples --server http://127.0.0.1:9 --device cpu"),
    "KGB132": (_nothing, "run --model baseline --suite trace:none.txt --device cpu"),
    "KGB133": (lambda ground: ground.bend.setattr("kgbench.problem.suites.ask", _no_answer),
               "run --model baseline --suite opinfo --problems aten/t --device cpu"),
    "KGB134": (lambda ground: ground.file("t.txt", "Operator: aten.foo.default"),
               "run --model baseline --suite trace:t.txt --device cpu"),
    "KGB135": (lambda ground: (ground.ended() / "suite.json").write_text("{"), "report last"),
    "KGB136": (_nothing, "run --model baseline --suite kernelbench:nowhere"),
    "KGB137": (lambda ground: (ground.here / "empty").mkdir(), "validate --suite kernelbench:empty"),
    "KGB138": (_checkout(lambda *_: [{"path": str(Path("kb/level1/1_A.py").resolve()), "complaint": "no Model"}]),
               "prompt --suite kernelbench:kb level1/1"),
    "KGB139": (_checkout(_no_answer), "prompt --suite kernelbench:kb level1/1"),
    "KGB150": (_nothing, "run --model examples --shard 9/8"),
    "KGB151": (_nothing, "run --model examples --shard 1/8 --fail"),
    "KGB152": (lambda ground: ground.ended(), "merge last"),
    "KGB153": (lambda ground: (ground.ended(), ground.ended(run_id="20260103T000000Z-ffffff", model="another")),
               f"merge {RUN} last"),
    "KGB154": (_several_runs, f"merge {RUN} last"),
    "KGB155": (_nothing, "run --model examples --mixed-devices"),
    "KGB156": (lambda ground: ground.ended(), "report last --on H100"),
    "KGB140": (_nothing, "selftest exploits replays_by_shap"),
    "KGB143": (_parquet_without_pyarrow, "run --model baseline --suite torchbench:t.parquet --device cpu"),
    "KGB141": (_nothing, "run --model baseline --against compile"),
    "KGB142": (_nothing, "validate --device cpu"),
    "KGB201": (lambda ground: ground.file("mine/aten/softmax.yaml"), "list --problem-dir mine"),
    "KGB202": (_nothing, "list --problem-dir nowhere"),
    "KGB204": (lambda ground: ground.file("mine/scale.yaml"), "list --problem-dir mine"),
    "KGB205": (lambda ground: ground.file("mine/aten/scale.yaml", "doc: x\n"), "list --problem-dir mine"),
    "KGB301": (lambda ground: ground.bend.setattr(sys, "platform", "darwin"), "run --model examples"),
    "KGB302": (lambda ground: ground.bend.setattr(importlib.util, "find_spec", lambda name: None),
               "run --model examples"),
    "KGB303": (lambda ground: ground.bend.setattr(importlib.util, "find_spec", _without_torch), "validate aten/t"),
    "KGB305": (lambda ground: ground.bend.setenv("PATH", str(ground.here)),
               "run --model examples --problems aten/t --device cuda"),
    "KGB306": (Ground.gpus, "run --model examples --problems aten/t --device cuda:7"),
    "KGB402": (lambda ground: ground.file("file"),
               "run --model baseline --problems aten/t --device cpu --out file"),
    "KGB403": (_unreadable_results, "run --resume last"),
    "KGB404": (_nothing, "report last"),
    "KGB405": (_several_runs, "report 2026"),
    "KGB406": (_several_runs, "report 77"),
    "KGB407": (_unreadable_results, "report last"),
    "KGB408": (lambda ground: (ground.here / "plain").mkdir(), "report plain"),
    "KGB409": (_info('{"format": '), "report last"),
    "KGB410": (_info("[]"), "report last"),
    "KGB411": (_info('{"format": 99}'), "report last"),
    "KGB412": (_results("{}\n"), "report last"),
    "KGB414": (Ground.ended, "show last/aten/mm"),
    "KGB415": (Ground.ended, "show last/aten/softmax#9"),
    "KGB416": (lambda ground: ground.ended(asked={}), "run --resume last"),
    "KGB417": (Ground.ended, "run --resume last --seed again"),
    "KGB418": (Ground.ended, "run --resume last --model examples"),
    "KGB420": (lambda ground: ground.ended(problems=[{"id": "aten/gone"}]), "run --resume last"),
    "KGB430": (_published, "publish last"),
    "KGB431": (Ground.ended, "publish last"),
    "KGB432": (lambda ground: (ground.ended(), ground.file("d/unknown-unknown-device-unknown/a")),
               "publish last --draft d"),
    "KGB433": (Ground.ended, "publish last --draft results/mine"),
    "KGB437": (_winner, "verify last --device cpu --records r"),
    "KGB438": (Ground.ended, "publish last --leave-out aten/t"),
    "KGB501": (_nothing, "run"),
    "KGB502": (_nothing, "run --model clod"),
    "KGB503": (_nothing, "run --model baseline:x"),
    "KGB504": (_nothing, "run --model dir"),
    "KGB505": (_nothing, "run --model dir:nowhere"),
    "KGB506": (_kernel, "run --model dir:. --problems aten/t"),
    "KGB507": (_kernel, "run --model k.py"),
    "KGB508": (_nothing, "run --model examples:cuda"),
    "KGB510": (_entry_point("odd = no_such_module_anywhere"), "run --model odd"),
    "KGB630": (_entry_point("dir = no_such_module_anywhere"), "run"),
    "KGB560": (_damaged_reply, "evaluate last"),
    "KGB561": (_nothing, "run --model examples --samples 2"),
    "KGB562": (_nothing, "generate --model exec:true --batch --problems cublas/cublasSdot_v2"),
    "KGB563": (_nothing, "run --model anthropic:m --batch --rounds 2 --problems cublas/cublasSdot_v2 --dry-run"),
    "KGB564": (_nothing, "generate --model anthropic:m --budget-usd 1 --problems cublas/cublasSdot_v2 --dry-run"),
    "KGB566": (_nothing, "run --model examples --dry-run"),
    "KGB567": (_nothing, "generate --model examples"),
    "KGB568": (_nothing, "generate --model exec:true --rounds 2"),
    "KGB569": (Ground.ended, "evaluate last"),
    "KGB570": (_nothing, "run --model replay"),
    "KGB571": (Ground.ended, "run --model replay:last"),
    "KGB572": (_replies, "run --model replay:last --problems cublas/cublasSdot_v2"),
    "KGB613": (_replies, "generate --model replay:last --problems aten/softmax"),
    "KGB550": (_nothing, "run --model exec"),
    "KGB551": (_nothing, """run --model "exec:sh -c 'x" """),
    "KGB521": (_nothing, "prompt vllm/rms_norm --language cuda --shots 8"),
    "KGB522": (_nothing, "prompt vllm/rms_norm --target-gpu H20"),
    "KGB523": (_nothing, "prompt"),
    "KGB524": (_nothing, "prompt vllm/rms_norm --model examples"),
    "KGB532": (_nothing, "run --model openai-compatible:http://localhost:8000"),
    "KGB537": (lambda ground: ground.bend.setenv("KGBENCH_ALIASES", str(ground.file("a.toml", "claude = 1"))),
               "run --model claude"),
    "KGB538": (_nothing, "run --model claude:x"),
    "KGB160": (Ground.ended, "verify last"),
    "KGB161": (_winner_on_a_gpu, "verify last --device cpu"),
    "KGB601": (_interrupted, "list"),
    "KGB602": (_judged, "run --model baseline --problems aten/t --device cpu --fail-under fast_1=0.5"),
    "KGB607": (_results('{"problem": "aten/mm"'), "report last"),
    "KGB608": (lambda ground: (ground.ended() / "results.jsonl").unlink(), "report last"),
    "KGB609": (Ground.run, "report last"),
    "KGB610": (lambda ground: ground.ended(problems=[{"id": "aten/softmax", "kind": "compute", "sha256": "2"}]),
               "report last"),
    "KGB186": (_without_pyarrow, "report last --format parquet"),
    "KGB188": (_no_summary_file, "report last --format github"),
    "KGB180": (lambda ground: (ground.ended(), ground.file("page"))[0], "report last --html page/run.html"),
    "KGB618": (_no_charts, "report last --html run.html"),
    "KGB170": (Ground.ended, "compare last"),
    "KGB171": (lambda ground: _two_runs(ground, problems=[{"id": "aten/t", "kind": "view"}]), f"compare {RUN} last"),
    "KGB172": (lambda ground: _two_runs(ground, device={"name": "another"}), f"compare {RUN} last"),
    "KGB174": (lambda ground: ground.file("runs/a.txt"), "leaderboard runs"),
    "KGB625": (lambda ground: _two_runs(ground, device={"name": "NVIDIA H200", "driver": "2"}), f"compare {RUN} last"),
    "KGB195": (Ground.ended, "export last --backend own_backend"),
    "KGB196": (Ground.ended, "export last --backend 1st"),
    "KGB197": (_nothing, "try-backend . --model gpt2"),
    "KGB198": (lambda ground: ground.file("b/b/table.json"), "try-backend b --model gpt2 --set layers"),
    "KGB317": (_package_without_an_answer, "try-backend b --model gpt2 --device cpu"),
    "KGB191": (lambda ground: ground.file("page"), "run --model examples --trace page/trace.json"),
    "KGB190": (Ground.ended, "report last --by kind --format junit"),
    "KGB640": (_two_of_three_shards, "report 20260103T000000Z-fffff1"),
    "KGB641": (_two_of_three_shards, "merge fffff1 fffff2"),
    "KGB627": (_older, "report last"),
    "KGB626": (lambda ground: (ground.ended(), ground.file("runs/x/run.json", "{")), "leaderboard runs"),
    "KGB189": (Ground.ended, "reproduce last --device cpu"),
    "KGB614": (lambda ground: (ground.ended() / "run.json").write_text(""), "report last"),
    "KGB615": (_a_bad_line, "report last"),
    "KGB620": (lambda ground: _winner(ground, text=None), "verify last --device cpu"),
    "KGB621": (lambda ground: _winner(ground, device={"name": "another"}), "verify last --device cpu"),
    "KGB611": (_nothing, "new aten scale"),
}  # fmt: skip
"""What there has to be, and the command."""


# --- problem files ---

CHANGES: dict[str, tuple[str, ...]] = {
    "KGB206": ("summary: rows", r'summary: "\x72ows', "a number\nkind", 'a number"\nkind'),
    "KGB212": ("category: elementwise", "category: elementwise  # EDIT: name a word to filter by"),
    "KGB223": ("{factor: 2.0}", "{7: 2.0}"),
    "KGB245": ("defaults:", "variables: {nan: m}\ndefaults:"),
    "KGB247": ("aten:mul.Scalar", "multiply"),
    "KGB249": ("ulps: 2", "ulps: 0"),
    "KGB260": ('"(m, n)"', f'"(m, n + {"0 + " * 600}0)"'),
    "KGB261": ('"(m, n)"', '"(m, n"'),
    "KGB263": ('"(m, n)"', '"(m // 0, n)"'),
    "KGB265": ('"(m, n)"', '"(m, -n)"'),
    "KGB266": ('"(m, n)"', '"(m, 10 ** 10 + n)"'),
}
"""Edits of a file that is correct, beside those in tests/unit/bad_problems."""


def _folder_for_a_file(ground: Ground) -> str:
    (ground.here / "aten" / "scale.yaml").mkdir(parents=True)
    return _error(lambda: load_problem(ground.here / "aten" / "scale.yaml"))


def _not_utf8(ground: Ground) -> str:
    ground.file("mine/aten/scale.yaml").write_bytes(GOOD.replace("out =", "øut =").encode("latin-1"))
    return ground.command("validate --no-run mine/aten/scale.yaml")


BAD_WHEN_RUN = {
    "KGB270": ("torch.mul(self, factor)", "torch.cholesky_solve(self)"),
    "KGB271": ("torch.mul(self, factor)", "torch.sum(self)"),
    "KGB273": ("doc:", "canonical: math:floor\ndoc:"),
    "KGB274": ("doc:", "edges: [{self: 2.0, factor: 3.0, gives: 7.0}]\ndoc:"),
    # The process ends here, so that it comes last.
    "KGB272": ("torch.mul(self, factor)", '"def reference(self, factor):\\n  import os\\n  os._exit(7)"'),
}
_validated: list[str] = []


def _when_run(ground: Ground) -> str:
    """One command about all of them, since each imports torch."""
    if not _validated:
        for number, changes in BAD_WHEN_RUN.items():
            ground.problem(*changes, folder=number)
        _validated.append(ground.command(f"validate {' '.join(f'{each}/aten/scale.yaml' for each in BAD_WHEN_RUN)}"))
    return _validated[0]


# --- the machine ---


def _no_process(ground: Ground) -> str:
    ground.bend.setattr(sys, "executable", "/bin/false")
    return ground.command("validate aten/t")


def _lock_is_a_folder(ground: Ground) -> str:
    lock = GpuLock("GPU-1", ground.here)
    lock.path.mkdir()
    return _error(lock.try_take)


def _lock_comes_and_goes(ground: Ground) -> str:
    def opened(path: Path, flags: int, mode: int = 0) -> int:
        raise FileExistsError if flags & os.O_CREAT else FileNotFoundError

    lock = GpuLock("GPU-1", ground.here)
    with ground.bend.context() as bend:
        bend.setattr("kgbench.harness.machine.gpu_lock.os.open", opened)
        return _error(lock.try_take)


def _gpus_taken(busy: int, wanted: int = 2) -> Callable[[Ground], str]:
    """Two GPUs, of which somebody else has some; with 0 it is not said how many are wanted."""

    def trigger(ground: Ground) -> str:
        ground.gpus()
        ground.bend.setattr(pools_module, "GpuLock", lambda uuid: GpuLock(uuid, ground.here))
        others = [GpuLock(f"GPU-kgbench-test-{number}", ground.here) for number in range(busy)]
        assert all(other.try_take() for other in others)
        said: list[str] = []

        def say(words: str) -> None:
            said.append(words)
            for other in others:
                other.release()

        for pool in pools_module.take_devices(find_devices("cuda"), "cuda", wanted, 0, 0, say):
            assert pool.lock is not None
            pool.lock.release()
            pool.page.close()
        return "\n".join(said)

    return trigger


STAND_IN = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
# What the coordinator hears from a fork server, and from the referees that it forks, without either.
import os, select, socket, subprocess, sys, time
from dataclasses import asdict
from kgbench.harness.wire.forks import Forked, Refused, ServerReady
from kgbench.harness.wire.judging import Judged, RefereeReady, BrokenDevice
from kgbench.harness.wire.protocol import Channel
from kgbench.harness.sandbox.plan import Plan
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
HOW = {how!r}
if HOW == "silent":
    sys.exit("torch is broken")
server = Channel(socket.socket(fileno=int(sys.argv[-1])), accepts_fds=True)
plan = Plan((), False, False, filtered=True, reasons={{}})
unfit = "it has 2 threads" if HOW == "threads" else ""
server.send(ServerReady({{}}, plan.to_json(), unfit).encode())
referees, waiting, refused = [], [], HOW != "one slot"
while True:
    readable = select.select([server, *referees], [], [])[0]
    if server in readable:
        _, fds = server.receive_with_fds(5.0)
        if HOW == "errors":
            server.send(Refused("too many threads").encode())
            continue
        server.send(Forked(subprocess.Popen(["sleep", "60"]).pid).encode())
        begins = HOW != "no referee" and not (HOW == "one slot" and referees)
        refused = refused or not begins
        if begins:
            referees.append(Channel(socket.socket(fileno=fds.pop(1))))
            referees[-1].receive(5.0)
            referees[-1].send(RefereeReady({{"versions": {{}}, "memory_gb": 1.0}}, {{}}).encode())
        for fd in fds:
            os.close(fd)
    for referee in (each for each in referees if each in readable):
        referee.receive(5.0)
        if HOW == "sick":
            referee.send(BrokenDevice("1 + 1 gave 3").encode())
            continue
        waiting.append((referee, Result("aten/t", "m", 0, Outcome.PASSED)))
    for referee, answer in waiting if refused else ():
        referee.send(Judged(answer.to_json(), {{}}).encode())
    waiting = [] if refused else waiting
"""


@contextlib.contextmanager
def _session(ground: Ground, how: str, **settings: Any) -> Iterator[tuple[Session, list[str]]]:
    """A real session on a fork server that behaves as ``how`` says, and what it tells."""
    python = sys.executable
    ground.file("python", STAND_IN.format(python=python, how=how)).chmod(0o755)
    said: list[str] = []
    with ground.bend.context() as bend:
        bend.setattr(sys, "executable", str(ground.here / "python"))
        with Session(Settings(device="cpu", say=said.append, **settings)) as session:
            yield session, said


def _session_fails(how: str, **settings: Any) -> Callable[[Ground], str]:
    def trigger(ground: Ground) -> str:
        with pytest.raises(MachineError) as caught, _session(ground, how, **settings):
            pass
        return caught.value.printed

    return trigger


def _servers_die(ground: Ground) -> str:
    ground.bend.setattr(server_module, "MAX_SERVERS", 0)
    return _session_fails("errors")(ground)


JOB = Job(load_problem(ROOT / "problems" / "aten" / "t.yaml"), "m", 0, "def t(): ...\n")


def _closed(ground: Ground) -> str:
    with _session(ground, "right") as (session, _):
        session.close()
        return _error(lambda: session.evaluate(JOB))


def _sick(ground: Ground) -> str:
    """Both messages: the device is set aside, and no other one is left."""
    with _session(ground, "sick") as (session, said):
        session.evaluate(JOB)
        return "\n".join([_error(lambda: session.evaluate(JOB)), *said])


def _fewer_seats(ground: Ground) -> str:
    with _session(ground, "one slot", jobs=2) as (session, said):
        results: list[Result] = []
        threads = [threading.Thread(target=lambda: results.append(session.evaluate(JOB))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert [each.outcome for each in results] == [Outcome.PASSED] * 2
        return "\n".join(said)


# --- runs ---


def _written_by_another(ground: Ground) -> str:
    ground.bend.setattr("kgbench.cli.evaluation_run.check_machine", lambda: None)
    store = ground.run()
    try:
        return ground.command("run --resume last")
    finally:
        store.close()


def _busy_after_verifying(ground: Ground) -> str:
    with contextlib.redirect_stderr(io.StringIO()) as told:
        enter_records(read_run(ground.ended()), [], Measured("", "", "NVIDIA H200", 0.0, 40.0), ground.here)
    return told.getvalue()


def _disk_full(ground: Ground) -> str:
    store = ground.run()

    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with ground.bend.context() as bend:
        bend.setattr(os, "fsync", fail)
        return _error(lambda: store.append(result("aten/mm")))


def _from_elsewhere(ground: Ground) -> str:
    ground.bend.setattr("kgbench.cli.evaluation_run.check_machine", lambda: None)
    folder = ground.here / "there"
    ground.file("there/kernels/aten/t.py", "def t(): ...\n")
    info = ground.ended() / "run.json"
    data = json.loads(info.read_text())
    data["asked"] |= {"model": "dir:kernels", "folder": str(folder)}
    info.write_text(json.dumps(data))
    return ground.command("run --resume last")


def _kernelbench(ground: Ground) -> str:
    return _error(lambda: layouts.problem_named_by(Path("level_1_problem_1_sample_0_kernel.py"), ["aten/t"]))


def _no_such_language(ground: Ground) -> str:
    problem = load_problem(ROOT / "problems" / "vllm" / "rms_norm.yaml")
    return _error(lambda: prompt_for(problem, PromptOptions(language="fortran")))


def _no_such_agent(ground: Ground) -> str:
    return _error(AgentClient("no-such-agent -p", ["no-such-agent", "-p"]).ready)


def _agent_elsewhere(ground: Ground) -> str:
    ground.bend.setattr(sys, "platform", "darwin")
    return _error(AgentClient("sh", ["sh"]).ready)


QUESTION = Question(None, 0, 0, Prompt("", (Turn("user", "?"),)), Sampling(timeout_s=20))  # type: ignore[arg-type]


def _no_sdk(ground: Ground) -> str:
    ground.bend.setattr(importlib.util, "find_spec", lambda name: None)
    return _error(AnthropicClient("claude", "claude-opus-5-5").ready)


def _no_key(ground: Ground) -> str:
    ground.bend.delenv("OPENAI_API_KEY", raising=False)
    ground.bend.setattr(importlib.util, "find_spec", lambda name: name)
    return _error(OpenAIClient("gpt", "gpt-6.2-sol").ready)


def _always_thinks(ground: Ground) -> str:
    asked = replace(QUESTION, sampling=Sampling(thinking="off"))
    return _error(lambda: AnthropicClient("claude", "claude-opus-5-5").request(asked))


def _refused(status: int, message: str = "no") -> Callable[[Ground], str]:
    """A server answers so."""

    def trigger(ground: Ground) -> str:
        pytest.importorskip("openai", minversion="3.54")
        with WireServer(lambda asked: Said(status=status, message=message)) as server:
            asker = CompatibleClient("mine", "m", url=f"{server.url}/v1")
            try:
                return _error(lambda: asker.ask(replace(QUESTION, sampling=Sampling(temperature=0.5, timeout_s=20))))
            finally:
                asker.close()

    return trigger


def _bytes_for_a_terminal(ground: Ground) -> str:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    report = report_of(read_run(ground.ended()))
    return _error(lambda: print_parquet(report, Terminal()))


def _shots_for_a_module(ground: Ground) -> str:
    softmax = load_problem(ROOT / "problems" / "aten" / "softmax.yaml")
    module = replace(softmax.overloads[0], module=ModuleSource("1_A.py", ""))
    return _error(lambda: prompt_for(replace(softmax, overloads=(module,)), PromptOptions(shots=1)))


def _one_is_left_out(ground: Ground) -> str:
    registry = Checkout(ground.file("kb/level1/1_A.py").parents[1])
    registry.complaints = {"level1/1_A": "no Model"}
    ground.bend.setattr(registry, "load", lambda ids: ())
    with contextlib.redirect_stderr(io.StringIO()) as said:
        loaded(registry, ())
    return said.getvalue()


def _tool_cannot(ground: Ground) -> str:
    toolbox = Toolbox(Evaluator, ProblemCache())
    return _error(lambda: toolbox.explain("0000"))


def _no_mcp(ground: Ground) -> str:
    ground.bend.setattr(importlib.util, "find_spec", lambda name: None)
    return ground.command("mcp")


def _package(version: str | None) -> Callable[[Ground], str]:
    """Packages are installed in that version; in none where it is None."""

    def found(package: str) -> str:
        if version is None:
            raise adapted.importlib.metadata.PackageNotFoundError(package)
        return version

    def trigger(ground: Ground) -> str:
        ground.bend.setattr(adapted.importlib.metadata, "version", found)
        if version is None:
            return _error(lambda: adapted.adapter("liger"))
        liger = adapted.provider_for("liger", None, None)
        none = _error(lambda: liger.narrow(["aten/add"], chosen=False))
        return none + "\n" + _error(lambda: adapted.provider_for("liger", "9", None))

    return trigger


def _repro(ground: Ground, result_changes: dict[str, Any], file: str = "repro.py") -> str:
    """``show --repro`` of a product by an installed package that is wrong in its first element, changed so."""
    ground.bend.setattr(adapted.importlib.metadata, "version", lambda package: "1.2")
    wrong = Mismatch("return", (0,), "1", "2", "0.1", 1.0, (3,), "float32")
    case = CaseResult("check-1-float32", "", "check", "float32", {}, Outcome.WRONG_VALUE, detail=wrong)
    changes = {"model": "flaggems:1.2", "adapted": "flag_gems 1.2", "outcome": Outcome.WRONG_VALUE, "cases": (case,)}
    store = ground.run()
    store.append(replace(result("aten/mm", problem_sha256="1"), **{**changes, **result_changes}))
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
    return ground.command(f"show {RUN}/aten/mm --repro {file}")


def _no_short_file(ground: Ground) -> str:
    def ask(module: str, request: Any, timeout_s: float) -> Any:
        raise NoAnswer("it took over 600 s")

    ground.bend.setattr("kgbench.cli.repro.ask", ask)
    return _repro(ground, {})


def _unwritable(ground: Ground) -> str:
    ground.bend.setattr("kgbench.cli.repro.ask", lambda *asked: [{"script": "1 / 0\n"}])
    return _repro(ground, {}, "nowhere/repro.py")


def _port_taken(ground: Ground) -> str:
    with listening("127.0.0.1", 0) as taken:
        return _error(lambda: listening("127.0.0.1", taken.getsockname()[1]))


def _cancelled(ground: Ground) -> str:
    cancellation = Cancellation()
    cancellation.cancel()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        return _error(lambda: cancellation.while_judging(ours).__enter__())


def _of_service(number: str, ground: Ground) -> str:
    return service_triggers.said(number, ground.here, ground.bend)


def _without_ray(ground: Ground) -> str:
    ground.bend.setitem(sys.modules, "ray", None)
    return ground.command("run --model examples --ray auto")


def _no_cluster(ground: Ground) -> str:
    ground.bend.setattr(connection, "_imported", lambda: SimpleNamespace(is_initialized=lambda: False))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens
        return ground.command(f"run --model examples --ray 127.0.0.1:{unused.getsockname()[1]}")


def _cluster_gone(ground: Ground) -> str:
    return _error(lambda: Cluster(SimpleNamespace(nodes=lambda: 1 / 0), "10.0.0.1:6379").nodes())


def _on_a_cluster(prepare: Callable[[Field, Node], None], *nodes: str, **resources: int) -> Callable[[Ground], str]:
    """What a session on it says, and what ends it, once it judged or could not."""

    def trigger(ground: Ground) -> str:
        ground.bend.setattr(device_module, "POLL_S", 0.01)
        ground.bend.setattr(device_module, "PENDING_S", 0.02)
        field = Field(*nodes, **resources)
        field.prepare = lambda node: prepare(field, node)
        if resources:
            field.ray.join("with a GPU", CPU=1, GPU=1)
        ended = ""
        try:
            with field.session(device="auto") as session:
                session.evaluate(cluster_job())
        except KgbenchError as error:
            ended = error.printed
        return f"{field.words()}\n{ended}"

    return trigger


def _dies_once(field: Field, node: Node) -> None:
    if len(field.made) == 0:
        node.judging = lambda job: field.ray.actors[0].die("killed")


def _refuses(field: Field, node: Node) -> None:
    node.opening = lambda: Refusal("KGB315: no sandbox")


OTHERWISE: dict[str, Callable[[Ground], str]] = {
    "KGB525": _shots_for_a_module,
    "KGB629": _one_is_left_out,
    "KGB176": _tool_cannot,
    "KGB177": lambda ground: ground.command("mcp --http 0.0.0.0:0") + ground.command("mcp --http port"),
    "KGB178": _no_mcp,
    "KGB185": _bytes_for_a_terminal,
    "KGB187": lambda ground: _error(lambda: write({"a/b": ""}, ground.file("a"))),
    "KGB208": _folder_for_a_file,
    "KGB209": _not_utf8,
    "KGB264": lambda ground: _error(lambda: evaluate_reference("x + 1", {}, None)),
    **dict.fromkeys(BAD_WHEN_RUN, _when_run),
    "KGB304": _no_process,
    "KGB307": _lock_is_a_folder,
    "KGB308": _lock_comes_and_goes,
    "KGB309": _sick,
    "KGB310": _session_fails("silent"),
    "KGB311": _session_fails("threads"),
    "KGB312": _session_fails("no referee"),
    "KGB313": _servers_die,
    "KGB314": _session_fails("errors"),
    "KGB315": _session_fails("right", require_sandbox="full"),
    "KGB316": _closed,
    "KGB340": _cancelled,
    "KGB343": _port_taken,
    "KGB330": _without_ray,
    "KGB331": _no_cluster,
    "KGB332": _on_a_cluster(_refuses, "a"),
    "KGB333": _cluster_gone,
    "KGB642": _on_a_cluster(_refuses, "a"),
    "KGB643": _on_a_cluster(_dies_once, "a"),
    "KGB644": _on_a_cluster(lambda field, node: None, "a", CPU=1),
    "KGB645": _on_a_cluster(lambda field, node: setattr(node, "greets_after_s", 0.2), "a"),
    "KGB344": _no_short_file,
    "KGB401": _written_by_another,
    "KGB435": lambda ground: _error(lambda: write_folder({"run.json": b""}, ground.file("file") / "x")),
    "KGB436": lambda ground: _error(lambda: read_records(ground.file("r/h200.json", "[]").parent, "NVIDIA H200")),
    "KGB650": lambda ground: "\n".join(
        report_of(
            read_run(ground.ended(device={"kind": "cuda", "name": "NVIDIA H200"})),
            records=ground.file("r/h200.json", "[]").parent,
        ).notes
    ),
    "KGB651": _busy_after_verifying,
    "KGB434": lambda ground: _error(
        lambda: list(publications(ground.file("results/x/publication.json", "{").parents[1]))
    ),
    "KGB413": _disk_full,
    "KGB419": _from_elsewhere,
    "KGB509": _kernelbench,
    "KGB520": _no_such_language,
    "KGB552": _no_such_agent,
    "KGB553": _agent_elsewhere,
    "KGB530": _no_sdk,
    "KGB531": _no_key,
    "KGB533": _always_thinks,
    "KGB534": _refused(401),
    "KGB535": _refused(404),
    "KGB536": _refused(400, "temperature is not supported"),
    "KGB580": _package(None),
    "KGB581": _package("1.2"),
    "KGB582": _package("1.2"),
    "KGB583": lambda ground: _repro(ground, {"adapted": ""}),
    "KGB584": lambda ground: _repro(ground, {"cases": (), "outcome": Outcome.TIMEOUT}),
    "KGB585": _unwritable,
    "KGB603": _fewer_seats,
    "KGB604": _sick,
    "KGB605": _gpus_taken(2),
    "KGB606": _gpus_taken(1),
    "KGB628": _gpus_taken(0, wanted=0),
    **{number: functools.partial(_of_service, number) for number in service_triggers.TRIGGERS},
}
"""What does not come of one command on one file."""

NEED_TORCH = {
    "KGB270", "KGB271", "KGB272", "KGB273", "KGB274", "KGB304", "KGB309", "KGB310", "KGB311", "KGB312", "KGB313",
    "KGB314", "KGB315", "KGB316", "KGB603", "KGB604",
}  # fmt: skip
"""Their sessions and processes ask for torch before they begin."""


def _marks(number: str) -> list[pytest.MarkDecorator]:
    one_worker = pytest.mark.xdist_group("references run")
    return [pytest.mark.torch] * (number in NEED_TORCH) + [one_worker] * (number in BAD_WHEN_RUN)


@pytest.mark.parametrize("number", [pytest.param(each, marks=_marks(each)) for each in MESSAGES])
def test_the_message_comes_up(number: str, ground: Ground) -> None:
    if number in COMMANDS:
        shown = _of_command(number, ground)
    elif number in CHANGES:
        ground.problem(*CHANGES[number])
        shown = ground.command("validate --no-run mine/aten/scale.yaml")
    elif number in OTHERWISE:
        shown = OTHERWISE[number](ground)
    else:
        shown = _of_bad_file(number, ground)
    assert re.search(rf"(^|kgbench: |Error: |wrong  ){number}: ", shown, re.MULTILINE), shown
