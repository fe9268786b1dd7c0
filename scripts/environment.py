"""Makes .venv, which the Makefile's targets share; returns at once where it is up to date: environment.py {demo,dev}.

Standard library only. What is installed stands in pyproject.toml; this file chooses the torch and the installer.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = str(VENV / "bin/python")
PIP = (PYTHON, "-m", "pip")
BORROWED = VENV / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/borrowed.pth"
"""Names the folders of the calling Python's packages where its torch is used."""
STAMP = VENV / "stamp.json"
"""What .venv was made from. Written last: where it is, the installation was finished."""
EXTRAS = ("cpp", "opinfo", "page", "parquet")
"""What commands in README.md and docs/ need on a machine without a GPU."""
DISK_FULL = "No space left"
NEXT_STEPS = {
    DISK_FULL: "free some disk: the environment takes 3 GB",
    "resol|onnection|unreachable|versions: none": "no package index answers: look at the network and at pip's settings",
    "No matching distribution": "no release fits this Python: try make PYTHON=python3.11",
    "ensurepip|named venv": "apt install python3-venv (for a Python beside the system's: python3.12-venv)",
    "Permission denied|Read-only": "make this folder writable, or clone it where you may write",
    "": "run the command by itself to see all that it says",
}
"""What to do, by a pattern of what Python, pip or uv said; the first one found counts."""
ASK_TORCH = """import sys, torch
folders = [folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))]
print(torch.__version__, *(f"import site; site.addsitedir({folder!r})" for folder in folders), sep="\\n")"""


class NoTorch(RuntimeError):
    """Uv did not find the torch that fits, and pip alone would take another."""

    step = "choose the torch that pip is to install: KGBENCH_TORCH='torch==2.13.0+cpu', say"


def say(text: str) -> None:
    print(f"kgbench: {text}", file=sys.stderr, flush=True)


