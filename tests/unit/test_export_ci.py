"""JUnit's XML and GitHub's annotations hold whatever a candidate says, and the workflow of the document runs."""

from __future__ import annotations

import hashlib
import io
import re
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import yaml
from click.testing import CliRunner

from kgbench.cli.main import COMMANDS, main
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.reports.export.github import summary
from kgbench.reports.export.junit import print_junit
from kgbench.reports.model import report_of
from kgbench.store.reader import read_run
from tests.unit.made_results import result, timing
from tests.unit.test_export_tidy import stored
from tests.unit.test_package_documents import problem_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "ci.md"
HOSTILE = "</failure>]]> & \x00\x08\x1b[31m \ufffe\ud800 100% ::error::no\r\n::stop-commands::x | <b>*`"


def hostile_run(out: Path, **changes: object) -> Path:
    bad = Result("aten/mm", "m", 0, Outcome.WRONG_VALUE, reason=HOSTILE, log_tail=HOSTILE, seconds={"total": 1.25})
    found = (
        bad,
        replace(bad, sample=1, outcome=Outcome.SKIPPED),
        replace(bad, problem="x/y", outcome=Outcome.HARNESS_ERROR),
        result("aten/t", timing(2.0)),
    )
    return stored(out, *found, **changes)


def junit(run: Path) -> str:
    text = io.StringIO()
    print_junit(report_of(read_run(run)), text)
    return text.getvalue()


def test_junit_is_well_formed_whatever_a_candidate_says(tmp_path: Path) -> None:
    text = junit(hostile_run(tmp_path))
    root = Xml.fromstring(text.encode())
    tests = {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in root.iter("testcase")}
    assert tests == {
        ("kgbench.aten", "aten/mm"): ["failure"],
        ("kgbench.aten", "aten/mm sample 1"): ["skipped"],
        ("kgbench.aten", "aten/t"): ["system-out"],
        ("kgbench.aten", "aten/t sample 1"): ["failure"],
        ("kgbench.x", "x/y"): ["error"],
        ("kgbench.x", "x/y sample 1"): ["failure"],
    }
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "3", "1")
    assert not re.search(r"[^\n\x20-\x7e\x85\u00a0-\ud7ff\ue000-\ufffd]", text)


def test_a_test_keeps_its_name_whichever_round_is_best(tmp_path: Path) -> None:
    late = replace(result("aten/mm", timing(2.0)), round=1)
    run = stored(
        tmp_path, result("aten/mm", timing(1.0)), late, problems=[{"id": "aten/mm", "kind": "compute"}], samples=1
    )
    (case,) = Xml.fromstring(junit(run).encode()).iter("testcase")
    assert (case.get("name"), case.findtext("system-out")) == ("aten/mm", "passed 2.00x [1.96, 2.04]")


