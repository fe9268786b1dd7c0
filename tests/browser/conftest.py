"""A page of a made-up run, opened in headless Chromium. What the browser says or asks for is kept for the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kgbench.reports.page.document import write_page
from kgbench.reports.page.source import page_source
from kgbench.store.reader import read_run
from tests.browser.made_run import make_run
from tests.conftest import chromium

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip


@dataclass
class Opened:
    """A page in a tab of its own, and everything that a user must never see or pay for."""

    tab: Any
    said: list[str] = field(default_factory=list)
    """On the console, and errors that nobody caught."""
    asked: list[str] = field(default_factory=list)
    """Addresses that were requested."""
    drawn: int = 0

    def open(self, file: Path) -> None:
        self.tab.goto(file.as_uri())
        self.wait()

    def wait(self) -> None:
        """Until one more view is there, its charts included."""
        self.drawn += 1
        self.tab.wait_for_selector(f'html[data-drawn="{self.drawn}"]')

    def follow(self, link: Any) -> None:
        link.click()
        self.wait()

    def problems(self) -> list[str]:
        """Ids in the table of problems, from above."""
        return list(self.tab.locator("table.wide tbody a").all_inner_texts())

    def overflow(self) -> int:
        """Pixels by which the whole page is wider than the window."""
        width: int = self.tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        return width


Open = Callable[..., Opened]


@pytest.fixture(scope="module")  # while it is open, its thread has a running event loop, and others want their own
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def new_tab(browser: Any) -> Iterator[Open]:
    contexts = []

    def make(width: int = 1280, height: int = 900, scheme: str = "light", **more: Any) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.tab.on("console", lambda message: opened.said.append(message.text))
        opened.tab.on("pageerror", lambda error: opened.said.append(str(error)))
        opened.tab.on("request", lambda request: opened.asked.append(request.url))
        return opened

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"), problems=12, samples=3)


@pytest.fixture(scope="session")
def page(run: Path) -> Path:
    return write(run, run.parent / "run.html")


def write(run: Path, file: Path, **more: int) -> Path:
    source = page_source(read_run(run, with_windows=True), lambda result: f"kgbench check {result.problem}")
    return write_page(source, file, **more).path
