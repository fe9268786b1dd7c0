"""What pyproject.toml promises, and what may not stand in the tree."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kgbench
from kgbench.cli.main import COMMANDS
from kgbench.cli.selftest import PARTS

ROOT = Path(__file__).resolve().parents[2]
LINKS = ("harness", "baselines")
"""Links at the top, for readers; nothing depends on them."""
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tracked_files() -> list[Path]:
    """Files of the project; a tree without git (an unpacked archive) is walked."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    rooms = ("kgbench", "problems", "tests", "docs", "scripts", "benchmarks", ".ci")
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder, _, names in (entry for room in rooms for entry in os.walk(ROOT / room)):
        if not folder.endswith("__pycache__"):
            found += [Path(folder, name) for name in names]
    return found


# --- the package -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINKS)
def test_links_at_the_top_lead_into_the_package(name: str) -> None:
    link = ROOT / name
    if not link.is_symlink():
        assert link.read_text(encoding="utf-8").strip() == f"kgbench/{name}"  # as a clone without symbolic links has it
        return
    assert link.readlink() == Path("kgbench", name)
    assert link.resolve().is_dir()


def test_importing_kgbench_loads_nothing_heavy() -> None:
    heavy = ("torch", "triton", "numpy", "pandas", "rich", "yaml")
    code = f"import sys, kgbench; print([m for m in {heavy!r} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_base_dependencies_have_lower_bounds_only_and_leave_torch_alone() -> None:
    for requirement in PYPROJECT["project"]["dependencies"]:
        text = requirement.split(";")[0]
        assert re.fullmatch(r"[a-z0-9-]+>=[\d.]+", text.strip()), requirement
        assert not text.startswith(("torch", "vllm", "cupy", "cuda"))


def test_triton_is_for_linux_only() -> None:
    (triton,) = [text for text in PYPROJECT["project"]["dependencies"] if text.startswith("triton")]
    assert triton.endswith("; sys_platform == 'linux'")


def test_extras_of_the_readme_exist() -> None:
    extras = {"torch", "cuda12", "cuda13", "cpp", "vllm", "mcp", "models", "opinfo", "page", "parquet", "ray", "serve",
              "transformers"}  # fmt: skip
    assert set(PYPROJECT["project"]["optional-dependencies"]) == extras


def test_changelog_top_version_is_the_packages() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[?([^\]\s]+)", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1] == kgbench.__version__


def test_version_stands_in_one_place() -> None:
    assert "version" not in PYPROJECT["project"]
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "kgbench.__version__"}


# --- the tree --------------------------------------------------------------------------------------------------------

# Written in pieces, so that this file does not hold what it looks for.
FORBIDDEN = {
    "the host of a package index": r"py" + r"pi\.org|python" + r"hosted\.|download\.py" + r"torch|--index" + r"-url",
    "a path of one machine": r"/(?:ro" + r"ot|ho" + r"me/[a-z]+|Us" + r"ers/[A-Za-z]+)/|/wo" + r"rk/(?:main|shared)",
    "a secret": r"sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_tracked_files_hold_no(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {what}: {match[0]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("the host of a package index", "see https://py" + "pi.org/simple"),
        ("the host of a package index", "pip install --index" + "-url x"),
        ("a path of one machine", "cd /wo" + "rk/main && ls"),
        ("a path of one machine", "open('/ro" + "ot/x')"),
        ("a secret", "key = 'sk-" + "a" * 24 + "'"),
    ],
)
def test_the_patterns_find_what_they_are_for(what: str, line: str) -> None:
    assert re.search(FORBIDDEN[what], line)


def test_nothing_is_tracked_that_a_build_makes() -> None:
    made = (".venv", "build", "dist", "__pycache__", "runs", ".mypy_cache")
    assert not [path for path in tracked_files() if set(path.relative_to(ROOT).parts) & set(made)]


def test_the_contract_between_commands_names_all_of_them() -> None:
    contracts = {each["name"]: each for each in PYPROJECT["tool"]["importlinter"]["contracts"]}
    targets = [*COMMANDS.values(), *PARTS.values()]
    assert set(contracts["No command imports another"]["modules"]) == {each.partition(":")[0] for each in targets}


def test_modules_and_functions_stay_short() -> None:
    """At most 400 lines a module and 50 a function; candidates are no modules of ours."""
    modules = [path for path in (ROOT / "kgbench").rglob("*.py") if not {"examples", "files"} & set(path.parts)]
    assert len(modules) > 200
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in modules}
    functions = [
        (path, node.name, (node.end_lineno or 0) - node.lineno + 1)
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [path for path, text in texts.items() if len(text.splitlines()) > 400] == []
    assert [each for each in functions if each[2] > 50] == []
