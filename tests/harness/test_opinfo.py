"""PyTorch's sample inputs as calls: what is found, and how it is written into problem files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("expecttest", reason="needs expecttest: pip install 'kgbench[opinfo]'")

from kgbench.problem.calls import TensorLike, parse_call
from kgbench.problem.registry import Registry
from kgbench.problem.suites import Share, Suite, SuiteCall
from kgbench.torchtools import opinfo
from kgbench.torchtools.opinfo import SampledCall, collect
from kgbench.torchtools.opinfo_arguments import Unfit
from kgbench.torchtools.opinfo_samples import NoSamples
from kgbench.torchtools.opinfo_table import DOCUMENT, NONE, table
from kgbench.torchtools.opinfo_update import CannotWrite, choose, update, with_list

# The import of PyTorch's tests takes seconds, and once will do.
pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("opinfo")]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("operator", "overloads", "dtype", "at_least"),
    [
        ("linear", ["default"], "float32", 10),  # composite: seen whole
        ("_softmax", ["default"], "float16", 5),  # seen only where softmax is taken apart
        ("add_", ["Tensor"], "float32", 3),  # in place
        ("logaddexp2", ["default", "out"], "float32", 1),  # out has the calls of default
        ("mish_backward", ["default"], "float32", 3),  # reached by backward of mish
        ("eq", ["Tensor", "Scalar"], "int64", 6),  # a number where the sample has a tensor
        ("_index_put_impl_", ["default"], "float32", 4),  # no Python function has it
        ("contiguous", ["default"], "float32", 2),  # reaches nothing where it is one already
        ("arange", ["start_step", "start_out"], "float32", 8),  # arange(start, end) is start_step, too
        ("sort", ["stable"], "float32", 20),
        ("index", ["Tensor"], "float32", 5),
    ],
)
def test_samples_of_an_operator_are_calls_of_its_overloads(
    operator: str, overloads: list[str], dtype: str, at_least: int
) -> None:
    found = collect(operator, overloads, [dtype])
    assert found.samples == found.used
    assert not found.refused
    assert {name for name, calls in found.calls.items() if len(calls) >= at_least} == set(overloads)
    for calls in found.calls.values():
        assert len({(call.text, call.lazy) for call in calls}) == len(calls)
        for call in calls:
            parsed = parse_call(call.text)
            assert len(parsed.args) + len(parsed.kwargs) > 0


@pytest.mark.parametrize("operator", ["huber_loss", "soft_margin_loss"])
def test_out_that_aten_makes_larger_for_a_while_is_left_out(operator: str) -> None:
    calls = collect(operator, ["default", "out"], ["float32"]).calls
    assert {reduction_of(call) for call in calls["default"]} == {0, 1, 2}
    assert {reduction_of(call) for call in calls["out"] if call.shapes[0]} == {0}


def reduction_of(call: SampledCall) -> int:
    parsed = parse_call(call.text)
    return int(parsed.kwargs.get("reduction", parsed.args[2] if len(parsed.args) > 2 else 1))


def test_numbers_and_tensors_go_to_the_overload_that_takes_them() -> None:
    calls = collect("add", ["Tensor", "Scalar"], ["float32"]).calls
    assert all(isinstance(parse_call(call.text).args[1], TensorLike) for call in calls["Tensor"])
    assert all(isinstance(parse_call(call.text).args[1], float) for call in calls["Scalar"])


def test_what_reaches_other_overloads_only_is_counted_apart() -> None:
    found = collect("narrow", ["default"], ["float32"])
    assert (found.samples, found.used, dict(found.elsewhere)) == (5, 5, {"Tensor": 5})


def test_an_argument_that_the_format_cannot_say_is_a_refusal() -> None:
    found = opinfo.Samples("linear", calls={"default": []})
    reached = ("default", (Unfit("a tensor of layout torch.sparse_coo"),), {})
    assert opinfo._taken(found, reached, "float32", {}) == "a tensor of layout torch.sparse_coo"


def test_without_expecttest_the_next_step_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.testing._internal.common_methods_invocations", None)
    with pytest.raises(NoSamples, match=r"pip install expecttest, or 'kgbench\[opinfo\]'"):
        collect("add", ["Tensor"], ["float32"])


def call(shape: tuple[int, ...], dtype: str = "f32", rest: str = "") -> SampledCall:
    names = {"f32": "float32", "f16": "float16"}
    return SampledCall(f"((T({list(shape)}, {dtype}),{rest}), {{}})", names[dtype], "", (shape,))


def test_few_calls_are_spread_over_shapes_and_dtypes() -> None:
    many = [call((size,), dtype, f" {dim}") for size in range(40) for dim in (0, 1) for dtype in ("f32", "f16")]
    chosen = choose(many, ["float32", "float16"], most=16)
    assert len({each.shapes for each in chosen}) == len(chosen) == 16
    assert [each.dtype for each in chosen] == ["float32", "float16"] * 8
    assert {each.text.split()[-2] for each in chosen} == {"0),", "1),"}
    few = choose([call((3,), "f32", f" {dim}") for dim in range(5)] + [call((4,))], ["float32"], most=4)
    assert {each.shapes for each in few} == {((3,),), ((4,),)}
    assert len(few) == 4
    assert choose([call((1 << 17,))], ["float32"]) == []


FILE = """\
# a file
cases:
  check:  # by hand
    - {m: 1}
    - m: 2
      n: 3  # the last

  # what follows stays
  bench:
    cpu: [{m: 1}]
