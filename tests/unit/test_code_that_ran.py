"""Code that samples found running on the CPU: unwatched alone, PyTorch's alone, a library's under no name."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import random
import signal
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.harness.attribution import samples, text_pages  # noqa: E402
from kgbench.harness.attribution.account import Observation  # noqa: E402
from kgbench.harness.attribution.code import Code  # noqa: E402
from kgbench.harness.attribution.copies import library_of  # noqa: E402
from kgbench.harness.attribution.observed import Attribution  # noqa: E402
from kgbench.harness.attribution.samples import mappings  # noqa: E402
from kgbench.harness.attribution.timed_code import TimedCode  # noqa: E402
from kgbench.harness.attribution.whose_code import unwatched  # noqa: E402
from kgbench.harness.clock.bench import Bench  # noqa: E402
from kgbench.harness.workers.started import WorkerSide  # noqa: E402
from kgbench.problem.cases import Case  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

TORCH = "/env/torch/lib/libtorch_cpu.so"


def code(**samples: int) -> Code:
    """Samples in PyTorch's library by place, and ``own`` ones; of ``calls``."""
    calls, own = samples.pop("calls", 1), samples.pop("own", 0)
    places = Counter({(TORCH, int(place.removeprefix("at"))): count for place, count in samples.items()})
    return Code(Counter({TORCH: places.total(), "": own}), places=places, calls=calls)


