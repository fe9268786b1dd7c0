"""Problem files: what is read, and the exact words for what is wrong with each of bad_problems/."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kgbench.core.errors import KgbenchError, ProblemFileError, ProblemFileErrors, UsageError
from kgbench.core.paths import problems_dir
from kgbench.problem.format import BODY_KEYS, KEYS, READERS, READERS_WITH_ENTRY, key_line
from kgbench.problem.model import TensorArgument
from kgbench.problem.registry import Registry, load_problem, load_summary, problem_id
from kgbench.problem.yamltree import read_tree, write_as_number

ROOT = Path(__file__).resolve().parents[2]
BAD = Path("tests/unit/bad_problems")
DOCS = ROOT / "docs" / "problem-format.md"
SHIPPED = sorted(problems_dir().glob("*/*.yaml"))

GOOD = """\
summary: rows scaled by a number
kind: compute
category: elementwise
entry: "scale(self: Tensor, factor: float) -> Tensor"
dtypes: {required: [float32], optional: [float16]}
defaults: {factor: 2.0}
arguments:
  self: {access: read, shape: "(m, n)", draw: normal()}
  factor: {value: factor}
cases:
  check: [{m: 3, n: 5}, {m: 2, n: 2, factor: .inf}]
  bench:
    cpu: [{m: 64, n: 64}]
    gpu24: [{m: 4096, n: 4096}]
baseline: {cuda: "aten:mul.Scalar"}
reference: torch.mul(self, factor)
tolerance: {rule: rounding, ulps: 2}
doc: out = self * factor
"""

COMPLAINTS = {
    line.split(": ")[1].rpartition(":")[0]: line
    for line in (ROOT / BAD / "expected.txt").read_text("utf-8").splitlines()
}
"""The complaint about each bad file with its number, by its path."""


def write(folder: Path, text: str = GOOD, problem: str = "aten/scale") -> Path:
    path = folder / f"{problem}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("path", COMPLAINTS)
def test_complaint_names_file_line_key_and_next_step(path: str) -> None:
    with pytest.raises(KgbenchError) as caught:
        load_problem(Path(path))
    assert caught.value.printed == COMPLAINTS[path]
    assert caught.value.exit_code == 2


def test_every_mistake_of_a_file_is_said_at_once_in_the_order_of_its_lines(tmp_path: Path) -> None:
    """One or more in each top-level key, and nothing that only follows from another."""
    wrong = {
        "rows scaled by a number": "[rows]", "kind: compute": "kind: computes", "category: elementwise": "category: 7",
        "-> Tensor": "-> list", "[float32]": "[float23]", "{factor: 2.0}": "{factor: 2e3}",
        "defaults:": "variables: {k: m +}\ndefaults:", "{m: 3, n: 5}": "{m: 010}", "mul.Scalar": "",
        "ulps: 2": "ulps: two",
        "doc: out": "cost: {flops: m}\nfallback: nothing\nprepare: nothing\nalias: 3\ndocs: out",
    }  # fmt: skip
    text = GOOD
    for right, mistake in wrong.items():
        assert right in text
        text = text.replace(right, mistake, 1)
    with pytest.raises(ProblemFileErrors) as caught:
        load_problem(write(tmp_path, text))
    found = [re.match(r".*scale\.yaml:(\d+): ([\w.\[\]]+)", line) for line in str(caught.value).splitlines()]
    keys = [match[2].partition(".")[0] for match in found if match]
    assert keys == [
        "summary", "kind", "category", "entry", "dtypes", "variables", "defaults", "cases", "baseline", "tolerance",
        "cost", "fallback", "prepare", "alias", "docs",
    ]  # fmt: skip
    assert [int(match[1]) for match in found if match] == sorted(int(match[1]) for match in found if match)


def test_mistakes_between_keys_are_said_together_where_each_key_is_right(tmp_path: Path) -> None:
    text = GOOD.replace("gpu24: [{m: 4096, n: 4096}]", "").replace(
        "{m: 2, n: 2, factor: .inf}", "{m: 2, n: 2, values: x}"
    )
    with pytest.raises(ProblemFileErrors) as caught:
        load_problem(write(tmp_path, text.replace("doc:", "alias: self\ndoc:")))
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in lines] == [
        "cases.check[1].values",
        "cases.bench",
        "alias",
    ]


def test_every_key_of_the_body_can_be_read_on_its_own() -> None:
    assert {*READERS, *READERS_WITH_ENTRY, "entry"} == set(BODY_KEYS)


def test_every_bad_file_is_in_the_table() -> None:
    found = {str(path.relative_to(ROOT)) for path in (ROOT / BAD).rglob("*.yaml")}
    assert found == set(COMPLAINTS)


def test_good_file_is_read(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path))
    (overload,) = problem.overloads
    assert (problem.id, problem.kind, problem.category) == ("aten/scale", "compute", "elementwise")
    assert (overload.name, overload.required, overload.dtypes) == ("", True, ("float32",))
    assert [each.name for each in overload.arguments] == ["self", "factor"]
    assert overload.check[1].variables == {"m": 2, "n": 2, "factor": float("inf")}
    assert isinstance(overload.arguments[0], TensorArgument)
    assert overload.arguments[0].draw["default"].name == "normal"


def test_overloads_inherit_and_override(tmp_path: Path) -> None:
    overloads = """\
