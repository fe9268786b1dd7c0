"""A cluster whose head node is gone: kgbench ends in order before Ray ends the process, which says nothing of a run."""

from __future__ import annotations

import socket
import time

import pytest

from kgbench.cluster import connection, session
from kgbench.core.errors import KgbenchError
from kgbench.core.outcomes import Outcome
from tests.unit.test_cluster import Field, job


def test_a_head_node_that_is_gone_ends_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "GONE_S", 0.2)
    monkeypatch.setattr(session, "LOOK_S", 0.05)
    field = Field("a")
    field.prepare = lambda node: setattr(node, "judging", lambda job: time.sleep(0.05))
    with socket.create_server(("127.0.0.1", 0)) as head:
        field.ray.head = f"127.0.0.1:{head.getsockname()[1]}"
        with field.session() as judging:
            assert judging.evaluate(job()).outcome is Outcome.PASSED
            head.close()
            futures = [judging.submit(job(sample=number)) for number in range(1000)]
            with pytest.raises(KgbenchError, match=r"head node .* has not answered .* --resume last --ray") as raised:
                futures[-1].result(10)
    assert raised.value.number == "KGB333"


def test_a_head_node_that_comes_back_in_time_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "GONE_S", 30.0)
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = head.getsockname()
    cluster = connection.Cluster(None, f"127.0.0.1:{address[1]}")
    assert not cluster.head_answers()
    with socket.create_server(address):
        assert cluster.head_answers()
    monkeypatch.setattr(connection, "GONE_S", 0.0)
    with pytest.raises(KgbenchError, match="has not answered"):
        cluster.head_answers()
