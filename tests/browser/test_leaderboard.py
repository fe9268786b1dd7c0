"""The leaderboard's page in a real browser: no script, nobody asked, nothing wider than the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.reports.leaderboard import boards
from kgbench.reports.model import report_of
from kgbench.reports.page.ranking import write_leaderboard
from kgbench.store.reader import read_run
from tests.browser.conftest import Open
from tests.browser.made_run import HOSTILE

pytestmark = pytest.mark.in_turn("kgbench/reports/", "tests/browser/")


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_a_leaderboard_opens_at_any_width(new_tab: Open, run: Path, tmp_path: Path, width: int, scheme: str) -> None:
    file = tmp_path / "board.html"
    size = write_leaderboard(boards([report_of(read_run(run))]), file)
    assert size == file.stat().st_size
    opened = new_tab(width=width, scheme=scheme)
    opened.tab.goto(file.as_uri())
    titles = opened.tab.locator("h2").all_inner_texts()
    assert titles == ["NVIDIA H200, aten", "NVIDIA H200, cublas", "NVIDIA H200, vllm"]
    assert HOSTILE[:40] in opened.tab.inner_text("tbody >> nth=0")
    assert opened.tab.locator("img, script").count() == 0
    assert opened.overflow() <= 0
    assert opened.said == []
    assert opened.asked == [file.as_uri()]
