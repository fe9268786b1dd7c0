"""``dir:PATH`` finds the kernels in the layouts that people have, and says why a file is for no problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.models.layouts import UNMATCHED_SHOWN, match_folder, problem_named_by
from kgbench.models.provider import provider_of
from kgbench.problem.registry import Registry
from tests.layouts import layout

SGEMM = "cublas/cublasSgemm_v2"
IDS = ["aten/add", "aten/add_", "aten/_softmax", "aten/log10", "vllm/rms_norm", "aten/rms_norm", SGEMM]


@pytest.mark.parametrize(
    ("path", "id_"),
    [
        ("aten/add.py", "aten/add"),
        ("add.py", "aten/add"),
        ("anything/add.py", "aten/add"),
        ("add/add_implementation_1.py", "aten/add"),
        ("add/add_implementation_v12.py", "aten/add"),
        ("add/add_attempt_3.py", "aten/add"),
        ("add__Tensor/add__Tensor_implementation_v1.py", "aten/add"),
        ("add___Tensor/add___Tensor_implementation_v1.py", "aten/add_"),
        ("aten::add.py", "aten/add"),
        ("aten::add.Tensor.py", "aten/add"),
        ("aten__add.py", "aten/add"),
        ("aten__add__Tensor.py", "aten/add"),
        ("aten___softmax.py", "aten/_softmax"),
        ("aten/_softmax.0.py", "aten/_softmax"),
        ("aten/log10.py", "aten/log10"),
        ("vllm/rms_norm.py", "vllm/rms_norm"),
        ("vllm__rms_norm.py", "vllm/rms_norm"),
        ("cublas::cublasSgemm_v2.py", SGEMM),
        ("round_1/cublas::cublasSgemm_v2.py", SGEMM),
        ("cublasSgemm_v2_sample_4.py", SGEMM),
    ],
)
def test_a_path_names_its_problem(path: str, id_: str) -> None:
    assert problem_named_by(Path(path), IDS).id == id_


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("aten/conv2d.py", "there is no problem 'aten/conv2d'"),
        ("rms_norm.py", "means vllm/rms_norm and aten/rms_norm; write the source too"),
        ("level_1_problem_3_sample_0_kernel.py", "KernelBench"),
    ],
)
def test_a_path_that_names_none_says_why(path: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        problem_named_by(Path(path), IDS)


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("kgbench", {"aten/add": 1}),
        ("backendbench", {"aten/add": 1}),
        ("backendbench_overloads", {"aten/add": 1, "aten/mm": 1}),
        ("kernelgenbench", {"aten/add": 1, SGEMM: 1}),
        ("kernelgenbench_agents", {"aten/add": 1}),
        ("samples", {"aten/add": 2}),
        ("rounds", {"aten/add": 2}),
        ("kgbench_run", {"aten/add": 2}),
    ],
)
def test_every_file_of_a_layout_is_a_candidate(name: str, samples: dict[str, int], tmp_path: Path) -> None:
    registry = Registry()
    provider = provider_of(f"dir:{layout(name, tmp_path)}")
    provider.narrow(registry.ids(), chosen=False)
    found = {each: provider.samples_of(each) for each in samples}
    assert found == samples
    assert provider.notes[0].startswith(f"matched {sum(samples.values())} file")
    assert len(provider.notes) == 1
    for each, count in samples.items():
        candidates = list(provider.candidates(registry.find(each)))
        assert [candidate.sample for candidate in candidates] == list(range(count))
        assert all(candidate.source_text for candidate in candidates)


def test_samples_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for path in ("round_2/add.py", "round_10/add.py", "add.2.py", "add.10.py", "add.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    files = match_folder(tmp_path, IDS).files["aten/add"]
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "add.py", "add.2.py", "add.10.py", "round_2/add.py", "round_10/add.py",
    ]  # fmt: skip


def test_what_was_not_matched_is_said(tmp_path: Path) -> None:
    for path in ("aten/add.py", "aten::add.py", "add__Scalar.py", "helpers.py", "mm.py", "x/__init__.py", ".git/mm.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    lines = match_folder(tmp_path, IDS, ["aten/mm"]).lines(tmp_path)
    assert lines[:2] == ("matched 1 file to 1 problem", "  not selected: 1 file for other problems")
    assert [line.split(": ")[0].strip() for line in lines[2:]] == ["aten/add.py", "aten::add.py", "helpers.py"]
    assert "is answered by add__Scalar.py; number the files of several samples" in lines[2]
    assert "there is no problem 'helpers'" in lines[4]


def test_files_for_two_overloads_belong_into_one(tmp_path: Path) -> None:
    for name in ("add__Scalar", "add__Tensor"):
        (tmp_path / f"{name}_implementation_v1.py").write_text("")
    matches = match_folder(tmp_path, IDS)
    assert len(matches.files["aten/add"]) == 1
    assert "put the functions of all its overloads into one file" in next(iter(matches.unmatched.values()))


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    for number in range(UNMATCHED_SHOWN + 5):
        (tmp_path / f"helper{number}.py").write_text("")
    lines = match_folder(tmp_path, IDS).lines(tmp_path)
    assert (len(lines), lines[-1]) == (UNMATCHED_SHOWN + 2, "  and 5 files more")


def test_modelnew_is_an_error_of_that_file(tmp_path: Path) -> None:
    folder = layout("kernelbench", tmp_path)
    provider = provider_of(f"dir:{folder}")
    provider.narrow(["aten/add"], chosen=False)
    assert "KernelBench sample" in provider.notes[1]
    (candidate,) = provider.candidates(Registry().find("aten/add"))
    assert (candidate.outcome, candidate.source_text) == (Outcome.NO_CODE, None)
    assert candidate.reason.startswith("KernelBench's ModelNew")


@pytest.mark.parametrize("text", ["class ModelNew: ...\ndef add(): ...\n", "class ModelNew(\n", "# ModelNew\n"])
def test_a_file_that_merely_mentions_modelnew_is_judged(text: str, tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(text)
    (candidate,) = provider_of(f"dir:{tmp_path}").candidates(Registry().find("aten/add"))
    assert (candidate.outcome, candidate.source_text) == (None, text)
