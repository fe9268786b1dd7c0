"""The page of a run in a real browser: it opens, sorts, filters, leads on, and asks nobody for anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgbench.store.layout import candidate_path
from tests.browser.conftest import Open, write
from tests.browser.made_run import HOSTILE

pytestmark = pytest.mark.in_turn("kgbench/reports/", "tests/browser/")

_TIMING = {"library_us": "nan", "candidate_us": 1.0, "ratio": "inf", "low": 1.0, "high": 2.0, "scored_by": "window"}
_CASE = {"id": "b", "overload": "", "phase": "bench", "dtype": "float32", "variables": {}, "outcome": "passed"}
_CASE["timing"] = {**_TIMING, "launch_bound": False, "queued": True}
_ODD = {"problem": "aten/softmax", "model": "m", "sample": 0, "outcome": "passed", "cases": [_CASE]}
ODD_LINE = json.dumps(_ODD) + "\n"
"""A result with little in it, and times that are no numbers."""


def test_everything_opens_without_a_word_on_the_console_or_a_request(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    assert opened.tab.locator("svg.marks").count() == 2
    assert len(opened.problems()) == 12
    words = f"problem set: version 0.1.0, 12 problems, sha256 {'ab' * 32}"
    assert opened.tab.locator("h1 + p + p").inner_text() == words
    for link in opened.tab.locator(".map a").all():
        opened.tab.evaluate("hash => { location.hash = hash }", link.get_attribute("href"))
        opened.wait()
        assert "cannot be read" not in opened.tab.inner_text("main")
        opened.tab.go_back()
        opened.wait()
    assert opened.said == []
    assert opened.asked == [page.as_uri()]


def test_text_of_candidates_stays_text(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    opened.follow(opened.tab.locator(".map a:has(.o-wrong)").first)
    opened.follow(opened.tab.locator('.samples a:has-text("wrong value")').first)
    opened.tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    shown = opened.tab.inner_text("main")
    assert shown.count(HOSTILE[:40]) > 8  # reason, mismatch, log, code, evidence, cases, prompt
    assert "\u202e" not in opened.tab.content()
    assert opened.tab.locator("main img, main script, main iframe").count() == 0
    assert opened.tab.title() != "owned"
    assert opened.said == []


def test_sorting_by_a_column_and_back(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    before = opened.problems()
    button = opened.tab.get_by_role("button", name="best speedup")
    button.click()
    best = opened.problems()
    heading = opened.tab.locator("th[aria-sort]")
    assert heading.get_attribute("aria-sort") == "descending"
    button.click()
    assert heading.get_attribute("aria-sort") == "ascending"
    ratios = opened.tab.locator("table.wide tbody td:nth-child(4)").all_inner_texts()
    numbers = [float(text.split("x")[0]) for text in ratios if text != "–"]
    assert numbers == sorted(numbers)
    assert sorted(best) == sorted(before)
    opened.tab.get_by_role("button", name="problem", exact=True).click()
    assert opened.problems() == sorted(before)


def test_filters_narrow_the_table_together(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    opened.tab.select_option("#filter-source", "cublas")
    assert opened.problems()
    assert all(each.startswith("cublas/") for each in opened.problems())
    opened.tab.fill("#filter-text", "no such thing")
    assert opened.problems() == []
    assert opened.tab.get_by_role("status").inner_text() == "0 of 12 problems"
    opened.tab.fill("#filter-text", "")
    opened.tab.select_option("#filter-source", "")
    opened.tab.select_option("#filter-outcome", "timeout")
    rows = opened.tab.locator("table.wide tbody tr").all_inner_texts()
    assert rows
    assert all("timeout" in row for row in rows)


def test_a_key_of_the_map_filters_the_table(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    opened.follow(opened.tab.locator(".legend button", has_text="crashed"))
    assert opened.tab.locator("#filter-outcome").input_value() == "crashed"
    assert 0 < len(opened.problems()) < 12


def test_a_problem_has_all_that_is_known_of_its_samples(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    opened.follow(opened.tab.locator(".map a:has(.o-right)").first)
    titles = opened.tab.locator("main h2").all_inner_texts()
    for title in ("Speed per case", "Timing samples", "Code", "Cases", "How it was judged", "Prompt"):
        assert title in titles
    assert opened.tab.locator(".code .t-k").count() > 0
    assert opened.tab.locator("svg.marks").count() == 2
    # Ten windows of each of two sides, as points with their figures for who cannot see them.
    assert opened.tab.locator("svg.marks").last.locator("[aria-roledescription=point]").count() == 20
    opened.tab.locator("select:near(:text('bench case'))").first.select_option("2")
    opened.follow(opened.tab.locator(".pager a").first)
    assert opened.said == []


def test_the_keyboard_is_enough(new_tab: Open, page: Path) -> None:
    opened = new_tab()
    opened.open(page)
    keys = opened.tab.keyboard
    keys.press("Tab")
    assert opened.tab.evaluate("document.activeElement.id") == "skip"
    keys.press("Enter")
    assert opened.tab.evaluate("document.activeElement.id") == "main"
    keys.press("/")
    assert opened.tab.evaluate("document.activeElement.id") == "filter-text"
    keys.type("cat")
    assert opened.problems()[0] == "aten/cat"
    opened.tab.locator("table.wide tbody a").first.focus()
    keys.press("Enter")
    opened.wait()
    assert opened.tab.inner_text("h1") == "aten/cat"
    assert opened.tab.evaluate("document.activeElement.id") == "main"
    opened.tab.locator(".code").focus()
    assert opened.tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


KERNEL = '''@triton.jit
def twice(x, n: int = 0x1F):  # "no string"
    """A docstring \\""" with an end"""
    return b"'" * x.int(range(n)) if x is None else 1.5e-3 + x1
