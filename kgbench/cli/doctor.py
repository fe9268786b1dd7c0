"""``kgbench doctor``: what runs on this machine, what does not, and what would help. Imports no torch; child processes
do.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import kgbench
from kgbench.cli.advice import SYSCTLS, Circumstances, package_advice, sandbox_advice
from kgbench.cli.options import check_machine, device_option, json_option, problem_dir_option
from kgbench.core.errors import MachineError
from kgbench.core.kinds import DeviceKind
from kgbench.core.paths import IMPORT_ROOT
from kgbench.harness.machine import visible

if TYPE_CHECKING:
    from kgbench.problem.model import Problem

CANNOT: Final = MachineError.exit_code
LOAD_S: Final = 180.0
"""Seconds that loading one library may take."""
_LIBRARIES: Final = {"aten": "ATen", "cublas": "cuBLAS", "openblas": "OpenBLAS", "vllm": "vLLM"}
_PACKAGES: Final = ("torch", "triton", "numpy", "vllm", "cupy-cuda12x", "cupy-cuda13x", "scipy-openblas32")
_LANGUAGES: Final = {
    "Triton": "import triton",
    "CUDA by cupy": "import cupy",
    "C++ by load_inline": "from torch.utils.cpp_extension import load_inline\nload_inline('k', cpp_sources='k')",
    "CUDA by load_inline": "from torch.utils.cpp_extension import load_inline\nload_inline('k', '', cuda_sources='k')",
}
"""Languages of kernels, each with the shortest text that uses it."""
_CONTAINER_MARKS: Final = ("/.dockerenv", "/run/.containerenv")
_TAIL: Final = 300
"""Characters quoted from the end of a failed process's output."""

EPILOG: Final = """
\b
Exit codes: 0 the examples can run here, 2 wrong command line, 3 nothing can.
"""


@click.command(
    epilog=EPILOG, short_help="Report what runs on this machine.", context_settings={"max_content_width": 110}
)
@problem_dir_option
@device_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, metavar="DIR",
    help="Where runs would be kept.",
)  # fmt: skip
@json_option
def doctor(problem_dirs: tuple[Path, ...], device: str, out: Path, as_json: bool) -> None:
    """Say what runs here: devices, libraries, how many of the problems, the sandbox, and how to get the rest.

    Starts the processes that judge, once, and loads each library in a process of its own. It takes some seconds.
    """
    from kgbench.problem.registry import Registry, load_problem, problem_folders

    registry = Registry(problem_folders(problem_dirs))
    problems = [load_problem(path) for path in registry.paths.values()]
    found = examine(problems, device, out)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # an ellipsis must not end it in ASCII
        for line in screen(found):
            click.echo(line)
    sys.exit(0 if found["ready"] else CANNOT)


def examine(problems: Sequence[Problem], device: str, out: Path) -> dict[str, Any]:
    """All findings, JSON-ready."""
    from kgbench.evaluation.coordinator import installed_versions
    from kgbench.harness.machine.devices import nvidia_gpus

    facts, why_not = _facts(device)
    kind = facts.get("kind", "cpu")
    versions = {**installed_versions(_PACKAGES), **facts.get("versions", {})}
    answers = _ask_libraries(problems, facts) if facts else {}
    libraries = library_rows(answers)
    missing = {row["name"]: row["reason"] for row in libraries if not row["library"]}
    advice = package_advice(kind, versions, missing)
    return {
        "ready": bool(facts),
        "why_not": why_not,
        "kgbench": kgbench.__version__,
        "system": platform.platform(),
        "python": {"version": platform.python_version(), "path": sys.executable},
        "versions": versions,
        "gpus": [
            {"name": gpu.name, "uuid": gpu.uuid, "memory_gb": gpu.memory_gb, "driver": gpu.driver}
            for gpu in nvidia_gpus()
        ],
        "device": facts or None,
        "libraries": libraries,
        "problems": problem_rows(problems, answers, kind),
        "languages": language_rows(kind, versions.get("cuda")) if facts else [],
        "sandbox": sandbox_rows(facts.get("sandbox", {}), facts.get("sandbox_open", ()), _circumstances()),
        "models": model_rows(),
        "results": results_folder(out),
        "advice": [{"what": what, "how": how} for what, how in advice],
    }


