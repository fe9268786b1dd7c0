"""How large the page of a big run is, how long writing it takes, and how long Chromium needs to draw it.

    python -m benchmarks.page_opening [--problems 210] [--samples 10] [--width 1280]

Needs Chromium, playwright and `kgbench[page]`, as tests/browser does. docs/page.md has what it measured.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from kgbench.reports.page.document import write_page
from kgbench.reports.page.source import page_source
from kgbench.store.reader import read_run
from tests.browser.conftest import FLAGS
from tests.browser.made_run import make_run
from tests.conftest import chromium

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=210)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--width", type=int, default=1280)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), problems=asked.problems, samples=asked.samples, windows=80, code_lines=130)
        begun = time.monotonic()
        source = page_source(read_run(run, with_windows=True), lambda result: f"kgbench check {result.problem}")
        page = write_page(source, Path(folder, "run.html")).path
        print(f"written in {time.monotonic() - begun:.1f} s, {page.stat().st_size / 1e6:.2f} MB")
        for seconds in opening_s(page, asked.width):
            print(f"open with charts after {seconds:.2f} s")


def opening_s(page: Path, width: int) -> list[float]:
    """Seconds from the address to the first drawn view, each in a fresh context."""
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
