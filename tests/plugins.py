"""Packages with entry points for tests: Acme's, built and unpacked as an installer does, and small ones made up."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kgbench.core.paths import IMPORT_ROOT

ACME = Path(__file__).parent / "plugin"


def install_acme(folder: Path) -> Path:
    """Builds the wheel of ``tests/plugin`` and unpacks it into ``folder/site``. Skips where setuptools is missing."""
    if not any(importlib.metadata.distributions(name="setuptools")):
        pytest.skip("building a wheel needs setuptools: make test installs it")
    source, site = folder / "source", folder / "site"
    shutil.copytree(ACME, source, ignore=shutil.ignore_patterns("__pycache__"))
    program = f"from setuptools import build_meta; print(build_meta.build_wheel({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return site


def made_up(site: Path, name: str, version: str, **groups: str) -> None:
    """An installed package without modules; ``providers`` and ``problems`` are its entry points, a line each."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    sections = [f"[kgbench.{group}]\n{text}\n" for group, text in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(sections), encoding="utf-8")


def python(site: Path, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process that sees what is installed in ``site``."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(IMPORT_ROOT), str(site)])}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def kgbench(site: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command in such a process."""
    return python(site, "from kgbench.cli.main import main; main()", *arguments, cwd=cwd)