def library_rows(answers: Mapping[str, tuple[str, str]]) -> list[dict[str, str]]:
    """Per library its name with version, or the first reason why it is not here. ``answers`` is by target."""
    rows = []
    for prefix, name in _LIBRARIES.items():
        own = [answer for target, answer in answers.items() if target.startswith(f"{prefix}:")]
        if own:
            library, reason = next((answer for answer in own if answer[0]), own[0])
            rows.append({"name": name, "library": library, "reason": reason})
    return rows


def problem_rows(
    problems: Sequence[Problem], answers: Mapping[str, tuple[str, str]], kind: str
) -> dict[str, dict[str, Any]]:
    """Per source: how many problems, how many with a library on this kind of device, and the reasons of the others."""
    rows: dict[str, dict[str, Any]] = {}
    for problem in problems:
        row = rows.setdefault(problem.source, {"problems": 0, "with_library": 0, "without": {}})
        row["problems"] += 1
        reason = _why_no_library(problem, answers, kind)
        if reason:
            row["without"].setdefault(reason, []).append(problem.id)
        else:
            row["with_library"] += 1
    return rows


def language_rows(kind: str, cuda: str | None) -> list[dict[str, str]]:
    """Per language what is missing before a kernel in it can be judged here; compilers, above all."""
    from kgbench.core.details.sentences import words_of
    from kgbench.harness.machine.languages import lacking, machine_of

    machine = machine_of(DeviceKind(kind), cuda)
    found = {name: lacking(source, machine) for name, source in _LANGUAGES.items()}
    return [{"name": name, "lacking": "" if what is None else words_of(what)} for name, what in found.items()]


def model_rows() -> list[dict[str, str]]:
    """Models by short name: whom it asks, and what is missing for that; no request is sent."""
    from kgbench.core.errors import KgbenchError
    from kgbench.llm.aliases import aliases
    from kgbench.llm.conversation import ModelClient
    from kgbench.models.provider import provider_of

    rows = []
    for name, meant in aliases().items():
        lacking = ""
        try:
            found = provider_of(name)
            if isinstance(found, ModelClient):
                found.ready()
        except KgbenchError as error:
            lacking = str(error).partition("\n")[0]
        rows.append({"name": name, "asks": meant, "lacking": lacking})
    return rows


def sandbox_rows(states: Mapping[str, str], missing: Collection[str], machine: Circumstances) -> list[dict[str, Any]]:
    """Per protection its state here and, where something of it is ``missing``, what would help."""
    return [
        {
            "name": name,
            "state": state,
            "open": name in missing,
            "help": sandbox_advice(name, machine) if name in missing else "",
        }
        for name, state in states.items()
    ]


def results_folder(out: Path) -> dict[str, Any]:
    """The results folder: its path, whether it can be written, and its free space. Nothing is created."""
    existing = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    return {
        "path": str(out),
        "writable": existing.is_dir() and os.access(existing, os.W_OK | os.X_OK),
        "free_gb": round(shutil.disk_usage(existing).free / 1e9, 1),
    }


def screen(found: Mapping[str, Any]) -> Iterable[str]:
    """The findings as lines."""
    yield f"kgbench {found['kgbench']}, Python {found['python']['version']} ({found['python']['path']})"
    yield f"system     {found['system']}"
    yield f"versions   {', '.join(f'{name} {value}' for name, value in found['versions'].items() if value)}"
    for gpu in found["gpus"]:
        yield f"GPU        {gpu['name']}, {gpu['memory_gb']:.0f} GB, driver {gpu['driver']}, {gpu['uuid']}"
    if not found["gpus"]:
        yield "GPU        none: Triton kernels run in its interpreter; only correctness is judged, speed means nothing"
    if found["device"]:
        yield f"judged on  {found['device']['name']} ({found['device']['kind']})"
    results = found["results"]
    state = f"{results['free_gb']} GB free" if results["writable"] else "NOT WRITABLE: give run another --out DIR"
    yield f"results    {results['path']}, {state}"
    yield from _part("libraries", _library_lines(found["libraries"]))
    yield from _part("problems with a library to compare with", _problem_lines(found["problems"]))
    yield from _part("languages of kernels (docs/languages.md)", _language_lines(found["languages"]))
    yield from _part("sandbox", _sandbox_lines(found["sandbox"]))
    yield from _part("models to ask (others: docs/models.md; agents: docs/agents.md)", _model_lines(found["models"]))
    yield from _part("to get the rest", (f"{each['what']}: {each['how']}" for each in found["advice"]))
    yield ""
    if found["ready"]:
        yield "The examples can run here: kgbench run --model examples"
    else:
        yield f"Nothing can run here: {found['why_not']}"


