"""Providers: found by name, honest about what is missing, helpful about what was mistyped."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import click
import pytest

from kgbench.cli.completion import complete_model
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import example_languages, examples_dir
from kgbench.llm.conversation import MAX_SOURCE_BYTES
from kgbench.models import provider as models
from kgbench.models.provider import provider_names, provider_of, provider_summaries
from kgbench.models.providers.examples import DEMO
from kgbench.problem.model import Problem


def problem(id_: str) -> Problem:
    source, _, name = id_.partition("/")
    return Problem(id_, source, name, "", "", "compute", "", (), Path(f"{name}.yaml"), "0" * 64)


MM, ADD, GEMM = "aten/mm", "aten/add", "cublas/cublasSgemm_v2"


def write(path: Path, text: str = "def mm(): ...\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_file_of_the_folder_is_a_provider() -> None:
    folder = Path(models.providers.__path__[0])
    stems = [path.stem for path in folder.glob("[!_]*.py")]
    assert provider_names() == tuple(sorted(stem.replace("__", ".").replace("_", "-") for stem in stems))


def test_every_provider_has_a_summary_that_starts_with_its_name() -> None:
    assert all(summary.startswith(name) for name, summary in provider_summaries().items())


@pytest.mark.parametrize("spec", ["clod", "clod:x", "", "_trusted", "my_kernels/"])
def test_unknown_provider_lists_what_there_is(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        provider_of(spec)
    assert all(summary in str(caught.value) for summary in provider_summaries().values())


@pytest.mark.parametrize("name", ["baseline", "reference"])
def test_what_takes_no_argument_says_so(name: str) -> None:
    with pytest.raises(UsageError, match="takes nothing after the colon"):
        provider_of(f"{name}:x")


@pytest.mark.parametrize("name", ["baseline", "reference"])
def test_trusted_candidates_have_no_text(name: str) -> None:
    (candidate,) = provider_of(name).candidates(problem(MM))
    assert (candidate.trusted, candidate.source_text, candidate.model) == (name, None, name)


def test_folder_gives_one_candidate_per_problem(tmp_path: Path) -> None:
    write(tmp_path / "aten" / "mm.py", "text\n")
    provider = provider_of(f"dir:{tmp_path}")
    assert provider.narrow([MM, ADD], chosen=False) == [MM, ADD]
    (found,), (missing,) = provider.candidates(problem(MM)), provider.candidates(problem(ADD))
    assert (found.source_text, found.trusted, found.outcome) == ("text\n", None, None)
    assert (missing.source_text, missing.outcome) == (None, Outcome.NO_CANDIDATE)


def test_folder_without_any_of_the_problems_shows_where_a_kernel_belongs(tmp_path: Path) -> None:
    write(tmp_path / "helper.py")
    with pytest.raises(UsageError, match=r"A kernel for aten/mm belongs in .*aten/mm\.py\n  helper\.py: there is no"):
        provider_of(f"dir:{tmp_path}").narrow([MM, ADD], chosen=False)


@pytest.mark.parametrize("colon", ["dir:", ""])
def test_file_is_for_the_problem_its_path_names(tmp_path: Path, colon: str) -> None:
    path = write(tmp_path / "aten" / "mm.py")
    provider = provider_of(f"{colon}{path}")
    assert provider.narrow([ADD, MM, GEMM], chosen=False) == (MM,)
    (candidate,) = provider.candidates(problem(MM))
    assert candidate.path == path


def test_relative_file_is_named_by_its_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write(tmp_path / "aten" / "mm.py").parent)
    assert provider_of("mm.py").narrow([ADD, MM], chosen=False) == (MM,)


def test_file_elsewhere_is_for_the_one_chosen_problem(tmp_path: Path) -> None:
    provider = provider_of(str(write(tmp_path / "fast.py")))
    assert provider.narrow([GEMM], chosen=True) == [GEMM]


@pytest.mark.parametrize(("ids", "chosen"), [([MM, GEMM], True), ([GEMM], False)])
def test_file_for_no_clear_problem_asks(tmp_path: Path, ids: list[str], chosen: bool) -> None:
    provider = provider_of(str(write(tmp_path / "fast.py")))
    with pytest.raises(UsageError, match=r"which problem is .* for"):
        provider.narrow(ids, chosen=chosen)


@pytest.mark.parametrize("spec", ["dir", "dir:nowhere", "nowhere.py"])
def test_path_that_is_not_there_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError):
        provider_of(spec)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"#" * (MAX_SOURCE_BYTES + 1), "more than"),
    ],
    ids=["empty", "blank", "no text", "too long"],
)
def test_file_that_cannot_be_code_is_no_code(tmp_path: Path, data: bytes, words: str) -> None:
    path = write(tmp_path / "aten" / "mm.py")
    path.write_bytes(data)
    (candidate,) = provider_of(str(path)).candidates(problem(MM))
    assert candidate.outcome is Outcome.NO_CODE
    assert words in candidate.reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file; run as another user")
def test_unreadable_file_is_no_code(tmp_path: Path) -> None:
    path = write(tmp_path / "aten" / "mm.py")
    path.chmod(0)
    (candidate,) = provider_of(str(path)).candidates(problem(MM))
    assert candidate.outcome is Outcome.NO_CODE


def test_examples_are_in_the_package() -> None:
    (candidate,) = provider_of("examples").candidates(problem("aten/softmax"))
    assert candidate.source_text is not None
    assert "def softmax" in candidate.source_text


def test_examples_of_another_language_are_for_the_problems_there_are() -> None:
    provider = provider_of("examples:load_inline")
    assert provider.model == "examples:load_inline"
    assert provider.narrow(["aten/mm", "aten/softmax", "vllm/rms_norm"], chosen=False) == [
        "aten/softmax",
        "vllm/rms_norm",
    ]
    (candidate,) = provider.candidates(problem("aten/softmax"))
    assert "load_inline(" in (candidate.source_text or "")


@pytest.mark.parametrize(("chosen", "ids"), [(False, ["aten/softmax"]), (True, ["aten/bernoulli", "aten/softmax"])])
def test_examples_select_what_they_are_for_unless_problems_are_named(chosen: bool, ids: list[str]) -> None:
    assert provider_of("examples").narrow(["aten/bernoulli", "aten/softmax"], chosen=chosen) == ids


def test_the_demo_has_examples_of_each_source_alike() -> None:
    assert provider_of("examples").narrow(DEMO, chosen=False) == list(DEMO)
    assert len(set(Counter(each.partition("/")[0] for each in DEMO).values())) == 1


def test_examples_have_one_name_in_triton() -> None:
    assert provider_of("examples:triton").model == provider_of("examples").model == "examples"


@pytest.mark.parametrize("language", example_languages())
def test_every_language_has_an_example_of_each_source(language: str) -> None:
    assert {path.parent.name for path in examples_dir(language).rglob("*.py")} == {"aten", "cublas", "vllm"}


def test_unknown_language_lists_what_there_is() -> None:
    with pytest.raises(
        UsageError, match=r"no examples in 'cuda'.*examples:cupy, examples:load_inline, examples:triton"
    ):
        provider_of("examples:cuda")


def test_the_shell_completes_providers_and_languages() -> None:
    def completed(incomplete: str) -> list[str]:
        context = click.Context(click.Command("run"))
        return [item.value for item in complete_model(context, click.Option(["--model"]), incomplete)]

    assert completed("ba") == ["baseline"]
    assert completed("examples:") == ["examples:cupy", "examples:load_inline", "examples:triton"]
