"""Triton's driver module: built once, and given to each worker's own cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kgbench.harness.process import triton_driver


def test_files_lie_in_the_cache_as_they_lay_where_they_were_built(tmp_path: Path) -> None:
    triton_driver.give({"KEY/cuda_utils.so": b"code", "OTHER/more.so": b""}, tmp_path / "triton_cache_dir")
    assert (tmp_path / "triton_cache_dir/KEY/cuda_utils.so").read_bytes() == b"code"
    assert (tmp_path / "triton_cache_dir/OTHER/more.so").read_bytes() == b""


def test_where_the_files_cannot_be_written_no_worker_ends(tmp_path: Path) -> None:
    (tmp_path / "triton_cache_dir").write_text("no folder")
    triton_driver.give({"KEY/cuda_utils.so": b"code"}, tmp_path / "triton_cache_dir")


def test_a_child_that_cannot_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise AssertionError("libcuda.so cannot be found")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(triton_driver, "_load", fail)
    assert triton_driver.built() == {}
    assert not list(tmp_path.iterdir())


def test_what_the_child_builds_is_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> None:
        file = Path(os.environ["TRITON_CACHE_DIR"]) / "KEY" / "cuda_utils.so"
        file.parent.mkdir()
        file.write_bytes(b"code")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(triton_driver, "_load", build)
    before = dict(os.environ)
    assert triton_driver.built() == {"KEY/cuda_utils.so": b"code"}
    assert not list(tmp_path.iterdir())
    assert dict(os.environ) == before, "the child alone has the folder as its cache"
