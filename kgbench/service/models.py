"""Requests and answers, as the OpenAPI document has them, with examples."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kgbench.llm.conversation import MAX_SOURCE_BYTES

MAX_NUMBER: Final = (1 << 63) - 1
"""Largest number of a submission, which is SQLite's largest integer."""
MAX_BATCH: Final = 200
"""Submissions of one batch."""
_KERNEL: Final = "def t(self):\n    return self.as_strided(self.shape[::-1], self.stride()[::-1])\n"
_ID: Final = "3f2a9c5e8b7d41f0a6c2e9d8b1f4a7c3"
_SUBMISSION: Final[dict[str, Any]] = {"problem": "aten/t", "source": _KERNEL, "model": "mine", "key": "try-1"}
_DONE: Final[dict[str, Any]] = {
    "id": _ID, "number": 17, "batch": "c0ffee00c0ffee00c0ffee00c0ffee00", "problem": "aten/t", "model": "mine",
    "sample": 0, "round": 0, "state": "done", "submitted": 1767225600.0, "finished": 1767225602.5, "new": False,
    "outcome": "passed", "words": "Verdict: correct in all 19 calls.",
    "verdict": {"problem": "aten/t", "outcome": "passed", "device": "cuda", "cases": []},
}  # fmt: skip

_PROBLEM: Final[dict[str, Any]] = {
    "id": "aten/t", "source": "aten", "kind": "view", "category": "view/metadata",
    "summary": "transposed view of a matrix",
}  # fmt: skip
_DETAIL: Final[dict[str, Any]] = {**_PROBLEM, "sha256": "1" * 64, "entries": ["t(Tensor self) -> Tensor"]}
_BATCH: Final[dict[str, Any]] = {"id": _DONE["batch"], "done": 1, "submissions": [_DONE]}
_PROMPT: Final[dict[str, Any]] = {
    "problem": "aten/t", "language": "triton", "sha256": "1" * 64, "system": "You write GPU kernels. …",
    "turns": [{"role": "user", "text": "Write a kernel …"}],
}  # fmt: skip
_SERVICE: Final[dict[str, Any]] = {
    "kgbench": "0.1.0", "state": "ready", "device": {"name": "NVIDIA H200", "kind": "cuda"}, "jobs": 12, "you": "alice",
    "rate": "60/min", "queue": 1000, "submissions": {"queued": 3, "judging": 12, "done": 985},
}  # fmt: skip
_SAID: Final[dict[str, Any]] = {
    "number": "KGB712",
    "message": "alice has 1000 submissions without a verdict and may have 1000: 1 more do not fit",
}
RUN: Final[dict[str, Any]] = {
    "id": "20260101T120000Z-3f2a9c", "model": "dir:my_kernels", "started": "2026-01-01T12:00:00+00:00",
    "status": "finished", "device": "NVIDIA H200", "problems": 210, "results": 210, "on": "",
}  # fmt: skip
"""A line of a stored run."""


def _text(value: str) -> str:
    """UTF-8 has no lone surrogates, and JSON can spell them."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError("is no text: it has a lone surrogate") from None
    if size > MAX_SOURCE_BYTES:
        raise ValueError(f"has {size} bytes; a kernel may have {MAX_SOURCE_BYTES}")
    return value


Text = Annotated[str, AfterValidator(_text)]
"""Text that can be stored as UTF-8."""


class Submit(BaseModel):
    """A kernel for a problem."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_SUBMISSION]})

    problem: Annotated[
        Text, Field(max_length=200, description="An id such as aten/softmax, as GET /v1/problems lists.")
    ]
    source: Annotated[Text, Field(min_length=1, description="The text of a Python file that defines the entry.")]
    key: Annotated[
        Text,
        Field(max_length=200, description="Yours. The same key again is the same submission, so send it again freely."),
    ] = ""
    model: Annotated[Text, Field(max_length=200, description="Who wrote it; any name.")] = ""
    sample: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    round: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    practice: Annotated[bool, Field(description="Other shapes and values than any verdict's: a try before it.")] = False
    timing: Annotated[bool, Field(description="False judges correctness only, where the service times.")] = True
    problem_sha256: Annotated[
        Text, Field(max_length=64, description="Of the problem's file that you know; another one is refused.")
    ] = ""


class SubmitBatch(BaseModel):
    """Several kernels, taken all together or not at all."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"submissions": [_SUBMISSION, {**_SUBMISSION, "key": "try-2"}]}]},
    )

    submissions: Annotated[list[Submit], Field(min_length=1, max_length=MAX_BATCH)]


class Status(BaseModel):
    """A submission, and its verdict once there is one."""

    model_config = ConfigDict(json_schema_extra={"examples": [_DONE]})

    id: str
    number: int = Field(description="Rises with every submission; GET /v1/submissions?before= goes on below it.")
    batch: str | None
    problem: str
    model: str
    sample: int
    round: int
    state: Literal["queued", "judging", "done"]
    submitted: float = Field(description="Seconds since 1970.")
    finished: float | None
    new: bool = Field(True, description="False where its key was known, so that nothing was taken anew.")
    outcome: str | None = Field(
        description="The verdict's first word: passed, wrong value, timeout, … (docs/outcomes.md)"
    )
    words: str | None = Field(description="The verdict in words: all that the kernel's author may know.")
    verdict: dict[str, Any] | None = Field(description="The same as data, in the form of results.jsonl.")


class Batch(BaseModel):
    """Submissions that came together."""

    model_config = ConfigDict(json_schema_extra={"examples": [_BATCH]})

    id: str
    done: int
    submissions: list[Status]


class Problem(BaseModel):
    """A problem in a line."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PROBLEM]})

    id: str
    source: str
    kind: str
    category: str
    summary: str


class ProblemDetail(Problem):
    """A problem, as far as its submitters may know it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_DETAIL]})

    sha256: str
    entries: list[str] = Field(description="The functions to define; one of them is enough where they are the same.")


class Turn(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "user", "text": "Write a kernel …"}]})

    role: str
    text: str


class Prompt(BaseModel):
    """What a model is asked for a problem."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PROMPT]})

    problem: str
    language: str
    sha256: str
    system: str
    turns: list[Turn]


class Service(BaseModel):
    """What the service is and does."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SERVICE]})

    kgbench: str
    state: Literal["starting", "ready", "failed", "ended"]
    device: dict[str, Any] = Field(description="The device that judges; empty until it is known.")
    jobs: int = Field(description="Candidates that are judged at once; 0 until it is known.")
    you: str = Field(description="The name of your token.")
    rate: str | None = Field(description="How many submissions you may make, as 60/min.")
    queue: int = Field(description="How many of yours may be without a verdict.")
    submissions: dict[str, int] = Field(description="Of everybody, by state.")


class Health(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok", "starting", "failed"]


class Said(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_SAID]})

    number: str = Field(description="docs/errors.md says what it means.", examples=["KGB712"])
    message: str = Field(description="What is wrong, and what to do.")


class Refusal(BaseModel):
    """Why a request was not done."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error": _SAID}]})

    error: Said
