"""Problem files: what is read, and the exact words for what is wrong with each of bad_problems/."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kgbench.core.errors import KgbenchError, ProblemFileError, ProblemFileErrors, UsageError
from kgbench.core.paths import problems_dir
from kgbench.problem.expressions import FUNCTIONS
from kgbench.problem.format.file import key_line
from kgbench.problem.format.keys import PLACES, Body
from kgbench.problem.model import Problem, TensorArgument
from kgbench.problem.problem_cache import ProblemCache
from kgbench.problem.registry import Registry, load_problem, load_summary, problem_id
from kgbench.problem.schema import PATH, schema_text
from kgbench.problem.yamltree import read_tree, write_as_number

ROOT = Path(__file__).resolve().parents[2]
BAD = Path("tests/unit/bad_problems")
DOCS = ROOT / "docs" / "problem-format.md"
SHIPPED = sorted(Registry().paths.values())

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


def test_a_parameter_that_is_no_tensor_is_the_variable_of_its_name(tmp_path: Path) -> None:
    named = load_problem(write(tmp_path)).overloads[0]
    silent = load_problem(write(tmp_path, GOOD.replace("  factor: {value: factor}\n", ""))).overloads[0]
    assert silent.arguments == named.arguments


def test_presets_of_a_gpu_follow_the_next_smaller_one(tmp_path: Path) -> None:
    text = GOOD.replace("gpu24: [{m: 4096, n: 4096}]", "gpu: [{m: 4, n: 4}]\n    gpu80: [{m: 8, n: 8}]")
    (overload,) = load_problem(write(tmp_path, text)).overloads
    assert {preset: cases[0].variables["m"] for preset, cases in overload.bench.items()} == {
        "cpu": 64, "gpu24": 4, "gpu80": 8, "gpu140": 8,
    }  # fmt: skip


def test_the_library_that_is_named_as_the_problem_need_not_be_said(tmp_path: Path) -> None:
    text = GOOD.replace('baseline: {cuda: "aten:mul.Scalar"}\n', "")
    found = {
        source: load_problem(write(tmp_path, text, f"{source}/scale")).overloads[0]
        for source in ("aten", "vllm", "cublas")
    }
    assert {source: overload.baseline for source, overload in found.items()} == {
        "aten": {"cuda": "aten:scale", "cpu": "aten:scale"},
        "vllm": {"cuda": "vllm:scale"},
        "cublas": {"cuda": "cublas:scale", "cpu": "openblas:scale"},
    }
    with pytest.raises(ProblemFileError, match="'baseline' is missing; add 'baseline: …', or 'baseline: none'"):
        load_problem(write(tmp_path, text, "mine/scale"))
    alone = load_problem(write(tmp_path, text + "baseline: none\n", "mine/scale"))
    assert alone.overloads[0].baseline == {}


def test_a_plain_version_beside_our_reference_need_not_be_said(tmp_path: Path) -> None:
    ours = GOOD.replace("torch.mul(self, factor)", "kgbench.baselines.references.vllm:scale")
    fallbacks = [
        load_problem(write(tmp_path, text, problem)).overloads[0].fallback
        for text, problem in (
            (ours, "vllm/scale"), (ours + "fallback: none\n", "vllm/scale"), (ours, "aten/scale"), (GOOD, "vllm/scale"),
        )
    ]  # fmt: skip
    assert fallbacks == ["kgbench.baselines.references.vllm:scale_plain", None, None, None]


SEVERAL = GOOD.replace("self: Tensor, factor", "self: Tensor, other: Tensor, factor").replace(
    "  factor:", '  other: {access: read, shape: "(m, n)", draw: {default: zeros(), tiny: "full(1.0e-30)"}}\n  factor:'
).replace("cases:\n", "value_sets:\n  large: {self: full(7), other: full(8)}\ncases:\n").replace(
    "{m: 3, n: 5}", "{m: 3, n: 5, values: large}"
)  # fmt: skip


def test_a_value_set_of_several_arguments_is_said_once(tmp_path: Path) -> None:
    matrix, other, _ = load_problem(write(tmp_path, SEVERAL)).overloads[0].arguments
    assert isinstance(matrix, TensorArgument)
    assert isinstance(other, TensorArgument)
    assert [sorted(each.draw) for each in (matrix, other)] == [["default", "large"], ["default", "large", "tiny"]]
    assert [each.draw["large"].arguments[0].text for each in (matrix, other)] == ["7", "8"]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("{self: full(7)", "{sefl: full(7)", ".large.sefl: entry has no parameter 'sefl'; did you mean 'self'?"),
        ("{self: full(7)", "{factor: full(7)", ".large.factor: no values are drawn for 'factor'; remove it"),
        ("large: {self", "default: {self", ".default: is drawn as each argument's own 'draw' says; remove it"),
        ("large: {self", "tiny: {self", ".tiny.other: 'tiny' stands under arguments.other.draw too; keep one"),
        ("values: large", "values: lagre", ".values: no argument draws 'lagre'; did you mean 'large'?"),
        (
            "draw: normal()",
            'draw: {default: normal(), tiny: "full(0)"}',
            ".tiny: the set stands under 'self' too; say it once: value_sets: {tiny: {self: …, other: …}}",
        ),
    ],
)
def test_a_slip_in_a_value_set_is_named(tmp_path: Path, before: str, after: str, words: str) -> None:
    assert before in SEVERAL
    with pytest.raises((ProblemFileError, ProblemFileErrors)) as caught:
        load_problem(write(tmp_path, SEVERAL.replace(before, after, 1)))
    assert words in str(caught.value)


def test_value_sets_stay_with_the_arguments_beside_which_they_stand(tmp_path: Path) -> None:
    overloads = """\
