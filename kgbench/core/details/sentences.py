"""The sentence for people about a verdict's detail. No code parses a sentence."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

from kgbench.core.details import absence, failures, outputs, values
from kgbench.core.details.absence import Requirement
from kgbench.core.details.failures import Breach, Evidence, Limit
from kgbench.core.details.outputs import Aliasing, Attribute
from kgbench.core.details.place import place
from kgbench.core.details.union import Detail
from kgbench.core.details.values import SeedFault, StatisticalTest
from kgbench.core.details.where import Where

MOST_NAME: Final = 90
"""Characters of a name in a piece of evidence."""
_SEED_FAULTS: Final = {
    SeedFault.OTHER_NUMBERS: "{} was seeded as before and gave other numbers: they do not depend on it alone",
    SeedFault.NOT_ADVANCED: "the next call gave the same numbers again: {} is not advanced",
    SeedFault.SAME_NUMBERS: "{} was seeded with another number and gave the same numbers",
    SeedFault.SEEN_BEFORE: "gave the same numbers as an earlier call, with another seed or later in its sequence",
    SeedFault.OVERLAP: "has stretches of numbers that an earlier call gave, at other places or as they are or mirrored",
    SeedFault.REORDERED: "has numbers that earlier calls gave, in another order",
}
_TESTS: Final = {
    StatisticalTest.REPEATS: "elements {} and {} each start the same run of {} values",
    StatisticalTest.DISTRIBUTION: "the values do not have the distribution",
    StatisticalTest.BINS: "some values are too frequent, others too rare",
    StatisticalTest.RESOLUTION: "only {} different values among {samples}: the numbers have too few bits",
    StatisticalTest.BY_ARGUMENT: "some of the elements have another distribution than their arguments ask for",
    StatisticalTest.BLOCKS: "blocks of {} elements do not vary as random ones do",
    StatisticalTest.PAIRS: "neighbours depend on each other",
    StatisticalTest.LAGS: "values depend on each other at lag {}",
    StatisticalTest.SPREADS: "values depend on each other in size, at lag {}",
}
_BREACHES: Final = {
    Breach.MALFORMED: "malformed reply",
    Breach.UNASKED: "the worker answered a question that was not asked",
    Breach.CHANNEL: "the worker wrote into the harness's channel",
    Breach.PRINTED: "printed too much",
    Breach.PROCESSES: "started too many processes",
    Breach.SUPERVISOR: "the process that supervises the worker was killed",
    Breach.RESTLESS: "went on running while it was stopped for others to be timed",
    Breach.WRITTEN: "wrote too much to disk",
    Breach.ENDED_REFEREE: "its referee ended twice while it was judged, and did not when the library was judged "
    "instead",
    Breach.BUSY_DEVICE: "the device stays busy while all candidates are stopped, and is quiet once this one has ended",
}


def sentence(detail: Detail, where: Where | None = None) -> str:
    """What happened and where: ``case 1-float32: wrong shape: got [3, 5], expected [5, 3]``."""
    return place(where) + words_of(detail)


@functools.singledispatch
def words_of(detail: object) -> str:
    """What happened, without the place."""
    raise TypeError(f"{type(detail).__name__} has no sentence")


def _of(output: str) -> str:
    """The output's name in front of a sentence, unless it is the only one that is returned."""
    return "" if output == "return" else f"{output}: "


# --- what came back ---


@words_of.register
def _(detail: outputs.Shape) -> str:
    return f"{_of(detail.output)}wrong shape: got {_listed(detail.got)}, expected {list(detail.expected)}"


@words_of.register
def _(detail: outputs.Strides) -> str:
    return f"{_of(detail.output)}wrong strides: got {_listed(detail.got)}, expected {list(detail.expected)}"


@words_of.register
def _(detail: outputs.StorageOffset) -> str:
    return f"{_of(detail.output)}wrong storage offset: got {_number(detail.got)}, expected {_number(detail.expected)}"


@words_of.register
def _(detail: outputs.Dtype) -> str:
    return f"{_of(detail.output)}wrong dtype: got {detail.got}, expected {detail.expected}"


@words_of.register
def _(detail: outputs.WrongAttribute) -> str:
    of = _of(detail.output)
    match detail.attribute:
        case Attribute.COUNT:
            return f"returned {detail.got} values, expected {detail.expected} tensors"
        case Attribute.REQUIRES_GRAD:
            return f"{of}returned a tensor that requires grad"
        case Attribute.LAZY_BITS:
            return f"{of}the tensor's lazy conjugate and negative bits are {detail.got}, ATen's are {detail.expected}"
    return f"{of}wrong {detail.attribute}: got {detail.got}, expected {detail.expected}"


