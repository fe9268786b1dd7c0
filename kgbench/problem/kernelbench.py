"""KernelBench's problems in a checkout: ``level1/1_Name.py`` with ``Model``, ``get_inputs``, ``get_init_inputs``.
Torch-free: the process ``torchtools/module_facts.py`` finds the form of a file's calls.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import UsageError, shown_path
from kgbench.core.kinds import DeviceKind, Kind
from kgbench.core.names import Name, resolve
from kgbench.core.text import number_of
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.problem.calls import parse
from kgbench.problem.expressions import Expr
from kgbench.problem.model import (
    Access,
    Argument,
    CaseTemplate,
    Draw,
    Fuzz,
    Overload,
    Parameter,
    Problem,
    ScalarArgument,
    Signature,
    TensorArgument,
    Tolerance,
)
from kgbench.problem.modules import BYTES_OF_ELEMENT, COMPILED, EAGER, ENTRY, ModuleSource
from kgbench.problem.registry import Registry, problem_folders
from kgbench.problem.suites import CHECKOUT

AGAINST: Final = {"eager": EAGER, "compile": COMPILED}
"""What candidates of a module may be timed beside, by the value of ``--against``."""
_LEVEL: Final = re.compile(r"level\d+$")
_FILE: Final = re.compile(r"(\d+)_(\w[\w.+-]*)\.py$")
_NUMBERED: Final = re.compile(r"(?:level_?)?(\d+)[_/](?:problem_)?(\d+)$")
"""``level1/2``, ``1/2``, ``level_1_problem_2``."""
_FACTS_S: Final = 900.0
"""Seconds in which the files of a checkout must be examined."""
_FILES_OF_PROCESS: Final = 10
"""Files that one process examines, where there are cores for several."""
_MODULE: Final = "kgbench.torchtools.module_facts"
_GPU_SHARE: Final = 0.6
"""Share of a GPU's memory that judging a timed call may take, if the batch size can be chosen: others work there."""
_CPU_ELEMENTS: Final = 1 << 22
"""Maximum number of elements of a timed call's inputs and outputs on a CPU, if the batch size can be chosen."""
_FUZZED: Final = 4
"""Largest batch size of a call that the secret seed draws."""


