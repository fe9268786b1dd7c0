"""The files of wrong kernels: every kernel in them is read, is of a problem, and says what it breaks. No torch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.problem.entry_names import entry_names
from kgbench.problem.registry import Registry, load_problem
from tests.harness.candidates import CANDIDATES, KernelFile, kernel_files, mutants, wrong

PATHS = Registry().paths
KEYS = {"breaks", "outcome", "device", "right"}
SHOWN = {Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.INPUT_CHANGED, Outcome.REJECTED}
"""What a kernel that runs and is wrong may get."""
BESIDE = {Outcome.CRASHED, Outcome.RUNTIME_ERROR}
"""What one that reads beyond its input may get in place of reading something wrong."""


def faults(file: KernelFile) -> list[str]:
    """What is wrong with how a file is written."""
    if file.problem_id not in PATHS:
        return [f"no problem {file.problem_id}"]
    defined = Counter(name for part in file.parts for name in part.names)
    said = Counter(header["breaks"] for header in file.headers.values())
    found = [f"{what} twice" for what, times in (defined + said).items() if times > 1]
    used = [part for what in file.headers for part in file.used_by({*file.bound(what).values(), *file.entries})]
    for part in file.parts:
        if part not in used:
            found.append(f"no kernel and used by none: {', '.join(part.names)}")
        if part.header and not {"breaks"} <= part.header.keys() <= KEYS:
            found.append(f"head of {', '.join(part.names)}: {', '.join(part.header)}")
    problem = load_problem(PATHS[file.problem_id])
    for known in file.candidates():
        names = {name for of_one in entry_names(problem, known.text).values() for name in of_one}
        if unknown := (file.entries or file.bound(known.id.rpartition("/")[2]).keys()) - names:
            found.append(f"{known.id}: no entry of the problem: {', '.join(unknown)}")
        if not known.breaks.endswith("."):
            found.append(f"{known.id}: breaks is no sentence")
        if not SHOWN.intersection(known.outcomes) or set(known.outcomes) - SHOWN - BESIDE:
            found.append(f"{known.id}: outcome {known.outcomes}")
    return found


@pytest.mark.parametrize("folder", ["mutants", "wrong"])
def test_every_kernel_is_whole(folder: str) -> None:
    found = {file.problem_id: lines for path in kernel_files(folder) if (lines := faults(file := KernelFile(path)))}
    assert found == {}
    sentences = sum(path.read_text().count("\n# breaks: ") for path in (CANDIDATES / folder).rglob("*.py"))
    at_top = sum(path.read_text().startswith("# breaks: ") for path in (CANDIDATES / folder).rglob("*.py"))
    assert sentences + at_top == len(mutants() if folder == "mutants" else wrong())


def test_there_are_many_of_many_problems() -> None:
    assert len(mutants()) >= 500
    assert len(wrong()) >= 150
    assert len({known.problem_id for known in wrong()}) >= 100
    for known in (mutants(), wrong()):
        assert {each.problem_id.partition("/")[0] for each in known} == {"aten", "cublas", "vllm"}


FILE = """\
import math

import torch

LIMIT = 5


def unused_by_one(x):
    return torch.neg(x)


# breaks: It answers the negative number.
def negative(self):
    return unused_by_one(self)


# breaks: It answers the limit.
# outcome: wrong shape | crashed
# right: nothing
def limit(self):
    return math.floor(LIMIT)
"""


def read(folder: Path, text: str, problem_id: str = "aten/neg") -> KernelFile:
    path = folder / "mutants" / f"{problem_id}.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return KernelFile(path)


def test_a_candidate_has_its_kernel_and_what_that_uses(tmp_path: Path) -> None:
    negative, limit = read(tmp_path, FILE).candidates()
    assert (negative.id, negative.problem_id) == ("mutants/aten/neg/negative", "aten/neg")
    assert (negative.outcomes, negative.right_somewhere) == ((Outcome.WRONG_VALUE,), True)
    assert (limit.outcomes, limit.right_somewhere) == ((Outcome.WRONG_SHAPE, Outcome.CRASHED), False)
    assert limit.breaks == "It answers the limit."
    body = "def limit(self):\n    return math.floor(LIMIT)\n\n\nneg = limit\n"
    assert limit.text == f"import math\n\n\nLIMIT = 5\n\n\n{body}"
    assert "limit" not in negative.text
    assert negative.text.endswith("\n\n\nneg = negative\n")


def test_overloads_have_functions_of_their_own_or_entries_share_a_kernel(tmp_path: Path) -> None:
    own = "# breaks: A.\ndef wrong__Tensor(self): ...\n\n\ndef wrong__Scalar(self): ...\n"
    (known,) = read(tmp_path / "own", own, "aten/add").candidates()
    assert known.id == "mutants/aten/add/wrong"
    assert known.text.endswith("\nadd_Tensor = wrong__Tensor\nadd_Scalar = wrong__Scalar\n")
    shared = "def neg(self):\n    return kernel(self)\n\n\n# breaks: A.\ndef wrong(x): ...\n"
    (known,) = read(tmp_path / "shared", shared).candidates()
    assert known.text.startswith("def neg(self):")
    assert known.text.endswith("\n\n\nkernel = wrong\n")


def test_a_decorated_function_stays_decorated(tmp_path: Path) -> None:
    rows = "import triton\n\n\n@triton.jit\ndef rows(x_ptr): ...\n\n\n"
    jit = f"{rows}# breaks: A.\ndef wrong(self):\n    rows[(1,)](self)\n"
    (known,) = read(tmp_path, jit).candidates()
    assert known.text.count("@triton.jit\ndef rows") == 1


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("# breaks: It answers the limit.\n", "", "head of limit: right, outcome"),
        ("# breaks: It answers the negative number.\n", "", "no kernel and used by none: negative"),
        ("def limit(", "def negative(", "negative twice"),
        ("It answers the limit.", "It answers the negative number.", "It answers the negative number. twice"),
        ("negative number.", "negative number", "mutants/aten/neg/negative: breaks is no sentence"),
        ("# right: nothing", "# rigth: nothing", "head of limit: rigth, outcome, breaks"),
        ("wrong shape | crashed", "crashed", "mutants/aten/neg/limit: outcome (<Outcome.CRASHED: 'crashed'>,)"),
        ("wrong shape | crashed", "wrong shape | timeout", "mutants/aten/neg/limit: outcome"),
        ("def limit(", "def limit__Tensor(", "mutants/aten/neg/limit: no entry of the problem: neg_Tensor"),
        ("LIMIT = 5", "LIMIT = 5\nOTHER = 6", "no kernel and used by none: OTHER"),
    ],
)
def test_a_file_that_is_not_whole_is_found(tmp_path: Path, old: str, new: str, fault: str) -> None:
    assert faults(read(tmp_path / "whole", FILE)) == []
    assert any(line.startswith(fault) for line in faults(read(tmp_path / "broken", FILE.replace(old, new))))


def test_a_file_of_no_problem_is_found(tmp_path: Path) -> None:
    assert faults(read(tmp_path, FILE, "aten/nothing")) == ["no problem aten/nothing"]