doc: text
"""


def test_only_the_list_changes_and_twice_is_once() -> None:
    calls = [call((3,)), SampledCall("((1,), {'a': 'x'})", "float32", "conj")]
    written = with_list(FILE, "", calls)
    kept = [line for line in written.splitlines() if line not in FILE.splitlines()]
    assert kept == [
        "  opinfo:  # written by python -m kgbench.torchtools.opinfo_update",
        '    - "((T([3], f32),), {})"',
        "    - {call: \"((1,), {'a': 'x'})\", lazy: conj}",
    ]
    assert [line for line in written.splitlines() if line not in kept] == FILE.splitlines()
    assert written.index("opinfo") > written.index("the last")
    assert with_list(written, "", calls) == written
    assert with_list(written, "", []) == FILE
    other = with_list(written.replace("opinfo:  # written by", "opinfo:  # mine, by"), "", [call((4,))])
    assert other == with_list(FILE, "", [call((4,))]).replace("opinfo:  # written by", "opinfo:  # mine, by")


def test_a_file_that_cannot_be_changed_is_named() -> None:
    with pytest.raises(CannotWrite, match="'cases' of the file is not written as a block"):
        with_list("cases: {check: [1]}\n", "", [])
    with pytest.raises(CannotWrite, match="is a YAML alias"):
        with_list("x: &a [1]\ncases:\n  check: *a\n", "", [])


@pytest.mark.in_turn("kgbench/torchtools/", turns=3)
def test_an_overloads_own_list_is_written(tmp_path: Path) -> None:
    text = (ROOT / "problems" / "aten" / "add.yaml").read_text(encoding="utf-8")
    path = tmp_path / "aten" / "add.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    notes = update(path)
    assert notes[0].startswith("Tensor: ")
    assert notes[0].endswith("10 distinct shapes")
    once = path.read_text(encoding="utf-8")
    update(path)
    assert path.read_text(encoding="utf-8") == once


# --- the table in docs/ ---


def test_the_table_says_what_was_refused_and_why() -> None:
    calls = {"": (SuiteCall("((T([3], f32),), {})"), SuiteCall("((T([], f32),), {})")), "out": ()}
    shares = (Share("aten/add", 9, 6, {"no |tensor|": 2, "two\nlines": 1}, calls), Share("aten/mul", 0, 0))
    text = table(Suite("opinfo", shares), "1.2.3")
    assert "torch 1.2.3 on" in text
    assert "2 operators: 9 samples, 6 used, 3 refused." in text
    assert text.endswith(
        f"| `add` | 9 | 6 | 3 | 2 | no \\|tensor\\| (2); two lines (1) |\n| `mul` | 0 | 0 | 0 | 0 | {NONE} |\n"
    )


def test_the_table_has_every_operator() -> None:
    listed = [
        line.split("`")[1] for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]
    problems = [name.removeprefix("aten/") for name in sorted(Registry().paths) if name.startswith("aten/")]
    assert listed == problems, "python -m kgbench.torchtools.opinfo_table"
