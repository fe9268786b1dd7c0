"""Answers in JSON: a submission as its owner may see it, and an error with its number."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

from kgbench.core.errors import KgbenchError
from kgbench.service.errors import ServiceError
from kgbench.service.queue import Submission


def refused(error: KgbenchError) -> JSONResponse:
    """The answer for any error of kgbench; one that is not a ServiceError gets the status of a bad request."""
    if not isinstance(error, ServiceError):
        error = ServiceError(error.number, error.text, 400)
    answer = JSONResponse(error.to_json(), error.status, {**error.headers, "X-Kgbench-Error": error.number})
    if error.status == 401:
        # A browser asks for a password on Basic, and the token is the password. It reads one challenge a header.
        for challenge in ('Basic realm="kgbench: the password is your token", charset="UTF-8"', "Bearer"):
            answer.headers.append("WWW-Authenticate", challenge)
    return answer


def status_json(submission: Submission, *, new: bool = True) -> dict[str, Any]:
    """A submission in the form of ``models.Status``."""
    verdict = json.loads(submission.verdict) if submission.verdict else None
    return {
        "id": submission.id,
        "number": submission.number,
        "batch": submission.batch,
        "problem": submission.problem,
        "model": submission.model,
        "sample": submission.sample,
        "round": submission.round,
        "state": submission.state,
        "submitted": submission.submitted,
        "finished": submission.finished,
        "new": new,
        "outcome": submission.outcome,
        "words": verdict["told"] if verdict else None,
        "verdict": verdict,
    }
