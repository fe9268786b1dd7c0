"""``kgbench doctor``: what it says of a machine, and that it loads no torch itself."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli import doctor as module
from kgbench.cli.advice import DOCKER, Circumstances, package_advice, sandbox_advice
from kgbench.cli.doctor import library_rows, problem_rows, read_answers, results_folder, sandbox_rows
from kgbench.cli.main import main
from kgbench.problem.registry import Registry, load_problem

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {name: len(Registry().select([name])) for name in ("aten", "cublas", "vllm")}
FACTS = {
    "kind": "cpu",
    "name": "CPU",
    "memory_gb": 8.0,
    "versions": {"torch": "2.13", "triton": "3.9", "cuda": None},
    "sandbox": {"network": "OPEN: unshare refused", "ipc": "own"},
    "sandbox_open": ["network"],
}
ANSWERS = {
    "aten:mm": ("PyTorch 2.13", ""),
    "cublas:cublasSdot_v2": ("", "cuBLAS needs an NVIDIA GPU"),
    "openblas:cublasSdot_v2": ("", "OpenBLAS is not installed"),
}
LOADED = functools.cache(load_problem)
USER = Circumstances(root=False, container=False, sysctls={})


pytestmark = pytest.mark.xdist_group("doctor")  # reading all problems takes longest, and once will do


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.problem.registry.load_problem", LOADED)


def doctor(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["doctor", *arguments])


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU without OpenBLAS, in a container without rights."""
    monkeypatch.setattr(module, "_facts", lambda device: (FACTS, ""))
    monkeypatch.setattr(module, "_circumstances", lambda: Circumstances(True, True, {}))
    monkeypatch.setattr(
        module, "_ask_libraries", lambda found, facts: {**_all_targets(found, "OpenBLAS is not installed"), **ANSWERS}
    )


def _all_targets(problems: Any, reason: str) -> dict[str, tuple[str, str]]:
    targets = [target for each in problems for overload in each.overloads for target in overload.baseline.values()]
    return {target: ("PyTorch 2.13", "") if target.startswith("aten:") else ("", reason) for target in targets}


@pytest.mark.usefixtures("small_machine")
def test_models_say_what_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = tmp_path / "aliases.toml"
    short.write_text('mine = "exec:no-such-agent"\nyours = "exec:true"\n', encoding="utf-8")
    monkeypatch.setenv("KGBENCH_ALIASES", str(short))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    rows = {row["name"]: row for row in json.loads(doctor("--json").stdout)["models"]}
    assert rows["yours"]["lacking"] == ""
    assert "no-such-agent" in rows["mine"]["lacking"]
    assert rows["claude"]["asks"].startswith("anthropic:claude")
    assert rows["claude"]["lacking"]
    assert "yours     exec:true: can be asked" in doctor().stdout


@pytest.mark.usefixtures("small_machine")
def test_languages_say_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.harness.machine.languages.environment", lambda kind: {"PATH": "/nowhere"})
    rows = {row["name"]: row["lacking"] for row in json.loads(doctor("--json").stdout)["languages"]}
    assert "C++ compiler: apt install g++" in rows["C++ by load_inline"]
    assert "needs a GPU" in rows["CUDA by cupy"]
    assert "  CUDA by load_inline  no: needs a C++ compiler" in doctor().stdout


@pytest.mark.usefixtures("small_machine")
def test_machine_that_can_run_ends_with_0_and_says_what_is_missing(tmp_path: Path) -> None:
    done = doctor("--out", str(tmp_path / "runs"))
    assert done.exit_code == 0, done.output
    for words in (
        "ATen      PyTorch 2.13",
        "OpenBLAS  no: OpenBLAS is not installed",
        f"  aten      {COUNTS['aten']} of {COUNTS['aten']}\n",
        f"  cublas    0 of {COUNTS['cublas']}\n",
        f"{COUNTS['cublas']} without: OpenBLAS is not installed",
        f"{COUNTS['vllm']} without: the problem names no library for device cpu",
        "network       OPEN: unshare refused\n",
        f"helps: {DOCKER}",
        "OpenBLAS: pip install scipy-openblas32",
        "The examples can run here: kgbench run --model examples",
    ):
        assert words in done.stdout
    assert done.stdout.count("helps:") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.usefixtures("small_machine")
