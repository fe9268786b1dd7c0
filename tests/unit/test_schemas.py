"""Schemas of vLLM's operators: read as torch prints them and as vLLM writes them, and as a problem's own signature."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.baselines.named import looked_up
from kgbench.baselines.vllm_operators import OPERATORS, operator_of
from kgbench.cli.draft_vllm import TABLE
from kgbench.core.errors import KgbenchError
from kgbench.problem import schemas
from kgbench.problem.registry import load_problem

PRINTED = (Path(__file__).parent / "data" / "vllm-0.20.2-schemas.txt").read_text(encoding="utf-8").splitlines()
OWN = """\
summary: SiLU of one half times the other
kind: compute
category: activation
entry: "silu_and_mul(result: Tensor, input: Tensor) -> None"
signature: "_C::silu_and_mul(Tensor! result, Tensor input) -> ()"
dtypes: {required: [float32]}
arguments:
  result: {access: write, shape: "(m, n)"}
  input: {access: read, shape: "(m, 2 * n)", draw: "normal()"}
cases:
  check: [{m: 3, n: 5}]
  bench: {cpu: [{m: 64, n: 64}], gpu: [{m: 64, n: 64}]}
reference: |
  def reference(result, input):
      left, right = torch.chunk(input, 2, -1)
      return {"result": torch.nn.functional.silu(left) * right}
tolerance: {rule: rounding}
doc: result = silu(left half) * right half
"""


def own(folder: Path, *changes: str) -> Path:
    text = OWN
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path = folder / "vllm" / "silu_and_mul.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_schema_is_read_alike_as_torch_prints_it_and_as_vllm_writes_it() -> None:
    written = {schema.name: schema for schema in map(schemas.parsed, TABLE.read_text(encoding="utf-8").splitlines())}
    for line in PRINTED:
        printed = schemas.parsed(line)
        assert written[printed.name] == printed, line


def test_the_words_of_a_schema() -> None:
    text = "_C::f(Tensor($0! -> ) a, Tensor!? b, SymInt n=3, (int, int)? g=None, *, bool c) -> (Tensor, int)"
    found = schemas.parsed(text)
    assert [(each.kind, each.name, each.is_written, each.default) for each in found.parameters] == [
        ("Tensor", "a", True, ""), ("Tensor?", "b", True, ""), ("SymInt", "n", False, "3"),
        ("(int, int)?", "g", False, "None"), ("bool", "c", False, ""),
    ]  # fmt: skip
    assert (found.name, found.returns) == ("_C::f", "(Tensor, int)")


@pytest.mark.parametrize("text", ["", "silu(Tensor a)", "_C::silu", "_C::silu(Tensor a", "_C::silu(Tensor a) x"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no schema of an operator; write it as torch prints it: _C::silu_and_mul"):
        schemas.parsed(text)


def test_an_operator_without_a_row_brings_its_schema(tmp_path: Path) -> None:
    assert "silu_and_mul" not in OPERATORS
    overload = load_problem(own(tmp_path)).overloads[0]
    target = overload.baseline["cuda"]
    assert target == "vllm:silu_and_mul(_C::silu_and_mul(Tensor! result, Tensor input) -> ())"
    (registration,) = operator_of(target.partition(":")[2]).registrations
    assert (registration.name, registration.parameters) == ("_C::silu_and_mul", "Tensor result, Tensor input")
    assert [each.wrong for each in looked_up(overload, (tmp_path,))] == [""]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("_C::silu_and_mul(Tensor! result, Tensor input) -> ()", "silu_and_mul", "is no schema of an operator"),
        ("Tensor input) -> ()", "Tensor input, int n) -> ()", "it has 3 parameters, and entry has 2"),
        ("Tensor input) -> ()", "Tensor? input) -> ()", "it has 'Tensor? input', and entry 'input: Tensor'"),
    ],
)
def test_a_wrong_schema_is_a_complaint_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = own(tmp_path, old, new)
    with pytest.raises(KgbenchError) as caught:
        load_problem(path)
    assert caught.value.printed.startswith(f"KGB258: {path}:5: signature: ")
    assert words in str(caught.value)


def test_a_row_and_a_schema_are_two_truths() -> None:
    with pytest.raises(ValueError, match=r"rms_norm has a row in .*; remove the key signature"):
        operator_of("rms_norm(_C::rms_norm(Tensor! result, Tensor input, Tensor weight, float epsilon) -> ())")
