"""What a candidate's text asks for, and what a machine lacks for it."""

from __future__ import annotations

import getpass
from dataclasses import replace
from pathlib import Path

import pytest

from kgbench.core.details.sentences import words_of
from kgbench.core.paths import examples_dir
from kgbench.harness.machine.environment import environment
from kgbench.harness.machine.languages import EXTENSIONS, Machine, deadlines_for, lacking, machine_of, uses_of
from kgbench.harness.machine.settings import Deadlines

HERE = frozenset({"cupy", "triton", "setuptools"})
GPU = Machine("cuda", "13.0", HERE, compiler=True, headers=True, ninja=True, nvcc=True)
CPU = replace(GPU, device_kind="cpu")
INLINE = "from torch.utils.cpp_extension import load_inline\n"
CUDA_TEXT = 'CODE = "…"\n'


def example(language: str) -> str:
    return (examples_dir(language) / "aten/softmax.py").read_text()


@pytest.mark.parametrize(
    ("source", "mentioned", "needed"),
    [
        ("import cupy", {"cupy"}, {"cupy"}),
        ("import cupyx.jit as jit", {"cupy"}, {"cupy"}),
        ("from triton import language", {"triton"}, {"triton"}),
        ("def f():\n    import cupy", {"cupy"}, {"cupy"}),
        ("try:\n    import cupy\nexcept ImportError:\n    cupy = None", {"cupy"}, set()),
        ("if fast:\n    import cupy", {"cupy"}, set()),
        ("from .cupy import x", set(), set()),
        ("import cupyish", set(), set()),
        (INLINE, {EXTENSIONS}, {EXTENSIONS}),
        ("from torch.utils import cpp_extension", {EXTENSIONS}, {EXTENSIONS}),
        ("import torch\ntorch.utils.cpp_extension.load", {EXTENSIONS}, {EXTENSIONS}),
        ("raise ModuleNotFoundError('cupy')", set(), set()),
        ("not python (", set(), set()),
        ("(" * 1000 + ")" * 1000, set(), set()),
    ],
)
def test_imports_are_found(source: str, mentioned: set[str], needed: set[str]) -> None:
    found = uses_of(source)
    assert (found.mentioned, found.needed) == (mentioned, needed)


@pytest.mark.parametrize(
    ("call", "mentioned", "needed"),
    [
        ("load_inline('k', '')", False, False),
        ("load_inline('k', '', cuda_sources=None)", False, False),
        ("load_inline('k', '', cuda_sources=[])", False, False),
        ("load_inline('k', '', cuda_sources=CODE)", True, True),
        ("load_inline('k', '', [CODE])", True, True),
        ("ext.load_inline('k', '', cuda_sources='text')", True, True),
        ("load_inline('k', '', cuda_sources=CODE if gpu else None)", True, False),
        ("load_inline('k', '', cuda_sources=chosen)", True, False),
        ("if gpu: load_inline('k', '', cuda_sources=CODE)", True, False),
    ],
)
def test_cuda_sources_are_found(call: str, mentioned: bool, needed: bool) -> None:
    found = uses_of(f"{INLINE}{CUDA_TEXT}{call}")
    assert ("cuda_sources" in found.mentioned, "cuda_sources" in found.needed) == (mentioned, needed)


def words_of_lacking(source: str, machine: Machine) -> str:
    found = lacking(source, machine)
    return "" if found is None else words_of(found)


@pytest.mark.parametrize(
    ("language", "machine", "words"),
    [
        ("cupy", GPU, ""),
        ("cupy", replace(GPU, packages=frozenset()), "needs cupy: pip install 'kgbench[cuda13]'"),
        ("cupy", replace(GPU, packages=frozenset(), cuda="12.8"), "needs cupy: pip install 'kgbench[cuda12]'"),
        ("cupy", CPU, "needs a GPU, on which cupy's kernels run"),
        (
            "cupy",
            replace(CPU, packages=frozenset(), cuda=None),
            "needs a GPU, on which cupy's kernels run; needs cupy: pip install 'kgbench[cuda13]'",
        ),
        ("triton", CPU, ""),
        ("triton", replace(CPU, packages=frozenset()), "needs triton: pip install triton"),
        ("load_inline", CPU, ""),
        ("load_inline", replace(CPU, nvcc=False), ""),
        ("load_inline", replace(CPU, compiler=False), "needs a C++ compiler: apt install g++"),
        ("load_inline", replace(CPU, headers=False), "needs the headers of Python: apt install python3-dev"),
        ("load_inline", replace(CPU, ninja=False), "needs ninja: pip install 'kgbench[cpp]'"),
        ("load_inline", replace(CPU, packages=frozenset()), "needs setuptools: pip install 'kgbench[cpp]'"),
        ("load_inline", GPU, ""),
        ("load_inline", replace(GPU, nvcc=False), "needs nvcc: the CUDA toolkit 13.0, with CUDA_HOME naming it"),
    ],
)
def test_what_an_example_lacks(language: str, machine: Machine, words: str) -> None:
    assert words_of_lacking(example(language), machine) == words


def test_cuda_alone_needs_a_gpu() -> None:
    found = words_of_lacking(f"{INLINE}{CUDA_TEXT}load_inline('k', '', CODE)", CPU)
    assert found == "needs a GPU, on which its cuda_sources run"


def test_building_an_extension_has_a_deadline_of_its_own() -> None:
    given = Deadlines(import_s=1.0, compile_s=400.0, extension_s=300.0, case_s=2.0, window_s=3.0, whole_s=50.0)
    longer = replace(given, import_s=300.0, whole_s=350.0)
    assert deadlines_for(example("load_inline"), given) == longer
    for source in (example("cupy"), example("triton"), None):
        assert deadlines_for(source, given) == given
    assert Deadlines.for_device("cuda").extension_s == 300.0
    assert Deadlines.for_device("cpu").extension_s == 900.0


def test_the_machine_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "scripts"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    before = machine_of("cpu", None)
    assert (before.compiler, before.ninja, "cuda" in before.packages) == (False, False, False)
    for program in ("c++", "scripts/ninja", "cuda/bin/nvcc"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text("")
        (tmp_path / program).chmod(0o755)
    after = machine_of("cpu", None)
    assert (after.compiler, after.ninja, after.nvcc) == (True, True, True)


def test_a_workers_user_has_a_name_though_the_system_knows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's compiler asks for it before anything else."""
    chosen = environment("cuda")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
        if name in chosen:
            monkeypatch.setenv(name, chosen[name])
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert getpass.getuser() == "kgbench"


def test_cupy_keeps_no_files_where_the_fork_server_may_not_write() -> None:
    chosen = environment("cuda")
    assert chosen["CUPY_CACHE_IN_MEMORY"] == "1"
    assert Path(chosen["CUPY_CACHE_DIR"]).is_dir()


@pytest.mark.parametrize("device_kind", ["cpu", "cuda"])
def test_allocations_of_both_sides_are_treated_alike(device_kind: str) -> None:
    """glibc moves these limits by what a process has freed, unless they are set. A GPU's operators may work here."""
    chosen = environment(device_kind)
    assert int(chosen["MALLOC_MMAP_THRESHOLD_"]) > 1 << 20
    assert int(chosen["MALLOC_TRIM_THRESHOLD_"]) > int(chosen["MALLOC_MMAP_THRESHOLD_"])
