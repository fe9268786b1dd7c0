"""How large the page of a big run is, how long writing it takes, and how long Chromium needs to draw it.

    python -m benchmarks.page_opening [--problems 210] [--samples 10] [--width 1280]

Needs Chromium, playwright and `kgbench[page]`, as tests/browser does. docs/page.md has what it measured.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from pathlib import Path

import click

from benchmarks.script import MachineLacks, Script, smoke_option
from kgbench.reports.page.document import write_page
from kgbench.reports.page.source import page_source
from kgbench.store.reader import read_run
from tests.browser.conftest import FLAGS
from tests.browser.made_run import make_run
from tests.conftest import BROWSER_REASON, chromium

ROUNDS = 3
"""How often the page is opened."""


@click.command(cls=Script)
@click.option("--problems", default=210, show_default=True, help="Problems of the run.")
@click.option("--samples", default=10, show_default=True, help="Samples of each.")
@click.option("--width", default=1280, show_default=True, help="Of the window, in pixels.")
@smoke_option(problems=3, samples=1)
def main(problems: int, samples: int, width: int) -> None:
    """Seconds for writing the page of a made-up run, and for opening it in Chromium."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), problems=problems, samples=samples, windows=80, code_lines=130)
        begun = time.monotonic()
        source = page_source(read_run(run, with_windows=True), lambda result: f"kgbench check {result.problem}")
        page = write_page(source, Path(folder, "run.html")).path
        print(f"written in {time.monotonic() - begun:.1f} s, {page.stat().st_size / 1e6:.2f} MB")
        if chromium() is None or importlib.util.find_spec("playwright") is None:
            raise MachineLacks(f"the page was not opened; that {BROWSER_REASON}")
        for seconds in opening_s(page, width):
            print(f"open with charts after {seconds:.2f} s")


def opening_s(page: Path, width: int) -> list[float]:
    """Seconds from the address to the first drawn view, each in a fresh context."""
    from playwright.sync_api import sync_playwright

    took = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        for _ in range(ROUNDS):
            context = browser.new_context(viewport={"width": width, "height": 900})
            tab = context.new_page()
            begun = time.monotonic()
            tab.goto(page.as_uri())
            tab.wait_for_selector('html[data-drawn="1"]')
            took.append(time.monotonic() - begun)
            context.close()
        browser.close()
    return took


if __name__ == "__main__":
    main()
