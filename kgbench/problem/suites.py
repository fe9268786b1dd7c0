"""Suites: calls that a run judges in place of the cases in the problems' files. ``kgbench run --suite`` names one.

``opinfo`` and ``trace:FILE`` give calls in the trace format, by problem and overload; ``smoke`` only selects problems.
Torch-free: a process of ``kgbench/torchtools/opinfo.py`` lists PyTorch's sample inputs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import ExpressionError, UsageError
from kgbench.core.kinds import DeviceKind
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.problem.calls import DTYPES
from kgbench.problem.cases import bind, expand_cases, parsed_call
from kgbench.problem.model import CaseTemplate, Overload, Problem
from kgbench.problem.torchbench_files import Traced, read_torchbench
from kgbench.problem.trace_files import read_trace_file

SUITE_FILE: Final = "suite.json"
"""Name of the file in a run's folder with its suite's calls."""
TRACE: Final = "trace:"
CHECKOUT: Final = "kernelbench:"
"""A checkout of KernelBench. It has problems of its own (``kernelbench.py``); other suites are calls of kgbench's."""
TORCHBENCH: Final = "torchbench:"
"""A file of BackendBench's data set; its path may end in ALL."""
ALL: Final = "#all"
"""Suffix that also selects the calls which the data set excludes from its benchmark."""
TIMED_CALLS: Final = 4
"""Maximum number of timed calls per overload: those that models make most often."""
TIMED_OVERHEAD_CALLS: Final = 2
"""The same for calls whose launch takes longer than their work, which are timed besides."""
SMOKE: Final = ("aten/softmax", "vllm/rms_norm", "cublas/cublasSdot_v2")
"""For each source, the problem that is judged fastest."""
_OPINFO_S: Final = 900.0
"""Time limit in seconds for listing torch's samples."""


@dataclass(frozen=True)
class SuiteCall:
    """One call, and its count in the suite: samples that make it, or calls of a traced model."""

    call: str
    lazy: str = ""
    count: int = 1
    overhead: bool = False
    """Whether its launch takes longer than its work, according to BackendBench's data set."""
    timed: bool = False


@dataclass(frozen=True)
class Share:
    """A suite's calls for one problem."""

    problem: str
    samples: int
    """Number of samples, or lines of a trace file, that are calls of the problem."""
    used: int
    """Number of those that are judged."""
    refused: dict[str, int] = field(default_factory=dict)
    """For the rest, the number of calls by reason."""
    calls: dict[str, tuple[SuiteCall, ...]] = field(default_factory=dict)
    """Calls by the overload's name in the problem's file, each call once."""


@dataclass(frozen=True)
class Suite:
    """The calls to judge, by problem."""

    name: str
    shares: tuple[Share, ...] = ()
    missing: dict[str, int] = field(default_factory=dict)
    """Operators of a trace file without a problem, with the number of their lines."""
    excluded: dict[str, int] = field(default_factory=dict)
    """Number of calls that BackendBench's data set excludes from its benchmark, by reason."""

    def judged(self) -> frozenset[str]:
        """Problems that have calls."""
        return frozenset(share.problem for share in self.shares if any(share.calls.values()))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Suite:
        shares = (
            Share(**{**each, "calls": {name: tuple(SuiteCall(**call) for call in calls)
                                       for name, calls in each["calls"].items()}})
            for each in data["shares"]
        )  # fmt: skip
        return cls(data["name"], tuple(shares), dict(data["missing"]), dict(data.get("excluded", {})))

    @property
    def is_timed(self) -> bool:
        """Whether some of its calls are timed."""
        return self.name.startswith(TORCHBENCH)

    @property
    def most_calls(self) -> int:
        """Number of calls of the problem with the most calls."""
        return max((sum(map(len, share.calls.values())) for share in self.shares), default=0)


def check_name(name: str) -> str:
    """The suite's name; a checkout's with its absolute path. Raises UsageError if there is no such suite."""
    if name.startswith(CHECKOUT):
        return f"{CHECKOUT}{Path(name.removeprefix(CHECKOUT)).expanduser().resolve()}" if name != CHECKOUT else name
    of_file = any(name.startswith(prefix) and name != prefix for prefix in (TRACE, TORCHBENCH))
    if name not in ("opinfo", "smoke") and not of_file:
        known = "opinfo, smoke, trace:FILE, torchbench:FILE and kernelbench:PATH"
        raise UsageError("KGB131", f"there is no suite '{name}'; there are {known}")
    return name


