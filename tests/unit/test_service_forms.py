"""What a service answers is of the form that it says: its OpenAPI document, and Prometheus's text. A real server."""

from __future__ import annotations

import contextlib
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from kgbench.service.client import Client
from kgbench.service.errors import ServiceError
from tests.unit.service_process import Server

parser: Any = pytest.importorskip("prometheus_client.parser")
validate: Any = pytest.importorskip("jsonschema").validate
pytest.importorskip("fastapi")
pytestmark = pytest.mark.xdist_group("service")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """On loopback, without tokens."""
    found = Server(tmp_path_factory.mktemp("service"))
    yield found
    assert found.close() == 0


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with contextlib.closing(Client(server.url, "", patience_s=20)) as made:
        yield made


def test_every_answer_of_the_openapi_document_has_an_example_of_its_form(client: Client) -> None:
    document = client.ask("GET", "/openapi.json")
    schemas = document["components"]["schemas"]
    for schema in schemas.values():
        # Its references lead into the document.
        validate(schema["examples"][0], {**schema, "components": document["components"]})
    answers = [
        (operation, kind, content)
        for path in document["paths"].values()
        for operation in path.values()
        for answer in operation["responses"].values()
        for kind, content in answer["content"].items()
    ]
    assert len(answers) > 50
    for operation, kind, content in answers:
        schema = content.get("schema", {})
        assert "example" in content or "$ref" in {**schema, **schema.get("items", {})}, (operation["summary"], kind)
    # What is sent has that form, too.
    (found,) = client.ask("GET", "/v1/problems")[:1]
    validate(found, schemas["Problem"])
    validate(client.ask("GET", "/v1/service"), schemas["Service"])
    done = client.ask("POST", "/v1/submissions", {"problem": "aten/t", "source": "# passes"})
    done = client.ask("GET", f"/v1/submissions/{done['id']}?wait=20")
    validate(done, schemas["Status"])


def test_metrics_are_read_by_the_parser_of_prometheus(server: Server, client: Client) -> None:
    with pytest.raises(ServiceError):
        client.ask("GET", "/v1/none")
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.read().decode()
    families = {each.name: each for each in parser.text_string_to_metric_families(text)}
    assert all(each.type != "unknown" and each.documentation for each in families.values())
    states = families["kgbench_submissions"]
    assert (states.type, {each.labels["state"] for each in states.samples}) == (
        "gauge",
        {"queued", "judging", "done"},
    )
    assert families["kgbench_verdicts"].type == "counter"
    assert families["kgbench_verdict_seconds"].type == "histogram"
    labels = [each.labels for each in families["kgbench_http_answers"].samples]
    assert {"method": "GET", "status": "404", "error": "KGB716"} in labels