'''
COLOURED = [
    ("d", "@triton.jit"), ("k", "def"), ("f", "twice"), ("b", "int"), ("m", "0x1F"), ("c", '# "no string"'),
    ("s", '"""A docstring \\""" with an end"""'), ("k", "return"), ("s", 'b"\'"'), ("b", "range"), ("k", "if"),
    ("k", "is"), ("k", "None"), ("k", "else"), ("m", "1.5e-3"),
]  # fmt: skip
LONG = 190_000


@pytest.mark.parametrize(
    ("text", "coloured"),
    [
        (KERNEL, COLOURED),
        ("", []),
        ("x = '''open\\", [("s", "'''open\\")]),
        ("'" * 3 + "\\x" * (LONG // 2), [("s", "'" * 3 + "\\x" * (LONG // 2))]),
        (" " * LONG + "@", []),
        ("𝒳 = 1 # 𝒳\n", [("m", "1"), ("c", "# 𝒳")]),
        ("if " * 5000, [("k", "if")] * 5000),
        ("# no kernel " * 20_000, []),
    ],
    ids=["kernel", "empty", "open", "long string", "blanks", "not ascii", "words", "too long"],
)
def test_code_is_whole_and_coloured(new_tab: Open, tmp_path: Path, text: str, coloured: list[tuple[str, str]]) -> None:
    asked = ({"id": "aten/softmax", "kind": "compute"},)
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "status": "finished", "problems": asked}))
    (tmp_path / "results.jsonl").write_text(ODD_LINE)
    path = candidate_path(tmp_path, "aten/softmax", 0, 0)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    opened = new_tab()
    opened.open(write(tmp_path, tmp_path / "run.html"))
    opened.tab.evaluate("location.hash = '#/problem/aten/softmax'")
    opened.wait()  # which ends after half a minute
    code = opened.tab.locator(".code code")
    assert code.evaluate("code => code.textContent") == text
    spans = code.evaluate(
        "code => [...code.querySelectorAll('span')].map((each) => [each.className, each.textContent])"
    )
    wanted = [(f"t-{letter}", token) for letter, token in coloured]
    assert [(name, token) for name, token in spans] == wanted
    assert opened.said == []


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_the_theme_is_the_systems_until_it_is_chosen(new_tab: Open, page: Path, scheme: str, other: str) -> None:
    def brightness() -> float:
        seen: str = opened.tab.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in seen.strip("rgb()").split(",")) / 3

    def drawn_on() -> str:
        colour: str = opened.tab.locator("svg.marks").first.evaluate("svg => svg.style.backgroundColor")
        return colour

    opened = new_tab(scheme=scheme)
    opened.open(page)
    before, chart = brightness(), drawn_on()
    assert (before > 128) == (scheme == "light")
    opened.tab.select_option("#theme", other)
    assert (brightness() > 128) == (other == "light")
    opened.tab.wait_for_timeout(300)
    assert drawn_on() != chart
    assert opened.said == []


@pytest.mark.parametrize("width", [400, 1280, 3840])
def test_no_page_is_wider_than_its_window(new_tab: Open, page: Path, width: int) -> None:
    opened = new_tab(width=width, height=800)
    opened.open(page)
    assert opened.overflow() <= 0
    for kind in ("right", "wrong", "broken", "rejected"):
        opened.tab.evaluate("location.hash = '#/'")
        opened.wait()
        opened.follow(opened.tab.locator(f".map a:has(.o-{kind})").first)
        opened.tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert opened.overflow() <= 0
    size = float(opened.tab.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)"))
    assert size >= (24 if width == 3840 else 12)


def test_too_much_for_one_file_is_a_folder_that_opens_as_well(new_tab: Open, run: Path, tmp_path: Path) -> None:
    index = write(run, tmp_path / "large.html", most_bytes=1000)
    assert index == tmp_path / "large" / "index.html"
    opened = new_tab()
    opened.open(index)
    opened.follow(opened.tab.locator(".map a").last)
    assert opened.tab.locator(".code").count() == 1
    assert opened.said == []
    assert opened.asked == [index.as_uri(), (index.parent / "data" / "problem-11.js").as_uri()]


@pytest.mark.parametrize(
    "problems", [(), ({"id": "aten/softmax", "kind": "compute"}, {"id": "mine/gone", "kind": "view"})]
)
@pytest.mark.parametrize("line", ["", ODD_LINE, ODD_LINE + ODD_LINE[:40]])
def test_a_run_of_which_little_is_left_opens_too(
    new_tab: Open, tmp_path: Path, problems: tuple[dict[str, str], ...], line: str
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "status": "running", "problems": problems}))
    (tmp_path / "results.jsonl").write_text(line)
    opened = new_tab()
    opened.open(write(tmp_path, tmp_path / "run.html"))
    assert "KGB609" in opened.tab.inner_text("main")
    for link in [each.get_attribute("href") for each in opened.tab.locator(".map a").all()]:
        opened.tab.evaluate("hash => { location.hash = hash }", link)
        opened.wait()
        assert "cannot be read" not in opened.tab.inner_text("main")
    assert opened.said == []
