"""Real requests to a real server process: who is let in, what is refused, what is told, what survives."""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.harness.session.cancellation import Cancellation, Cancelled
from kgbench.service.client import Client
from kgbench.service.database import Database
from kgbench.service.errors import ServiceError, TokenRefused
from kgbench.service.remote import RemoteEvaluator
from kgbench.service.tokens import DEFAULT_QUEUE, Rate, Tokens
from kgbench.store.reader import read_run
from tests.unit.service_process import MAX_BODY, SECRET, Server

for _module in ("fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(_module)

pytestmark = pytest.mark.xdist_group("service")
NAMES = itertools.count()
RIGHT = "def t(self):\n    return self.t()  # passes\n"
WRONG = "def t(self):\n    return self\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Listens on every address, so that it asks for tokens."""
    folder = tmp_path_factory.mktemp("service")
    with contextlib.closing(Database(folder)) as database:
        Tokens(database).new("operator", Rate(1, 1))
    found = Server(folder, "0.0.0.0")
    yield found
    assert found.close() == 0


def new_token(server: Server, name: str = "", rate: str = "100000/min", queue: int = DEFAULT_QUEUE) -> tuple[str, str]:
    """(name, token)."""
    name = name or f"user-{next(NAMES)}"
    with contextlib.closing(Database(server.folder)) as database:
        return name, Tokens(database).new(name, Rate.read(rate), queue)


def revoke(server: Server, name: str) -> None:
    with contextlib.closing(Database(server.folder)) as database:
        Tokens(database).revoke(name)


@pytest.fixture
def token(server: Server) -> str:
    return new_token(server)[1]


@pytest.fixture
def client(server: Server, token: str) -> Iterator[Client]:
    with contextlib.closing(Client(server.url, token, patience_s=20)) as made:
        yield made


def ask(
    server: Server, method: str, path: str, token: str = "", body: bytes | None = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One plain request, without the client's patience."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def number_in(text: bytes) -> str:
    found: str = json.loads(text)["error"]["number"]
    return found


def post(server: Server, token: str, **fields: Any) -> tuple[int, http.client.HTTPMessage, bytes]:
    body = json.dumps({"problem": "aten/t", "source": RIGHT, **fields}).encode()
    return ask(server, "POST", "/v1/submissions", token, body, Content_Type="application/json")


# --- who is let in ---


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/openapi.json", "/v1/problems", "/submissions", "/none"])
def test_nothing_is_answered_without_a_good_token(server: Server, path: str) -> None:
    for given in ("", "kgb_wrong"):
        status, headers, text = ask(server, "GET", path, given)
        assert (status, number_in(text)) == (401, "KGB710")
        assert [each.split()[0] for each in headers.get_all("WWW-Authenticate") or ()] == ["Basic", "Bearer"]


def test_a_browser_sends_the_token_as_a_password_and_hands_nothing_in_by_it(server: Server, token: str) -> None:
    basic = "Basic " + base64.b64encode(f"anybody:{token}".encode()).decode()
    assert ask(server, "GET", "/health", Authorization=basic)[0] == 200
    body = json.dumps({"problem": "aten/t", "source": RIGHT}).encode()
    assert ask(server, "POST", "/v1/submissions", body=body, Authorization=basic)[0] == 401


def test_what_one_has_handed_in_nobody_else_sees(server: Server, client: Client) -> None:
    mine = client.ask("POST", "/v1/submissions", {"problem": "aten/t", "source": RIGHT})["id"]
    batch = client.ask("POST", "/v1/batches", {"submissions": [{"problem": "aten/t", "source": RIGHT}]})["id"]
    _, other = new_token(server)
    for path in (f"/v1/submissions/{mine}", f"/v1/submissions/{mine}/events", f"/v1/submissions/{mine}?wait=1",
                 f"/submissions/{mine}", f"/v1/batches/{batch}", f"/v1/batches/{batch}/events"):  # fmt: skip
        status, _, text = ask(server, "GET", path, other)
        assert (status, number_in(text)) == (404, "KGB716"), path
    assert json.loads(ask(server, "GET", "/v1/submissions", other)[2]) == []


# --- what is refused ---


@pytest.mark.parametrize(
    ("fields", "status", "number", "words"),
    [
        ({"problem": "aten/tt"}, 404, "KGB113", "aten/t"),
        ({"source": ""}, 422, "KGB714", "source"),
        ({"source": "\ud800"}, 422, "KGB714", "surrogate"),
        ({"source": "x" * ((1 << 20) + 1)}, 422, "KGB714", "1048577 bytes"),
        ({"sample": -1}, 422, "KGB714", "sample"),
        ({"seed": "mine"}, 422, "KGB714", "seed"),
        ({"problem_sha256": "0" * 64}, 409, "KGB719", "another version"),
    ],
)
def test_a_wrong_field_is_named(
    server: Server, token: str, fields: dict[str, Any], status: int, number: str, words: str
) -> None:
    got, _, text = post(server, token, **fields)
    assert (got, number_in(text)) == (status, number)
    assert words in json.loads(text)["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/submissions", b"{", 422),
        ("POST", "/v1/submissions", b"\xff\xfe", 422),
        ("POST", "/v1/batches", b'{"submissions": []}', 422),
        ("DELETE", "/v1/submissions", b"", 405),
        ("GET", "/v1/problems/aten/t/prompt?language=fortran", None, 422),
        ("GET", "/v1/submissions/" + "x" * 5000, None, 404),
        ("GET", "/runs/..%2f..%2fetc", None, 404),
        ("GET", "/v1/runs/none", None, 404),
        ("GET", f"/v1/submissions?before={10**30}", None, 422),
        ("GET", f"/submissions?before={10**30}", None, 422),
    ],
)
def test_a_wrong_request_gets_an_error_with_a_number(
    server: Server, token: str, method: str, path: str, body: bytes | None, status: int
) -> None:
    got, headers, text = ask(server, method, path, token, body, Content_Type="application/json")
    assert got == status
    assert number_in(text).startswith("KGB7")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_body_that_is_too_large_is_not_read(server: Server, token: str) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as channel:
        head = f"POST /v1/submissions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
        channel.sendall(f"{head}Content-Length: {1 << 40}\r\n\r\n".encode())
        assert b" 413 " in channel.recv(100)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as channel:
        channel.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):  # it hangs up in the middle
            for _ in range(MAX_BODY // 65536 + 2):
                channel.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        assert b" 413 " in channel.recv(100)


def test_nobody_holds_a_place_by_sending_slowly(server: Server, token: str) -> None:
    """Bytes of a head, one after the other; then a head at once and no body. Others are answered meanwhile."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as channel:
        with contextlib.suppress(ConnectionError):
            for _ in range(300):
                channel.sendall(b"G")
                time.sleep(0.01)
        with contextlib.suppress(ConnectionError):
            assert channel.recv(10) == b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as channel:
        head = f"POST /v1/submissions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n"
        channel.sendall(head.encode() + b"{")
        assert ask(server, "GET", "/health", token)[0] == 200
        assert b" 408 " in channel.recv(100)


def test_submissions_are_paged_by_their_numbers(server: Server, client: Client, token: str) -> None:
    ids = [client.ask("POST", "/v1/submissions", {"problem": "aten/t", "source": RIGHT})["id"] for _ in range(5)]
    found: list[str] = []
    path = "/v1/submissions?limit=2"
    while page := client.ask("GET", path):
        found += (each["id"] for each in page)
        path = f"/v1/submissions?limit=2&before={page[-1]['number']}"
    assert found == ids[::-1]


def test_quotas_say_when_to_come_again(server: Server) -> None:
    _, slow = new_token(server, rate="2/h")
    assert [post(server, slow)[0] for _ in range(2)] == [202, 202]
    status, headers, text = post(server, slow)
    assert (status, number_in(text)) == (429, "KGB711")
    assert 0 < int(headers["Retry-After"]) <= 3600
    _, small = new_token(server, queue=2)
    assert [post(server, small, source="waits 0.3")[0] for _ in range(2)] == [202, 202]
    status, headers, text = post(server, small)
    assert (status, number_in(text), int(headers["Retry-After"]) > 0) == (429, "KGB712", True)
    with contextlib.closing(Client(server.url, small)) as patient:
        assert patient.ask("POST", "/v1/submissions", {"problem": "aten/t", "source": RIGHT})["new"]


# --- what is told ---


def events_of(server: Server, token: str, path: str, **headers: str) -> list[tuple[str, Any]]:
    status, got, text = ask(server, "GET", path, token, **headers)
    assert (status, got["Content-Type"].split(";")[0]) == (200, "text/event-stream")
    blocks = [block for block in text.decode().split("\n\n") if block and not block.startswith(":")]
    lines = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [(each["event"], json.loads(each["data"])) for each in lines]


def test_a_verdict_is_told_without_anything_hidden(server: Server, client: Client, token: str) -> None:
    name = client.ask("POST", "/v1/submissions", {"problem": "aten::t", "source": WRONG + "# waits 0.8"})["id"]
    streamed = events_of(server, token, f"/v1/submissions/{name}/events")
    assert [kind for kind, _ in streamed][-1] == "verdict"
    assert {data["phase"] for kind, data in streamed if kind == "phase"} <= {"check"}
    polled = client.ask("GET", f"/v1/submissions/{name}")
    assert polled == streamed[-1][1]
    assert (polled["outcome"], polled["problem"]) == ("wrong value", "aten/t")
    assert polled["words"].startswith("Verdict: wrong value: ")
    pages = [ask(server, "GET", path, token)[2].decode() for path in (f"/submissions/{name}", "/submissions", "/")]
    about = [client.ask("GET", "/v1/service"), ask(server, "GET", "/metrics", token)[2].decode()]
    assert SECRET not in json.dumps([streamed, polled, pages, about])
    assert "7351" not in json.dumps([streamed[-1][1]["words"], streamed[-1][1]["verdict"]["cases"]])
    assert 'kgbench_verdicts_total{outcome="wrong value"}' in about[1]


def test_a_batch_streams_its_verdicts_and_goes_on_behind_the_last_one(server: Server, token: str) -> None:
    with contextlib.closing(Client(server.url, token)) as client:
        several = [{"problem": "aten/t", "source": RIGHT, "key": f"b{number}"} for number in range(5)]
        batch = client.ask("POST", "/v1/batches", {"submissions": several})
        streamed = events_of(server, token, f"/v1/batches/{batch['id']}/events")
        assert [kind for kind, _ in streamed] == ["verdict"] * 5 + ["end"]
        ids = {data["id"] for kind, data in streamed if kind == "verdict"}
        assert ids == {each["id"] for each in batch["submissions"]}
        assert client.ask("GET", f"/v1/batches/{batch['id']}")["done"] == 5
        again = client.ask("POST", "/v1/batches", {"submissions": several})
    assert [(each["id"], each["new"]) for each in again["submissions"]] == [
        (each["id"], False) for each in batch["submissions"]
    ]
    with contextlib.closing(Database(server.folder)) as database:
        rows = database.read("SELECT ended FROM submissions WHERE batch = ? ORDER BY ended", batch["id"])
    third = str(rows[2]["ended"])
    assert len(events_of(server, token, f"/v1/batches/{batch['id']}/events", Last_Event_ID=third)) == 3


def test_examples_of_the_openapi_document_are_taken(server: Server, client: Client, token: str) -> None:
    document = json.loads(ask(server, "GET", "/openapi.json", token)[2])
    schemas = document["components"]["schemas"]
    assert document["security"] == [{"token": []}]
    assert client.ask("POST", "/v1/submissions", schemas["Submit"]["examples"][0])["problem"] == "aten/t"
    assert len(client.ask("POST", "/v1/batches", schemas["SubmitBatch"]["examples"][0])["submissions"]) == 2
    assert set(schemas["Status"]["examples"][0]) == set(schemas["Status"]["properties"])


def test_problems_and_prompts_are_what_a_model_is_told(client: Client) -> None:
    assert {"id", "summary"} <= set(client.ask("GET", "/v1/problems")[0])
    found = client.ask("GET", "/v1/problems/cublas/cublasSscal_v2")
    assert found["entries"][0].startswith("cublasSscal_v2(")
    prompt = client.ask("GET", "/v1/problems/cublas/cublasSscal_v2/prompt")
    assert "cublasSscal_v2" in prompt["turns"][-1]["text"]


def test_a_check_can_be_cancelled_and_the_next_one_works(server: Server, token: str) -> None:
    cancellation = Cancellation()
    with RemoteEvaluator(server.url, token) as evaluator:
        threading.Timer(0.1, cancellation.cancel).start()
        with pytest.raises(Cancelled):
            evaluator.check("aten/t", "waits 3", cancellation=cancellation)
        assert evaluator.check("aten/t", RIGHT, timing=False).outcome is Outcome.PASSED
        assert evaluator.problem("t").id == "aten/t"


# --- tokens that are withdrawn ---


def test_a_withdrawn_token_is_told_to_whoever_waits_and_loses_nothing(server: Server) -> None:
    name, token = new_token(server)
    with RemoteEvaluator(server.url, token) as evaluator:
        assert evaluator.check("aten/t", RIGHT).outcome is Outcome.PASSED
        assert evaluator.check("aten/t", WRONG).reward(0) == 0.0
        with pytest.raises(ServiceError, match="aten/t"):
            evaluator.check("aten/tt", RIGHT)
        threading.Timer(0.3, revoke, (server, name)).start()
        with pytest.raises(TokenRefused, match=f"token of {name} was withdrawn.*kgbench token new {name}"):
            evaluator.check("aten/t", "waits 20")
    assert ask(server, "GET", "/health", token)[0] == 401
    _, better = new_token(server, name)
    kept = json.loads(ask(server, "GET", "/v1/submissions", better)[2])
    assert [each["outcome"] for each in kept][-2:] == ["wrong value", "passed"]


@pytest.mark.in_turn("kgbench/service/", turns=3)
def test_a_run_goes_on_after_its_token_was_withdrawn(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = tmp_path / "kernels" / "aten"
    kernels.mkdir(parents=True)
    for problem, text in {"add": "passes", "mm": "waits 3 passes", "t": "wrong"}.items():
        (kernels / f"{problem}.py").write_text(f"def {problem}(*args): ...  # {text}\n")
    monkeypatch.chdir(tmp_path)
    name, token = new_token(server, queue=1)
    run = ["run", "--server", server.url, "--model", "dir:kernels", "--problems", "aten/add,aten/mm,aten/t"]

    def when_one_is_done() -> None:
        """The second one is submitted then, since one may be without a verdict."""
        with contextlib.closing(Database(server.folder)) as database:
            while not database.read("SELECT 1 FROM submissions WHERE owner = ? AND problem = 'aten/mm'", name):
                time.sleep(0.01)
        revoke(server, name)

    waiting = threading.Thread(target=when_one_is_done)
    waiting.start()
    told = CliRunner().invoke(main, run, env={"KGBENCH_TOKEN": token})
    waiting.join()
    assert told.exit_code == 2
    assert f"KGB710: the token of {name} was withdrawn" in told.output
    assert "kgbench run --resume" in told.output
    (folder,) = (tmp_path / "runs").iterdir()
    before = read_run(folder).results
    _, better = new_token(server, name)
    on = ["run", "--server", server.url, "--resume", str(folder)]
    told = CliRunner().invoke(main, on, env={"KGBENCH_TOKEN": better})
    assert told.exit_code == 0, told.output
    stored = read_run(folder)
    assert stored.results[: len(before)] == before
    assert {result.problem: str(result.outcome) for result in stored.results} == {
        "aten/add": "passed", "aten/mm": "passed", "aten/t": "wrong value",
    }  # fmt: skip
    assert len(json.loads(ask(server, "GET", "/v1/submissions", better)[2])) == 3
    assert token not in (folder / "run.json").read_text()
    assert SECRET not in (folder / "results.jsonl").read_text()


# --- a server that is killed ---


@pytest.mark.in_turn("kgbench/service/", turns=3)
def test_a_killed_server_goes_on_with_what_it_had_taken(tmp_path: Path) -> None:
    """On loopback, without tokens: some are done, two at work, the others wait when it is killed."""
    server = Server(tmp_path / "service")
    with contextlib.closing(Client(server.url, "", patience_s=20)) as client:
        texts = [*[RIGHT] * 5, *["waits 0.5 passes"] * 3, WRONG]
        sent = [
            client.ask("POST", "/v1/submissions", {"problem": "aten/t", "source": text, "key": f"k{number}"})
            for number, text in enumerate(texts)
        ]
        done = client.ask("GET", f"/v1/submissions/{sent[4]['id']}?wait=20")
        server.kill()
        again = threading.Thread(target=server.begin)
        again.start()
        status = client.ask("POST", "/v1/submissions", {"problem": "aten/t", "source": WRONG, "key": "k8"})
        again.join()
        assert (status["id"], status["new"]) == (sent[8]["id"], False)
        ended = [client.ask("GET", f"/v1/submissions/{each['id']}?wait=20") for each in sent]
        assert [each["outcome"] for each in ended] == ["passed"] * 8 + ["wrong value"]
        assert ended[4] == done
        assert len(client.ask("GET", "/v1/submissions")) == len(texts)
    assert server.close() == 0
