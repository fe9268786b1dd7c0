"""The routes that answer in JSON, and those that Prometheus and a load balancer ask."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from kgbench import __version__
from kgbench.prompts.render import LANGUAGES
from kgbench.service import models, streams
from kgbench.service.answers import status_json
from kgbench.service.changes import next_event
from kgbench.service.errors import ServiceError
from kgbench.service.queue import Submission, Wanted
from kgbench.service.state import Service, caller_of, service_of
from kgbench.service.tokens import Caller
from kgbench.service.verdicts import device_facts
from kgbench.store.encoding import json_text

LONGEST_WAIT_S: Final = 30.0
"""Seconds that a poll may ask to wait."""
_CHECKED_S: Final = 1.0
"""Seconds between two looks at a waiting caller's token."""
_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    401: {"model": models.Refusal, "description": "No token, or one that is not or no longer good."},
    404: {"model": models.Refusal, "description": "There is no such thing, or it is somebody else's."},
    413: {"model": models.Refusal, "description": "The body is too large."},
    422: {"model": models.Refusal, "description": "A field is missing or wrong."},
    429: {"model": models.Refusal, "description": "A quota; the header Retry-After says when to try again."},
    503: {"model": models.Refusal, "description": "Nothing can be taken now; the header Retry-After says when."},
}


def _answers(example: Any, kind: str = "application/json") -> dict[int | str, dict[str, Any]]:
    """The OpenAPI entry of an answer without a model."""
    return {200: {"content": {kind: {"example": example}}}}


_EVENTS: Final = _answers('event: phase\ndata: {"phase": "check"}\n\n', "text/event-stream")
Here = Annotated[Service, Depends(service_of)]
Who = Annotated[Caller, Depends(caller_of)]
router = APIRouter(responses=_REFUSALS)


@router.post("/v1/submissions", status_code=202, response_model=models.Status)
def submit(service: Here, who: Who, wanted: models.Submit) -> dict[str, Any]:
    """Submit a kernel. Once this is answered, the submission survives a crash of the server."""
    ((name, new),) = service.queue.submit(who, [_wanted(service, wanted)])
    service.judging.wake()
    return status_json(service.queue.get(name, who.name), new=new)


@router.post("/v1/batches", status_code=202, response_model=models.Batch)
def submit_batch(service: Here, who: Who, wanted: models.SubmitBatch) -> dict[str, Any]:
    """Submit several kernels, all of them or none."""
    batch = secrets.token_hex(16)
    taken = service.queue.submit(who, [_wanted(service, each) for each in wanted.submissions], batch)
    service.judging.wake()
    found = [status_json(service.queue.get(name, who.name), new=new) for name, new in taken]
    return {"id": batch, "done": sum(each["state"] == "done" for each in found), "submissions": found}


def _wanted(service: Service, each: models.Submit) -> Wanted:
    problem = service.problems.load(service.problems.resolve(each.problem))
    if each.problem_sha256 and each.problem_sha256 != problem.sha256:
        words = (
            f"{problem.id} is another version here ({problem.sha256[:12]}) than yours ({each.problem_sha256[:12]}): "
            "use the same kgbench as the service, which GET /v1/service names"
        )
        raise ServiceError("KGB719", words, 409)
    more = {name: getattr(each, name) for name in ("key", "model", "sample", "round", "practice", "timing")}
    return Wanted(problem.id, problem.sha256, each.source, **more)


@router.get("/v1/submissions", response_model=list[models.Status])
def submissions(
    service: Here,
    who: Who,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[int | None, Query(ge=0, le=models.MAX_NUMBER)] = None,
) -> list[dict[str, Any]]:
    """Your submissions, the newest first; `before` a submission's `number` goes on further down."""
    return [status_json(each) for each in service.queue.newest(who.name, limit, before)]


@router.get("/v1/submissions/{name}", response_model=models.Status)
async def submission(
    service: Here, who: Who, name: str, wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S)] = 0.0
) -> dict[str, Any]:
    """One of your submissions. With `wait`, the answer comes with the verdict, or after so many seconds."""
    if wait:
        await _wait_for(service, who, name, wait)
    return status_json(await run_in_threadpool(service.queue.get, name, who.name))


async def _wait_for(service: Service, who: Caller, name: str, seconds: float) -> None:
    """Wait until the submission is done. Raises ServiceError, also where the token is withdrawn meanwhile."""
    until = asyncio.get_running_loop().time() + seconds
    with service.changes.listen(name, who.name) as listener:
        found: Submission = await run_in_threadpool(service.queue.get, name, who.name)
        while found.state != "done" and not service.changes.closing.is_set():
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                return
            event = await next_event(listener, min(left, _CHECKED_S))
            if event is None:
                await run_in_threadpool(service.tokens.check, who)
            elif event[1] in ("done", "closing"):
                return


