"""What torch says of ATen's operators, asked of a process of its own, and where it says nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from kgbench.problem.registry import Registry
from kgbench.prompts import facts as facts_module
from kgbench.prompts.facts import torch_facts
from kgbench.prompts.render import PromptOptions, prompt_for

pytestmark = [pytest.mark.torch, pytest.mark.xdist_group("operator facts")]


@pytest.fixture(scope="module")
def found() -> facts_module.TorchFacts:
    registry = Registry()
    return torch_facts([registry.find(f"aten/{name}") for name in ("softmax", "add_", "scatter", "sum", "im2col")])


@pytest.mark.in_turn("kgbench/torchtools/operator_facts.py", turns=3)
def test_schemas_are_those_of_the_required_overloads(found: facts_module.TorchFacts) -> None:
    assert found.missing == ""
    (schema,) = found.operators["aten/softmax"].schemas
    assert schema == "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
    assert [each.partition("(")[0] for each in found.operators["aten/sum"].schemas] == [
        "aten::sum",
        "aten::sum.dim_IntList",
    ]


def test_documentation_is_that_of_the_function_which_users_call(found: facts_module.TorchFacts) -> None:
    softmax = found.operators["aten/softmax"]
    assert softmax.documented_as == "torch.nn.functional.softmax"
    assert "Softmax is defined as" in softmax.documentation
    assert found.operators["aten/add_"].documented_as == "torch.Tensor.add"
    assert found.operators["aten/im2col"].documentation == ""


def test_examples_of_a_prompt_have_facts_too(found: facts_module.TorchFacts) -> None:
    softmax = Registry().find("aten/softmax")
    prompt = prompt_for(softmax, PromptOptions(shots=1), found)
    assert all("## In PyTorch" in turn.text for turn in prompt.turns if turn.role == "user")


def test_one_process_answers_for_all(found: facts_module.TorchFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ask(module: str, request: object, timeout_s: float) -> list[dict[str, object]]:
        asked.append(request)
        return [{"torch": "9.9"}]

    monkeypatch.setattr(facts_module, "ask", ask)
    problems = [Registry().find("aten/mm"), Registry().find("aten/bmm"), Registry().find("vllm/rms_norm")]
    assert torch_facts(problems) == torch_facts(problems)
    assert len(asked) == 1
    assert torch_facts(problems[2:]).operators == {}
    assert len(asked) == 1


def test_without_torch_prompts_go_without(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "torch" else find(name, *more))
    facts = torch_facts([Registry().find("aten/cos")])
    assert "torch is not installed" in facts.missing
    prompt = prompt_for(Registry().find("aten/cos"), PromptOptions(), facts)
    assert "In PyTorch" not in prompt.text


def test_a_torch_that_fails_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "_MODULE", "kgbench.harness.no_such_module")
    assert "No module named" in torch_facts([Registry().find("aten/sin")]).missing


def test_making_prompts_loads_neither_torch_nor_an_sdk() -> None:
    code = (
        "import sys; from kgbench.problem.registry import Registry; from kgbench.prompts.facts import *; "
        "from kgbench.prompts.render import *; "
        "p = Registry().find('aten/mm'); assert 'jinja2' not in sys.modules; "
        "prompt_for(p, PromptOptions(), torch_facts([p])); "
        "print([name for name in ('torch', 'triton', 'anthropic', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
