"""What an author may be told of a verdict's detail: an allow-list of facts per type.

A type without an entry in ``PUBLIC`` tells nothing. No entry passes a number or a text on as it stands: sizes become a
count of dimensions, values become what sort of number they are, and names are told only where the author knows them,
from the problem, from the kernel's own text, or because they are torch's.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Mapping
from typing import Any, Final

from kgbench.core.details.absence import Capability, Lacking, NoCode
from kgbench.core.details.failures import (
    Breach,
    Crash,
    Deadline,
    Evidence,
    HostMemory,
    Limit,
    NoEntry,
    PhysicalBound,
    PolicyBroken,
    QueueStalled,
    RuleBroken,
    StateUnfit,
)
from kgbench.core.details.outputs import (
    Alias,
    Aliasing,
    Attribute,
    Dtype,
    Guard,
    InputChanged,
    PointersChanged,
    Shape,
    StorageOffset,
    Strides,
    WrongAttribute,
)
from kgbench.core.details.union import Detail
from kgbench.core.details.values import (
    Impossible,
    Mismatch,
    NoCanonicalForm,
    RootMeanSquare,
    Scalar,
    Seed,
    Statistic,
)
from kgbench.core.details.where import Purpose, Where
from kgbench.policy.rules import allowed
from kgbench.policy.tables import GROUPS
from kgbench.prompts import public_values
from kgbench.prompts.author import PLAIN_TYPES, Author
from kgbench.prompts.public_values import Told


def public_words(detail: Detail | None, author: Author) -> list[str]:
    """What the author is told of a detail, in lines; none where nothing may be told."""
    entry = None if detail is None else PUBLIC.get(type(detail))
    return [] if entry is None else list(entry(detail, author))


def when(where: Where | None) -> str:
    """In which sort of call it happened, where the kind of call says something; else nothing."""
    if where is None:
        return ""
    if where.repeated:
        return "the same call with the same input was correct just before"
    return _WHEN.get(where.purpose, "")


_WHEN: Final = {
    Purpose.IMPORT: "while the file was imported",
    Purpose.AGAIN: "its first calls were correct; this was a later one, with new values",
    Purpose.PREPARING: "before its calls were timed",
    Purpose.TIMING: "while its calls were timed",
    Purpose.WINDOW: "in a timed call",
    Purpose.PROBE: "its inputs were replaced as soon as its calls were said to be done",
    Purpose.OBSERVED: "while it was watched for whose work it is",
}


# --- what came back ---


def _shape(detail: Shape, author: Author) -> Told:
    output, right = author.output(detail.output), detail.expected
    if detail.got is None:
        yield f"{output} has no shape"
    elif len(detail.got) != len(right):
        yield f"{output} has {author.count(detail.got)} dimensions, expected {author.count(right)}"
    else:
        wrong = [str(axis) for axis, (one, other) in enumerate(zip(detail.got, right, strict=True)) if one != other]
        yield f"{output} has {author.count(right)} dimensions, and its size is wrong in dimension {', '.join(wrong)}"


def _strides(detail: Strides, author: Author) -> Told:
    yield f"the strides of {author.output(detail.output)} are wrong"


def _offset(detail: StorageOffset, author: Author) -> Told:
    yield f"the storage offset of {author.output(detail.output)} is wrong"


def _dtype(detail: Dtype, author: Author) -> Told:
    yield f"{author.output(detail.output)} is {author.dtype(detail.got)}, expected {author.dtype(detail.expected)}"


def _attribute(detail: WrongAttribute, author: Author) -> Told:
    output = author.output(detail.output)
    match detail.attribute:
        case Attribute.TYPE:
            right = detail.expected if detail.expected in PLAIN_TYPES else "a plain torch.Tensor"
            yield f"returned {author.type(detail.got)}, expected {right}"
        case Attribute.DEVICE:
            yield f"{output} is not on the device of the inputs"
        case Attribute.REQUIRES_GRAD:
            yield f"{output} requires grad"
        case Attribute.LAZY_BITS:
            yield f"the lazy conjugate or negative bit of {output} differs from ATen's"
        case Attribute.COUNT:
            yield "returned the wrong number of tensors"


def _alias(detail: Alias, author: Author) -> Told:
    match detail.aliasing:
        case Aliasing.SHARES_STORAGE:
            yield f"{author.output(detail.name)} shares storage with an input"
        case Aliasing.NOT_ITSELF:
            yield f"did not return {author.argument(detail.name)} itself, which it was given and must return"
        case Aliasing.LIES_IN_INPUT:
            yield f"{author.output(detail.name)} lies in the memory of an input"
        case Aliasing.LIES_ELSEWHERE:
            yield f"the result is not a view: it lies in other memory than {author.argument(detail.name)}"
        case Aliasing.CHANGES_WITH_INPUTS:
            yield f"{author.output(detail.name)} changes with the inputs, which were taken away once it had returned"
        case Aliasing.SHOWS_OTHER_VALUES:
            yield "the result is not the right view: after its base was rewritten it shows other values"


def _guard(detail: Guard, author: Author) -> Told:
    yield f"wrote {'past the end' if detail.behind else 'in front'} of {author.argument(detail.argument)}"


def _input_changed(detail: InputChanged, author: Author) -> Told:
    name = author.argument(detail.argument)
    yield f"wrote outside the region of {name} that it may write" if detail.writes_part else f"changed input {name}"


def _pointers(detail: PointersChanged, author: Author) -> Told:
    yield f"changed the array of pointers {author.argument(detail.argument)}, or wrote beside it"


# --- the worker ---

_LIMITS: Final = {
    Limit.ANSWER: "it gave no answer in time",
    Limit.WINDOW: "its timed calls were not done in time",
    Limit.EVALUATION: "all of its calls together took too long",
}
_BREACHES: Final = {
    Breach.MALFORMED: "the reply of its process was malformed",
    Breach.UNASKED: "its process answered a question that was not asked",
    Breach.CHANNEL: "its process wrote into the channel of the harness",
    Breach.PRINTED: "it printed too much",
    Breach.PROCESSES: "it started too many processes",
    Breach.SUPERVISOR: "it killed the process that supervises it",
    Breach.RESTLESS: "it went on running while it was stopped for others to be timed",
    Breach.WRITTEN: "it wrote too much to disk",
    Breach.ENDED_REFEREE: "it ended the process that judges it",
    Breach.BUSY_DEVICE: "it kept the device busy while it was stopped",
}
_DID: Final = {
    "operator": "an operator of PyTorch did work of the kernel",
    "kernel": "a kernel that is not its own ran on the device, or none did",
    "package": "a Triton kernel of a package ran",
    "host": "a function on the host did work of the kernel",
    "library": "a library's code did work of the kernel",
    "code": "code that is not its own ran on a processor",
    "process": "another process of its own did work of the kernel",
    "time": "it behaves differently when it is observed",
    "observer": "it behaves differently when it is observed",
}


def _deadline(detail: Deadline, author: Author) -> Told:
    yield _LIMITS[detail.limit]


def _stalled(detail: QueueStalled, author: Author) -> Told:
    yield (
        "a queue of calls waited for the device in the middle; what compiles or loads a kernel, allocates past "
        "PyTorch's cache or synchronises belongs in the first calls of a shape"
    )


def _memory(detail: HostMemory, author: Author) -> Told:
    yield "the limit of the host's memory was exceeded"


def _crash(detail: Crash, author: Author) -> Told:
    if detail.signal in signal.Signals.__members__:
        yield f"killed by {detail.signal}"


def _breach(detail: RuleBroken, author: Author) -> Told:
    yield _BREACHES[detail.breach]


def _no_entry(detail: NoEntry, author: Author) -> Told:
    known = {overload.signature.name for overload in author.problem.overloads}
    if detail.entry in known:
        yield f"the file defines no {'class' if detail.is_class else 'function'} `{detail.entry}`"


def _unfit(detail: StateUnfit, author: Author) -> Told:
    yield "the parameters of the problem's `Model` fit those of `ModelNew` neither by name nor by order and shape"


def _policy(detail: PolicyBroken, author: Author) -> Told:
    evidence = detail.evidence
    if evidence.kind not in _DID:
        return
    name = _known_name(evidence, author)
    why = allowed(author.problem, evidence.name).why if name and evidence.kind == "operator" else ""
    yield "policy: " + _DID[evidence.kind] + (f": {name}" if name else "") + (f": {why}" if why else "")


def _known_name(evidence: Evidence, author: Author) -> str:
    """What did the work, as far as the kernel's text or PyTorch has the name: another could be made of an input."""
    known = author.words | frozenset(itertools.chain(*GROUPS.values()))
    if evidence.kind == "operator":
        operator = evidence.name.removeprefix("aten::").partition(".")[0]
        return f"aten::{operator}" if {operator, operator.strip("_")} & known else ""
    if evidence.kind in ("package", "host"):
        return ".".join(itertools.takewhile(author.words.__contains__, evidence.name.split(".")))
    return ""


