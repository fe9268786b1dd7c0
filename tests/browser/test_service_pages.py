"""The pages of a service in a real browser: whatever a submitter or a candidate wrote stays text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbench.service.client import Client
from kgbench.service.database import Database
from kgbench.service.tokens import Rate, Tokens
from tests.browser.conftest import Open, Opened
from tests.browser.made_run import HOSTILE
from tests.unit.service_process import Server

for _module in ("fastapi", "uvicorn", "prometheus_client"):
    pytest.importorskip(_module)

pytestmark = pytest.mark.in_turn("kgbench/service/", "kgbench/reports/", "tests/browser/", together=True)
CODE = f'def t(self):  # does not compile\n    """{HOSTILE}"""\n'


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("service")
    with contextlib.closing(Database(folder)) as database:
        return Tokens(database).new("alice", Rate(1000, 60)), folder


@pytest.fixture(scope="module")
def server(token: tuple[str, Path], run: Path) -> Iterator[Server]:
    found = Server(token[1], runs=run.parent)
    yield found
    assert found.close() == 0


@pytest.fixture(scope="module")
def submitted(server: Server, token: tuple[str, Path]) -> str:
    """The id of a submission whose names, code and log mean harm, once it has its verdict."""
    with contextlib.closing(Client(server.url, token[0], patience_s=20)) as client:
        body = {"problem": "aten/t", "source": CODE, "model": HOSTILE, "key": HOSTILE}
        name: str = client.ask("POST", "/v1/submissions", body)["id"]
        assert client.ask("GET", f"/v1/submissions/{name}?wait=20")["outcome"] == "compile error"
    return name


def opened(new_tab: Open, server: Server, token: str, path: str, width: int) -> Opened:
    found = new_tab(width=width, http_credentials={"username": "anybody", "password": token})
    found.tab.goto(server.url + path)
    return found


@pytest.mark.parametrize("width", [400, 1280])
def test_a_submitters_text_stays_text(
    new_tab: Open, server: Server, token: tuple[str, Path], submitted: str, width: int
) -> None:
    for path, times in (("/submissions", 1), (f"/submissions/{submitted}", 3)):  # name; and code, log
        page = opened(new_tab, server, token[0], path, width)
        assert page.tab.inner_text("main").count(HOSTILE[:40]) == times
        assert "\u202e" not in page.tab.content()
        assert page.tab.locator("img, script, iframe").count() == 0
        assert page.tab.title() != "owned"
        assert page.overflow() <= 0
        assert page.said == []
        assert page.asked == [server.url + path]


def test_shown_runs_stay_text_and_pages_lead_on(
    new_tab: Open, server: Server, token: tuple[str, Path], submitted: str
) -> None:
    page = opened(new_tab, server, token[0], "/", 1280)
    for name, words in {"Problems": "aten/softmax", "Submissions": "compile error", "Runs": HOSTILE[:40]}.items():
        page.tab.click(f"nav >> text={name}")
        assert words in page.tab.inner_text("main")
        assert page.overflow() <= 0
    assert page.tab.get_attribute("main a:has-text('made')", "href") == "/runs/made"
    page.tab.goto(server.url + "/leaderboard")
    assert HOSTILE[:40] in page.tab.inner_text("main")
    page.tab.goto(server.url + "/problems/cublas/cublasSscal_v2")
    assert "cublasSscal_v2(" in page.tab.inner_text("main")
    assert page.tab.title() != "owned"
    assert page.said == []
    assert {address.partition("/")[0] + "//" + address.split("/")[2] for address in page.asked} == {server.url}
