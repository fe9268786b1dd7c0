"""``kgbench list``, ``show`` and ``validate``, the group that holds all commands, and what importing them costs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kgbench import __version__
from kgbench.cli import problems, referencerun
from kgbench.cli.main import COMMANDS, main
from kgbench.core.errors import MachineError, UsageError
from kgbench.core.paths import problems_dir
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry
from kgbench.store.writer import RunStore

ROOT = Path(__file__).resolve().parents[2]
BAD = ROOT / "tests" / "unit" / "bad_problems"


def kgbench(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def get_command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=50,
        check=True,
    )


MINE = """\
summary: transposed view of a matrix
kind: view
category: view/metadata
entry: "mine(self: Tensor) -> Tensor"
dtypes: {required: [float32]}
arguments:
  self: {access: read, shape: "tuple(shape)", draw: "integers(-100, 100)"}
alias: self
returns: [{shape: "tuple(shape)[::-1]"}]
cases:
  check: [{shape: [2, 3]}, {shape: [0, 4]}, {shape: [1, 1]}, {shape: [11]}]
reference: "kgbench.baselines.references.aten:t"
doc: returns a view of self with its two dimensions swapped
"""


@pytest.fixture
def own_problem(tmp_path: Path) -> Path:
    """A folder with one problem file."""
    target = tmp_path / "vllm" / "mine.yaml"
    target.parent.mkdir()
    target.write_text(MINE, encoding="utf-8")
    return target


# --- list ---


def test_list_prints_one_line_per_problem_and_counts_on_stderr() -> None:
    done = kgbench("list")
    ids = Registry().ids()
    assert [line.split()[0] for line in done.stdout.splitlines()] == ids
    assert done.stderr == f"{len(ids)} problems\n"


def test_list_filters() -> None:
    done = kgbench("list", "--source", "cublas", "--kind", "compute", "--category", "gemm", "--json")
    found = json.loads(done.stdout)
    assert {each["source"] for each in found} == {"cublas"}
    assert {"cublas/cublasSgemm_v2"} <= {each["id"] for each in found}
    assert set(found[0]) == {"id", "source", "name", "summary", "kind", "category", "path"}
    assert kgbench("list", "--kind", "view", "--problems", "t").stdout.startswith("aten/t ")


def test_list_shows_added_folders(own_problem: Path) -> None:
    done = kgbench("list", "--problem-dir", str(own_problem.parent.parent), "--problems", "mine")
    assert done.stdout.startswith("vllm/mine  view")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--problems", "rmsnorm"], "kgbench: KGB113: there is no problem 'rmsnorm'; closest: vllm/rms_norm"),
        (
            ["list", "--source", "cudnn"],
            "kgbench: KGB116: there is no source 'cudnn'; there are aten, vllm, cublas and all\n",
        ),
        (["list", "--source", "vllm", "--category", "ropes"], "there is no category 'ropes'; did you mean 'rope'?"),
        (["list", "--kind", "computes"], "'computes' is not one of"),
        (["show", "softmaxx"], "kgbench: KGB113: there is no problem 'softmaxx'; closest: aten/softmax"),
        (["show", "add.Tenso"], "kgbench: KGB118: aten/add has no overload 'Tenso'; did you mean 'Tensor'?"),
        (["validate", "nowhere.yaml"], "kgbench: KGB125: there is no file nowhere.yaml"),
        (["lst"], "Error: KGB102: there is no command 'lst'; did you mean 'list'?"),
    ],
)
def test_what_does_not_exist_ends_with_2_and_the_closest(arguments: list[str], words: str) -> None:
    done = kgbench(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


# --- show ---


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("problem", Registry().ids())
def test_show_says_everything_about_every_problem(
    problem: str, shipped: Callable[[Path], Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "load_problem", shipped)
    done = kgbench("show", problem)
    assert done.exit_code == 0, done.output
    read = json.loads(kgbench("show", problem, "--json").stdout, parse_constant=refuse)
    for overload in read["overloads"]:
        assert overload["signature"]["text"] in done.stdout
        assert overload["reference"].partition("\n")[0] in done.stdout
        for argument in overload["arguments"]:
            assert f"  {argument['name']} " in done.stdout
    assert read["summary"] in done.stdout
    assert read["doc"].splitlines()[0] in done.stdout


def test_show_says_whose_rate_counts_and_why_a_bound_is_loose() -> None:
    assert "no bound on the time: a sort passes over its data" in CliRunner().invoke(main, ["show", "aten/sort"]).output
    scaled = CliRunner().invoke(main, ["show", "vllm/cutlass_scaled_mm"]).output
    assert ("2 * m * n * k flops of int8" in scaled, "flops of float8_e4m3fn" in scaled) == (True, True)


def test_show_of_one_overload_shows_no_other() -> None:
    done = kgbench("show", "aten::add.Scalar").stdout
    assert "add_Scalar(" in done
    assert "add_Tensor(" not in done
    assert [each["name"] for each in json.loads(kgbench("show", "add.Scalar", "--json").stdout)["overloads"]] == [
        "Scalar"
    ]


# --- validate ---


def test_validate_only_reads_when_told_to() -> None:
    folder = problems_dir() / "cublas"
    done = kgbench("validate", "--no-run", str(folder))
    count = len(Registry().select(["cublas"]))
    assert (done.exit_code, done.stderr) == (0, f"{count} problem files, 0 wrong, only read\n")


def test_validate_prints_every_complaint_and_ends_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = kgbench("validate", "--no-run", "tests/unit/bad_problems")
    lines = [line.removeprefix("wrong  ") for line in done.stdout.splitlines()]
    assert done.exit_code == 2
    assert sorted(lines) == sorted((BAD / "expected.txt").read_text(encoding="utf-8").splitlines())
    assert f"{len(lines)} problem files of {len(lines)} to fix" in done.stderr


def test_validate_makes_every_case_concrete(own_problem: Path) -> None:
    text = own_problem.read_text(encoding="utf-8")
    own_problem.write_text(text.replace("{shape: [11]}", "{shape: [-11]}"), encoding="utf-8")
    done = kgbench("validate", "--no-run", str(own_problem))
    assert done.exit_code == 2
    assert "arguments.self.shape: 'tuple(shape)' is (-11,) in case check-4-float32" in done.stdout


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("reference: kgbench.baselines.references.aten:tt", "kgbench.baselines.references.aten has no function 'tt';"),
        ("prepare: helpers:prepared", "helpers has no function 'prepared'; did you mean 'prepare'"),
        ("canonical: nowhere:sorted", "there is no module 'nowhere'"),
        (
            'baseline: {cpu: "openblas:cublasSgem_v2"}',
            "no signature of a routine 'cublasSgem_v2' is known; add the key .* did you mean 'cublasSgem",
        ),
        ("prepare: helpers:prepare", ""),
        (
            'baseline: {cpu: "openblas:cublasSgemm_v2"}',
            "entry does not fit the routine's 'TTiiispipispi': it has 13 letters, and entry has 1 parameters",
        ),
        ('baseline: {cuda: "vllm:rms_nor"}', "vllm:rms_nor: no operator is known; add .* did you mean 'rms_norm'"),
        (
            'baseline: {cuda: "vllm:rms_norm"}',
            "entry does not fit its row in .*: it has 4 parameters, and entry has 1",
        ),
        ('fallback: "torch:clone"', ""),
    ],
)
def test_validate_looks_for_what_a_file_names(own_problem: Path, key: str, words: str) -> None:
    (own_problem.parents[1] / "helpers.py").write_text("import no_such_module\n\ndef prepare(*given): ...\n", "utf-8")
    text = own_problem.read_text(encoding="utf-8")
    without = "".join(line for line in text.splitlines(True) if not line.startswith(key.partition(":")[0] + ":"))
    own_problem.write_text(f"{without}{key}\n", encoding="utf-8")
    done = kgbench("validate", "--no-run", str(own_problem))
    assert done.exit_code == (2 if words else 0), done.output
    assert not words or re.search(rf"mine\.yaml:\d+: {key.partition(': ')[0]}: '[^']+': {words}", done.stdout)


def test_validate_without_torch_says_so_and_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    done = kgbench("validate", "aten/t")
    assert done.exit_code == 3
    assert done.stdout.startswith("partly ")
    assert "not checked: aten:t: " in done.stdout
    assert (
        "kgbench: KGB303: references were not run: torch is not installed here; pip install torch, or give --no-run"
        in done.stderr
    )
    assert "only read" in done.stderr


@pytest.mark.torch
def test_validate_runs_references(own_problem: Path) -> None:
    text = own_problem.read_text(encoding="utf-8")
    wrong = {
        "raises": ('"torch.cholesky_solve(self)"', "KGB270", "reference: fails in case check-3-float32: TypeError"),
        "shape": ('"torch.sum(self)"', "KGB271", "reference: return has shape () in case check-3-float32, not (1, 1)"),
        "missing": ("kgbench.baselines.references.aten:nothing", "KGB247", "has no function 'nothing'"),
        "dies": ('"def reference(self):\\n  import os\\n  os._exit(7)"', "KGB272", "the process ended with code 7"),
    }
    files = {"right": own_problem}
    for name, (reference, *_) in wrong.items():
        files[name] = own_problem.with_name(f"{name}.yaml")
        changed = text.replace('"mine(', f'"{name}(').replace('"kgbench.baselines.references.aten:t"', reference)
        files[name].write_text(changed, encoding="utf-8")
    done = kgbench("validate", *map(str, files.values()))
    assert done.exit_code == 2
    lines = dict(zip(files, done.stdout.splitlines(), strict=True))
    assert lines["right"].startswith("ok ")
    for name, (_, number, words) in wrong.items():
        assert lines[name].startswith(f"wrong  {number}: {files[name]}:")
        assert words in lines[name]


@pytest.mark.in_turn("kgbench/torchtools/reference_check.py", turns=3)
@pytest.mark.torch
def test_references_of_shipped_problems_run_through_the_command() -> None:
    done = kgbench("validate", "aten/softmax", "vllm/rms_norm", "cublas/cublasSdot_v2")
    assert done.exit_code == 0, done.output
    has_vllm = importlib.util.find_spec("vllm") is not None
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok", "ok" if has_vllm else "partly", "ok"]
    partly = "" if has_vllm else ", 1 not fully checked"
    summary, left_out = done.stderr.splitlines()
    assert summary == f"3 problem files, 0 wrong{partly}, references run"
    words = "a kernel that leaves out 1 in 20 timed calls passes with a chance of 0.0098 % at most, of "
    assert left_out.startswith(words)


@pytest.mark.in_turn("kgbench/harness/clock/compared.py", turns=3)
@pytest.mark.torch
def test_validate_tells_the_chance_of_leaving_out_calls() -> None:
    """Two timed cases multiply; a view is not timed."""
    wanted = {"aten/softmax": 0.95**180, "aten/t": None}
    done = kgbench("validate", "--json", *wanted)
    found = json.loads(done.stdout)
    assert [each["ok"] for each in found] == [True, True]
    assert [each["left_out_calls_pass"] for each in found] == [pytest.approx(wanted["aten/softmax"]), None]
    assert "a kernel that leaves out 1 in 20 timed calls passes: " in kgbench("validate", "-v", "aten/softmax").stdout


def test_process_that_says_nothing_is_the_machines_fault(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="references were not run: the process ended with code 1: no driver"):
        referencerun._read([tmp_path], "", "no driver", "ended with code 1")


# --- the group ---


def test_help_names_every_command_and_completion() -> None:
    done = kgbench("--help")
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert "_KGBENCH_COMPLETE=bash_source" in done.stdout
    assert kgbench("--version").stdout == f"kgbench, version {__version__}\n"


def test_help_fits_a_screen_and_begins_with_a_first_day() -> None:
    lines = kgbench("--help").stdout.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    named = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in COMMANDS]
    assert named == list(COMMANDS)
    assert named[:4] == ["doctor", "demo", "run", "check"]
    assert not any(line.endswith("...") for line in lines[1:])


LONGEST = {"run": 140}
"""What more of its options a model has, `kgbench generate --help` says."""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = kgbench(name, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith("Usage: ")
    assert all(option.help for option in get_command(name).params if isinstance(option, click.Option))
    assert len(done.stdout.splitlines()) <= LONGEST.get(name, 80)


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (UsageError("KGB113", "no such thing"), 2, "kgbench: KGB113: no such thing\n"),
        (MachineError("KGB305", "no GPU here"), 3, "kgbench: KGB305: no GPU here\n"),
        (KeyboardInterrupt(), 130, "kgbench: KGB601: interrupted\n"),
    ],
)
def test_errors_become_a_message_and_a_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, exit_code: int, words: str
) -> None:
    @click.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr(problems, "list_command", fails)
    done = kgbench("list")
    assert (done.exit_code, done.stderr) == (exit_code, words)


def test_console_command_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kgbench", "show", "nothing"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kgbench: KGB113: there is no problem 'nothing'")


@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["list", "--help"]])
def test_list_and_help_import_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    for number in range(210):
        path = tmp_path / "vllm" / f"many{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(problems_dir() / "vllm" / "rms_norm.yaml", path)
    if arguments == ["list"]:
        arguments = ["list", "--problem-dir", str(tmp_path)]
    done = run_python(
        "import sys\nfrom kgbench.cli.main import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "heavy = {'torch', 'triton', 'pandas', 'numpy', 'rich', 'yaml', 'jinja2', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    assert arguments[0] != "list" or len(done.stdout.splitlines()) > 15


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("kgbench show aten/s", {"aten/softmax"}),
        ("kgbench show rms", {"vllm/rms_norm"}),
        ("kgbench list --source aten,v", {"aten,vllm"}),
        ("kgbench va", {"validate"}),
        ("kgbench report --out OUT 2026", {"20260101T000000Z-abc123"}),
        ("kgbench run --out OUT --resume la", {"last"}),
        ("kgbench show --out OUT last/aten/", {"last/aten/mm"}),
        ("kgbench show --out OUT 20260101T000000Z-abc123/at", {"20260101T000000Z-abc123/aten/mm"}),
        ("kgbench show --out OUT 20", {"20260101T000000Z-abc123"}),
    ],
)
def test_shell_completes(tmp_path: Path, words: str, found: set[str]) -> None:
    RunStore.create(tmp_path, "20260101T000000Z-abc123", {"problems": [{"id": "aten/mm"}]}, seed="s")
    words = words.replace("OUT", str(tmp_path))
    count = len(words.split()) - 1
    environment = {"_KGBENCH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    program = "from kgbench.cli.main import main\ntry:\n    main(prog_name='kgbench')\nexcept SystemExit: pass"
    done = run_python(program, **environment)
    assert found <= {line.partition(",")[2] for line in done.stdout.splitlines()}
