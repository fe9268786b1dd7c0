"""Which files in a candidate's folder count as what its compiler wrote: read from outside, whatever lies there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kgbench.core.files import remove_tree
from kgbench.harness.attribution.built import compiled_below, is_in

NAME = "my_scan_kernel"
CUBIN = b"\x7fELF" + bytes(60) + b".text." + NAME.encode() + bytes(8)


@pytest.mark.parametrize(
    ("place", "content", "counts"),
    [
        ("mine.cubin", CUBIN, True),
        ("below/mine.so", CUBIN, True),
        ("mine.o", CUBIN, True),
        ("mine.txt", CUBIN, False),
        ("other.cubin", b"\x7fELF" + bytes(60), False),
        # What packages keep of their own kernels is not the candidate's.
        (".cache/cupy.cubin", CUBIN, False),
        ("triton_cache_dir/x/kept.cubin", CUBIN, False),
        # A library, or a part of it with the names of its host code, stays the library's.
        ("mine.so", CUBIN + b"cublasCreate_v2\0", False),
        ("mine.fatbin", CUBIN + b"_ZN2at6native10reduce", False),
    ],
)
def test_a_kernel_is_ones_own_by_a_file_that_its_compiler_wrote(
    tmp_path: Path, place: str, content: bytes, counts: bool
) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    assert any(is_in(each, NAME) for each in compiled_below(tmp_path)) is counts


def test_a_link_to_a_file_elsewhere_is_not_what_a_compiler_wrote(tmp_path: Path) -> None:
    """The referee would follow it from its own root."""
    folder, elsewhere = tmp_path / "folder", tmp_path / "libx.so"
    folder.mkdir()
    elsewhere.write_bytes(CUBIN)
    (folder / "libx.so").symlink_to(elsewhere)
    (folder / "all").symlink_to(tmp_path)
    assert list(compiled_below(folder)) == []


def test_a_file_that_is_gone_meanwhile_holds_nothing(tmp_path: Path) -> None:
    assert not is_in(tmp_path / "gone.so", NAME)


def test_folders_may_lie_in_each_other_as_deep_as_a_path_allows(tmp_path: Path) -> None:
    """Deeper than Python's calls may be, which would end the referee."""
    before = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1100):
            os.mkdir("d")
            os.chdir("d")
        Path("mine.cubin").write_bytes(CUBIN)
    finally:
        os.chdir(before)
    found = [path.name for path in compiled_below(tmp_path)]
    remove_tree(tmp_path / "d")
    assert found == ["mine.cubin"]
