"""kgbench runs from a wheel made of its sdist, from an editable install and from a checkout without symbolic links."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml

import kgbench
from kgbench.problem.registry import Registry
from tests.unit.test_package import PYPROJECT, ROOT, tracked_files

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("install")]

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
OFFLINE = ["--no-deps", "--no-build-isolation", "--no-index", "-q"]
LIST = """
import json, site, sys
{place}
sys.path += json.loads(sys.argv[1])
import kgbench
from kgbench.cli.main import main
print(kgbench.__file__)
main(["list", "--json"], standalone_mode=False)
"""
"""Without Python's site module, so that no other kgbench of this environment is found."""


def call(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Built:
    tree: Path
    """A copy of the project, without the links at the top, as a clone on Windows has it."""
    wheel: Path
    """Made from the project's sdist."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Skips where setuptools or pip is missing or too old."""
    try:
        version = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    if int(version.split(".")[0]) < 77:
        pytest.skip(f"building a wheel needs setuptools 77 or newer, found {version}: make test installs it")
    # Not find_spec, at which setuptools turns its stand-in for distutils off for the rest of this process.
    if not any(importlib.metadata.distributions(name="pip")):
        pytest.skip("building a wheel needs pip: make test installs it")
    folder = tmp_path_factory.mktemp("ünder a space")
    tree = folder / "tree"
    for path in tracked_files():
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    program = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    call(sys.executable, "-c", program, cwd=tree)
    (sdist,) = folder.glob("*.tar.gz")
    (folder / "sdist").mkdir()
    call("tar", "xzf", str(sdist), cwd=folder / "sdist")
    (unpacked,) = (folder / "sdist").iterdir()
    call(*PIP, "wheel", *OFFLINE, "-w", str(folder), str(unpacked), cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return Built(tree, wheel)


@pytest.fixture(scope="module")
def packed(built: Built) -> set[str]:
    """Names of the files in the wheel."""
    with zipfile.ZipFile(built.wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_only_kgbench_lands_in_site_packages(packed: set[str]) -> None:
    assert {name.split("/")[0] for name in packed} == {"kgbench", f"kgbench-{kgbench.__version__}.dist-info"}


def test_wheel_carries_every_module_problem_and_example(packed: set[str]) -> None:
    folders = {"kgbench": "kgbench", "problems": "kgbench/problems"}
    wanted = {
        f"{packed_as}/{path.relative_to(ROOT / folder).as_posix()}"
        for path in tracked_files()
        for folder, packed_as in folders.items()
        if path.is_relative_to(ROOT / folder)
    }
    missing = wanted - packed
    assert {name for name in missing if not name.endswith(".md")} == set()
    assert [name for name in packed if "/problems/" in name and name.endswith(".yaml")]
    assert not [name for name in packed if "__pycache__" in name or "/tests/" in name]


def test_wheel_has_the_licence_and_the_command(packed: set[str]) -> None:
    assert [name for name in packed if name.endswith("LICENSE")]
    assert [name for name in packed if name.endswith("entry_points.txt")]
    assert PYPROJECT["project"]["scripts"] == {"kgbench": "kgbench.cli.main:main"}


@pytest.mark.parametrize("way", ["wheel", "editable", "checkout"])
def test_all_problems_are_found(built: Built, way: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    if way == "checkout":
        place = f"sys.path.insert(0, {str(built.tree)!r})"
    else:
        what = [str(built.wheel)] if way == "wheel" else ["-e", str(built.tree)]
        call(*PIP, "install", *OFFLINE, "--target", str(site), *what, cwd=tmp_path)
        place = f"site.addsitedir({str(site)!r})"
    packages = json.dumps(sorted({str(Path(module.__file__).parents[1]) for module in (click, yaml)}))
    said = call(sys.executable, "-S", "-c", LIST.format(place=place), packages, cwd=tmp_path)
    imported, _, listed = said.partition("\n")
    assert Path(imported).is_relative_to(site if way == "wheel" else built.tree)
    assert len(json.loads(listed)) == len(Registry().paths)


def test_a_checkout_runs_as_a_module(built: Built) -> None:
    """``python -m kgbench`` where nothing is installed: with what kgbench needs and without kgbench itself."""
    packages = sorted({str(Path(module.__file__).parents[1]) for module in (click, yaml)})
    program = (
        f"import runpy, sys; sys.path += {packages!r}; sys.argv = ['kgbench', 'list', '--json']; "
        "runpy.run_module('kgbench', run_name='__main__', alter_sys=True)"
    )
    assert len(json.loads(call(sys.executable, "-S", "-c", program, cwd=built.tree))) == len(Registry().paths)