@pytest.mark.parametrize(
    ("timed", "watched", "is_refused"),
    [
        (code(at7=90, own=10), code(at7=80, own=20), False),
        (code(at7=90, own=10), code(at8=30, own=70), False),  # the function begins on the page before
        (code(at7=90, own=10), code(at90=80, own=20), True),
        (code(at7=90, own=10), code(at7=2, at90=78, own=20), True),
        (code(at7=30, own=70), code(at90=80, own=20), False),
        (code(at7=50), code(at90=80), False),  # too few
        (code(at7=90, own=10), code(at7=90, at90=900), False),  # the observer's own work
        (code(at7=90, own=10, calls=10), code(at7=10, at90=80), False),
        (code(at7=90, own=10), code(at7=90, at90=3000, calls=10), True),
        (code(at7=900, own=100), code(at7=90, own=10), False),  # values that take longer
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


CODE = random.Random("code").randbytes(64 * 12)
"""Blocks of a library's file; those of ``Held`` begin elsewhere in memory, but for the same bytes."""


class Held:
    """Blocks of code in this process's memory, and how often each was found running."""

    def __init__(self, blocks: list[bytes], counts: list[int], steps: int = 1) -> None:
        """``steps``: at how many addresses of a block."""
        self.memory = ctypes.create_string_buffer(64 * (len(blocks) + 1))
        at = -(-ctypes.addressof(self.memory) // 64) * 64
        ctypes.memmove(at, b"".join(blocks), 64 * len(blocks))
        places = [(at + 64 * i + step, count) for i, count in enumerate(counts) for step in range(steps)]
        self.spots = {(os.getpid(), place): count for place, count in places}


def block(number: int) -> bytes:
    return CODE[64 * number : 64 * (number + 1)]


def other(number: int) -> bytes:
    """Code that is the library's but for one byte, the last."""
    return block(number)[:-1] + bytes([block(number)[-1] ^ 1])


@pytest.mark.parametrize(
    ("held", "is_known"),
    [
        (Held([block(3), block(7), block(5)], [9, 9, 9]), True),
        (Held([block(3), block(7), other(5)], [9, 9, 9]), True),
        (Held([other(3), block(7), block(5)], [9, 9, 9]), True),
        (Held([block(3), other(7), other(5)], [9, 9, 9]), False),
        (Held([other(3), other(7), other(5)], [9, 9, 9]), False),
        (Held([block(3)], [9]), True),
        (Held([other(3)], [9]), False),
        (Held([block(3), block(7)], [9, 9]), True),
        (Held([block(3), other(7)], [9, 9]), False),
        # What ran most often decides.
        (Held([other(1), other(2), block(3), block(7), block(5)], [1, 1, 9, 9, 9]), True),
        (Held([block(1), block(2), other(3), other(7), other(5)], [1, 1, 9, 9, 9]), False),
        (Held([block(3), block(7), other(5), other(6), other(8)], [1, 1, 1, 1, 1], steps=5), True),
        # Zeros stand in every file.
        (Held([bytes(64)] * 3, [9, 9, 9]), False),
        (Held([], []), False),
    ],
)
def test_a_librarys_code_is_known_by_its_bytes(tmp_path: Path, held: Held, is_known: bool) -> None:
    """In memory that no file has: two of the three blocks that ran most must be the library's, each in every byte."""
    library = tmp_path / "libblas.so"
    library.write_bytes(b"\x7f" + bytes(4096) + CODE)
    assert library_of(held.spots, [(os.getpid(), str(library))]) == (str(library) if is_known else "")


def test_code_that_is_gone_and_libraries_of_devices_say_nothing(tmp_path: Path) -> None:
    library = tmp_path / "libcublas.so"
    library.write_bytes(CODE)
    held = Held([block(3), block(7), block(5)], [9, 9, 9])
    assert library_of(held.spots, [(os.getpid(), str(library))]) == ""
    library = library.rename(tmp_path / "libblas.so")
    files = [(os.getpid(), str(path)) for path in (tmp_path / "gone.so", library)]
    assert library_of(held.spots, files) == str(library)
    assert library_of({(os.getpid(), 64): 9}, [(os.getpid(), str(library))]) == ""


def test_a_copy_of_pytorchs_code_is_known() -> None:
    path = next(path for path in sorted(text_pages.programs(os.getpid())) if "libtorch_cpu" in path)
    first, end, *_ = next(each for each in mappings(os.getpid()) if each[2] == path)
    code = ctypes.string_at(first + (end - first) // 2, 256)
    held = Held([code[i : i + 64] for i in (0, 64, 128)], [9, 9, 9], steps=2)
    assert library_of(held.spots, [(os.getpid(), path)]) == path


@pytest.mark.parametrize("could_before", [True, False])
def test_who_cannot_be_sampled_any_more_is_refused(monkeypatch: pytest.MonkeyPatch, could_before: bool) -> None:
    """More threads than are sampled; on a machine that gives no samples at all that says nothing."""
    monkeypatch.setattr(samples, "MOST_TASKS", -1)
    assert not samples.can_sample(os.getpid())
    watch = Attribution(load_problem(problems_dir() / "aten/neg.yaml"), cuda=False, source="")
    watch.can_sample = could_before
    side = cast(WorkerSide, SimpleNamespace(handle=SimpleNamespace(supervisor_pid=os.getpid())))
    case = cast(Case, SimpleNamespace(overload="", id="bench"))
    with TimedCode(side, (), watch.timed_code).sampled(case, 1) as sampler:
        assert sampler is None
    watch._sampled_windows(cast(Bench, None), side, case, 1, Observation(), Code())
    assert (watch.refused is not None) is could_before
    assert "threads are more than -1" in next(iter(watch.evidence.values())).why


def test_samples_of_all_threads_lie_in_a_buffer_per_processor() -> None:
    """Some of a process that computes, with more threads than it has processors."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        for _ in range(5):
            threading.Thread(target=lambda: [None for _ in itertools.count()], daemon=True).start()
        os.write(writer, b"1")
        time.sleep(60)
    try:
        os.read(reader, 1)
        try:
            sampler = samples.Sampler(os.getpid())
        except OSError as error:
            pytest.skip(f"needs a kernel that gives samples: {error}")
        with contextlib.closing(sampler):
            assert len(sampler.buffers) == len(os.sched_getaffinity(0)) < len(sampler.fds)
            sampler.start()
            deadline = time.monotonic() + 20
            while not sampler.found(1).files and time.monotonic() < deadline:
                time.sleep(0.05)
            assert sampler.found(1).files.total() > 0
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
