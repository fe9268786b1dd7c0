"""What processes say to each other: one class per operation, and no other place that builds such a message."""

from __future__ import annotations

import ast
import json
import re

import pytest

from kgbench.core.paths import PACKAGE
from kgbench.harness.wire import ahead, forks, judging
from kgbench.harness.wire.ahead import CompileAhead
from kgbench.harness.wire.forks import (
    EndCause,
    EndSession,
    EndWorker,
    ForkCompiler,
    Forked,
    ForkReferee,
    ForkWorker,
    NotImported,
    Refused,
    ServerReady,
    SessionEnded,
    WorkerEnded,
    WorkerForked,
    WorkerLimits,
    WorkerSpec,
)
from kgbench.harness.wire.judging import (
    Broken,
    BrokenDevice,
    Judge,
    Judged,
    NoRoom,
    Progress,
    RefereeFailed,
    RefereeReady,
    StartReferee,
    Untimed,
)
from kgbench.harness.wire.protocol import ProtocolError
from kgbench.harness.wire.requests import (
    CallOnce,
    FullPrecision,
    Hello,
    LoadCandidate,
    LoadLibrary,
    LoadReference,
    MakeModule,
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
from kgbench.harness.wire.typed import Typed, read_one_of
from kgbench.selftest.ablation.requests import LenientCall, LenientPrepare

CALL = CallOnce("neg", [{"tensor": [0, 8, "float32", [2], [1], 0]}], {"out": None}, [64, 128], [8], late=True, seed=7)
LENIENT = LenientCall(**vars(CALL), lenient=["float32"])  # type: ignore[arg-type]
REQUESTS = (
    Hello(), Map(4096), Unmap(), CALL, PlaceOutputs(), Prepare(CALL, 3, 512), OpenWindow(9, 3, True, False),
    Observe(False, True, "mark"), Observed(), LoadCandidate("text", {"": ["neg"]}, True), LoadLibrary({"": "aten:neg"}),
    LoadReference({"": {"reference": {}, "parameters": ["self"]}}, "zeros"), Probe(), LENIENT, FullPrecision(),
    MakeModule("ModelNew", [3], [["weight", [0, 8]]], [], compiled=True),
    LenientPrepare(LENIENT, 3, 512),
)  # fmt: skip
SPEC = WorkerSpec("candidate", "a:B", "cpu", "", {}, ["/hidden"], [], WorkerLimits(1, 2, 3, 4))
OF_TRUSTED = (ahead.__name__, forks.__name__, judging.__name__)
TRUSTED = (
    NotImported("cupy", "no libcuda"), ServerReady({"torch": "2.11"}, {}, ""), ForkReferee("s", "a:b", "", "/cache"),
    ForkWorker(SPEC), EndSession("s"), Forked(7), Refused("two threads"), SessionEnded(), EndWorker(EndCause.DEADLINE),
    WorkerForked(), WorkerEnded(EndCause.OUTPUT, "", -9, 1 << 30, "tail", 12.5), WorkerEnded(), StartReferee({}, {}),
    Judge({}), RefereeReady({"versions": {}}, {"major": 9}), RefereeFailed("no memory"), Progress("check", "1/3"),
    Judged({}, {}), BrokenDevice("1 + 1 gave 3"), NoRoom("full"), Untimed("busy", "busy"), Broken("Traceback"),
    ForkCompiler("s", SPEC), CompileAhead("text", {"a": ["b"]}, [["a", [1], {}]], {"major": 9}),
)  # fmt: skip


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_a_request_survives_its_way(request_: Request) -> None:
    message = json.loads(json.dumps(request_.numbered(5)))
    assert (message["op"], message["id"]) == (request_.op, 5)
    assert type(request_).decode(message) == request_


@pytest.mark.parametrize("message", TRUSTED, ids=lambda each: type(each).__name__)
def test_a_message_among_trusted_processes_survives_its_way(message: Typed) -> None:
    read = read_one_of(json.loads(json.dumps(message.encode())), Hello, type(message))
    assert read == message
    assert [type(each) for each in vars(read).values()] == [type(each) for each in vars(message).values()]


def test_what_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="'forked' instead of refused or session ended"):
        read_one_of(Forked(7).encode(), Refused, SessionEnded)
    with pytest.raises(ProtocolError, match=r"'forked' with wrong fields: KeyError\('pid'\)"):
        read_one_of({"op": "forked"}, Forked)


def test_every_trusted_message_is_tried_and_has_a_name_of_its_own() -> None:
    kinds = [each for each in Typed.__subclasses__() if each.__module__ in OF_TRUSTED]
    assert {type(each) for each in TRUSTED} | {WorkerSpec, WorkerLimits} == set(kinds)
    assert len({each.op for each in kinds}) == len(kinds)


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
        if re.search(r"""["'](op|event)["']""", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Dict)
        and any(isinstance(key, ast.Constant) and key.value in ("op", "event") for key in node.keys)
    }
    assert found == {"harness/wire/typed.py"}