def _part(title: str, lines: Iterable[str]) -> Iterable[str]:
    indented = [f"  {line}" for line in lines]
    if indented:
        yield from ("", title, *indented)


def _language_lines(rows: Sequence[Mapping[str, str]]) -> Iterable[str]:
    for row in rows:
        yield f"{row['name']:<20} {'no: ' + row['lacking'] if row['lacking'] else 'yes'}"


def _model_lines(rows: Sequence[Mapping[str, str]]) -> Iterable[str]:
    for row in rows:
        yield f"{row['name']:<9} {row['asks']}: {'no: ' + row['lacking'] if row['lacking'] else 'can be asked'}"


def _library_lines(rows: Sequence[Mapping[str, str]]) -> Iterable[str]:
    for row in rows:
        yield f"{row['name']:<9} {row['library'] or 'no: ' + row['reason']}"


def _problem_lines(rows: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for source, row in rows.items():
        yield f"{source:<9} {row['with_library']} of {row['problems']}"
        for reason, ids in row["without"].items():
            yield f"          {len(ids)} without: {reason}"


def _sandbox_lines(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for row in rows:
        yield f"{row['name']:<13} {row['state']}"
        if row["help"]:
            yield f"{'':<13} helps: {row['help']}"


def _facts(device: str) -> tuple[Mapping[str, Any], str]:
    """(a session's facts, ""), or (nothing, why kernels cannot run here)."""
    try:
        check_machine()
        from rich.console import Console

        from kgbench.core.interruption import ended_by_signals
        from kgbench.evaluation.coordinator import opened
        from kgbench.harness.session.session import Session, Settings

        with ended_by_signals(), opened(Session(Settings(device=device)), Console(stderr=True)) as session:
            return dict(session.facts), ""
    except MachineError as error:
        return {}, error.printed


def _ask_libraries(problems: Sequence[Problem], facts: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """(library, reason) per target of any device kind: each says itself why it is not for this one."""
    targets = {target: None for problem in problems for each in problem.overloads for target in each.baseline.values()}
    root = str(IMPORT_ROOT)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
        **visible.only(str(facts.get("uuid", ""))),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-P", "-m", "kgbench.torchtools.library_check"]
    asked = json.dumps({"device_kind": facts["kind"], "targets": list(targets)})
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, env=environment, timeout=LOAD_S, check=False
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(targets, ("", f"loading the libraries took over {LOAD_S:g} s"))
    return read_answers(
        list(targets), done.stdout, f"ended with code {done.returncode}: {done.stderr[-_TAIL:].strip()}"
    )


def read_answers(targets: Sequence[str], output: str, ending: str) -> dict[str, tuple[str, str]]:
    """(library, reason) per target; whatever the process did not come to has its ending as the reason."""
    answers = dict.fromkeys(targets, ("", f"not known: the process that loads libraries {ending}"))
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            message = json.loads(line)
            answers[message["target"]] = (message["library"], message["reason"])
    return answers


def _why_no_library(problem: Problem, answers: Mapping[str, tuple[str, str]], kind: str) -> str:
    targets = [overload.baseline.get(kind) for overload in problem.overloads if overload.required]
    if not all(targets):
        return f"the problem names no library for device {kind}"
    if not answers:
        return "not known: nothing can run here"
    return next((answers[target][1] for target in targets if target and not answers[target][0]), "")


def _circumstances() -> Circumstances:
    sysctls = {}
    for name in SYSCTLS:
        with contextlib.suppress(OSError):
            sysctls[name] = Path("/proc/sys", *name.split(".")).read_text().strip()
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return Circumstances(root, any(Path(mark).exists() for mark in _CONTAINER_MARKS), sysctls)