class Checkout(Registry):
    """The problems of a checkout, in place of kgbench's own."""

    def __init__(self, folder: Path, against: str = "eager") -> None:
        """Raises UsageError if the folder has no levels."""
        super().__init__([folder])
        self.folder = folder
        self.against = against
        self.complaints: dict[str, str] = {}
        """For each requested problem that cannot be used, the reason."""

    @cached_property
    def paths(self) -> dict[str, Path]:
        """File of every problem by id, ``level1/1_Name``, in the order of their numbers."""
        return {f"{path.parent.name}/{path.stem}": path for path in problem_files(self.folder)}

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.partition("/")[0] for each in self.paths))

    def resolve(self, spelling: str) -> Name:
        return Name(named(spelling, self.ids()) or resolve(spelling, self.ids()).id)

    def _matches(self, pattern: str, ids: list[str]) -> list[str]:
        found = named(pattern, ids)
        return [found] if found else super()._matches(pattern, ids)

    def load(self, ids: Sequence[str]) -> tuple[Problem, ...]:
        """The problems that can be used; ``complaints`` says why others cannot. Raises UsageError if none can."""
        facts = self._facts([self.paths[each] for each in ids])
        self.complaints = {each: facts[self.paths[each]]["complaint"] for each in ids}
        self.complaints = {each: words for each, words in self.complaints.items() if words}
        if ids and len(self.complaints) == len(ids):
            first, words = next(iter(self.complaints.items()))
            more = f" (nor can {number_of(len(ids) - 1, 'other')})" if len(ids) > 1 else ""
            raise UsageError("KGB138", f"{first} cannot be judged{more}: {words}")
        return tuple(
            problem_of(self.paths[each], facts[self.paths[each]], AGAINST[self.against])
            for each in ids
            if each not in self.complaints
        )

    def _facts(self, files: Sequence[Path]) -> dict[Path, Mapping[str, Any]]:
        # Each process loads torch, which takes 2 s; some files run for a minute.
        count = max(1, min(len(os.sched_getaffinity(0)), len(files) // _FILES_OF_PROCESS))
        parts = [[str(each) for each in files[first::count]] for first in range(count)]
        try:
            with ThreadPoolExecutor(count) as pool:
                answers = list(pool.map(lambda part: ask(_MODULE, part, _FACTS_S), parts))
        except NoAnswer as error:
            raise UsageError("KGB139", f"{CHECKOUT}{self.folder}: the problems' files cannot be run: {error}") from None
        return {Path(each["path"]): each for part in answers for each in part}


def checkout(name: str, against: str = "eager") -> Checkout:
    """The checkout that ``kernelbench:PATH`` names. Raises UsageError."""
    folder = Path(name.removeprefix(CHECKOUT)).expanduser()
    if not name.startswith(CHECKOUT) or name == CHECKOUT:
        raise UsageError("KGB136", f"--suite {name}: name a checkout, as in --suite kernelbench:../KernelBench")
    if not folder.is_dir():
        raise UsageError(
            "KGB136",
            f"--suite {name}: there is no folder {folder}; clone https://github.com/ScalingIntelligence/KernelBench",
        )
    found = Checkout(folder.resolve(), against)
    if not found.paths:
        raise UsageError(
            "KGB137",
            f"--suite {name}: {shown_path(folder)} is no checkout of KernelBench: neither it nor its folder "
            "KernelBench has level1 with files such as 1_Name.py",
        )
    return found


def registry_of(suite: str | None, problem_dirs: Sequence[Path | str] = (), against: str = "") -> Registry:
    """The registry of a run's problems; a checkout if the suite is one. Raises UsageError."""
    if suite is not None and suite.startswith(CHECKOUT):
        return checkout(suite, against or "eager")
    if against:
        raise UsageError("KGB141", f"--against {against} is for --suite kernelbench:PATH; leave it out")
    return Registry(problem_folders(map(Path, problem_dirs)))


def problem_files(folder: Path) -> list[Path]:
    """The files of all levels below a checkout, or below its folder of problems, by level and number."""
    numbered = []
    for place in (folder, folder / "KernelBench"):
        for level in place.iterdir() if place.is_dir() else ():
            if _LEVEL.match(level.name) and level.is_dir():
                numbered += [(int(level.name[5:]), int(match[1]), path) for path in level.iterdir()
                             if (match := _FILE.match(path.name))]  # fmt: skip
        if numbered:
            break
    return [path for _, _, path in sorted(numbered)]


def named(spelling: str, ids: Sequence[str]) -> str:
    """The id with these numbers, such as ``level1/2`` or ``level_1_problem_2``; empty without one."""
    match = _NUMBERED.match(spelling)
    begin = f"level{int(match[1])}/{int(match[2])}_" if match else ""
    return next((each for each in ids if begin and each.startswith(begin)), "")


def problem_of(path: Path, facts: Mapping[str, Any], baseline: str) -> Problem:
    """The problem in a file. ``facts``: the answer of ``module_facts`` for it."""
    text = path.read_text(encoding="utf-8")
    level, name = path.parent.name, path.stem
    summary = name.partition("_")[2].replace("_", " ").strip()
    elements, own = facts["elements"], facts["own"]
    source = ModuleSource(path.name, text, facts["batch"], min(elements.values()), elements[str(own)], own)
    overload = _overload(source, facts, baseline)
    return Problem(
        id=f"{level}/{name}", source=level, name=name, summary=summary, category=level, kind=Kind.COMPUTE,
        doc=facts["doc"] or summary, overloads=(overload,), path=path,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )  # fmt: skip


def _overload(source: ModuleSource, facts: Mapping[str, Any], baseline: str) -> Overload:
    parameters = tuple(Parameter(name, written) for name, written in facts["parameters"])
    words = ", ".join(f"{each.name}: {each.type}" for each in parameters)
    call = parse(facts["call"])

    def case(values: str, batch: int) -> CaseTemplate:
        return CaseTemplate({"values": values, **({"batch": batch} if batch else {})}, 0, call)

    sizes = facts["sizes"] or [facts["own"]]
    small = [size for size in sizes if size > 1][:2] or sizes[:1]
    check = [case("default", small[0]), case("centred", small[-1]), case("wide", small[0])]
    check += [case("default", size) for size in sizes if size not in small]
    batches = [size for size in sizes if size <= _FUZZED]
    fuzz = Fuzz(2, {"values": {"choice": ["default", "centred"]}, "batch": {"choice": batches}}, (), call)
    return Overload(
        name="", required=True, reason="",
        signature=Signature(ENTRY, parameters, "Tensor", f"{ENTRY}(...)({words}) -> Tensor"),
        arguments=tuple(map(_argument, parameters)), variables={}, defaults={}, dtypes=("float32",), optional_dtypes=(),
        check=tuple(check), fuzz=fuzz if facts["batch"] and batches else None, bench=_bench(facts, case),
        baseline=dict.fromkeys(DeviceKind, baseline), fallback=None, reference="", prepare=None,
        tolerance=Tolerance("rounding", ulps=16.0), cost=None, alias=None, equivalent={}, module=source,
    )  # fmt: skip


def _argument(parameter: Parameter) -> Argument:
    if parameter.type.startswith("Tensor"):
        drawn = {"default": Draw("zeros")}
        return TensorArgument(parameter.name, Access.READ, None, Expr.parse("dtype"), draw=drawn)
    return ScalarArgument(parameter.name, Expr.parse("None"), is_default=True)


def _bench(facts: Mapping[str, Any], case: Any) -> dict[str, tuple[CaseTemplate, ...]]:
    """The call that a device of each preset times, with the largest batch size that its memory holds."""
    presets = {f"gpu{size}": (_GPU_SHARE * size * 1e9, size * 1e9) for size in (24, 80, 140)}
    presets["cpu"] = (_CPU_ELEMENTS * BYTES_OF_ELEMENT, _CPU_ELEMENTS * BYTES_OF_ELEMENT)
    return {preset: (case("default", _timed_batch(facts, *limits)),) for preset, limits in presets.items()}


def _timed_batch(facts: Mapping[str, Any], shared_bytes: float, all_bytes: float) -> int:
    """The file's own batch size, halved until ``shared_bytes`` hold the call with what judging takes.

    Some files, such as a loss that multiplies [n, m] by [n], work only where the batch size is n = m or 1. They keep
    their own where ``all_bytes`` hold it, and else get the largest other size that works.
    """
    own: int = facts["own"]
    least = min(facts["sizes"], default=own)
    needed = BYTES_OF_ELEMENT * facts["elements"][str(own)]
    if not facts["halved"]:
        return own if needed <= all_bytes else max(facts["sizes"], default=own)
    batch = own
    while batch > max(least, 1) and needed * batch / own > shared_bytes:
        batch = max(batch // 2, least)
    return batch
