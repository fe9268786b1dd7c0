"""The files of a package that pip installs: kernels, their table, and the modules of ``runtime``. Torch-free."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kgbench.backend.choose import Chosen, LeftOut, entries_of, left_out_lines, parameters_of
from kgbench.backend.runtime.table import FILE
from kgbench.core.errors import UsageError, shown_path
from kgbench.core.figures import ratio_text
from kgbench.core.text import number_of, plain
from kgbench.store.reader import StoredRun

_RUNTIME: Final = Path(__file__).parent / "runtime"
_PUBLIC: Final = "public.py"
"""The module that becomes the package's ``__init__.py``."""
_PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{distribution}"
version = "{version}"
description = "Kernels that kgbench judged as correct, in place of PyTorch's own"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["torch>=2.11", "triton>=3.3; sys_platform == 'linux'"]

[tool.setuptools]
packages = ["{package}", "{package}.kernels"]

[tool.setuptools.package-data]
"{package}" = ["{table}"]
"""


def package_name(folder: Path) -> str:
    """The package's import name: the folder's name. Raises UsageError where that is no Python name."""
    name = folder.resolve().name.replace("-", "_")
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        words = f"--backend {folder}: '{name}' cannot be imported; name a folder such as my_backend"
        raise UsageError("KGB196", words)
    return name


def check_folder(folder: Path) -> None:
    """Raises UsageError where the folder holds anything."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        words = f"--backend {shown_path(folder)}: there is something already; name a new folder, or empty this one"
        raise UsageError("KGB196", words)


def package_files(
    name: str, runs: Sequence[StoredRun], chosen: Sequence[Chosen], left: Iterable[LeftOut]
) -> Mapping[str, str]:
    """Text by path below the folder."""
    files = {
        "README.md": readme(name, runs, chosen, left),
        "pyproject.toml": _PYPROJECT.format(
            distribution=name.replace("_", "-"), version=_version(runs), package=name, table=FILE
        ),
        f"{name}/{FILE}": json.dumps(table(runs, chosen), indent=1) + "\n",
        f"{name}/kernels/__init__.py": '"""The kernels, one module per text that was judged."""\n',
    }
    for path in sorted(_RUNTIME.glob("*.py")):
        if path.name != "__init__.py":
            target = "__init__.py" if path.name == _PUBLIC else path.name
            files[f"{name}/{target}"] = path.read_text(encoding="utf-8")
    files |= {f"{name}/kernels/{_module(each)}.py": each.judgement.text for each in chosen}
    return files


def table(runs: Sequence[StoredRun], chosen: Sequence[Chosen]) -> dict[str, Any]:
    """What ``runtime/table.py`` reads, and beside it where each kernel comes from."""
    facts = _device(runs)
    return {
        "kgbench": _judge(runs),
        "device": {
            "kind": facts["kind"],
            "name": facts["name"],
            "interpreted": any(each.judgement.result.interpreted for each in chosen),
        },
        "versions": facts.get("versions", {}),
        "operators": [_row(each) for each in chosen],
    }


def _row(chosen: Chosen) -> dict[str, Any]:
    result, problem = chosen.judgement.result, chosen.judgement.problem
    return {
        "source": problem.source,
        "name": chosen.operator,
        "module": _module(chosen),
        "entries": entries_of(chosen),
        "parameters": parameters_of(chosen.overload),
        "returned": chosen.overload.returned_argument,
        "deterministic": result.deterministic is True,
        "from": {
            "run": chosen.judgement.run.path.name, "problem": problem.id, "model": result.model,
            "sample": result.sample, "round": result.round, "sha256": result.candidate_sha256,
            "problem_sha256": result.problem_sha256,
            "speedup": None if chosen.speed is None else [chosen.speed.point, chosen.speed.low, chosen.speed.high],
        },
        "judged_calls": chosen.calls,
        "judged": dict(chosen.table),
    }  # fmt: skip


def _module(chosen: Chosen) -> str:
    """The module's name; with the text's hash where a problem has two texts, as two overloads may."""
    result = chosen.judgement.result
    return f"{result.problem.replace('/', '_')}_{result.candidate_sha256[:8]}"


def _device(runs: Sequence[StoredRun]) -> Mapping[str, Any]:
    """Raises UsageError where no run says on what it was made."""
    found = next((facts for run in runs if (facts := run.info.get("device"))), None)
    if not found or not found.get("kind"):
        raise UsageError("KGB195", "the run does not say which device its kernels were judged on; judge them again")
    return found  # type: ignore[no-any-return]


def _judge(runs: Sequence[StoredRun]) -> str:
    """kgbench's version in the runs."""
    return ", ".join(sorted({str(run.info.get("kgbench") or "of unknown version") for run in runs}))


def _version(runs: Sequence[StoredRun]) -> str:
    """The day on which the newest run was started: 2026.1.31."""
    days = [str(run.info.get("started") or "")[:10] for run in runs]
    parts = max(days).split("-")
    return ".".join(str(int(part)) for part in parts) if all(map(str.isdigit, parts)) and len(parts) == 3 else "0"


def readme(name: str, runs: Sequence[StoredRun], chosen: Sequence[Chosen], left: Iterable[LeftOut]) -> str:
    """What is in the package, from which run, and what is not."""
    facts = _device(runs)
    versions = ", ".join(f"{what} {version}" for what, version in facts.get("versions", {}).items() if version)
    lines = [
        f"# {name}",
        "",
        f"{number_of(len(chosen), 'kernel')} that kgbench {_judge(runs)} judged as correct on {facts['name']}"
        + (f" ({versions})" if versions else "")
        + ", in place of PyTorch's own.",
        "",
        "```python",
        f"import {name}",
        "",
        f"with {name}.enabled():",
        "    model(x)",
        f"print({name}.calls())  # per operator how often a kernel ran, how often the library, and why",
        "```",
        "",
        f"`pip install .` in this folder installs it; it needs torch and triton. A kernel is called only in the calls "
        f"that it was judged in: `{name}/{FILE}` has them. All others go to the library.",
        "",
        "| operator | kernel of | judged calls | speedup there |",
        "|---|---|---|---|",
        *(_readme_row(each) for each in chosen),
        "",
        "Runs: " + ", ".join(plain(run.path.name) for run in runs),
    ]
    if lefts := list(left_out_lines(left)):
        lines += ["", "Left out:", "", *(f"- {plain(line)}" for line in lefts)]
    return "\n".join(lines) + "\n"


def _readme_row(chosen: Chosen) -> str:
    speed, result = chosen.speed, chosen.judgement.result
    words = "not known" if speed is None else f"{ratio_text(speed.point)}x [{ratio_text(speed.low)}, "
    words += "" if speed is None else f"{ratio_text(speed.high)}]"
    return f"| `{chosen.operator}` | {plain(result.model)}, {result.problem} | {chosen.calls} | {words} |"
