"""Pages for a browser, without a script of their own. Whatever a candidate or a submitter wrote is escaped text."""

from __future__ import annotations

import functools
import json
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from kgbench import __version__
from kgbench.core.outcomes import Outcome
from kgbench.reports.page.document import asset, hash_of
from kgbench.reports.page.source import shown
from kgbench.service.models import MAX_NUMBER
from kgbench.service.queue import Submission
from kgbench.service.state import Service, caller_of, service_of
from kgbench.service.tokens import Caller
from kgbench.service.verdicts import device_facts

_ON_A_PAGE = 100
"""Submissions."""
Here = Annotated[Service, Depends(service_of)]
Who = Annotated[Caller, Depends(caller_of)]
router = APIRouter(include_in_schema=False)


@router.get("/")
def overview(service: Here, who: Who) -> Response:
    judging = service.judging
    quota = f"{who.rate}, {who.queue} without a verdict" if who.rate else f"{who.queue} without a verdict"
    device = device_facts(judging.facts)
    facts = {
        "you are": who.name,
        "you may submit": quota,
        "state": judging.state,
        "device": str(device.get("name", "not known yet")),
        "judged at once": str(judging.jobs),
        "kgbench": __version__,
    }
    return _page("overview", "kgbench", facts=facts, counts=service.queue.counts(), outcomes=service.queue.outcomes())


@router.get("/problems")
def problems(service: Here) -> Response:
    return _page("problems", "Problems", problems=service.problems.all())


@router.get("/problems/{source}/{name}")
def problem(service: Here, source: str, name: str) -> Response:
    found = service.problems.one(f"{source}/{name}")
    prompt = service.problems.prompt(found["id"])
    turns = [("system", prompt.system), *((turn.role, turn.text) for turn in prompt.turns)]
    return _page("problem", found["id"], problem=found, turns=turns)


@router.get("/submissions")
def submissions(service: Here, who: Who, before: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None) -> Response:
    found = service.queue.newest(who.name, _ON_A_PAGE, before)
    further = found[-1].number if len(found) == _ON_A_PAGE else None
    return _page("submissions", "Your submissions", submissions=list(map(_line, found)), further=further)


@router.get("/submissions/{name}")
def submission(service: Here, who: Who, name: str) -> Response:
    found = service.queue.get(name, who.name)
    line = _line(found)
    return _page("submission", f"{found.problem}: {line['outcome']}", line=line, source=found.source)


@router.get("/runs")
def runs(service: Here) -> Response:
    return _page("runs", "Runs", runs=service.runs.all())


@router.get("/runs/{name}")
def run(service: Here, name: str, on: str = "") -> Response:
    return HTMLResponse(service.runs.page(name, on))


@router.get("/leaderboard")
def leaderboard(service: Here) -> Response:
    return HTMLResponse(service.runs.leaderboard())


def _line(found: Submission) -> dict[str, Any]:
    verdict = json.loads(found.verdict) if found.verdict else {}
    group = Outcome(found.outcome).facts.group if found.outcome else ""
    speedup = verdict.get("speedup")
    return {
        "id": found.id,
        "problem": found.problem,
        "model": found.model,
        "sample": found.sample,
        "state": found.state,
        "outcome": found.outcome or found.state,
        "group": str(group),
        "words": verdict.get("told", ""),
        "speedup": f"{speedup['point']:.2f}x" if speedup else "",
        "submitted": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(found.submitted)),
        "seconds": f"{found.finished - found.submitted:.1f}" if found.finished is not None else "",
    }


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("kgbench.service", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every value that is filled in: no control characters, none that turn text around.
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
    return made


def _page(template: str, title: str, **values: Any) -> Response:
    style = asset("page.css")
    rules = {
        "default-src": "'none'",
        "style-src": hash_of(style),
        "img-src": "data:",  # the empty icon, which keeps browsers from asking for another
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    policy = "; ".join(f"{name} {allowed}" for name, allowed in rules.items())
    text = (
        _environment()
        .get_template("page.html.j2")
        .render(template=f"{template}.html.j2", title=title, style=style, **values)
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})
