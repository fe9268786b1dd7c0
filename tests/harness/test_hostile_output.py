"""No output begins a line with what a candidate says: a CI system reads ``::`` at a line's start as a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.cli.main import main

# The runs are made once.
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("hostile output")]
FORMATS = ("table", "json", "md", "latex", "csv", "parquet", "junit", "github", "cite")
SAYS = r"words\n::error ::one\r::error ::two\u2028::error ::three\x0b::error ::four\x1b[2K\x08::error ::five"
CANDIDATES = {
    "neg": f'def neg(self):\n    print("{SAYS}")\n    raise RuntimeError("{SAYS}")\n',
    "sin": f'raise ImportError("{SAYS}")\n',
    "cos": f'import sys\ndef cos(self):\n    sys.stderr.write("{SAYS}")\n    return "{SAYS}"\n',
}
STRANGE = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Control characters but for the end of a line, a tab, and what else ends lines for some reader."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "kernels/aten").mkdir(parents=True)
    for name, text in CANDIDATES.items():
        (folder / f"kernels/aten/{name}.py").write_text(text)
    wanted = [word for name in CANDIDATES for word in ("--problems", f"aten/{name}")]
    there = ("--model", f"dir:{folder / 'kernels'}", "--out", str(folder / "runs"))
    done = invoke("run", *there, *wanted, "--device", "cpu")
    assert done.exit_code == 0, done.output
    assert done.output.count("error") >= len(CANDIDATES)
    harmless(done.output)
    return folder / "runs"


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def harmless(output: str) -> None:
    begins = [line for line in re.split("[\n\r\x0b\x0c\x85\u2028\u2029]", output) if line.lstrip().startswith("::")]
    assert not begins
    assert not STRANGE.search(output)


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in ("parquet", "github")])
def test_no_format_begins_a_line_with_a_candidates_words(runs: Path, form: str) -> None:
    done = invoke("report", "last", "--out", str(runs), "--format", form)
    assert done.exit_code == 0, done.output
    harmless(done.output)


def test_commands_of_github_are_ours_alone(runs: Path) -> None:
    done = invoke("report", "last", "--out", str(runs), "--format", "github")
    begun = [line for line in done.output.splitlines() if line.startswith("::")]
    assert len(begun) == len(CANDIDATES)
    assert all(line.startswith("::error title=aten/") for line in begun)
    assert not STRANGE.search(done.output)


@pytest.mark.parametrize("name", CANDIDATES)
def test_a_verdict_shown_alone_begins_no_line_with_them(runs: Path, name: str) -> None:
    done = invoke("show", f"last/aten/{name}", "--out", str(runs))
    assert done.exit_code == 0, done.output
    assert "::error" in done.output
    harmless(done.output)