def narrowed(name: str, ids: Sequence[str]) -> list[str]:
    """The selected problems that the suite covers."""
    if name.startswith(CHECKOUT):
        return list(ids)
    if name == "smoke":
        sources = dict.fromkeys(each.partition("/")[0] for each in ids)
        own = {source: [each for each in ids if each.startswith(f"{source}/")] for source in sources}
        return [next((each for each in SMOKE if each in of_source), of_source[0]) for of_source in own.values()]
    return [each for each in ids if each.startswith("aten/")]


def make_suite(name: str, problems: Sequence[Problem], device_kind: DeviceKind) -> Suite:
    """The suite's calls for the problems. Raises UsageError if it has none."""
    if name == "smoke":
        return Suite(name)
    suite = of_opinfo(problems, device_kind) if name == "opinfo" else of_trace(name, problems)
    if not suite.judged():
        reasons = Counter({reason: count for share in suite.shares for reason, count in share.refused.items()})
        why = f"; of what it has nothing fits: {reasons.most_common(1)[0][0]}" if reasons else ""
        raise UsageError(
            "KGB134", f"suite {name} has no call of the problems selected{why}; kgbench list --source aten"
        )
    return suite


def read_suite(run: Path) -> Suite | None:
    """The suite of a stored run; None without one. Raises UsageError if its file is damaged."""
    path = run / SUITE_FILE
    if not path.exists():
        return None
    try:
        return Suite.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError("KGB135", f"{path}: cannot be read: {error}; start a new run") from None


def of_opinfo(problems: Sequence[Problem], device_kind: DeviceKind) -> Suite:
    """PyTorch's sample inputs for these operators, in each dtype that their files name. Raises UsageError."""
    asked = [
        {
            "operator": problem.name,
            "overloads": list(_by_aten_name(problem)),
            "dtypes": [
                dtype for dtype in DTYPES.values() if any(dtype in _dtypes(each) for each in problem.judged)
            ],
        }
        for problem in problems
    ]  # fmt: skip
    try:
        answers = ask("kgbench.torchtools.opinfo", {"device_kind": device_kind, "operators": asked}, _OPINFO_S)
    except NoAnswer as error:
        answers = [{"failed": str(error)}]
    if "failed" in answers[-1]:
        raise UsageError("KGB133", f"PyTorch's sample inputs cannot be listed: {answers[-1]['failed']}")
    return Suite("opinfo", tuple(_share_of(problem, answer) for problem, answer in zip(problems, answers, strict=True)))


def _share_of(problem: Problem, answer: Mapping[str, Any]) -> Share:
    refused = Counter(answer["refused"])
    calls: dict[str, tuple[SuiteCall, ...]] = {}
    for name, overload in _by_aten_name(problem).items():
        given = [SuiteCall(each["text"], each["lazy"], each["count"]) for each in answer["calls"][name]]
        calls[overload.name], complaints = _sorted_out(overload, given)
        # An overload with out has the calls of another overload, where its samples are counted.
        refused.update({} if name in answer["derived"] else complaints)
    return Share(problem.id, answer["samples"], answer["samples"] - refused.total(), dict(refused), calls)


def of_trace(name: str, problems: Sequence[Problem]) -> Suite:
    """The calls of a trace file. Raises UsageError if it cannot be read."""
    kind = TORCHBENCH if name.startswith(TORCHBENCH) else TRACE
    everything, path = name.endswith(ALL), Path(name.removeprefix(kind).removesuffix(ALL))
    try:
        read = Traced(tuple(read_trace_file(path))) if kind == TRACE else read_torchbench(path, everything=everything)
    except OSError as error:
        raise UsageError("KGB132", f"{path}: cannot be read: {error.strerror}; give --suite {kind}FILE") from None
    except UnicodeDecodeError:
        raise UsageError("KGB132", f"{path}: cannot be read: it is not UTF-8") from None
    except ValueError as error:
        raise UsageError("KGB132", str(error)) from None
    known = {f"aten.{problem.name}.{name}": (problem, overload) for problem in problems
             for name, overload in _by_aten_name(problem).items()}  # fmt: skip
    lines: dict[str, dict[str, list[SuiteCall]]] = {}
    missing: Counter[str] = Counter()
    for each in read.calls:
        operator = each.operator if each.operator.count(".") > 1 else f"{each.operator}.default"
        if operator in known:
            problem, overload = known[operator]
            own = lines.setdefault(problem.id, {}).setdefault(overload.name, [])
            own.append(SuiteCall(each.call, "", each.count, each.overhead))
        else:
            missing[operator] += 1
    shares = tuple(_traced(problem, lines[problem.id]) for problem in problems if problem.id in lines)
    suite = Suite(name, shares, dict(missing), read.excluded)
    return replace(suite, shares=tuple(map(_with_timed_calls, shares))) if suite.is_timed else suite