@words_of.register
def _(detail: outputs.Alias) -> str:
    match detail.aliasing:
        case Aliasing.SHARES_STORAGE:
            return f"{_of(detail.name)}returned a tensor that shares storage with an input"
        case Aliasing.NOT_ITSELF:
            return f"did not return '{detail.name}' itself, which it was given and must return"
        case Aliasing.LIES_IN_INPUT:
            return f"{_of(detail.name)}returned a tensor that lies in the memory of an input"
        case Aliasing.LIES_ELSEWHERE:
            return f"not a view: it lies in other memory than '{detail.name}'"
        case Aliasing.CHANGES_WITH_INPUTS:
            wrong = f": {words_of(detail.value)}" if detail.value else ""
            return f"what it returned changes with its inputs, which were taken away once it had returned{wrong}"
        case Aliasing.SHOWS_OTHER_VALUES:
            return f"{_of(detail.name)}not the right view: after its base was rewritten it shows other values"


# --- values ---


@words_of.register
def _(detail: values.Mismatch) -> str:
    share = f"{detail.wrong_share:.1%} of {list(detail.shape)} {detail.dtype} wrong"
    at = f"{detail.output}{list(detail.index)}"
    return f"{at}: got {detail.got}, wanted {detail.wanted}, limit {detail.limit}; {share}"


@words_of.register
def _(detail: values.RootMeanSquare) -> str:
    return (
        f"{detail.output}: each element of {list(detail.shape)} {detail.dtype} is within its limit, and together they "
        f"are not: root mean square error {detail.error:.3g}, limit {detail.limit:.3g}"
    )


@words_of.register
def _(detail: values.Scalar) -> str:
    return f"wrong value: got {detail.got}, expected {detail.expected}"


@words_of.register
def _(detail: values.NoCanonicalForm) -> str:
    return f"{detail.output}: no correct answer has this canonical form"


@words_of.register
def _(detail: values.Impossible) -> str:
    share = f"{detail.wrong_share:.1%} of {list(detail.shape)} so"
    return f"{detail.output}{list(detail.index)}: got {detail.got}, which is impossible there; {share}"


@words_of.register
def _(detail: values.Seed) -> str:
    whose = "the generator that is passed" if detail.own_generator else "torch's default generator"
    return f"{detail.output}: {_SEED_FAULTS[detail.fault].format(whose)}"


@words_of.register
def _(detail: values.Statistic) -> str:
    if detail.test is StatisticalTest.MEAN:
        said = f"the values are too {'large' if detail.high else 'small'} on average"
    elif detail.test is StatisticalTest.VARIANCE:
        said = f"the values vary too {'much' if detail.high else 'little'}"
    else:
        said = _TESTS[detail.test].format(*detail.places, "?", "?", "?", samples=detail.samples)
    figures = f"{detail.value:.4g}, limit {detail.limit:.4g}, {detail.samples} samples"
    return f"{detail.output}: {said} ({detail.test}: {figures})"


# --- memory ---


@words_of.register
def _(detail: outputs.Guard) -> str:
    if detail.behind:
        return f"wrote past the end of '{detail.argument}' ({detail.distance} bytes past it)"
    return f"wrote in front of '{detail.argument}'"


@words_of.register
def _(detail: outputs.InputChanged) -> str:
    at = f"at storage element {detail.element} ({detail.changed} of {detail.elements} elements)"
    if detail.writes_part:
        return f"wrote outside the region of '{detail.argument}' that it may write, {at}"
    return f"changed input '{detail.argument}' {at}"


@words_of.register
def _(detail: outputs.PointersChanged) -> str:
    return f"changed the array of pointers '{detail.argument}', or wrote beside it"


# --- the worker ---


@words_of.register
def _(detail: failures.Deadline) -> str:
    seconds = detail.seconds
    match detail.limit:
        case Limit.ANSWER:
            return "no answer " + ("in time" if seconds is None else f"within {seconds:g} s")
        case Limit.WINDOW:
            return "window not done " + ("in time" if seconds is None else f"within {seconds:g} s")
        case Limit.EVALUATION:
            return "the whole evaluation took " + ("too long" if seconds is None else f"over {seconds:g} s")


@words_of.register
def _(detail: failures.QueueStalled) -> str:
    return (
        f"{detail.attempts} times a queue of calls waited for the device in the middle; what compiles or loads a "
        "kernel, allocates past PyTorch's cache or synchronises belongs in the first calls of a shape"
    )


@words_of.register
def _(detail: failures.HostMemory) -> str:
    return "host memory limit exceeded"


@words_of.register
def _(detail: failures.Raised) -> str:
    return f"{detail.name}: {detail.message}".strip()


@words_of.register
def _(detail: failures.Crash) -> str:
    by_itself = detail.cause or f"exited with code {detail.code} before answering"
    return (f"killed by {detail.signal}" if detail.signal else by_itself) + detail.advice


@words_of.register
def _(detail: failures.RuleBroken) -> str:
    return _BREACHES[detail.breach] + (f": {detail.words}" if detail.words else "")


@words_of.register
def _(detail: failures.NoEntry) -> str:
    if detail.is_class:
        return f"the file defines no class {detail.entry}; classes it defines: {', '.join(detail.defined) or 'none'}"
    return f"the file defines no function {detail.entry}; functions it defines: {', '.join(detail.defined) or 'none'}"