@router.get("/v1/submissions/{name}/events", response_class=StreamingResponse, responses=_EVENTS)
async def submission_events(service: Here, who: Who, name: str) -> StreamingResponse:
    """The same as server-sent events: `state`, `phase` as it is judged, at last `verdict`."""
    await run_in_threadpool(service.queue.get, name, who.name)
    return streams.answer(streams.of_submission(service, who, name))


@router.get("/v1/batches/{name}", response_model=models.Batch)
def batch(service: Here, who: Who, name: str) -> dict[str, Any]:
    """All submissions of one of your batches."""
    found = service.queue.batch(name, who.name)
    done = sum(each.state == "done" for each in found)
    return {"id": name, "done": done, "submissions": [status_json(each) for each in found]}


@router.get("/v1/batches/{name}/events", response_class=StreamingResponse, responses=_EVENTS)
async def batch_events(
    service: Here, who: Who, name: str, last_event_id: Annotated[str, Header()] = ""
) -> StreamingResponse:
    """A `verdict` for each submission as it gets one, then `end`. Last-Event-ID continues after that verdict."""
    await run_in_threadpool(service.queue.batch, name, who.name)
    after = int(last_event_id) if last_event_id.isdecimal() and len(last_event_id) < 19 else 0
    return streams.answer(streams.of_batch(service, who, name, after))


@router.get("/v1/problems", response_model=list[models.Problem])
def problems(service: Here) -> list[dict[str, str]]:
    """All problems that kernels may be submitted for."""
    return service.problems.all()


@router.get("/v1/problems/{source}/{name}", response_model=models.ProblemDetail)
def problem(service: Here, source: str, name: str) -> dict[str, Any]:
    """One problem: the functions to define, and the hash of its file."""
    return service.problems.one(f"{source}/{name}")


@router.get("/v1/problems/{source}/{name}/prompt", response_model=models.Prompt)
def prompt(service: Here, source: str, name: str, language: str = "triton") -> dict[str, Any]:
    """What a model is asked for a problem: all that its author is told before the first verdict."""
    if language not in LANGUAGES:
        raise ServiceError("KGB714", f"language: there is no {language[:40]!r}; there are {', '.join(LANGUAGES)}", 422)
    found = service.problems.prompt(f"{source}/{name}", language)
    turns = [{"role": turn.role, "text": turn.text} for turn in found.turns]
    return {
        "problem": service.problems.resolve(f"{source}/{name}"), "language": language, "sha256": found.sha256,
        "system": found.system, "turns": turns,
    }  # fmt: skip


@router.get("/v1/runs", responses=_answers([models.RUN]))
def runs(service: Here) -> list[dict[str, Any]]:
    """The stored runs that the service shows."""
    return service.runs.all()


@router.get("/v1/runs/{name}", responses=_answers({**models.RUN, "scores": [], "results": []}))
def run(service: Here, name: str, on: str = "") -> Response:
    """One run: its scores, and each verdict as its author may know it; `on` a model of device where several judged."""
    return _json(service.runs.one(name, on))


@router.get("/v1/leaderboard", responses=_answers([]))
def leaderboard(service: Here) -> Response:
    """These runs ranked: a list per device, library, source and version of its problems."""
    return _json([board.to_json() for board in service.runs.boards()])


@router.get("/v1/service", response_model=models.Service)
def about(service: Here, who: Who) -> dict[str, Any]:
    """The judging device, and your quotas."""
    judging = service.judging
    return {
        "kgbench": __version__,
        "state": judging.state,
        "device": device_facts(judging.facts),
        "jobs": judging.jobs,
        "you": who.name,
        "rate": str(who.rate) if who.rate else None,
        "queue": who.queue,
        "submissions": service.queue.counts(),
    }


@router.get("/health", response_model=models.Health)
def health(service: Here) -> JSONResponse:
    """200 while submissions are taken; with state `starting` until they are judged too. 503 once judging has failed."""
    states = {"starting": "starting", "ready": "ok"}
    status = states.get(service.judging.state, "failed")
    return JSONResponse({"status": status}, 503 if status == "failed" else 200)


@router.get("/metrics", response_class=PlainTextResponse, responses=_answers("kgbench_ready 1.0", "text/plain"))
def metrics(service: Here) -> Response:
    """For Prometheus."""
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _json(value: Any) -> Response:
    """JSON with numbers that are not finite as text, as in results.jsonl."""
    return Response(json_text(value), media_type="application/json")