def _bound(detail: PhysicalBound, author: Author) -> Told:
    what = "do the arithmetic" if detail.dtypes else "move the data"
    yield f"faster than is possible: no device like this one can {what} in that time"


# --- nothing was judged ---


def _lacking(detail: Lacking, author: Author) -> Told:
    yield f"this machine does not have what the file needs: {', '.join(detail.requirements)}"


def _capability(detail: Capability, author: Author) -> Told:
    yield "the problem needs a GPU of another compute capability than this one's"


def _no_code(detail: NoCode, author: Author) -> Told:
    if detail.problem is not None:
        yield str(detail.problem)


PUBLIC: Final[Mapping[type, Callable[[Any, Author], Told]]] = {
    Shape: _shape,
    Strides: _strides,
    StorageOffset: _offset,
    Dtype: _dtype,
    WrongAttribute: _attribute,
    Alias: _alias,
    Guard: _guard,
    InputChanged: _input_changed,
    PointersChanged: _pointers,
    Mismatch: public_values.mismatch_told,
    RootMeanSquare: public_values.together_told,
    Scalar: public_values.scalar_told,
    NoCanonicalForm: public_values.no_form_told,
    Impossible: public_values.impossible_told,
    Seed: public_values.seed_told,
    Statistic: public_values.statistic_told,
    Deadline: _deadline,
    QueueStalled: _stalled,
    HostMemory: _memory,
    Crash: _crash,
    RuleBroken: _breach,
    NoEntry: _no_entry,
    StateUnfit: _unfit,
    PolicyBroken: _policy,
    PhysicalBound: _bound,
    Lacking: _lacking,
    Capability: _capability,
    NoCode: _no_code,
}
"""What is told of each type. Left out are exceptions, whose log is passed on by ``logs.py``, and what no author of a
kernel is asked to fix."""
