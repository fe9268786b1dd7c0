"""All spellings of a problem's id meet in one function."""

from __future__ import annotations

import pytest

from kgbench.core.errors import UsageError
from kgbench.core.names import Name, closest_ids, did_you_mean, resolve

IDS = ("aten/add", "aten/add_", "aten/softmax", "aten/rms_norm", "vllm/rms_norm", "cublas/cublasSgemm_v2")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("aten/add", Name("aten/add")),
        ("aten::add", Name("aten/add")),
        ("add", Name("aten/add")),
        ("add_", Name("aten/add_")),
        ("add.Tensor", Name("aten/add", "Tensor")),
        ("aten/add.Tensor", Name("aten/add", "Tensor")),
        ("aten::add.Tensor", Name("aten/add", "Tensor")),
        (" aten/softmax ", Name("aten/softmax")),
        ("CUBLASSGEMM_V2", Name("cublas/cublasSgemm_v2")),
        ("vllm::rms_norm", Name("vllm/rms_norm")),
    ],
)
def test_spellings_meet(spelling: str, name: Name) -> None:
    assert resolve(spelling, IDS) == name


@pytest.mark.parametrize(
    ("spelling", "words"),
    [
        ("rms_norm", "'rms_norm' means aten/rms_norm and vllm/rms_norm; write the source too"),
        ("vllm/add", "there is no problem 'vllm/add'; closest: aten/add"),
        ("sgemm", "there is no problem 'sgemm'; closest: cublas/cublasSgemm_v2"),
        ("zzz", "there is no problem 'zzz'; kgbench list shows all"),
        ("", "there is no problem ''"),
    ],
)
def test_what_means_none_or_several_is_refused_with_the_closest(spelling: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(spelling, IDS)
    assert str(caught.value).startswith(words)


def test_closest_ids_are_few() -> None:
    assert len(closest_ids("add", [f"aten/add{index}" for index in range(50)])) == 3


def test_did_you_mean_lists_all_when_nothing_is_alike() -> None:
    assert did_you_mean("runn", ["run", "list"]) == "did you mean 'run'?"
    assert did_you_mean("xyz", ["run", "list"]) == "there are run, list"