def run(*command: str) -> str:
    """The output of an installer, which holds the lock as well; downloads of 10 MB and more are announced."""
    elsewhere = {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    environment |= {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_RETRIES": "2"}
    options: dict[str, Any] = {"cwd": ROOT, "env": environment, "close_fds": False, "text": True, "errors": "replace"}
    options |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    lines = []
    with subprocess.Popen(command, **options) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip())
            if re.search(r"Downloading .*\(\d{2,}[.\d]* ?[MG]i?B\)", line):
                say(f"  {line.strip()}")
    if process.returncode:
        raise RuntimeError("\n  ".join([f"this failed: {' '.join(command)}", *lines[-12:]]))
    return "\n".join(lines)


def install(*requirements: str, by_uv_alone: bool = False) -> None:
    """By uv, in half of pip's time; by pip where uv fails, or would pass by pip's index or what is borrowed."""
    try:
        if BORROWED.exists() or ".index-url=" in run(*PIP, "config", "list"):
            raise RuntimeError("pip alone knows the index or the packages of this machine")
        uv = shutil.which("uv") or (run(*PIP, "install", "uv") and str(VENV / "bin/uv"))
        run(uv, "pip", "install", "--compile-bytecode", "--python", PYTHON, *requirements)
    except RuntimeError as error:
        if by_uv_alone:
            raise NoTorch(str(error)) from None
        say(f"pip installs, not uv: {str(error).splitlines()[-1].strip()}")
        run(*PIP, "install", *requirements)


def release(text: str) -> tuple[int, ...]:
    """(2, 11) of ``torch>=2.11`` and of ``2.11+cpu``."""
    return tuple(map(int, re.findall(r"\d+", text.partition("+")[0])))


def newest_cpu_build(listing: str, requirement: str) -> str | None:
    """The newest version with ``+cpu`` in what ``pip index versions torch`` printed."""
    available = next((line for line in listing.splitlines() if line.startswith("Available versions:")), "")
    builds = [build for build in re.findall(r"[\w.]+\+cpu\b", available) if release(build) >= release(requirement)]
    return max(builds, key=release, default=None)


def has_nvidia_driver() -> bool:
    """A CUDA toolkit alone is none."""
    with contextlib.suppress(OSError):
        return bool(ctypes.CDLL("libcuda.so.1"))
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def importable_torch(requirement: str) -> str:
    """The lines of BORROWED where the calling Python, without PYTHONPATH, imports a torch that is new enough."""
    asked = subprocess.run([sys.executable, "-P", "-E", "-c", ASK_TORCH], capture_output=True, text=True)
    version, _, lines = asked.stdout.partition("\n")
    if asked.returncode == 0 and release(version) >= release(requirement):
        say(f"torch {version} of {sys.executable} is used as it is")
        return lines
    if "No module named 'torch'" not in asked.stderr:
        say(f"another torch is installed: that of {sys.executable} is {version or asked.stderr[-200:]}")
    return ""


def install_torch(torch: str) -> None:
    """The build that fits this machine: without an NVIDIA driver none that brings CUDA."""
    if os.environ.get("KGBENCH_TORCH"):
        run(*PIP, "install", *torch.split())
    elif sys.platform != "linux" or has_nvidia_driver():
        install(torch)
    elif cpu := newest_cpu_build(run(*PIP, "index", "versions", "torch"), torch):
        run(*PIP, "install", f"torch=={cpu}")
    else:
        install("--torch-backend", "cpu", torch, by_uv_alone=True)


def make_from_nothing(torch: str) -> None:
    """.venv with a torch, borrowed or installed."""
    borrowed = "" if os.environ.get("KGBENCH_TORCH") else importable_torch(torch)
    shutil.rmtree(VENV, ignore_errors=True)
    run(sys.executable, "-m", "venv", "--without-pip", str(VENV))
    if borrowed:
        BORROWED.write_text(borrowed)
    if subprocess.run([*PIP, "--version"], capture_output=True).returncode:
        run(PYTHON, "-m", "ensurepip")
    if not borrowed:
        say("installing torch ...")
        install_torch(torch)


def install_all(pyproject: dict[str, Any], dev: bool) -> None:
    """kgbench and what it needs. A machine with a driver, often one without a network, does without what is wished."""
    project, groups = pyproject["project"], pyproject["dependency-groups"]
    needed = [text for text in project["dependencies"] if "openblas" not in text] + (groups["test"] if dev else [])
    wished = [text for text in project["dependencies"] if text not in needed] + (groups["dev"] if dev else [])
    for name in (*EXTRAS, "mcp", "models", "ray", "serve", "transformers") if dev else EXTRAS:
        wished += project["optional-dependencies"][name]
    try:
        install(*needed, *wished)
    except RuntimeError as error:
        if not has_nvidia_driver():
            raise
        run(*PIP, "install", *needed)
        say(f"some packages are missing, `kgbench doctor` says what that costs: {str(error).splitlines()[-1].strip()}")
    run(*PIP, "install", "--no-build-isolation", "--no-deps", "--editable", str(ROOT))


def prepare(dev: bool) -> None:
    """Bring .venv up to date: from nothing where the tree, the Python or the torch is another one."""
    start, stamp = time.monotonic(), {}
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):  # unfinished, or its Python is gone
        find = "import importlib.util as util; assert all(map(util.find_spec, ('torch', 'kgbench')))"
        subprocess.run([PYTHON, "-c", find], cwd=VENV, capture_output=True, check=True)
        stamp = json.loads(STAMP.read_text())
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    torch = os.environ.get("KGBENCH_TORCH") or pyproject["project"]["optional-dependencies"]["torch"][0]
    want: dict[str, Any] = {"tree": str(ROOT), "python": f"{sys.prefix} {sys.version_info[:2]}", "torch": torch}
    keep = want.items() <= stamp.items()
    want |= {"dev": dev or (keep and stamp["dev"]), "sources": [pyproject, Path(__file__).read_text(encoding="utf-8")]}
    if want == stamp:
        return
    STAMP.unlink(missing_ok=True)
    if not keep:
        make_from_nothing(torch)
    say("installing kgbench and what it needs ...")
    install_all(pyproject, want["dev"])
    STAMP.write_text(json.dumps(want))
    say(f".venv is ready after {time.monotonic() - start:.0f} s")


def main(arguments: list[str]) -> int:
    if arguments not in (["demo"], ["dev"]):
        say("usage: environment.py {demo,dev}")
        return 2
    try:
        with Path(__file__).open() as lock:
            os.set_inheritable(lock.fileno(), True)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another make in this folder")
                fcntl.flock(lock, fcntl.LOCK_EX)
            prepare(dev=arguments == ["dev"])
    except (RuntimeError, OSError) as error:
        pattern = next(pattern for pattern in NEXT_STEPS if re.search(pattern, str(error)))
        by_error = isinstance(error, NoTorch) and pattern != DISK_FULL
        say(f"{error}\n  {error.step if by_error else NEXT_STEPS[pattern]}")
        return 3
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
