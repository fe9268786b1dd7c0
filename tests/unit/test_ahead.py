"""The file of what is compiled ahead, and the calls for which it is compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from kgbench.core.paths import examples_dir, problems_dir
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.ahead import calls_of, request, worth_compiling
from kgbench.harness.wire.ahead import unpack, without_folder, write
from kgbench.problem.registry import load_problem

GROUP: Final = "KEY/__grp___scale.json"


def test_a_worker_gets_what_was_written_with_its_own_folder(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    told = json.dumps({"child_paths": {"_scale.cubin": f"{there}/KEY/_scale.cubin"}}).encode()
    with (tmp_path / "file").open("wb") as file:
        write(file, GROUP, without_folder(GROUP, told, str(there)))
        write(file, "KEY/_scale.cubin", f"{there}".encode())
    with (tmp_path / "file").open("rb") as file:
        unpack(file, here)
    assert json.loads((here / GROUP).read_text())["child_paths"] == {"_scale.cubin": f"{here}/KEY/_scale.cubin"}
    assert (here / "KEY/_scale.cubin").read_text() == str(there)  # code is not changed
    assert sorted(path.name for path in (here / "KEY").iterdir()) == ["__grp___scale.json", "_scale.cubin"]


def test_what_is_not_whole_yet_is_taken_once_it_is(tmp_path: Path) -> None:
    with (tmp_path / "whole").open("wb") as file:
        write(file, "KEY/a", b"first")
        write(file, "KEY/b", b"second")
    content = (tmp_path / "whole").read_bytes()
    growing = tmp_path / "growing"
    growing.touch()
    with growing.open("rb") as file:
        for end in range(len(content) + 1):
            growing.write_bytes(content[:end])
            unpack(file, tmp_path / "cache")
            assert (tmp_path / "cache/KEY/a").exists() == (end >= 8 + 5 + 5)
            assert (tmp_path / "cache/KEY/b").exists() == (end == len(content))
    assert (tmp_path / "cache/KEY/b").read_bytes() == b"second"


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "cache/KEY").mkdir(parents=True)
    (tmp_path / "cache/KEY/driver.so").write_text("the driver's")
    with (tmp_path / "file").open("wb") as file:
        write(file, "KEY/driver.so", b"another")
    with (tmp_path / "file").open("rb") as file:
        unpack(file, tmp_path / "cache")
    assert (tmp_path / "cache/KEY/driver.so").read_text() == "the driver's"


@pytest.mark.parametrize(
    "name", ["../../kernel.py", "KEY/../x", "/etc/x", "KEY", "KEY/.x", "KEY/a/b", "KEY/" + "a" * 500]
)
def test_no_name_leads_out_of_the_cache(tmp_path: Path, name: str) -> None:
    with (tmp_path / "file").open("wb") as file:
        write(file, name, b"content")
    with (tmp_path / "file").open("rb") as file:
        unpack(file, tmp_path / "a/b/cache")
    assert not (tmp_path / "a").exists()


def test_calls_have_layouts_and_no_values() -> None:
    softmax = load_problem(problems_dir() / "aten/softmax.yaml")
    (overload,) = softmax.judged
    calls = calls_of(overload, memory_gb=150.0)
    assert len({json.dumps(call) for call in calls}) == len(calls) > 40
    tensors = [args[0]["tensor"] for _, args, _ in calls]
    assert {each["dtype"] for each in tensors} >= {"float16", "bfloat16", "float32"}
    assert max(each["extent"] for each in tensors) >= 2**31  # the large calls, too
    keys = {"dtype", "extent", "shape", "strides", "offset", "lazy", "host"}
    assert all(each.keys() == keys for each in tensors)


def test_cublas_gets_storages_and_pointers() -> None:
    batched = load_problem(problems_dir() / "cublas/cublasDgemmBatched.yaml")
    (overload,) = batched.judged
    tensors = [value["tensor"] for _, args, _ in calls_of(overload, 150.0) for value in args
               if isinstance(value, dict) and "tensor" in value]  # fmt: skip
    assert {each["dtype"] for each in tensors} == {"int64"}
    assert all(each["shape"] == (each["extent"],) and each["strides"] == (1,) for each in tensors)


def test_only_what_has_kernels_of_tritons_is_compiled_ahead() -> None:
    problem = load_problem(problems_dir() / "aten/softmax.yaml")
    text = (examples_dir() / "aten/softmax.py").read_text(encoding="utf-8")
    job = Job(problem, "test", source=text)
    assert worth_compiling(job)
    assert not worth_compiling(Job(problem, "test", source="def softmax(self, dim, dtype=None):\n    return self\n"))
    assert not worth_compiling(Job(problem, "baseline", trusted="baseline"))
    assert not worth_compiling(Job(problem, "test", source=text, adapted="package 1"))
    asked = request(job, 150.0, {"major": 9})
    assert asked.source == text
    assert "softmax" in asked.entries[""] or any("softmax" in names for names in asked.entries.values())
    assert len(json.dumps(asked.encode())) < 1 << 20