@words_of.register
def _(detail: failures.StateUnfit) -> str:
    words = "the parameters of the problem's Model fit the candidate's module neither by name nor by order and shape"
    return f"{words}: {'; '.join(detail.differences)}"


@words_of.register
def _(detail: failures.PolicyBroken) -> str:
    return f"policy: {evidence_words(detail.evidence)}"


@words_of.register
def _(detail: failures.PhysicalBound) -> str:
    took = f"faster than is possible: {detail.took_us:.3g} µs for"
    reached, most = detail.amount / detail.took_us * 1e6, detail.per_s
    if detail.dtypes:
        return (
            f"{took} {detail.amount:.3g} operations: {_rate(reached)}FLOP/s, and the device does {_rate(most)}FLOP/s "
            f"at most in {' or '.join(detail.dtypes)}; twice that is allowed"
        )
    return (
        f"{took} at least {_bytes(detail.amount)}: {_rate(reached)}B/s, and the device moves {_rate(most)}B/s at most; "
        f"{detail.margin:.0%} are allowed on top"
    )


def evidence_words(evidence: Evidence) -> str:
    """One piece of evidence: ``operator aten::mm (3 times, 98% of the time) in case 1-float32: …``."""
    facts = [f"{evidence.count} times" if evidence.count > 1 else ""]
    facts.append("" if evidence.share is None else f"{evidence.share:.0%} of the time")
    told = ", ".join(filter(None, facts))
    # What PyTorch's kernels are about stands behind many words that all of them have.
    before, its, rest = evidence.name.removeprefix("void ").partition("at::native::")
    name = before + its + rest.replace(its, "") if its else before
    if len(name) > MOST_NAME:
        name = f"{name[: MOST_NAME - 30]}...{name[-27:]}"
    where = f" in case {evidence.where}" if evidence.where else ""
    why = f": {evidence.why}" if evidence.why else ""
    return f"{evidence.kind} {name}{f' ({told})' if told else ''}{where}{why}"


# --- nothing was judged ---


@words_of.register
def _(detail: absence.Lacking) -> str:
    return "; ".join(f"needs {each}" for each in _wanted(detail.requirements, detail.cuda))


@words_of.register
def _(detail: absence.Capability) -> str:
    wanted = capability_words(detail.lowest, detail.highest, detail.reason)
    return f"needs {wanted}; this GPU has {_dotted(detail.had)}"


@words_of.register
def _(detail: absence.DeviceMemory) -> str:
    return f"needs a GPU with {detail.needed_gb:.0f} GB, this one has {detail.had_gb:.0f} GB"


@words_of.register
def _(detail: absence.NotApplicable) -> str:
    return f"not applicable: {detail.why}"


@words_of.register
def _(detail: absence.NoLibrary) -> str:
    return detail.why


@words_of.register
def _(detail: absence.NoCode) -> str:
    return detail.words


@words_of.register
def _(detail: absence.NoCandidate) -> str:
    return detail.words


@words_of.register
def _(detail: absence.NotOffered) -> str:
    return f"{detail.package} does not offer it: {detail.words}"


@words_of.register
def _(detail: absence.HarnessTrouble) -> str:
    return detail.words


def capability_words(lowest: int, highest: int | None, reason: str) -> str:
    """``compute capability 9.0 or newer: reason``"""
    ends = f"{_dotted(lowest)} or newer"
    if highest is not None:
        ends = _dotted(lowest) if highest == lowest else f"{_dotted(lowest)} to {_dotted(highest)}"
    return f"compute capability {ends}" + (f": {reason}" if reason else "")


def _wanted(requirements: Iterable[Requirement], cuda: str) -> Iterable[str]:
    """What is needed, with how to get it."""
    extra = f"cuda{(cuda or '13').partition('.')[0]}"
    named = {
        Requirement.GPU_FOR_CUPY: "a GPU, on which cupy's kernels run",
        Requirement.CUPY: f"cupy: pip install 'kgbench[{extra}]'",
        Requirement.TRITON: "triton: pip install triton",
        Requirement.COMPILER: "a C++ compiler: apt install g++",
        Requirement.HEADERS: "the headers of Python: apt install python3-dev",
        Requirement.NINJA: "ninja: pip install 'kgbench[cpp]'",
        Requirement.SETUPTOOLS: "setuptools: pip install 'kgbench[cpp]'",
        Requirement.FOLDER_WITHOUT_SPACE: "torch in a folder whose path has no space",
        Requirement.GPU_FOR_CUDA: "a GPU, on which its cuda_sources run",
        Requirement.NVCC: f"nvcc: the CUDA toolkit {cuda}, with CUDA_HOME naming it",
    }
    return (named[each] for each in requirements)


def _dotted(capability: int) -> str:
    return f"{capability // 10}.{capability % 10}"


def _listed(dimensions: tuple[int, ...] | None) -> str:
    return "none" if dimensions is None else str(list(dimensions))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _bytes(count: float) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1e5 else f"{count / 1e3:.3g} kB"


def _rate(per_s: float) -> str:
    return f"{per_s / 1e12:.3g} T" if per_s >= 1e12 else f"{per_s / 1e9:.3g} G"