def test_json_carries_the_same() -> None:
    found = json.loads(doctor("--json").stdout)
    assert found["ready"] is True
    assert found["problems"]["aten"] == {
        "problems": COUNTS["aten"], "with_library": COUNTS["aten"], "without": {},
    }  # fmt: skip
    assert found["sandbox"][0] == {"name": "network", "state": "OPEN: unshare refused", "open": True, "help": DOCKER}
    assert found["device"] == FACTS


def test_machine_without_torch_ends_with_3_and_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = doctor()
    assert done.exit_code == 3, done.output
    assert "Nothing can run here: KGB302: torch is not installed" in done.stdout
    assert f"0 of {COUNTS['cublas']}" in done.stdout
    assert json.loads(doctor("--json").stdout)["ready"] is False


@pytest.mark.in_turn("kgbench/cli/doctor.py", turns=3)
@pytest.mark.torch
@pytest.mark.timeout(120)
def test_doctor_examines_this_machine_without_loading_torch(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom kgbench.cli.main import main\n"
        "try:\n    main(['doctor', '--json', '--device', 'cpu'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "assert not {'torch', 'triton'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=110,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    by_name = {row["name"]: row for row in found["libraries"]}
    assert by_name["ATen"]["library"].startswith("PyTorch ")
    assert by_name["vLLM"]["reason"]
    assert found["problems"]["aten"]["with_library"] == found["problems"]["aten"]["problems"]
    assert {row["name"] for row in found["sandbox"]} >= {"network", "user"}
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_crashes_is_a_reason() -> None:
    output = '{"target": "aten:mm", "library": "PyTorch 2.13", "reason": ""}\n{"target": "vllm'
    answers = read_answers(["aten:mm", "vllm:rms_norm"], output, "ended with code -11: ")
    assert answers["aten:mm"] == ("PyTorch 2.13", "")
    assert "ended with code -11" in answers["vllm:rms_norm"][1]


def test_found_library_stands_for_its_source() -> None:
    rows = library_rows({"aten:a": ("", "no"), "aten:b": ("PyTorch 2.13", "")})
    assert rows == [{"name": "ATen", "library": "PyTorch 2.13", "reason": ""}]


def test_nothing_is_known_of_libraries_where_nothing_runs() -> None:
    problem = Registry().find("aten/mm")
    assert problem_rows([problem], {}, "cpu") == {
        "aten": {"problems": 1, "with_library": 0, "without": {"not known: nothing can run here": ["aten/mm"]}}
    }


def test_results_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert results_folder(tmp_path / "file")["writable"] is False
    assert results_folder(tmp_path / "new" / "runs")["writable"] is True


def test_help_is_for_what_is_missing_whatever_its_state_says() -> None:
    rows = sandbox_rows({"network": "own", "user": "reworded"}, ["user"], USER)
    assert [(row["name"], row["open"], bool(row["help"])) for row in rows] == [
        ("network", False, False), ("user", True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "machine", "words"),
    [
        ("user", USER, "run as root"),
        ("user", Circumstances(True, False, {}), "not below /root"),
        ("network", USER, "run as root"),
        ("network", Circumstances(False, True, {"user.max_user_namespaces": "0"}), "user.max_user_namespaces=15000"),
        ("network", Circumstances(False, True, {"user.max_user_namespaces": "9"}), DOCKER),
        ("ipc", Circumstances(True, True, {"user.max_user_namespaces": "0"}), DOCKER),
        ("files", Circumstances(True, False, {}), "CAP_SYS_ADMIN"),
        ("system calls", USER, ""),
    ],
)
def test_advice_fits_the_machine(name: str, machine: Circumstances, words: str) -> None:
    advice = sandbox_advice(name, machine)
    assert words in advice
    assert bool(words) is bool(advice)


def test_packages_are_advised_where_they_are_missing_and_help() -> None:
    gpu = dict(package_advice("cuda", {"torch": "2.11", "triton": "3.6", "cuda": "13.0"}, {"vLLM": "not installed"}))
    assert set(gpu) == {"vLLM", "kernels in CUDA C++"}
    assert dict(package_advice("cuda", {"torch": "2.11", "triton": "3", "cuda": "13", "cupy-cuda13x": "14"}, {})) == {}
    assert set(dict(package_advice("cpu", {}, {"vLLM": "no GPU"}))) == {
        "torch", "Triton kernels", "speed that means something",
    }  # fmt: skip