overloads:
  Scalar: {entry: "scale_Scalar(self: Tensor, factor: float) -> Tensor", dtypes: {required: [float16]}}
  out: {entry: "scale_out(self: Tensor, factor: float, out: Tensor) -> None", required: false, reason: same kernel}
"""
    problem = load_problem(write(tmp_path, GOOD + overloads))
    scalar, out = problem.overloads
    assert (scalar.dtypes, scalar.reference) == (("float16",), "torch.mul(self, factor)")
    assert (out.required, out.reason, out.check) == (False, "same kernel", ())


def test_hash_follows_the_file(tmp_path: Path) -> None:
    first = load_problem(write(tmp_path)).sha256
    assert load_problem(write(tmp_path, GOOD + "# a remark\n")).sha256 != first


def test_quoted_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    problem = load_problem(write(tmp_path, GOOD.replace("{m: 3, n: 5}", "{m: 3, n: 5, factor: '1e3'}")))
    assert problem.overloads[0].check[0].variables["factor"] == "1e3"


@pytest.mark.parametrize(
    ("written", "right"),
    [("1e-2", "1.0e-2"), ("1E5", "1.0e+5"), ("-.5e3", "-.5e+3"), ("inf", ".inf"), ("-nan", "-.nan"), ("3.5", "3.5")],
)
def test_numbers_are_spelt_as_yaml_wants_them(written: str, right: str) -> None:
    assert write_as_number(written) == right


def test_key_line_prefers_the_overloads_own_key() -> None:
    path = problems_dir() / "aten" / "add.yaml"
    text = path.read_text(encoding="utf-8").splitlines()
    assert text[key_line(path, "Scalar", "arguments") - 1].startswith("    arguments:")
    assert text[key_line(path, "Scalar", "reference") - 1].startswith("reference:")


@pytest.mark.parametrize("path", SHIPPED, ids=problem_id)
def test_shipped_problem_loads_and_its_head_agrees(path: Path) -> None:
    problem, head = load_problem(path), load_summary(path)
    assert (head.id, head.summary, head.kind, head.category) == (
        problem.id, problem.summary, problem.kind, problem.category,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        ("summary: plain  # a remark", "plain"),
        ("summary: 'it''s quoted'  # a remark", "it's quoted"),
        ('summary: "two: three"', "two: three"),
        ("summary: a#b", "a#b"),
    ],
)
def test_head_is_read_as_yaml_reads_it(tmp_path: Path, line: str, summary: str) -> None:
    path = write(tmp_path, "# licence\n" + GOOD.replace("summary: rows scaled by a number", line))
    assert load_summary(path).summary == load_problem(path).summary == summary


def test_head_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError, match="kind: is missing at the head of the file; begin the file with summary"):
        load_summary(write(tmp_path, GOOD.replace("kind: compute\n", "")))


def test_registry_sorts_by_source_and_adds_folders(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, problem="vllm/a")
    ids = Registry((problems_dir(), tmp_path)).ids()
    assert ids == sorted(ids, key=lambda each: ("aten", "vllm", "cublas").index(each.split("/")[0]))
    assert {"aten/scale", "vllm/a", "aten/add"} <= set(ids)


def test_registry_refuses_what_it_cannot_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no folder"):
        Registry((tmp_path / "none",)).ids()
    with pytest.raises(UsageError, match="two files define aten/scale"):
        Registry((write(tmp_path).parent.parent, write(tmp_path / "again").parent.parent)).ids()
    with pytest.raises(UsageError, match="give the folder above"):
        Registry((tmp_path / "aten",)).ids()
    write(tmp_path, problem="Mine/scale")
    with pytest.raises(UsageError, match="lies in no source's folder; move it to one of aten, vllm, cublas"):
        Registry((tmp_path,)).ids()


@pytest.mark.parametrize(
    ("sources", "globs", "found"),
    [
        (["vllm"], ["*norm*"], ["vllm/rms_norm"]),
        ([], ["aten::s*"], ["aten/softmax"]),
        (["aten,cublas"], ["add.Tensor,cublas/*Sdot*"], ["aten/add", "cublas/cublasSdot_v2"]),
        (["all"], ["mm", "vllm/rms_norm"], ["aten/mm", "vllm/rms_norm"]),
    ],
)
def test_select_takes_sources_globs_and_spellings(
    tmp_path: Path, sources: list[str], globs: list[str], found: list[str]
) -> None:
    for problem in ("aten/add", "aten/mm", "aten/softmax", "vllm/rms_norm", "vllm/gelu", "cublas/cublasSdot_v2"):
        write(tmp_path, problem=problem)
    assert Registry([tmp_path]).select(sources, globs) == found


@pytest.mark.parametrize(
    ("sources", "globs", "words"),
    [
        ([], ["sofmax"], "there is no problem 'sofmax'; closest: aten/softmax"),
        ([], ["*rmsnorm*"], r"--problems '\*rmsnorm\*' matches none of the \d+ problems; closest: vllm/rms_norm"),
        (["cublas"], ["aten/*"], "matches none of the"),
        (["cuda"], [], "there is no source 'cuda'; there are aten, vllm, cublas and all"),
    ],
)
def test_select_says_what_is_closest(sources: list[str], globs: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Registry().select(sources, globs)


def test_recursive_yaml_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("{m: 3, n: 5}", "{m: &a [*a], n: 5}"))
    with pytest.raises(ProblemFileError, match="expected a value or a list of values, got a list"):
        load_problem(path)


def test_docs_name_every_key_and_no_other() -> None:
    documented = re.findall(r"^\| `(\w+)`", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(documented) == {key for keys in KEYS.values() for key in keys}


@pytest.mark.parametrize(
    ("problem", "text"),
    re.findall(r"```yaml\n# problems/(\S+)\.yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL),
)
def test_docs_examples_load(tmp_path: Path, problem: str, text: str) -> None:
    assert load_problem(write(tmp_path, text, problem)).id == problem


def test_docs_have_one_example_per_source() -> None:
    assert re.findall(r"^# problems/(\w+)/", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE) == [
        "aten", "vllm", "cublas",
    ]  # fmt: skip


def test_loading_a_problem_imports_no_torch() -> None:
    program = (
        "import sys; from kgbench.problem.registry import Registry; from kgbench.problem.cases import expand_cases\n"
        "problem = Registry().find('mm'); expand_cases(problem.overloads[0], 'cpu', None, 's')\n"
        "assert not {'torch', 'numpy', 'pandas', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_tree_keeps_lines_of_keys(tmp_path: Path) -> None:
    tree = read_tree(tmp_path / "x.yaml", "a:\n  - 1\n  - {b: 2}\n").mapping()
    assert (tree["a"].line, [each.line for each in tree["a"].sequence()]) == (1, [2, 3])
