"""Prompts: all that an author needs of every problem, and nothing that gives an answer away. No torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click import Context
from click.testing import CliRunner

from kgbench.cli.completion import complete_gpu
from kgbench.cli.main import main
from kgbench.core.errors import UsageError
from kgbench.core.paths import examples_dir
from kgbench.llm.conversation import Prompt
from kgbench.problem.cases import Sizes, judged_dtypes
from kgbench.problem.expressions import Expr
from kgbench.problem.model import SOURCES, CaseTemplate, Draw, Overload, Problem, TensorArgument
from kgbench.problem.registry import Registry, load_problem
from kgbench.prompts.facts import OperatorFacts, TorchFacts
from kgbench.prompts.gpus import Gpu, gpu_as_driven, gpu_named, known_gpus
from kgbench.prompts.render import LANGUAGES, PromptOptions, prompt_for
from kgbench.prompts.shots import examples_for
from kgbench.prompts.tokens import estimated_tokens
from tests.unit.test_loader import GOOD

pytestmark = pytest.mark.xdist_group("prompts")  # those of all problems are made once
H200 = gpu_named("H200")
SECRET = "nobody_may_read_this"


@pytest.fixture(scope="module")
def problems(shipped: Callable[[Path], Problem]) -> list[Problem]:
    return [shipped(path) for path in Registry().paths.values()]


@pytest.fixture(scope="module")
def prompts(problems: list[Problem]) -> dict[str, Prompt]:
    return {problem.id: prompt_for(problem, PromptOptions()) for problem in problems}


def one(problems: list[Problem], name: str) -> Problem:
    return next(problem for problem in problems if problem.id == name)


# --- what is there ---


def test_every_prompt_has_what_its_author_needs(problems: list[Problem], prompts: dict[str, Prompt]) -> None:
    for problem in problems:
        (question,) = prompts[problem.id].turns
        assert question.role == "user"
        assert problem.doc.strip() in question.text
        for overload in problem.overloads:
            assert re.search(rf"\b{overload.signature.name}\b", question.text), (problem.id, overload.name)
            if overload.required:
                assert f"def {overload.signature.text}\n" in question.text
                missing = [each for each in overload.dtypes if each not in question.text]
                assert not missing, (problem.id, overload.name, missing)
                tensors = [each.name for each in overload.arguments if isinstance(each, TensorArgument)]
                assert all(f"\n- {name}: " in question.text for name in tensors), problem.id


def test_what_is_not_required_is_named_as_such(prompts: dict[str, Prompt]) -> None:
    assert "Not required, and not judged: acosh_int, acosh_float, acosh_complex" in prompts["aten/acosh"].turns[0].text
    assert "Not required" not in prompts["aten/add"].turns[0].text


def test_the_shared_part_is_the_same_for_a_source_and_language(problems: list[Problem]) -> None:
    """To the byte: a provider's cache serves it."""
    for language in LANGUAGES:
        for source in SOURCES:
            of_source = [problem for problem in problems if problem.source == source]
            chosen = of_source if language == "triton" else of_source[::25]
            systems = {prompt_for(each, PromptOptions(language=language)).system for each in chosen}
            assert len(systems) == 1, (language, source)
            (system,) = systems
            assert not [each.name for each in of_source if len(each.name) > 8 and f"/{each.name}" in system]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_its_rules(language: str, problems: list[Problem]) -> None:
    system = prompt_for(one(problems, "vllm/rms_norm"), PromptOptions(language=language)).system
    expected = {"triton": ("@triton.jit", "interpreter"), "cuda": ("RawModule", "cuda_sources"),
                "torch-cpp": ("load_inline", "both devices")}  # fmt: skip
    wanted = [word for words in expected.values() for word in words] if language == "any" else expected[language]
    assert all(word in system for word in wanted)
    assert "exactly one fenced code block" in system


def test_an_agent_is_told_of_its_folder(problems: list[Problem]) -> None:
    prompt = prompt_for(one(problems, "vllm/rms_norm"), PromptOptions(agent=True))
    assert "./check kernel.py" in prompt.system
    assert "./check" not in prompt_for(one(problems, "vllm/rms_norm"), PromptOptions()).system


