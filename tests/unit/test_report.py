"""What a person reads: every failure in words, no figure without its meaning, 80 columns, no control characters."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from kgbench.core.details.values import Mismatch
from kgbench.core.figures import ratio_text
from kgbench.core.outcomes import Outcome
from kgbench.core.text import plain
from kgbench.core.types import CaseResult, Library, Result
from kgbench.evaluation.progress import Tallies, display, finished_line
from kgbench.reports.json_data import as_json
from kgbench.reports.model import report_of
from kgbench.reports.terminal import print_report
from kgbench.reports.words import result_line
from kgbench.store.encoding import json_text
from kgbench.store.reader import StoredRun
from tests.unit.made_results import LIBRARY, NO_LIBRARY, bench, result, timing

SANDBOX = {"network": "closed", "uid": "OPEN: refused in this container"}
FACTS = {
    "name": "NVIDIA H200",
    "kind": "cuda",
    "memory_gb": 139.8,
    "driver": "580.1",
    "versions": {"triton": "3.5.0", "torch": "2.13.0", "cuda": None},
    "sandbox": SANDBOX,
}


def run(results: list[Result], problems: list[tuple[str, str]], notes: tuple[str, ...] = ()) -> StoredRun:
    info = {
        "format": 1, "kgbench": "0.1.0", "device": FACTS,
        "problems": [{"id": name, "kind": kind, "sha256": "", "own": False} for name, kind in problems],
    }  # fmt: skip
    return StoredRun(Path("runs/x"), info, tuple(results), notes)


def printed(stored: StoredRun, *, terminal: bool = False, width: int = 80) -> str:
    file = io.StringIO()
    print_report(report_of(stored), Console(file=file, width=width, force_terminal=terminal, highlight=False))
    return file.getvalue()


def wrong_value() -> Result:
    mismatch = Mismatch("return", (0, 3), "3.25", "3.5", "1.2e-06", 0.125, (2, 4), "float16")
    case = CaseResult(
        "check[3]",
        "Tensor",
        "check",
        "float16",
        {"m": 2, "n": 4, "k": 0, "to": None, "pad": False},
        Outcome.WRONG_VALUE,
        "",
        mismatch,
    )
    return Result("aten/add", "m", 0, Outcome.WRONG_VALUE, cases=(bench(None), case), library=LIBRARY)


def test_wrong_value_says_case_shape_dtype_index_got_wanted_limit_and_share() -> None:
    text = printed(run([wrong_value()], [("aten/add", "compute")]))
    where = ("aten/add", "wrong value", "check[3]", "Tensor", "m=2, n=4, k=0\n", "[2, 4]", "float16", "[0, 3]")
    for words in (*where, "got 3.25", "wanted 3.5", "limit 1.2e-06", "12.5 %"):
        assert words in text, words


def test_row_names_the_subset_and_the_libraries_place() -> None:
    found = [result("vllm/a", timing(0.83)), result("vllm/b", library=NO_LIBRARY)]
    text = printed(run(found, [("vllm/a", "compute"), ("vllm/b", "compute")]))
    assert "subset 2 of 50" in text
    assert "vllm: 2 problems, 1 against the library" in text
    assert "no library for vllm/b: vLLM is not installed" in text
    assert "0.83x" in text
    assert "[0.81, 0.85]" in text


def test_a_run_is_held_against_the_sizes_that_stand_in_it() -> None:
    """50 of 51 is a part; a run that says no sizes was written when vllm had 50 problems."""
    before = run([], [(f"vllm/p{number}", "compute") for number in range(50)])
    assert "subset" not in printed(before)
    now = dataclasses.replace(before, info={**before.info, "declared": {"vllm": 51}})
    assert "subset 50 of 51" in printed(now)


def test_a_whole_source_says_how_many_had_the_library_and_why_the_others_had_none() -> None:
    """Right everywhere and twice as fast where there is a library: fast_0 is 50 of 50, fast_1 is 46 of 50."""
    lacking = {
        "copy_blocks": "vLLM 0.20.2 has no copy_blocks",
        "copy_blocks_mla": "vLLM 0.20.2 has no copy_blocks_mla",
        "gptq_marlin_24_gemm": "vLLM 0.20.2 has no gptq_marlin_24_gemm",
        "allspark_w8a16_gemm": "it needs compute capability 8.0 to 8.9; this GPU has 9.0",
    }
    found = [result(f"vllm/p{number}", timing(2.0)) for number in range(46)]
    found += [
        result(f"vllm/{name}", timing(3.0, against="fallback"), library=Library("", why))
        for name, why in lacking.items()
    ]
    # Another sample of a problem, beside which the library failed.
    found.append(dataclasses.replace(result("vllm/p7", library=Library("", "the library failed")), sample=1))
    text = printed(run(found, [(each, "compute") for each in dict.fromkeys(one.problem for one in found)]))
    assert "vllm: 50 problems, 46 against the library\n" in text
    for name, why in lacking.items():
        assert f"  no library for vllm/{name}: {why}\n" in text
    assert "the library failed" not in text
    row = next(line for line in text.splitlines() if line.startswith("vllm compute"))
    assert row.split()[2:6] == ["50", "50", "50", "91.0"]
    assert "subset" not in text


def test_sandbox_device_and_versions_stand_under_the_table() -> None:
    text = printed(run([result("aten/mm", timing(1.0))], [("aten/mm", "compute")]))
    assert "sandbox: network closed; uid OPEN: refused in this container" in text
    assert "device: NVIDIA H200, cuda, 140 GB" in text
    assert "versions: kgbench 0.1.0, triton 3.5.0, torch 2.13.0, driver 580.1" in text
    assert "libraries: cuBLAS 13.1.0" in text


def test_interpreted_speed_is_a_dash_with_a_footnote() -> None:
    text = printed(run([result("aten/mm", timing(0.003), interpreted=True)], [("aten/mm", "compute")]))
    row = next(line for line in text.splitlines() if line.startswith("aten compute"))
    assert row.split()[-3:] == ["–", "–", "–"]
    assert "their speed means nothing" in text
    assert "0.003" not in text


def test_harness_errors_stand_apart() -> None:
    text = printed(run([Result("aten/mm", "m", 0, Outcome.HARNESS_ERROR, "referee lost")], [("aten/mm", "compute")]))
    assert "Harness errors: kgbench failed here" in text
    assert "referee lost" in text
    assert "Not correct" not in text


def test_failures_are_counted_by_outcome() -> None:
    found = [
        wrong_value(),
        Result("aten/mm", "m", 0, Outcome.NO_CANDIDATE),
        Result("aten/t", "m", 0, Outcome.NO_CANDIDATE),
    ]
    text = printed(run(found, [(name, "compute") for name in ("aten/add", "aten/mm", "aten/t", "aten/later")]))
    assert "not correct: 1 wrong value, 2 no candidate, 1 not evaluated" in text
    assert re.search(r"^  no candidate: 2 problems \(kgbench report \S+ --by problem lists them\)$", text, re.MULTILINE)
    assert "aten/mm" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_counts_problems_without_a_candidate(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with display(console, 3) as shown:
        for name in ("aten/mm", "aten/t"):
            shown.started(name)
            shown.finished(Result(name, "m", 0, Outcome.NO_CANDIDATE))
        shown.started("aten/add")
        shown.finished(result("aten/add", timing(0.83)))
    text = console.file.getvalue()
    assert "no candidate: 2 problems" in text
    assert "[3/3] aten/add " in text
    assert "aten/mm no candidate" not in text


@pytest.mark.parametrize(("terminal", "last"), [(True, "p11, and 3 more; --by problem has all"), (False, "p13, p14")])
def test_long_lists_end_on_a_terminal(terminal: bool, last: str) -> None:
    names = [f"p{number:02}" for number in range(15)]
    found = [Result(name, "m", 0, Outcome.NO_CODE) for name in names]
    assert last in printed(run(found, [(name, "compute") for name in names]), terminal=terminal, width=400)


def test_reason_that_repeats_the_first_wrong_element_is_not_printed_twice() -> None:
    again = dataclasses.replace(wrong_value(), reason="case check[3]: got 3.25, wanted 3.5")
    assert printed(run([again], [("aten/add", "compute")])).count("wanted 3.5") == 1


def test_crash_shows_the_top_of_its_stack() -> None:
    log = "noise\nFatal Python error: Segmentation fault\n\n  File kernel.py line 2 in mm\n" + "  File deep\n" * 20
    crash = Result("aten/mm", "m", 0, Outcome.CRASHED, log_tail=log + "\nExtension modules: psutil (total: 1)\n")
    text = printed(run([crash], [("aten/mm", "compute")]))
    assert "| Fatal Python error: Segmentation fault" in text
    assert "kernel.py line 2 in mm" in text
    assert "Extension modules" not in text


def test_log_tail_of_a_crash_is_shown() -> None:
    crash = Result("aten/mm", "m", 0, Outcome.CRASHED, "killed by SIGSEGV", log_tail="one\ntwo\nlast words")
    text = printed(run([crash], [("aten/mm", "compute")]))
    assert "killed by SIGSEGV" in text
    assert "| last words" in text


def test_fallback_has_a_column_of_its_own() -> None:
    found = [result("vllm/a", timing(3.0, against="fallback"), library=NO_LIBRARY)]
    text = printed(run(found, [("vllm/a", "compute")]))
    assert "fallback" in text
    row = next(line for line in text.splitlines() if line.startswith("vllm compute"))
    assert row.split()[-4:] == ["0.0", "%", "–", "3.00x"]


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_candidate_says_cannot_steer_the_terminal(terminal: bool) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07 [red]markup[/red] \x9b31m \u202e"
    crash = Result("aten/mm", "m", 0, Outcome.CRASHED, hostile, log_tail=hostile + "\r overwritten")
    text = printed(run([crash], [("aten/mm", "compute")]), terminal=terminal)
    assert "[red]markup[/red]" in text
    for char in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\r", "\u202e"):
        assert char not in text
    assert "\x1b" not in finished_line(crash, 1, 1).plain


def test_table_fits_80_columns() -> None:
    names = [(f"{source}/{kind}", kind) for source in ("aten", "cublas", "vllm") for kind in ("compute", "view")]
    found = [result(name, timing(0.0123), timing(7.0, against="fallback")) for name, _ in names]
    text = printed(run(found, names))
    table = text.partition("\naten: ")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    assert "\x1b" not in text


def test_nothing_evaluated_still_makes_a_table() -> None:
    text = printed(run([], [("aten/mm", "compute")], notes=("the run was killed",)))
    assert "not correct: 1 not evaluated" in text
    assert "the run was killed" in text


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (result("aten/mm", timing(0.83)), "passed 0.83x [0.81, 0.85]"),
        (result("aten/mm", timing(12.3456)), "passed 12.35x [12.10, 12.59]"),
        (result("aten/mm", timing(2.0, launch_bound=True)), "passed 2.00x [1.96, 2.04] launch-bound"),
        (result("aten/mm", timing(0.83), interpreted=True), "passed –"),
        (result("aten/t"), "passed"),
        (result("vllm/a", timing(2.0, against="fallback")), "passed 2.00x [1.96, 2.04] against the fallback"),
        (Result("a/b", "m", 0, Outcome.TIMEOUT, "compile took over 120 s\nmore"), "timeout: compile took over 120 s"),
        (Result("a/b", "m", 0, Outcome.NO_CANDIDATE), "no candidate"),
        (wrong_value(), "wrong value: check[3] return[0, 3]: got 3.25, wanted 3.5"),
    ],
)
def test_one_line_per_result(one: Result, words: str) -> None:
    assert result_line(one) == words


def test_progress_without_a_terminal_is_one_line_per_candidate() -> None:
    file = io.StringIO()
    with display(Console(file=file, width=40), 50) as shown:
        shown.started("cublas/cublasSgemm_v2")
        shown.phase("cublas/cublasSgemm_v2", "check", "3 of 40")
        for number in range(2):
            shown.finished(result(f"cublas/p{number}", timing(0.83), seconds={"total": 1.42}))
    assert file.getvalue().splitlines() == [
        "[1/50] cublas/p0 passed 0.83x [0.81, 0.85] 1.4 s",
        "[2/50] cublas/p1 passed 0.83x [0.81, 0.85] 1.4 s",
    ]


def test_progress_on_a_terminal_shows_what_goes_on() -> None:
    file = io.StringIO()
    with display(Console(file=file, width=100, force_terminal=True), 2) as shown:
        shown.started("aten/mm")
        shown.phase("aten/mm", "bench", "[2 of 3]")
        shown.finished(result("aten/mm", timing(0.83)))
    assert "passed 0.83x" in file.getvalue()


@pytest.mark.parametrize(
    ("asked", "judged", "line"),
    [
        (0, 2, "aten: 2 of 9 evaluated, 2 correct, 0 fast"),
        (3, 0, "aten: 3 of 9 asked, 2 answered, $0.50 spent"),
        (3, 2, "aten: 3 of 9 asked, 2 answered, $0.50 spent; 2 of 9 evaluated, 2 correct, 0 fast"),
    ],
    ids=["evaluate", "generate", "run"],
)
def test_a_tally_is_silent_on_what_does_not_happen(asked: int, judged: int, line: str) -> None:
    tallies = Tallies({"aten": 9})
    for _ in range(asked):
        tallies.asked("aten/mm")
    for _ in range(asked - 1):
        tallies.answered("aten/mm", 0.25)
    for _ in range(judged):
        tallies.finished(result("aten/mm", timing(0.83)))
    assert tallies.lines() == [line]


def test_json_is_strict_and_whole() -> None:
    data = json.loads(json_text(as_json(report_of(run([wrong_value()], [("aten/add", "compute")])))))
    assert data["run"]["device"]["name"] == "NVIDIA H200"
    assert data["scores"][0]["problems"] == 1
    assert data["scores"][0]["subset"] is True
    assert data["results"][0]["first_failure"]["detail"]["index"] == [0, 3]


@pytest.mark.parametrize(("ratio", "text"), [(0.834, "0.83"), (1.0, "1.00"), (0.0021, "0.0021"), (100.0, "100.00")])
def test_ratio_keeps_what_matters(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text


def test_plain_keeps_letters_of_every_script() -> None:
    assert plain("µs × – 漢字\n") == "µs × – 漢字\n"


def test_library_that_is_named_but_refused_is_not_against_the_library() -> None:
    found = [result("vllm/a", library=Library("vLLM 0.20", reason="no kernel for this GPU"))]
    assert "vllm: 1 problem, 0 against the library" in printed(run(found, [("vllm/a", "compute")]))


def test_bits_that_change_and_a_noisy_device_are_told() -> None:
    noisy = dataclasses.replace(timing(1.5), noise=0.2, noise_source="measured")
    results = [
        result("aten/softmax", noisy, deterministic=False),
        result("aten/mm", timing(1.5), deterministic=True),
    ]
    shown = printed(run(results, [("aten/softmax", "compute"), ("aten/mm", "compute")]), width=200)
    assert "not the same bits in two calls with the same input: aten/softmax." in shown
    assert "`kgbench selftest null` measured on this device" in shown
    quiet = printed(run(results[1:], [("aten/mm", "compute")]), width=200)
    assert "same bits" not in quiet
    assert "selftest null" not in quiet
