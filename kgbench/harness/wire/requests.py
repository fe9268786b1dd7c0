"""Requests of a referee to a worker: one class per operation. These messages are built nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kgbench.harness.wire.protocol import Message
from kgbench.harness.wire.typed import Typed


@dataclass(frozen=True)
class Request(Typed):
    """One operation of a worker."""

    def numbered(self, number: int) -> Message:
        """The message with its number, which the reply repeats."""
        return {**self.encode(), "id": number}


# --- any worker ---


@dataclass(frozen=True)
class Hello(Request):
    """Bring the device up. The control page's descriptor comes along."""

    op = "hello"


@dataclass(frozen=True)
class Map(Request):
    """Map the buffer whose descriptor comes along, in place of the one before. Reply: ``address``."""

    op = "map"
    nbytes: int


@dataclass(frozen=True)
class Unmap(Request):
    """Unmap the buffer."""

    op = "unmap"


@dataclass(frozen=True)
class CallOnce(Request):
    """One call, whose outputs are kept. Reply: ``outputs``, what they are by the worker's own word."""

    op = "call"
    entry: str
    args: list[Any]
    """Arguments in the form that ``candidate.calls.decode`` takes."""
    kwargs: dict[str, Any]
    out: list[int]
    """Offset and size, in bytes, of the buffer's region for outputs."""
    poison: list[int]
    """Bytes of each block of memory that is filled and given back before the call."""
    late: bool
    """The tensors are still to be written when the call is made, on a stream of its own."""
    seed: int | None = None
    """Seed for the default generators; None leaves them alone."""
    again: bool = False
    """Repeats the call before with the very same arguments."""


@dataclass(frozen=True)
class PlaceOutputs(Request):
    """Copy what the last call returned into the output region."""

    op = "place"


@dataclass(frozen=True)
class Prepare(Request):
    """Build the arguments of a window's calls."""

    op = "prepare"
    call: CallOnce
    calls: int
    stride: int
    """Bytes from one call to the next."""

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return cls(CallOnce.decode(message["call"]), message["calls"], message["stride"])


@dataclass(frozen=True)
class OpenWindow(Request):
    """Run prepared calls between two marks of the control page. Two replies: queued, and done."""

    op = "window"
    epoch: int
    """The marks' value, and the replies' number."""
    calls: int
    queued: bool
    """All calls are on the stream before the release."""
    overhead: bool
    """One minimal kernel in place of the calls."""


@dataclass(frozen=True)
class Observe(Request):
    """Watch all calls from now on. Reply: ``works``."""

    op = "observe"
    kernels: bool
    places: bool
    """Also watch how outputs are copied."""
    mark: str
    """Text that nobody else knows, by which the observer tells its own records."""


@dataclass(frozen=True)
class Observed(Request):
    """Stop watching. Reply: what was seen."""

    op = "observed"


# --- what a worker runs ---


@dataclass(frozen=True)
class LoadCandidate(Request):
    """Import a candidate's text. Reply: ``missing`` entries, and functions, or classes, that it ``defines``.

    The descriptor of what is compiled ahead for it comes along, where something is.
    """

    op = "load"
    source: str
    entries: dict[str, list[str]]
    """For each overload, the names that its entry may have."""
    watched: bool
    """Its calls may be observed later."""
    classes: bool = False
    """Entries are classes, of which ``MakeModule`` makes modules."""


@dataclass(frozen=True)
class MakeModule(Request):
    """Make an entry of the class that a loaded text defines, and fill in its state. Reply: ``fitted`` is ``name`` or
    ``order``; else ``unfit`` says why no way fits."""

    op = "make module"
    entry: str
    """The overload whose entry is the class, and will be the module."""
    init: list[Any]
    """Arguments of the class, as ``candidate.modules.plain`` takes them."""
    parameters: list[list[Any]]
    """Name and place of each, in the order of the problem's module."""
    buffers: list[list[Any]]
    """The same of its buffers."""
    compiled: bool = False
    """The module goes through ``torch.compile``."""


@dataclass(frozen=True)
class LoadLibrary(Request):
    """Load the library's functions. Reply: ``library`` and ``notes``, or why it is ``unavailable``."""

    op = "load library"
    targets: dict[str, str]
    """The library target of each overload."""


@dataclass(frozen=True)
class LoadReference(Request):
    """Load the problem's own reference, as it is or mutated."""

    op = "load reference"
    references: dict[str, dict[str, Any]]
    """For each overload: ``reference``, the arguments of a ``ReferenceFunction``, and ``parameters``, the entry's."""
    mutant: str = ""
    """The mutant; empty where nothing does."""


@dataclass(frozen=True)
class FullPrecision(Request):
    """Turn TF32 and the like off in a trusted worker, for convolutions too."""

    op = "full precision"


@dataclass(frozen=True)
class Probe(Request):
    """A plain sum on the device. Reply: ``sum``."""

    op = "probe"