def _with_timed_calls(share: Share) -> Share:
    """The share, with its timed calls marked."""
    return replace(share, calls={name: _chosen(calls) for name, calls in share.calls.items()})


def _chosen(calls: Sequence[SuiteCall]) -> tuple[SuiteCall, ...]:
    often = sorted(calls, key=lambda each: -each.count)
    chosen = [each for each in often if not each.overhead][:TIMED_CALLS]
    chosen += [each for each in often if each.overhead][:TIMED_OVERHEAD_CALLS]
    return tuple(replace(each, timed=each in chosen) for each in calls)


def _traced(problem: Problem, lines: Mapping[str, list[SuiteCall]]) -> Share:
    calls: dict[str, tuple[SuiteCall, ...]] = {}
    refused: Counter[str] = Counter()
    for overload in problem.overloads:
        own = lines.get(overload.name, [])
        counts: Counter[str] = Counter()
        for each in own:
            counts[each.call] += each.count
        slow = {each.call for each in own if each.overhead}
        given = [SuiteCall(text, "", count, text in slow) for text, count in counts.items()]
        calls[overload.name], complaints = _sorted_out(overload, given)
        kept = {each.call for each in calls[overload.name]}
        reasons = list(complaints) or [""]
        refused.update({reasons[0]: sum(each.call not in kept for each in own)} if complaints else {})
    samples = sum(map(len, lines.values()))
    return Share(problem.id, samples, samples - refused.total(), dict(refused), calls)


def _sorted_out(overload: Overload, calls: Iterable[SuiteCall]) -> tuple[tuple[SuiteCall, ...], Counter[str]]:
    """The calls that the problem's file takes; for the others, the number of calls by reason."""
    kept, complaints = [], Counter[str]()
    for call in calls:
        try:
            for case in expand_cases(_with_templates(overload, [call]), DeviceKind.CPU, None, ""):
                bind(overload, case)
                for needed in (overload.tolerance.length, overload.tolerance.compute):
                    if needed is not None:
                        needed.evaluate(case.variables)
            kept.append(call)
        except ExpressionError as error:
            complaints[str(error)] += call.count
    return tuple(kept), complaints


# --- in place of a file's cases ---


def with_suite(problem: Problem, suite: Suite) -> Problem:
    """The problem with the suite's calls as its cases. An overload without calls is not judged."""
    share = next(each for each in suite.shares if each.problem == problem.id)
    overloads = tuple(_with_templates(each, share.calls.get(each.name, ())) for each in problem.overloads)
    return replace(problem, overloads=overloads)


def _with_templates(overload: Overload, calls: Sequence[SuiteCall]) -> Overload:
    templates = [
        CaseTemplate({"lazy": each.lazy} if each.lazy else {}, 0, parsed_call(overload, each.call)) for each in calls
    ]
    timed = tuple(template for template, each in zip(templates, calls, strict=True) if each.timed)
    # A timed case is judged as well; every judged overload needs a check case.
    check = tuple(template for template, each in zip(templates, calls, strict=True) if not each.timed) or timed[:1]
    return replace(
        overload,
        check=check,
        opinfo=(),
        large=(),
        fuzz=None,
        bench={"cpu": timed, "gpu24": timed} if timed else {},
        required=overload.required and bool(templates),
    )


def aten_overload(problem: Problem, overload: Overload) -> str:
    """ATen's name for an overload of a problem file; ``default`` for the unnamed one."""
    return overload.name or overload.signature.name.removeprefix(problem.name).removeprefix("_") or "default"


def _by_aten_name(problem: Problem) -> dict[str, Overload]:
    return {aten_overload(problem, overload): overload for overload in problem.judged}


def _dtypes(overload: Overload) -> tuple[str, ...]:
    return overload.dtypes + overload.optional_dtypes
