"""What a referee asks of a worker: one class per operation, and no other place that builds such a message."""

from __future__ import annotations

import ast
import json

import pytest

from kgbench.core.paths import PACKAGE
from kgbench.harness.wire.requests import (
    CallOnce,
    Hello,
    LoadCandidate,
    LoadLibrary,
    LoadReference,
    Map,
    Observe,
    Observed,
    OpenWindow,
    PlaceOutputs,
    Prepare,
    Probe,
    Request,
    Unmap,
)
from kgbench.selftest.ablation.requests import LenientCall, LenientPrepare

CALL = CallOnce("neg", [{"tensor": [0, 8, "float32", [2], [1], 0]}], {"out": None}, [64, 128], [8], late=True, seed=7)
LENIENT = LenientCall(**vars(CALL), lenient=["float32"])  # type: ignore[arg-type]
REQUESTS = (
    Hello(), Map(4096), Unmap(), CALL, PlaceOutputs(), Prepare(CALL, 3, 512), OpenWindow(9, 3, True, False),
    Observe(False, True, "mark"), Observed(), LoadCandidate("text", {"": ["neg"]}, True), LoadLibrary({"": "aten:neg"}),
    LoadReference({"": {"reference": {}, "parameters": ["self"]}}, "zeros"), Probe(), LENIENT,
    LenientPrepare(LENIENT, 3, 512),
)  # fmt: skip
NOT_OF_WORKERS = {"harness/workers/handle.py", "harness/session/referees.py", "harness/session/server.py"}
"""Modules that build messages to fork servers and supervisors."""


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_a_request_survives_its_way(request_: Request) -> None:
    message = json.loads(json.dumps(request_.encode(5)))
    assert (message["op"], message["id"]) == (request_.op, 5)
    assert type(request_).decode(message) == request_


def test_every_operation_has_a_name_of_its_own() -> None:
    kinds = [each for each in Request.__subclasses__() if each.__module__ == Request.__module__]
    assert {type(each) for each in REQUESTS} >= set(kinds)
    assert len({each.op for each in kinds}) == len(kinds)


def test_a_field_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError, match="stride"):
        Prepare.decode({"call": CALL.content(), "calls": 3})


def test_what_is_asked_of_a_lenient_worker_is_an_ordinary_call_to_others() -> None:
    assert CallOnce.decode(LENIENT.content()) == CALL
    assert LenientCall.decode(CALL.content()).lenient == ()


def test_nobody_else_builds_one() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in (PACKAGE / "harness").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict) and any(isinstance(key, ast.Constant) and key.value == "op" for key in node.keys)
    }
    assert found == {"harness/wire/requests.py", *NOT_OF_WORKERS}
