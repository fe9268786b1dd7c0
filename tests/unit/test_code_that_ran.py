"""Code that samples found running on the CPU: unwatched alone, PyTorch's alone, a library's under no name."""

from __future__ import annotations

import ctypes
import os
from collections import Counter

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.harness.attribution import text_pages  # noqa: E402
from kgbench.harness.attribution.code import Code  # noqa: E402
from kgbench.harness.attribution.copies import library_of  # noqa: E402
from kgbench.harness.attribution.observed import Attribution  # noqa: E402
from kgbench.harness.attribution.samples import mappings  # noqa: E402
from kgbench.harness.attribution.whose_code import unwatched  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

TORCH = "/env/torch/lib/libtorch_cpu.so"


def code(**samples: int) -> Code:
    """Samples in PyTorch's library by place, and ``own`` ones."""
    own = samples.pop("own", 0)
    places = Counter({(TORCH, int(place.removeprefix("at"))): count for place, count in samples.items()})
    return Code(Counter({TORCH: places.total(), "": own}), places=places)


@pytest.mark.parametrize(
    ("timed", "watched", "is_refused"),
    [
        (code(at7=90, own=10), code(at7=80, own=20), False),
        (code(at7=90, own=10), code(at8=30, own=70), False),  # the function begins on the page before
        (code(at7=90, own=10), code(at90=80, own=20), True),
        (code(at7=90, own=10), code(at7=2, at90=78, own=20), True),
        (code(at7=30, own=70), code(at90=80, own=20), False),
        (code(at7=50), code(at90=80), False),  # too few
    ],
)
def test_libraries_code_that_runs_unwatched_alone(timed: Code, watched: Code, is_refused: bool) -> None:
    assert bool(unwatched(timed, watched, "")) is is_refused


def test_pytorchs_code_alone_is_nobodys_work() -> None:
    watch = Attribution(load_problem(problems_dir() / "aten/cat.yaml"), cuda=False, source="")
    assert watch.findings.moved_on_host({TORCH: 95, "": 5}, "") != []
    assert watch.findings.moved_on_host({TORCH: 90, "/usr/lib/libpython3.11.so": 60}, "") != []
    assert watch.findings.moved_on_host({TORCH: 60, "": 40}, "") == [], "its own code worked, too"
    assert watch.findings.moved_on_host({TORCH: 60, "/usr/lib/libpython3.11.so": 90}, "") == [], "Python did the most"
    assert watch.findings.moved_on_host({TORCH: 30}, "") == [], "too few samples"
    copies = Attribution(load_problem(problems_dir() / "aten/clone.yaml"), cuda=False, source="")
    assert copies.findings.moved_on_host({TORCH: 90, "": 10}, "") == [], "its own operator is forbidden by name"


def test_a_librarys_code_is_known_by_its_bytes() -> None:
    """In memory that no file has; what differs in a byte per block is another's."""
    path = next(path for path in sorted(text_pages.programs(os.getpid())) if "libtorch_cpu" in path)
    text = next(each for each in mappings(os.getpid()) if each[2] == path)
    held = ctypes.create_string_buffer(ctypes.string_at(text[0] + (text[1] - text[0]) // 2, 4096), 4096 + 64)
    at = -(-ctypes.addressof(held) // 64) * 64
    ctypes.memmove(at, ctypes.string_at(text[0] + (text[1] - text[0]) // 2, 4096), 4096)
    spots = {(os.getpid(), at + 64 * step + 5): 10 for step in range(3)}
    assert library_of(spots, [(os.getpid(), path)]) == path
    for step in range(3):
        ctypes.memset(at + 64 * step + 9, 0x5C, 3)
    assert library_of(spots, [(os.getpid(), path)]) == ""