def test_the_policy_of_the_kind_is_told(prompts: dict[str, Prompt]) -> None:
    assert "Memory and other views, but no copy. Not aten::t in any form." in prompts["aten/t"].turns[0].text
    assert "nothing that computes or draws" in prompts["aten/exponential_"].turns[0].text
    assert "the problem is one of the copies itself" in prompts["aten/clone"].turns[0].text
    assert "itself, and none of those" not in prompts["aten/mm"].turns[0].text
    assert "Memory, views and fills. Not aten::full in any form." in prompts["aten/full"].turns[0].text


def test_what_is_written_and_returned_is_told(prompts: dict[str, Prompt]) -> None:
    assert "- out: output: every element is to be written" in prompts["vllm/rms_norm"].turns[0].text
    assert "- B: read and updated in place; its storage" in prompts["cublas/cublasStrsm_v2"].turns[0].text
    assert (
        "- Aarray: read only; a one-dimensional int64 tensor" in prompts["cublas/cublasSgemmBatched_64"].turns[0].text
    )
    assert "- A: read only; of it only the elements that the desc" in prompts["cublas/cublasStrsm_v2"].turns[0].text
    gathered = prompts["vllm/cp_gather_cache"].turns[0].text
    assert "- dst: output: the elements that the description names, the others are neither read nor" in gathered
    assert "returns the argument `self` itself" in prompts["aten/exponential_"].turns[0].text
    assert "- slot_mapping: read only; always int64" in prompts["vllm/reshape_and_cache"].turns[0].text
    assert "- alibi_slopes: read only; always float32; may be None" in prompts["vllm/paged_attention_v1"].turns[0].text


# --- what is a matter of choice ---


def test_timed_calls_are_those_of_the_target(problems: list[Problem]) -> None:
    softmax = one(problems, "aten/softmax")
    large, small = (
        prompt_for(softmax, PromptOptions(target=gpu)).turns[0].text for gpu in (H200, gpu_named("RTX 4090"))
    )
    assert "softmax_int(self=float16[1024, 128256], dim=-1)" in large
    assert "128256" not in small
    assert "softmax_int(self=float16[1024, 50257], dim=-1)" in small
    without = prompt_for(softmax, PromptOptions(target=H200, bench_shapes=False)).turns[0].text
    assert "128256" not in without
    assert "timed calls" not in without


def test_the_target_is_told_with_its_numbers(problems: list[Problem]) -> None:
    text = prompt_for(one(problems, "aten/mm"), PromptOptions(target=H200)).turns[0].text
    for words in ("NVIDIA H200", "compute capability 9.0", "132 SMs", "4800 GB/s", "50 MB of L2", "float32 67"):
        assert words in text
    assert "is not known" in prompt_for(one(problems, "aten/mm"), PromptOptions()).turns[0].text
    bare = prompt_for(one(problems, "aten/mm"), PromptOptions(target=Gpu("NVIDIA X1", memory_gb=48))).turns[0].text
    assert "NVIDIA X1, 48 GB of memory.\n" in bare


def test_facts_of_torch_are_told_where_they_are_there(problems: list[Problem]) -> None:
    known = OperatorFacts(("aten::mm(Tensor self, Tensor mat2) -> Tensor",), "torch.mm", "a\n\nb")
    facts = TorchFacts({"aten/mm": known}, "2.13")
    text = prompt_for(one(problems, "aten/mm"), PromptOptions(), facts).turns[0].text
    assert "## In PyTorch 2.13\n\n```\naten::mm(Tensor self, Tensor mat2) -> Tensor\n```" in text
    assert "documentation of `torch.mm`" in text
    assert "\n> a\n>\n> b\n" in text
    assert "In PyTorch" not in prompt_for(one(problems, "aten/bmm"), PromptOptions(), facts).turns[0].text