def test_junit_has_only_what_its_schema_has(tmp_path: Path) -> None:
    """The elements and attributes of Jenkins' junit-10.xsd, as far as they are used."""
    known = {
        "testsuites": ({"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
        "testsuite": (
            {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
            {"properties", "testcase"},
        ),
        "properties": (set[str](), {"property"}),
        "property": ({"name", "value"}, set[str]()),
        "testcase": ({"name", "classname", "time"}, {"failure", "error", "skipped", "system-out"}),
        **{tag: ({"type", "message"}, set[str]()) for tag in ("failure", "error", "skipped")},
        "system-out": (set[str](), set[str]()),
    }
    for element in Xml.fromstring(junit(hostile_run(tmp_path)).encode()).iter():
        attributes, children = known[element.tag]
        assert set(element.attrib) <= attributes, element.tag
        assert {child.tag for child in element} <= children, element.tag
        for name in {"time"} & set(element.attrib):
            assert re.fullmatch(r"[0-9]+\.[0-9]{3}", element.attrib[name])


def test_a_library_for_junit_reads_it(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser", reason="a machine with junitparser reads it back")
    (tmp_path / "x.xml").write_text(junit(hostile_run(tmp_path)), encoding="utf-8")
    read = junitparser.JUnitXml.fromfile(str(tmp_path / "x.xml"))
    read_again = {suite.name: (suite.tests, suite.failures, suite.errors, suite.skipped) for suite in read}
    read.update_statistics()
    assert {suite.name: (suite.tests, suite.failures, suite.errors, suite.skipped) for suite in read} == read_again


def test_annotations_stay_one_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my,kernels").mkdir()
    text = "def mm(): ...\n"
    (tmp_path / "my,kernels" / "mm.py").write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    bad = Result("aten/mm", "m", 0, Outcome.WRONG_VALUE, reason=HOSTILE, candidate_sha256=sha256)
    run = stored(
        tmp_path / "runs", bad, replace(bad, sample=1, outcome=Outcome.SKIPPED), model="dir:my,kernels",
        asked={"folder": str(tmp_path)}, problems=[{"id": "aten/mm", "kind": "compute"}],
    )  # fmt: skip
    (tmp_path / "summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    done = CliRunner().invoke(main, ["report", str(run), "--format", "github"])
    assert done.exit_code == 0, done.output
    first, second = done.stdout.splitlines()
    assert first.startswith("::error file=my%2Ckernels/mm.py,line=1,title=aten/mm::wrong value: </failure>]]> & ")
    assert "100%25 ::error::no" in first
    assert second.startswith("::warning file=my%2Ckernels/mm.py,line=1,title=aten/mm sample 1::skipped")
    assert "\x1b" not in done.stdout
    assert (tmp_path / "summary.md").read_text().startswith("before\n## kgbench ")


def test_without_a_summary_file_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    done = CliRunner().invoke(main, ["report", str(hostile_run(tmp_path)), "--format", "github"])
    assert done.exit_code == 0, done.output
    annotated, _, table = done.stdout.partition("\n\n")
    assert len(annotated.splitlines()) == 5
    assert "| aten/t sample 1 | not evaluated |" in table
    assert "| aten/t | passed 2.00x &#91;1.96, 2.04&#93; |" in table


def test_a_candidates_words_are_no_markdown(tmp_path: Path) -> None:
    text = summary(report_of(read_run(hostile_run(tmp_path))))
    (line,) = [line for line in text.splitlines() if line.startswith("| aten/mm |")]
    assert line.count("|") == 3
    assert not re.search(r"[<>`*\x00-\x1f]", line)


def test_a_summary_is_not_larger_than_github_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.reports.export.github._MOST_BYTES", 2000)
    problems = [{"id": f"aten/p{number}", "kind": "compute"} for number in range(20)]
    wrong = [Result(str(each["id"]), "m", 0, Outcome.WRONG_VALUE, reason="<" * 150) for each in problems]
    text = summary(report_of(read_run(stored(tmp_path, *wrong, problems=problems, samples=1))))
    assert 1000 < len(text.encode()) <= 2000
    assert text.endswith("The rest is left out: GitHub shows no larger summary.\n")


def workflows() -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_workflow_of_the_document_is_short_and_runs_commands_that_exist() -> None:
    github, gitlab = workflows()
    assert len(github.splitlines()) <= 15
    steps = yaml.safe_load(github)["jobs"]["kgbench"]["steps"]
    lines = [step["run"] for step in steps if "run" in step]
    lines += [line for key in ("script", "after_script") for line in yaml.safe_load(gitlab)["kernels"][key]]
    kgbench = [line for line in lines if line.startswith("kgbench ")]
    assert len(kgbench) == 5
    for line in kgbench:
        assert problem_of(line) == "", line
        words = shlex.split(line)
        assert words[1] in COMMANDS
        if "--format" in words:
            done = CliRunner().invoke(main, ["report", "no-such-run", "--format", words[words.index("--format") + 1]])
            assert "there is no run" in done.output
