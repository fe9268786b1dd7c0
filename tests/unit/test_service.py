"""The queue, the tokens and what a submitter is told, without a server."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import re
import socket
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgbench.core.details.union import DETAILS
from kgbench.core.details.where import Purpose, Where
from kgbench.core.errors import MachineError, UsageError
from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Library, Result, Window, result_from_json
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry
from kgbench.prompts.feedback import verdict_words
from kgbench.reports.page import document
from kgbench.service.access import Access
from kgbench.service.client import Client
from kgbench.service.database import Database, serving
from kgbench.service.errors import ServiceError, TokenRefused
from kgbench.service.problems import Problems
from kgbench.service.queue import Queue, Wanted
from kgbench.service.remote import RemoteSession
from kgbench.service.runs import Runs
from kgbench.service.settings import is_loopback
from kgbench.service.tokens import Caller, Rate, Tokens
from kgbench.service.verdicts import public_result, verdict_json
from kgbench.store.encoding import json_text
from kgbench.store.writer import RunStore
from tests.unit.made_details import SECRET, with_secrets
from tests.unit.made_results import timing

ALICE, BOB = Caller("alice"), Caller("bob")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with contextlib.closing(Database(tmp_path / "service")) as opened:
        tokens = Tokens(opened)
        for name in ("alice", "bob"):
            tokens.new(name, Rate(1000, 60))
        yield opened


@pytest.fixture
def open_access(tmp_path: Path) -> Iterator[Access]:
    """A service on loopback for which no token was made."""
    with contextlib.closing(Database(tmp_path / "open")) as opened:
        yield Access(Tokens(opened), without_token=True)


@pytest.fixture
def queue(database: Database) -> Queue:
    return Queue(database)


def wanted(key: str = "", source: str = "def t(): ...\n") -> Wanted:
    return Wanted("aten/t", "1" * 64, source, key)


def put(queue: Queue, caller: Caller, *keys: str) -> list[str]:
    return [name for name, _ in queue.submit(caller, [wanted(key) for key in keys])]


# --- the queue ---


def test_a_verdict_is_kept_once_and_never_from_an_attempt_that_was_given_up(queue: Queue) -> None:
    (name,) = put(queue, ALICE, "a")
    first = queue.claim()
    assert first is not None
    assert (first.id, first.state, first.attempts) == (name, "judging", 1)
    assert queue.claim() is None
    assert queue.recover() == 1
    second = queue.claim()
    assert second is not None
    assert not queue.finish(first, "passed", '{"told": "late"}')
    assert queue.finish(second, "timeout", '{"told": "right"}')
    assert not queue.finish(second, "passed", '{"told": "again"}')
    assert queue.recover() == 0
    kept = queue.get(name, "alice")
    assert (kept.outcome, kept.verdict, kept.attempts, kept.ended) == ("timeout", '{"told": "right"}', 2, 1)


def test_only_what_somebody_is_told_of_waits_for_the_disk(queue: Queue, database: Database) -> None:
    """Every write of a queue, with the level that SQLite had for it: 2 is FULL, 1 is NORMAL."""
    levels: list[int] = []
    plain = database.transaction

    @contextlib.contextmanager
    def watched(**options: bool) -> Iterator[sqlite3.Cursor]:
        with plain(**options) as cursor:
            levels.append(cursor.execute("PRAGMA synchronous").fetchone()[0])
            yield cursor

    database.transaction = watched  # type: ignore[method-assign]
    queue.submit(ALICE, [wanted("1")])
    claimed = queue.claim()
    assert claimed is not None
    assert queue.finish(claimed, "passed", "{}")
    assert levels == [2, 1, 2]


def test_another_process_sees_all_that_was_said_to_be_taken(queue: Queue, database: Database) -> None:
    names = put(queue, ALICE, "a", "b")
    with contextlib.closing(Database(database.path.parent)) as other:
        assert [each.id for each in Queue(other).newest("alice", 9)] == names[::-1]
        assert other.read("PRAGMA journal_mode")[0][0] == "wal"
        assert other.read("PRAGMA synchronous")[0][0] == 2  # FULL


def test_a_batch_is_taken_whole_or_not_at_all(queue: Queue) -> None:
    small = replace(ALICE, queue=2)
    with pytest.raises(ServiceError, match="3 more do not fit"):
        queue.submit(small, [wanted("a"), wanted("b"), wanted("c")])
    assert queue.newest("alice", 9) == []
    assert [new for _, new in queue.submit(small, [wanted("a"), wanted("b")])] == [True, True]
    assert [new for _, new in queue.submit(small, [wanted("a"), wanted("b")])] == [False, False]


def test_the_same_key_twice_in_a_batch_is_one_submission(queue: Queue) -> None:
    (one, first), (other, second) = queue.submit(ALICE, [wanted("a"), wanted("a")])
    assert (one == other, first, second) == (True, True, False)


def test_a_long_batch_holds_nobody_up(queue: Queue) -> None:
    put(queue, ALICE, *(f"a{number}" for number in range(5)))
    put(queue, BOB, "b")
    taken = [queue.claim() for _ in range(3)]
    assert [each.owner for each in taken if each] == ["alice", "bob", "alice"]


def test_what_a_withdrawn_token_left_waits_for_a_new_one(queue: Queue, database: Database) -> None:
    put(queue, ALICE, "a")
    Tokens(database).revoke("alice")
    assert queue.claim() is None
    Tokens(database).new("alice", Rate(1, 60))
    assert queue.claim() is not None


def test_a_server_that_ends_in_order_counts_no_attempt(queue: Queue) -> None:
    put(queue, ALICE, "a")
    for _ in range(3):
        claimed = queue.claim()
        assert claimed is not None
        assert claimed.attempts == 1
        queue.put_back(claimed)


def test_a_rate_counts_submissions_of_the_last_minute(queue: Queue, database: Database) -> None:
    slow = replace(ALICE, rate=Rate(2, 60))
    put(queue, slow, "a", "b")
    with pytest.raises(ServiceError) as caught:
        put(queue, slow, "c")
    assert (caught.value.status, 0 < (caught.value.retry_after_s or 0) <= 61) == (429, True)
    with database.transaction() as cursor:
        cursor.execute("UPDATE submissions SET submitted = submitted - 61")
    put(queue, slow, "c")


def test_old_verdicts_are_dropped_and_what_waits_is_not(queue: Queue, database: Database) -> None:
    old, new, waiting = put(queue, ALICE, "a", "b", "c")
    for _ in range(2):
        claimed = queue.claim()
        assert claimed is not None
        queue.finish(claimed, "passed", "{}")
    with database.transaction() as cursor:
        cursor.execute("UPDATE submissions SET finished = finished - 864000 WHERE id = ?", (old,))
        cursor.execute("UPDATE submissions SET submitted = submitted - 864000 WHERE id = ?", (waiting,))
    assert queue.forget(9) == 1
    assert {each.id for each in queue.newest("alice", 9)} == {new, waiting}


def test_only_one_server_works_on_a_folder(tmp_path: Path) -> None:
    with serving(tmp_path), pytest.raises(UsageError, match="another kgbench serve"), serving(tmp_path):
        pass
    with serving(tmp_path):
        pass


# --- tokens ---


def test_a_token_is_kept_as_a_hash_alone(database: Database) -> None:
    token = Tokens(database).new("carol", Rate.read("60/min"))
    assert Tokens(database).caller(token) == Caller("carol", Rate(60, 60), 1000, Tokens(database).caller(token).sha256)
    files = list(database.path.parent.iterdir())
    assert files
    assert not any(token.encode() in file.read_bytes() for file in files)
    assert {oct(file.stat().st_mode & 0o077) for file in files} == {"0o0"}


def test_a_withdrawn_token_opens_nothing_and_says_what_to_do(database: Database) -> None:
    tokens = Tokens(database)
    token = tokens.new("carol", Rate(60, 60))
    who = tokens.caller(token)
    tokens.revoke("carol")
    for look in (lambda: tokens.caller(token), lambda: tokens.check(who)):
        with pytest.raises(TokenRefused, match="kgbench token new carol") as caught:
            look()
        assert caught.value.status == 401
    with pytest.raises(UsageError, match="no token 'carol'"):
        tokens.revoke("carol")


@pytest.mark.parametrize("headers", [
    {"host": "a.example"}, {"host": "127.0.0.1.a.example"}, {}, {"host": "localhost", "origin": "http://a.example"},
    {"host": "localhost", "sec-fetch-site": "cross-site"}, {"host": "localhost:8650", "origin": "null"},
])  # fmt: skip
def test_a_foreign_page_cannot_ask_what_listens_on_loopback(open_access: Access, headers: dict[str, str]) -> None:
    with pytest.raises(ServiceError, match="requests of this machine alone"):
        open_access.caller("GET", headers)


def test_this_machine_asks_without_a_token(open_access: Access) -> None:
    for host in ("localhost:8650", "127.0.0.1", "[::1]:8650"):
        assert open_access.caller("POST", {"host": host, "origin": f"http://{host}"}).name == "local"
    with pytest.raises(TokenRefused):
        open_access.caller("GET", {"host": "localhost", "authorization": "Bearer kgb_wrong"})


def test_nobody_asks_without_one_where_a_token_was_made(database: Database) -> None:
    """A proxy on the same machine asks from loopback, for anybody."""
    with pytest.raises(TokenRefused):
        Access(Tokens(database), without_token=True).caller("GET", {"host": "localhost"})


def test_names_that_may_lead_anywhere_are_no_loopback() -> None:
    assert [is_loopback(each) for each in ("127.0.0.1", "127.8.8.8", "::1", "localhost")] == [True] * 4
    assert [is_loopback(each) for each in ("0.0.0.0", "::", "judge.example", "192.168.0.1")] == [False] * 4


# --- what is told ---


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Registry().find("cublas/cublasSdot_v2")


def failed(problem: Problem, detail: object, phase: Phase = Phase.FUZZ) -> Result:
    where = Where(Purpose.CALL, "", SECRET, sizes={"n": SECRET})
    case = CaseResult(SECRET, "", phase, "float32", {"n": SECRET}, Outcome.WRONG_VALUE, detail=detail, where=where)  # type: ignore[arg-type]
    return Result(
        problem.id, "m", 0, Outcome.WRONG_VALUE, detail=detail, where=where, cases=(case,),  # type: ignore[arg-type]
        library=Library(f"cuBLAS {13}", SECRET, {"operator": SECRET}), sandbox={"level": "full", "files": SECRET},
        log_tail=SECRET, memory_mb={SECRET: 1.0},
    )  # fmt: skip


@pytest.mark.parametrize("name", DETAILS)
def test_nothing_hidden_is_in_what_a_submitter_gets(problem: Problem, name: str) -> None:
    for detail in with_secrets(DETAILS[name]):
        told = json_text(verdict_json(public_result(problem, "def cublasSdot_v2(): ...\n", failed(problem, detail))))
        assert not [word for word in (SECRET, "7351") if word in told], told


def test_what_is_told_is_what_a_model_is_told(problem: Problem) -> None:
    result = failed(problem, next(with_secrets(DETAILS["shape"])))
    public = public_result(problem, "code", result)
    assert public.told == verdict_words(problem, result, code="code") == verdict_words(problem, public, code="code")
    assert result_from_json(json.loads(json_text(verdict_json(public)))) == public


def test_a_right_kernels_times_stay_what_they_are_and_its_hidden_cases_go(problem: Problem) -> None:
    window = Window("candidate", "window", 5, 7351.0, 7351.0)
    timed = replace(timing(1.5), windows=(window,), note=SECRET)
    bench = CaseResult("bench[0]", "", Phase.BENCH, "float32", {"n": SECRET}, Outcome.PASSED, timing=timed)
    hidden = CaseResult(SECRET, "", Phase.FUZZ, "float32", {"n": SECRET}, Outcome.PASSED)
    public = public_result(problem, "code", Result(problem.id, "m", 0, Outcome.PASSED, cases=(hidden, bench)))
    assert [(case.id, case.timing) for case in public.cases] == [("bench[0]", timing(1.5))]
    assert verdict_json(public)["speedup"]["point"] == pytest.approx(1.5)
    assert SECRET not in json_text(verdict_json(public))


def test_every_field_of_a_result_is_passed_on_or_withheld_on_purpose(problem: Problem) -> None:
    """A new field goes to no submitter before somebody has decided that it may."""
    withheld = {"detail", "where", "memory_mb", "evidence", "without"}
    told = {
        "problem", "model", "sample", "round", "outcome", "reason", "candidate_sha256", "problem_sha256", "source",
        "kind", "device", "interpreted", "deterministic", "preset", "overloads", "cases", "library", "sandbox",
        "seconds", "log_tail", "policy", "seed", "generation", "told", "device_name", "adapted",
    }  # fmt: skip
    assert {each.name for each in dataclasses.fields(Result)} == told | withheld
    public = public_result(problem, "code", failed(problem, next(with_secrets(DETAILS["value"]))))
    defaults = Result("", "", 0, Outcome.PASSED)
    assert all(getattr(public, name) == getattr(defaults, name) for name in withheld)


def test_a_shown_run_hides_what_a_verdict_hides(
    tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = {"started": "2026-01-02T03:04:05+00:00", "model": "m", "machine": {"name": SECRET}, "command": [SECRET],
            "device": {"name": "H200", "kind": "cuda", "sandbox": {"files": SECRET}}, "asked": {"folder": SECRET},
            "problems": [{"id": problem.id, "kind": problem.kind, "sha256": problem.sha256}]}  # fmt: skip
    store = RunStore.create(tmp_path, "20260102T030405Z-ab12cd", info, seed=SECRET)
    store.save_candidate(problem.id, 0, "code")
    store.append(failed(problem, next(with_secrets(DETAILS["value"]))))
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed=SECRET)
    runs = Runs(tmp_path, Problems())
    shown = json_text([runs.all(), runs.one(runs.ids()[0]), [board.to_json() for board in runs.boards()]])
    assert "wrong value" in shown
    assert SECRET not in shown
    assert str(tmp_path) not in shown
    assert b"H200" in runs.leaderboard()
    monkeypatch.setattr(document, "_vega", str)  # 33 MB that say nothing of the run
    packed = re.findall(rb'<script type="text/plain" id="[^"]*">([^<]*)</script>', runs.page(runs.ids()[0]))
    page = "".join(zlib.decompress(base64.b64decode(each)).decode() for each in packed)
    assert "wrong value" in page
    assert SECRET not in page
    with pytest.raises(ServiceError, match="there is no run"):
        runs.page("../service")


# --- asking ---


def test_an_answer_that_was_cut_off_is_asked_for_again() -> None:
    """As by a server that was killed behind the head of its answer."""
    whole = b'{"state": "done"}'
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole)

    def serve(listener: socket.socket) -> None:
        for body in (b"", whole[:5], whole):
            channel, _ = listener.accept()
            with channel:
                channel.recv(4096)
                channel.sendall(head + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        with contextlib.closing(Client(f"http://127.0.0.1:{listener.getsockname()[1]}", "", patience_s=20)) as client:
            assert client.ask("GET", "/") == {"state": "done"}
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(502, b"<html>", "status 502"), (503, b'{"error": {"number": "KGB721", "message": "disk full"}}', "disk full")],
)
def test_a_proxy_whose_service_is_gone_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, words: str
) -> None:
    """What answers is no sign that the service comes back."""
    client = Client("http://judge", "", patience_s=0.05)
    monkeypatch.setattr(client, "_once", lambda *asked: (status, http.client.HTTPMessage(), body))
    monkeypatch.setattr(client, "pause", lambda seconds: time.sleep(min(seconds, 0.01)))
    with pytest.raises(MachineError, match=rf"{words}.*--resume last") as caught:
        client.ask("GET", "/")
    assert caught.value.number == "KGB731"


def test_a_quota_is_waited_for_longer_than_a_service_may_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [(429, b"{}")] * 20 + [(200, b'"done"')]
    client = Client("http://judge", "", patience_s=0.05)
    monkeypatch.setattr(client, "_once", lambda *asked: (answers[0][0], http.client.HTTPMessage(), answers.pop(0)[1]))
    monkeypatch.setattr(client, "pause", lambda seconds: time.sleep(min(seconds, 0.01)))
    assert client.ask("GET", "/") == "done"


def test_a_harness_error_of_a_run_is_judged_again_and_other_verdicts_are_not() -> None:
    known = {"0": "harness error", "1": "passed"}
    asked: list[str] = []

    class Service:
        url = "http://judge"

        def ask(self, method: str, path: str, body: dict[str, str] | None = None) -> dict[str, object]:
            if path == "/v1/service":
                return {"state": "ready", "device": {}, "jobs": 1, "queue": 10}
            assert body is not None
            asked.append(body["key"].rpartition("-")[2])
            verdict = {"problem": "aten/t", "model": "", "sample": 0, "outcome": known[asked[-1]]}
            return {"id": "x", "state": "done", "new": False, "outcome": known[asked[-1]], "verdict": verdict}

    session = RemoteSession(Service(), "run")  # type: ignore[arg-type]
    assert session.judged({"problem": "aten/t", "source": ""}, lambda phase, detail: None).outcome is Outcome.PASSED
    assert asked == ["0", "1"]
