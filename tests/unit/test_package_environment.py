"""The Makefile and scripts/environment.py: which Python, torch and installer a machine gets, and advice on errors."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LISTING = "torch (2.15.0)\nAvailable versions: 2.15.0, {}2.12.1, 2.10.0+cpu\n  INSTALLED: 2.14.0+cpu\n"
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def command(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What make needs, in a folder with a space and an umlaut."""
    (tmp_path / "mit Umläut/scripts").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "scripts/environment.py"):
        shutil.copy(ROOT / name, tmp_path / "mit Umläut" / name)
    return tmp_path / "mit Umläut"


@pytest.fixture
def plain(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.delenv("KGBENCH_TORCH", raising=False)
    spec = importlib.util.spec_from_file_location("kgbench_environment", tree / "scripts/environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(plain: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script on Linux without a driver; ``run`` notes ``calls``, and fails at those with one of ``fails``."""

    def run(*line: str) -> str:
        if "venv" in line:
            command(Path(plain.PYTHON), "exit 0")
            plain.BORROWED.parent.mkdir(parents=True, exist_ok=True)
        plain.calls.append(" ".join(line).replace(f"{plain.PYTHON} -m ", "").replace(f"--python {plain.PYTHON} ", ""))
        if any(text in plain.calls[-1] for text in plain.fails):
            raise RuntimeError(f"{plain.calls[-1]}\nConnection refused")
        return str(plain.listing) if "index" in line else ":env:.extra-index-url='file:///more'"

    plain.calls, plain.fails, plain.listing = [], (), LISTING.format("2.13.0+cpu, ")
    monkeypatch.setattr(plain, "run", run)
    monkeypatch.setattr(plain, "has_nvidia_driver", lambda: False)
    monkeypatch.setattr(plain.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(plain.sys, "platform", "linux")
    return plain


def call_make(tree: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    line = [str(shutil.which("make")), *arguments]
    return subprocess.run(line, cwd=tree, env={"PATH": path}, capture_output=True, text=True, timeout=30)


@needs_make
def test_the_first_python_that_is_new_enough_is_called(tree: Path) -> None:
    command(tree / "bin/python3", "exit 1")  # too old, or a shim of pyenv without a Python
    command(tree / "bin/python3.12", '[ "$1" = -c ] || echo "3.12 does $*"')
    done = call_make(tree, "environment-dev", path=f"{tree}/bin")
    assert done.stdout == "3.12 does scripts/environment.py dev\n"
    assert "python3 is missing or older than 3.11, using python3.12" in done.stderr
    command(tree / ".venv/bin/python3", "echo inside an activated environment")
    done = call_make(tree, "environment-dev", path=f"{tree}/.venv/bin:{tree}/bin")
    assert done.stdout.startswith("3.12 does")
    chosen = command(tree / "other/my python", '[ "$1" = -c ] || echo chosen')
    assert call_make(tree, "environment-dev", f"PYTHON={chosen}", path=f"{tree}/bin").stdout == "chosen\n"


@needs_make
def test_without_a_python_that_is_new_enough_the_next_step_is_named(tree: Path) -> None:
    command(tree / "bin/python3", "exit 1")
    done = call_make(tree, "demo", path=f"{tree}/bin")
    assert "no Python 3.11 or newer: apt install python3.11" in done.stderr
    assert "Error 3" in done.stderr
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"


@needs_make
@pytest.mark.parametrize("failing", ["-m ruff", "-c from importlinter.cli", "-m mypy", "-m pytest", "nothing"])
def test_make_test_fails_with_a_linter_or_the_tests(failing: str, tree: Path) -> None:
    command(tree / "bin/python3", "exit 0")
    fail = f'case "$*" in "{failing}"*) echo "ground of failure"; exit 1;; esac'
    command(tree / ".venv/bin/python", fail, 'case "$*" in *pytest*) echo 3 passed;; esac')
    done = call_make(tree, "test", path=f"{tree}/bin:{os.environ['PATH']}")
    assert (done.returncode == 0) == (failing == "nothing")
    assert ("ground of failure" in done.stdout + done.stderr) == (failing != "nothing")
    assert done.stderr.count(": passed") == (3 if failing in ("nothing", "-m pytest") else 2)
    assert done.stdout == ("ground of failure\n" if failing == "-m pytest" else "3 passed\n")


@needs_make
@pytest.mark.parametrize(("ci", "status", "said"), [("", 0, "ruff: skipped"), ("true", 2, "ruff: failed")])
def test_a_missing_linter_is_skipped_but_not_in_ci(ci: str, status: int, said: str, tree: Path) -> None:
    command(tree / "bin/python3", "exit 0")
    command(tree / ".venv/bin/python", 'case "$*" in *ruff*) exit 1;; esac')
    done = call_make(tree, "lint", f"CI={ci}", path=f"{tree}/bin:{os.environ['PATH']}")
    assert done.returncode == status
    assert said in done.stdout


@pytest.mark.parametrize(
    ("builds", "called"),
    [
        ("2.13.0+cpu, 2.100.0+cpu, 2.11.0+cpu, ", "pip install torch==2.100.0+cpu"),
        ("2.11.0+cpu, 2.13.0+cu130, ", "pip install torch==2.11.0+cpu"),
        ("", "/bin/uv pip install --compile-bytecode --torch-backend cpu torch>=2.11"),
    ],
)
def test_without_a_driver_no_cuda_is_fetched(builds: str, called: str, script: Any) -> None:
    script.listing = LISTING.format(builds)
    script.install_torch("torch>=2.11")
    assert script.calls[-1] == called
    script.fails = (called,)
    with pytest.raises(RuntimeError):
        script.install_torch("torch>=2.11")
    assert script.calls[-1] == called


@pytest.mark.parametrize("trace", ["/proc/driver/nvidia", "nvidia-smi", "libcuda.so.1", None])
def test_any_trace_of_a_driver_is_seen(trace: str | None, monkeypatch: pytest.MonkeyPatch, plain: Any) -> None:
    load = plain.ctypes.CDLL
    with monkeypatch.context() as patch:
        patch.setattr(plain.ctypes, "CDLL", lambda name: name if name == trace else load("none.so"))
        patch.setattr(plain.shutil, "which", lambda name: name if name == trace else None)
        patch.setattr(Path, "exists", lambda path: str(path) == trace)
        found = plain.has_nvidia_driver()
    assert found == (trace is not None)


def test_a_driver_or_a_choice_gets_what_is_named(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "has_nvidia_driver", lambda: True)
    script.install_torch("torch>=2.11")
    assert script.calls[-1] == "/bin/uv pip install --compile-bytecode torch>=2.11"
    monkeypatch.setenv("KGBENCH_TORCH", "torch==2.12.0 --no-deps")
    script.install_torch("torch==2.12.0 --no-deps")
    assert script.calls[-1] == "pip install torch==2.12.0 --no-deps"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("echo 2.11.0+cu130; echo import site", "used as it is"),
        ("echo 2.14.0a0+nv26.11; echo import site", "used as it is"),
        ("echo 2.10.0; echo import site", "another torch is installed: that of"),
        ("echo 'ImportError: libcudart.so' >&2; exit 1", "ImportError"),
        ("echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1", ""),
    ],
)
def test_a_torch_that_imports_and_is_new_enough_is_lent(
    answer: str, said: str, tree: Path, plain: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(plain.sys, "executable", command(tree / "python", answer))
    assert plain.importable_torch("torch>=2.11") == ("import site\n" if said == "used as it is" else "")
    output = capsys.readouterr().err
    assert said in output if said else not output


def test_a_torch_is_lent_with_the_folders_it_lies_in(tree: Path, plain: Any) -> None:
    packages = tree / "lib/site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch/__init__.py").write_text("__version__ = '2.13.0'")
    code = f"import sys; sys.path.insert(0, {str(packages)!r})\n{plain.ASK_TORCH}"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.splitlines()[:2] == ["2.13.0", f"import site; site.addsitedir({str(packages)!r})"]


def test_pip_installs_where_uv_fails_or_knows_less(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    by_uv, by_pip = "/bin/uv pip install --compile-bytecode a>=1", "pip install a>=1"
    for fails, installed in (((), by_uv), (("/bin/uv",), by_pip), ((), by_uv)):
        script.fails = fails
        script.install("a>=1")
        assert script.calls[-1] == installed
    with monkeypatch.context() as patch:
        patch.setattr(script, "run", lambda *line: script.calls.append(line) or "global.index-url='file:///mirror'")
        script.install("a>=1")
    assert script.calls.pop() == (*script.PIP, "install", "a>=1")
    script.BORROWED.parent.mkdir(parents=True)
    script.BORROWED.touch()
    script.install("a>=1")
    assert script.calls[-1] == by_pip


def test_the_demo_has_what_the_documents_commands_need(script: Any) -> None:
    script.install_all(PYPROJECT, dev=False)
    assert script.calls[-1] == f"pip install --no-build-isolation --no-deps --editable {script.ROOT}"
    names = {text.partition(">")[0] for text in script.calls[-2].split()}
    assert names > {"expecttest", "vl-convert-python", "pyarrow", "ninja", "setuptools", "scipy-openblas32", "numpy"}
    assert names.isdisjoint({"torch", "pytest", "anthropic", "vllm"})


def test_only_a_machine_with_a_driver_does_without(script: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    script.fails = ("openblas", "ruff")
    with pytest.raises(RuntimeError):
        script.install_all(PYPROJECT, dev=True)
    monkeypatch.setattr(script, "has_nvidia_driver", lambda: True)
    script.install_all(PYPROJECT, dev=True)
    needed = {text.partition(">")[0] for text in script.calls[-2].split()}
    assert needed > {"pytest-xdist", "numpy", "triton"}
    wished = {text.partition(">")[0] for text in script.calls[-3].split()} - needed
    assert wished > {"expecttest", "mypy", "anthropic", "playwright", "scipy-openblas32"}
    assert "some packages are missing" in capsys.readouterr().err


def test_a_failed_command_is_shown_with_its_output(tree: Path, plain: Any, monkeypatch: Any, capsys: Any) -> None:
    failing = command(tree / "pip", "echo 'Downloading a.whl (286.4 MB)'; echo 'b: No space left' >&2; exit 1")
    with pytest.raises(RuntimeError, match=r"this failed: .*/pip x\n  Downloading a.whl .*\n  b: No space left$"):
        plain.run(failing, "x")
    assert "Downloading a.whl (286.4 MB)" in capsys.readouterr().err
    monkeypatch.setenv("PIP_TARGET", "elsewhere")
    monkeypatch.setenv("PIP_CERT", "kept")
    assert plain.run(command(tree / "pip", 'echo "$PIP_TARGET$PIP_CERT"')) == "kept"


def test_what_is_finished_is_not_made_again(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(name: str) -> tuple[int, int]:
        """How often .venv was made from nothing, and how often kgbench was installed."""
        script.calls.clear()
        assert script.main([name]) == (3 if script.fails else 0)
        return tuple(sum(option in called for called in script.calls) for option in ("--without-pip", "--editable"))

    monkeypatch.setattr(script, "importable_torch", lambda torch: "import site\n")
    assert made("demo") == (1, 1)
    assert script.BORROWED.read_text() == "import site\n"
    assert "torch" not in " ".join(script.calls)
    monkeypatch.setattr(script, "importable_torch", lambda torch: "")
    script.STAMP.unlink()
    assert [made("demo"), made("demo"), made("dev"), made("demo")] == [(1, 1), (0, 0), (0, 1), (0, 0)]
    monkeypatch.setenv("KGBENCH_TORCH", "torch==2.12.0")
    assert [made("dev"), made("dev")] == [(1, 1), (0, 0)]
    command(Path(script.PYTHON), "exit 1")  # the Python below is gone, or a torch that was borrowed
    assert made("dev") == (1, 1)
    script.STAMP.unlink()
    script.fails = ("--editable",)
    assert [made("dev"), made("dev")] == [(1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("this failed: uv\n  Connection refused", "KGBENCH_TORCH='torch=="),
        ("No space left on device", "free some disk"),
    ],
)
def test_without_the_torch_that_fits_another_may_be_chosen(
    said: str, advice: str, plain: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(dev: bool) -> None:
        raise plain.NoTorch(said)

    monkeypatch.setattr(plain, "prepare", fail)
    assert plain.main(["dev"]) == 3
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (RuntimeError("this failed: pip\n  OSError: [Errno 28] No space left on device"), "free some disk"),
        (RuntimeError("Temporary failure in name resolution"), "no package index answers"),
        (RuntimeError("(from versions: none)\nERROR: No matching distribution found"), "no package index answers"),
        (RuntimeError("ERROR: No matching distribution found for x"), "PYTHON=python3.11"),
        (RuntimeError("No module named ensurepip"), "apt install python3-venv"),
        (PermissionError(13, "Permission denied"), "clone it where you may write"),
        (KeyboardInterrupt(), None),
    ],
)
def test_a_failure_names_the_next_step(
    error: BaseException, advice: str | None, plain: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(dev: bool) -> None:
        raise error

    monkeypatch.setattr(plain, "prepare", fail)
    assert plain.main(["demo"]) == (3 if advice else 130)
    said = capsys.readouterr().err
    assert advice in said.splitlines()[-1] and str(error) in said if advice else not said
    assert plain.main(["dmo"]) == 2


def test_a_second_make_waits_for_the_first(tree: Path) -> None:
    (tree / "pyproject.toml").unlink()  # what the second one fails for when its turn comes
    line = [sys.executable, str(tree / "scripts/environment.py"), "demo"]
    with (tree / "scripts/environment.py").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr is not None
            assert second.stderr.readline() == "kgbench: waiting for another make in this folder\n"
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert "pyproject.toml" in second.stderr.read()
    assert second.returncode == 3