overloads:
  Both: {entry: "scale_Both(self: Tensor, other: Tensor, factor: float) -> Tensor"}
  One:
    entry: "scale_One(self: Tensor, factor: float) -> Tensor"
    arguments: {self: {access: read, shape: "(m, n)", draw: {default: normal(), large: full(9)}}}
"""
    both, one = load_problem(write(tmp_path, SEVERAL + overloads)).overloads
    assert [list(each.arguments[0].draw) for each in (both, one)] == [["default", "large"]] * 2  # type: ignore[union-attr]
    assert one.arguments[0].draw["large"].arguments[0].text == "9"  # type: ignore[union-attr]


def test_texts_that_problems_share_stand_beside_them(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("doc: out = self * factor", "doc: |\n  Scales.\n  {edges}\n  Ends {edges}."))
    with pytest.raises(ProblemFileError, match=r"scale\.yaml:\d+: doc: .*_doc\.yaml has no text 'edges'"):
        load_problem(path)
    shared = path.with_name("_doc.yaml")
    shared.write_text("edges: |\n  NaN stays NaN.\n\n  So does inf.\n", encoding="utf-8")
    problem = load_problem(path)
    assert problem.doc == "Scales.\nNaN stays NaN.\n\nSo does inf.\nEnds {edges}.\n"
    assert Registry([tmp_path]).ids() == ["aten/scale"]
    shared.write_text("edges: NaN is lost.\n", encoding="utf-8")
    assert load_problem(path).sha256 != problem.sha256


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
def test_shipped_problem_loads_and_its_head_agrees(path: Path, shipped: Callable[[Path], Problem]) -> None:
    problem, head = shipped(path), load_summary(path)
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


def documented(heading: str) -> set[str]:
    """What the tables below a heading name first in each row, up to the next heading of its rank."""
    text = DOCS.read_text(encoding="utf-8")
    rank = heading.partition(" ")[0]
    below = text.partition(f"\n{heading}\n")[2]
    section = re.split(rf"^#{{1,{len(rank)}}} ", below, maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)", row)}


def test_docs_name_every_key_and_no_other() -> None:
    """Each under the heading of the place where it may stand."""
    below = {heading: documented(heading if heading.startswith("#") else f"### {heading}") for heading in PLACES}
    wanted = {heading: {key for place in places for key in place.model_fields} for heading, places in PLACES.items()}
    # What overloads may say beside it is the table of the body.
    body = set(Body.model_fields)
    wanted["overloads"] -= body
    below["## Body"] = documented("## Head") | {key for key in below["## Body"] if key in wanted["## Body"]}
    assert below == wanted


def test_docs_name_every_function_of_expressions_and_no_other() -> None:
    assert documented("## Expressions") == set(FUNCTIONS)


def test_the_schema_is_current() -> None:
    words = "python -m kgbench.problem.schema > kgbench/problem/schema.json"
    assert PATH.read_text(encoding="utf-8") == schema_text(), words


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


def test_a_cache_reads_each_problem_once_whatever_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def counted(path: Path) -> Problem:
        read.append(path)
        return load_problem(path)

    monkeypatch.setattr("kgbench.problem.problem_cache.load_problem", counted)
    cache = ProblemCache()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(cache.load, ["aten/neg", "neg", "aten::neg", "aten/neg"] * 4))
    assert all(each is found[0] for each in found)
    assert [path.name for path in read] == ["neg.yaml"]
    with pytest.raises(UsageError, match="there is no problem 'no_such'"):
        cache.load("no_such")