def test_a_users_own_source_has_the_shared_rules(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "scale.yaml"
    path.parent.mkdir()
    path.write_text(GOOD)
    prompt = prompt_for(load_problem(path), PromptOptions())
    assert "Whose work counts" in prompt.system
    assert "vLLM's compiled ones" not in prompt.system
    assert "mine/scale" in prompt.turns[0].text


# --- what is not there ---


def test_nothing_secret_decides_what_a_prompt_says(problems: list[Problem], monkeypatch: pytest.MonkeyPatch) -> None:
    """With another reference, other cases, draws, ranges and tolerances the prompt is the same to the byte, but for the
    largest sizes of all cases, which `test_sizes.py` looks at.
    """
    monkeypatch.setattr("kgbench.prompts.words.sizes_of", lambda overload: Sizes())
    for problem in problems:
        changed = replace(problem, overloads=tuple(_with_other_secrets(each) for each in problem.overloads))
        assert prompt_for(changed, PromptOptions()) == prompt_for(problem, PromptOptions()), problem.id


def _with_other_secrets(overload: Overload) -> Overload:
    """Everything else that an answer could be read from; of the cases the dtypes stay, which a prompt names."""
    cases = tuple(CaseTemplate({"dtype": dtype, SECRET: 918273}, 1) for dtype in sorted(judged_dtypes(overload)))
    length = Expr.parse("918273") if overload.tolerance.length else None
    tolerance = replace(overload.tolerance, ulps=918273.0, length=length)
    arguments = tuple(
        replace(each, draw={name: Draw(SECRET) for name in each.draw}) if isinstance(each, TensorArgument) else each
        for each in overload.arguments
    )
    return replace(
        overload, check=cases, opinfo=(), fuzz=None, reference=SECRET, tolerance=tolerance, arguments=arguments,
        prepare=SECRET if overload.prepare else None, fallback=SECRET if overload.fallback else None,
        canonical=SECRET if overload.canonical else None, equivalent={SECRET: SECRET}, cost=None,
    )  # fmt: skip


def test_no_text_of_an_answer_stands_in_a_prompt(problems: list[Problem], prompts: dict[str, Prompt]) -> None:
    """Also not in a problem's description, which is told as it is."""
    for problem in problems:
        text = prompts[problem.id].text
        for overload in problem.overloads:
            paths = (overload.prepare, overload.fallback, overload.canonical, *overload.baseline.values())
            code = [line.strip() for line in overload.reference.splitlines() if len(line.strip()) > 24]
            found = [each for each in (*paths, *code) if each and each in text]
            assert not found, (problem.id, found)
            calls = [each.call and each.call.text for each in (*overload.check, *overload.opinfo)]
            assert not [call for call in calls if call and call in text], problem.id
        for word in ("kgbench.", "def reference", "check-1", "fuzz", "SECRET", "opinfo"):
            assert word not in text, (problem.id, word)
        assert not re.search(r"\d\s*(?:ulps?\b|units? (?:of rounding|of float|in the last place))", text), problem.id


# --- examples ---


def test_an_example_is_never_of_the_problem_asked_or_one_like_it(problems: list[Problem]) -> None:
    for language, most in (("triton", 8), ("cuda", 2), ("torch-cpp", 2), ("any", 8)):
        for problem in problems:
            for shot in examples_for(problem, language, most):
                words = [set(re.findall(r"[a-z0-9]+", each.category)) for each in (shot.problem, problem)]
                assert shot.problem.id != problem.id
                assert not words[0] & words[1], (problem.id, shot.problem.id)


def test_examples_are_turns_before_the_question(problems: list[Problem]) -> None:
    softmax = one(problems, "aten/softmax")
    options = PromptOptions(shots=2)
    prompt = prompt_for(softmax, options)
    assert [turn.role for turn in prompt.turns] == ["user", "assistant", "user", "assistant", "user"]
    assert prompt.system == prompt_for(softmax, PromptOptions()).system
    assert prompt.turns[-1] == prompt_for(softmax, PromptOptions()).turns[-1]
    for asked, answered in (prompt.turns[0:2], prompt.turns[2:4]):
        name = re.match(r"# (\S+):", asked.text)
        assert name is not None
        source = (examples_dir("triton") / f"{name[1]}.py").read_text()
        assert answered.text == f"```python\n{source.strip()}\n```"


def test_examples_come_from_the_same_source_first(problems: list[Problem]) -> None:
    for name in ("aten/softmax", "vllm/rms_norm", "cublas/cublasDgemv_v2"):
        shots = examples_for(one(problems, name), "triton", 3)
        assert {shot.problem.source for shot in shots} == {name.partition("/")[0]}


@pytest.mark.parametrize(
    ("name", "shots"),
    [
        ("aten/softmax", ["aten/gather", "aten/silu", "aten/im2col"]),
        ("vllm/rms_norm", ["vllm/moe_sum", "vllm/cp_gather_cache", "vllm/rotary_embedding"]),
        ("cublas/cublasDgemv_v2", ["cublas/cublasSscal_v2", "cublas/cublasSaxpy_v2", "cublas/cublasCcopy_v2"]),
    ],
)
def test_an_example_that_ships_anew_is_in_no_prompt(problems: list[Problem], name: str, shots: list[str]) -> None:
    assert [shot.problem.id for shot in examples_for(one(problems, name), "triton", 3)] == shots


def test_more_examples_than_there_are_is_an_error(problems: list[Problem]) -> None:
    with pytest.raises(UsageError, match="expected 0 to 2"):
        prompt_for(one(problems, "aten/softmax"), PromptOptions(language="cuda", shots=3))


# --- the same again ---


def test_the_same_question_has_the_same_hash(problems: list[Problem], prompts: dict[str, Prompt]) -> None:
    again = load_problem(one(problems, "vllm/rms_norm").path)
    assert prompt_for(again, PromptOptions()).sha256 == prompts["vllm/rms_norm"].sha256
    assert len({prompt.sha256 for prompt in prompts.values()}) == len(problems)


def test_tokens_are_estimated_by_bytes() -> None:
    assert estimated_tokens("") == 0
    assert estimated_tokens("µ" * 23) == 20
    assert estimated_tokens("x" * 230) == 100


# --- GPUs ---


@pytest.mark.parametrize(
    ("written", "meant"),
    [("H200", "H200"), ("nvidia h100 pcie", "H100 PCIe"), ("NVIDIA H100 80GB HBM3", "H100"), ("rtx4090", "RTX 4090"),
     ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("NVIDIA A100-SXM4-40GB", "A100 40GB"), ("NVIDIA L40S", "L40S")],
)  # fmt: skip
def test_gpus_are_found_by_their_usual_names(written: str, meant: str) -> None:
    assert gpu_named(written) == known_gpus()[meant]


@pytest.mark.parametrize("written", ["H100 NVL", "RTX 4090 Laptop GPU", "H20", "A10G", ""])
def test_what_only_looks_like_a_known_gpu_is_none(written: str) -> None:
    with pytest.raises(UsageError, match="no GPU"):
        gpu_named(written)


def test_a_driver_that_counts_other_memory_means_another_gpu() -> None:
    assert gpu_as_driven("NVIDIA H200", 150.7) == H200  # what its driver counts: 143771 MiB
    assert gpu_as_driven("NVIDIA H200", 94.0) == Gpu("NVIDIA H200", memory_gb=94)
    assert gpu_as_driven("NVIDIA Z9", 31.6) == Gpu("NVIDIA Z9", memory_gb=32)


def test_every_gpu_of_the_table_is_whole() -> None:
    for gpu in known_gpus().values():
        assert None not in vars(gpu).values(), gpu.name
        assert gpu.tflops["float32"] > gpu.tflops["float64"], gpu.name


# --- the command ---


def test_the_command_prints_what_is_sent(problems: list[Problem], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.prompts.targets.nvidia_gpus", list)
    prompt = prompt_for(one(problems, "vllm/rms_norm"), PromptOptions())
    result = CliRunner().invoke(main, ["prompt", "rms_norm"])
    assert result.exit_code == 0
    assert result.stdout == f"--- system ---\n{prompt.system}\n--- user ---\n{prompt.turns[0].text}\n"
    assert prompt.sha256 in result.stderr
    assert "any NVIDIA GPU" in result.stderr


def test_the_command_lists_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.prompts.targets.nvidia_gpus", list)
    result = CliRunner().invoke(main, ["prompt", "--sizes", "--source", "vllm"])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 50
    assert "50 prompts, about" in result.stderr


def test_gpus_are_completed_by_their_begin() -> None:
    found = complete_gpu(Context(main), main.params[0], "rtx")
    assert {item.value for item in found} == {"RTX 5090", "RTX 4090", "RTX 3090", "RTX A6000"}
