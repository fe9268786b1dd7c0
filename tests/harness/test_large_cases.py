"""Calls that need most of a device's memory: left out with the reason where it is too small, judged by some rows."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.details.outputs import InputChanged  # noqa: E402
from kgbench.core.details.sentences import words_of  # noqa: E402
from kgbench.core.kinds import DeviceKind, Phase  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.verdicts import PASSED, Verdict  # noqa: E402
from kgbench.harness.machine.settings import Deadlines  # noqa: E402
from kgbench.harness.referee import room  # noqa: E402
from kgbench.harness.referee.checking import Checker  # noqa: E402
from kgbench.harness.referee.evaluation import Evaluation, JudgedCase  # noqa: E402
from kgbench.harness.referee.large_calls import LARGE_SHARE, call_bytes, lacks_memory, needed_gb  # noqa: E402
from kgbench.harness.referee.referee import beyond_memory  # noqa: E402
from kgbench.harness.referee.room import ROOM_PAUSES  # noqa: E402
from kgbench.harness.verdict import contract, inputs  # noqa: E402
from kgbench.harness.verdict.case_source import ALL_CASES  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.verdict.placed_call import PlacedCall  # noqa: E402
from kgbench.harness.verdict.reference import values_only  # noqa: E402
from kgbench.harness.verdict.samples import DRAWN, EDGE, Samples, edges  # noqa: E402
from kgbench.problem.calls import parse  # noqa: E402
from kgbench.problem.cases import (  # noqa: E402
    CALL_GB,
    MOST_ELEMENTS,
    Case,
    OtherValues,
    bench_cases,
    bind,
    case_bytes,
    expand_cases,
    reach,
    sampled_rows,
    too_large,
)
from kgbench.problem.cases.expand import phase_cases  # noqa: E402
from kgbench.problem.model import CaseTemplate, Overload  # noqa: E402
from kgbench.problem.modules import ModuleSource  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402
from tests.sampling import looked_at  # noqa: E402

pytestmark = pytest.mark.torch
IN_LARGE_CALLS: Final = looked_at("kgbench/problem/cases/", "kgbench/harness/referee/large_calls.py")
"""Problems of which every large call is bound."""
ANSWERED: Final = looked_at("kgbench/harness/verdict/reference.py", "kgbench/harness/verdict/samples.py")
"""Problems of which every large call is answered, made small."""
LARGEST: Final = ("aten/mm", "cublas/cublasDaxpy_v2")
"""Problems that reach nearly as far as prompts say: in elements, and in bytes."""
H200_GB = 150.1
"""Memory of an NVIDIA H200 as PyTorch tells it, in 10^9 bytes."""
HUGE = (
    "aten/_softmax", "aten/amin", "aten/bmm", "aten/cumsum", "aten/embedding", "aten/fill_", "aten/huber_loss",
    "aten/mean", "aten/mish_backward", "aten/mm", "aten/neg", "aten/renorm", "aten/stack", "cublas/cublasCcopy_v2",
    "cublas/cublasCgemm_v2", "cublas/cublasCgemv_v2", "cublas/cublasCgeru_v2", "cublas/cublasCsymm_v2",
    "cublas/cublasHgemmBatched", "cublas/cublasStrsm_v2", "vllm/convert_fp8", "vllm/moe_sum", "vllm/rms_norm",
    "vllm/rotary_embedding", "vllm/scaled_int8_quant", "vllm/shuffle_rows",
)  # fmt: skip
"""A problem of each family that has a call of so many elements."""
CPU = torch.device("cpu")


def first(problem_path: Path, problem: str) -> Overload:
    source, name = problem.split("/")
    return load_problem(problem_path / source / f"{name}.yaml").overloads[0]


def paths_of(problem_path: Path, problems: Container[str]) -> list[Path]:
    paths = sorted(problem_path.glob("*/[!_]*.yaml"))
    return [path for path in paths if f"{path.parent.name}/{path.stem}" in problems]


def large(overload: Overload) -> list[Any]:
    return [case for case in expand_cases(overload, "cuda", 80.0, "s") if case.phase == "large"]


def placed(overload: Overload, call: str, samples: int | None = 0) -> tuple[OverloadJudge, PlacedCall]:
    template = CaseTemplate({} if samples is None else {"samples": samples}, 0, parse(call))
    (case,) = phase_cases(overload, Phase.LARGE, [template], overload.dtypes)
    judge = OverloadJudge(overload, CPU)
    return judge, judge.place(case, torch.Generator().manual_seed(3))


def test_a_device_that_is_too_small_is_named(problem_path: Path) -> None:
    overload = first(problem_path, "cublas/cublasSscal_v2")
    case, judge = large(overload)[0], OverloadJudge(overload, CPU)
    bound = bind(overload, case)
    least_gb = needed_gb(judge, bound) / LARGE_SHARE
    assert call_bytes(judge, bound) > 4 * 2**31, "its last offset fits in 32 bits"
    assert lacks_memory(judge, bound, least_gb * 1.001) is None
    found = lacks_memory(judge, bound, 24.0)
    assert found is not None
    assert words_of(found) == f"needs a GPU with {least_gb:.0f} GB, this one has 24 GB"


@pytest.mark.parametrize("problem", HUGE)
def test_each_family_has_a_call_of_2_31_elements_that_an_h200_holds(problem_path: Path, problem: str) -> None:
    """Of complex numbers 2^30, whose parts are as many. What is returned counts before anything is drawn."""
    overload = first(problem_path, problem)
    judge, most = OverloadJudge(overload, CPU), 0
    for case in large(overload):
        bound = bind(overload, case)
        specs = judge.known_specs(bound)
        assert specs is not None, "its need for memory cannot be told"
        if lacks_memory(judge, bound, H200_GB) is not None:
            continue
        sizes = [(spec.dtype, spec.elements) for spec in bound.specs]
        sizes += [(spec.dtype, spec.elements) for spec in specs]
        most = max([most, *[count * (2 if dtype.startswith("complex") else 1) for dtype, count in sizes]])
        # Of ``outer`` the first and the last row decide the whole output: test_large_kinds.py holds it.
        if case.samples is not None and case.values != "outer":
            # Rows of an output are judged only where the reference is asked about the same rows.
            rows = sampled_rows(bound)
            outputs = [spec.shape for spec in bound.specs if spec.access != "read"]
            outputs += [spec.shape for spec in specs]
            assert rows <= EDGE or all(shape[case.samples] == rows for shape in outputs), case.id
    assert most >= 2**31


def test_no_call_is_larger_than_prompts_say_and_some_are_nearly_as_large(problem_path: Path) -> None:
    """Calls of the phases that have large ones, with what they return, in every dtype; of a run's share of problems."""
    largest_gb, reached = 0.0, 0
    for path in {*paths_of(problem_path, LARGEST), *paths_of(problem_path, IN_LARGE_CALLS)}:
        for overload in load_problem(path).judged:
            judge = OverloadJudge(overload, CPU)
            cases = phase_cases(overload, Phase.LARGE, overload.large, overload.dtypes + overload.optional_dtypes)
            cases += [case for preset in overload.bench for case in bench_cases(overload, preset)]
            for case in cases:
                bound = bind(overload, case)
                returned = call_bytes(judge, bound) - case_bytes(bound) if case.phase == Phase.LARGE else 0
                assert too_large(bound, returned) is None, f"{path.stem} {case.id}"
                largest_gb = max(largest_gb, (case_bytes(bound) + returned) / 1e9)
                reached = max([reached, *map(reach, bound.specs)])
    assert largest_gb > 0.8 * CALL_GB, "the promise goes far beyond what cases reach"
    assert reached > 0.8 * MOST_ELEMENTS


def test_memory_that_is_returned_and_that_the_answer_takes_counts(problem_path: Path) -> None:
    overload = first(problem_path, "aten/mean")
    judge = OverloadJudge(overload, CPU)
    whole, outer = (case for case in large(overload) if "2147485381" in str(case.variables["call"]))
    assert needed_gb(judge, bind(overload, outer)) == needed_gb(judge, bind(overload, whole))
    assert needed_gb(judge, bind(overload, whole)) == pytest.approx((5 * 2 + 24) * 2147485381 / 1e9, rel=1e-6)
    overload = first(problem_path, "aten/neg")
    judge = OverloadJudge(overload, CPU)
    flat = next(case for case in large(overload) if case.samples == 0)
    assert call_bytes(judge, bind(overload, flat)) == 2 * 2 * 2147485381
    assert needed_gb(judge, bind(overload, flat)) == pytest.approx(3.5 * 4 * 2147485381 / 1e9)


@pytest.mark.parametrize("wrong", [None, 0, 299_999])
def test_some_rows_are_judged_and_the_last_is_one_of_them(problem_path: Path, wrong: int | None) -> None:
    overload = first(problem_path, "aten/neg")
    judge, call = placed(overload, "((T([300000], f16),), {})")
    asked: list[int] = []
    answers = judge.reference.answers

    def counted(arguments: Any, written: Any) -> Any:
        asked.append(arguments["self"].numel())
        return answers(arguments, written)

    judge.reference.answers = counted  # type: ignore[method-assign]
    found = -call.inputs.arguments()["self"]
    if wrong is not None:
        found[wrong] += 1
    verdict = judge.values(call, {"return": found})
    assert verdict is PASSED if wrong is None else verdict.outcome is Outcome.WRONG_VALUE
    assert max(asked) <= DRAWN + 2 * EDGE


def test_rows_of_the_second_dimension_and_of_lists(problem_path: Path) -> None:
    judge, call = placed(first(problem_path, "aten/add"), "((T([1, 90000], f16), T([2, 1], f16)), {})", 1)
    given = call.inputs.arguments()
    right = given["self"] + given["other"]
    assert judge.values(call, {"return": right}) is PASSED
    right[1, -1] += 1
    assert judge.values(call, {"return": right}).outcome is Outcome.WRONG_VALUE
    judge, call = placed(first(problem_path, "aten/stack"), "(([T([90000], f16), T([90000], f16)], 1), {})")
    right = torch.stack(call.inputs.arguments()["tensors"], 1)
    assert judge.values(call, {"return": right}) is PASSED
    right[-1, 1] += 1
    assert judge.values(call, {"return": right}).outcome is Outcome.WRONG_VALUE


def test_rows_near_powers_of_two_are_judged() -> None:
    rows = set(edges(2**31 + 1733))
    assert {0, 2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**31 + 1732} <= rows
    assert max(rows) == 2**31 + 1732


def test_parts_of_an_argument_are_drawn_and_compared_as_the_whole(
    problem_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overload = first(problem_path, "aten/neg")
    monkeypatch.setattr(inputs, "MOST_DRAWN", 1000)
    _, call = placed(overload, "((T([3, 7001], f16, [7013, 1]),), {})", None)
    chunk = call.inputs.chunks["self"]
    drawn = chunk.view(chunk.image)
    assert not drawn.isnan().any()
    assert drawn.unique().numel() > 3000
    after = chunk.image.clone()
    read = chunk.view(after)
    read[1, 5] += 1
    read[2, 7000] += 1
    written = replace(chunk, spec=replace(chunk.spec, access="readwrite"))
    found = []
    for size in (1 << 28, 4096):
        monkeypatch.setattr(contract, "PIECE_BYTES", size)
        found.append(contract.forbidden_change("self", chunk, after, {}))
        assert contract.forbidden_change("self", written, after, {}) is None
        assert contract.forbidden_change("self", chunk, chunk.image.clone(), {}) is None
    assert found == [InputChanged("self", 7013 + 5, 2, chunk.spec.extent, writes_part=False)] * 2


def test_an_h200_holds_every_large_call(problem_path: Path) -> None:
    """A call that no device holds is skipped everywhere, and says nothing of a kernel."""
    skipped = []
    for path in paths_of(problem_path, IN_LARGE_CALLS):
        for overload in load_problem(path).judged:
            judge = OverloadJudge(overload, CPU)
            skipped += [
                f"{path.stem} {overload.name} {case.id}: {found}"
                for case in phase_cases(overload, Phase.LARGE, overload.large, overload.dtypes)
                if (found := lacks_memory(judge, bind(overload, case), H200_GB))
            ]
    assert not skipped


FEW: Final = 311
"""What stands for the least of the sizes, strides and paddings above ``MANY`` in a call made small."""
MANY: Final = 4096
"""Largest number that a call made small keeps."""


def numbers_of(template: CaseTemplate) -> list[int]:
    """The whole numbers of its variables and of its call."""
    text = "" if template.call is None else template.call.text
    of_variables = [value for value in template.variables.values() if type(value) is int]
    return of_variables + [int(each) for each in re.findall(r"\d+", text)]


def made_small(template: CaseTemplate) -> CaseTemplate:
    """The same call with few rows: its large numbers become small ones in the same order."""
    text = "" if template.call is None else template.call.text
    many = sorted({abs(each) for each in numbers_of(template) if abs(each) > MANY})
    small = {sign * each: sign * (FEW + place) for place, each in enumerate(many) for sign in (1, -1)}
    known = template.variables.items()
    variables = {name: small.get(value, value) if type(value) is int else value for name, value in known}
    text = re.sub(r"\d+", lambda found: str(small.get(int(found[0]), found[0])), text)
    return replace(template, variables=variables, call=parse(text) if text else None)


def test_the_answer_for_some_rows_is_that_of_the_whole(problem_path: Path) -> None:
    """Of every large call that is judged at some rows: the reference cannot tell that it sees no others."""
    wrong = []
    for path in paths_of(problem_path, ANSWERED):
        if "samples:" not in path.read_text():
            continue
        for overload in load_problem(path).judged:
            templates = [made_small(each) for each in overload.large if "samples" in each.variables]
            judge = OverloadJudge(overload, CPU) if templates else None
            for case in phase_cases(overload, Phase.LARGE, templates, overload.dtypes):
                assert judge is not None
                drawn = judge.place(case, torch.Generator().manual_seed(3)).inputs
                size = sampled_rows(drawn.bound)
                # Of a size that is not above EDGE all rows are judged.
                rows = torch.arange(size) if size <= EDGE else torch.tensor([0, size // 2, size - 1])
                some = replace(drawn, samples=Samples(case.samples, size, rows))
                whole = values_only(judge.expected(replace(drawn, samples=None)))
                for name, answer in values_only(judge.expected(some)).items():
                    close = torch.allclose(some.judged(whole[name].value), answer.value, 1e-12, 0, equal_nan=True)
                    wrong += [] if close else [f"{path.stem} {case.id} {name}"]
    assert not wrong


class Crowded:
    """A device on which others give memory back one by one, and the locks that are taken on it."""

    def __init__(self, *free_gb: float, is_alone: bool = False) -> None:
        self.free_gb = list(free_gb)
        self.is_alone = is_alone
        self.others_gb = 0.0
        """What others have reserved."""
        self.seen: list[str] = []

    def free_bytes(self) -> int:
        return int(1e9 * (self.free_gb.pop(0) if len(self.free_gb) > 1 else self.free_gb[0]))

    def release_cached(self) -> None:
        self.seen.append("released")

    def cached_bytes(self) -> int:
        return 0

    @contextlib.contextmanager
    def reserved(self, nbytes: float, most: float) -> Iterator[None]:
        assert most == 0.6e9 * H200_GB
        self.seen.append("room")
        yield

    def has_room(self, nbytes: float, most: float) -> bool:
        return nbytes + self.others_gb * 1e9 <= most

    def pause(self, seconds: float) -> None:
        self.seen.append("pause")

    def checker(self, overload: Overload, monkeypatch: pytest.MonkeyPatch, found: list[Any]) -> Checker:
        """One whose calls end as ``found`` says, an error or a verdict each."""
        checker = Checker.__new__(Checker)
        device = SimpleNamespace(type="cuda")
        checker.resources = SimpleNamespace(device=device, memory_gb=H200_GB, turns=self)  # type: ignore[assignment]
        checker.overload, checker.judge = overload, OverloadJudge(overload, CPU)
        checker.worker = SimpleNamespace(handle=SimpleNamespace(alive=lambda: False))  # type: ignore[assignment]
        monkeypatch.setattr(room, "GPU", self)

        def once(case: Case, again: int = 0, twice: bool = False, attempt: int = 0) -> Verdict:
            self.seen.append("call")
            each = found.pop(0)
            if isinstance(each, Exception):
                raise each
            return each

        monkeypatch.setattr(checker, "_check_once", once)
        return checker


def test_a_large_call_waits_until_others_leave_it_room(problem_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overload = first(problem_path, "aten/neg")
    case = next(case for case in large(overload) if case.samples == 0)
    device = Crowded(10.0, 20.0, 31.0)
    assert device.checker(overload, monkeypatch, [PASSED])._check_large(case) is PASSED
    waiting = ["pause", "pause"]
    assert device.seen == ["released", "room", *waiting, "call", "released"]
    full = Crowded(31.0)
    assert full.checker(overload, monkeypatch, [torch.OutOfMemoryError("no room"), PASSED])._check_large(case) is PASSED
    again = ["released", "pause", "call", "released"]
    assert full.seen == ["released", "room", "call", *again], "others' ordinary calls went on and took it"
    never = Crowded(10.0)
    assert never.checker(overload, monkeypatch, [PASSED])._check_large(case) is PASSED
    assert never.seen.count("pause") == len(ROOM_PAUSES), "it is made in the end: what is needed is an upper bound"


def test_large_calls_without_room_come_last(problem_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overload, device = first(problem_path, "aten/neg"), Crowded(200.0)
    checker = device.checker(overload, monkeypatch, [])
    cases = expand_cases(overload, DeviceKind.CUDA, H200_GB, "s")
    assert [*checker._as_there_is_room(cases)] == [*cases]
    device.others_gb = 0.6 * H200_GB
    late = [case for case in cases if case.phase is Phase.LARGE and checker._room_bytes(bind(overload, case))]
    assert late
    assert [*checker._as_there_is_room(cases)] == [*(case for case in cases if case not in late), *late]
    asked = iter(checker._as_there_is_room(cases))
    assert next(asked) is cases[0], "each is asked when its turn comes"
    device.others_gb = 0.0
    assert [*asked] == [*cases[1:]]


def test_a_large_call_of_a_module_waits_for_room(problem_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ModuleSource("1_A.py", "", "batch_size", own_elements=10**9, own_batch=100)
    overload = replace(first(problem_path, "aten/neg"), module=source)
    case = large(overload)[0]
    device = Crowded(200.0)
    checker = device.checker(overload, monkeypatch, [PASSED, PASSED])
    assert checker._check_case(replace(case, sizes={"batch": 5})) is PASSED
    assert device.seen == ["call"], "what 5e7 elements take needs no room"
    device.seen.clear()
    assert checker._check_case(replace(case, sizes={"batch": 50})) is PASSED
    assert device.seen == ["released", "room", "call", "released"]


def test_looking_at_a_large_module_waits_for_room(problem_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its outputs depend on is found out in its first call, before any candidate is there."""
    overload, device = first(problem_path, "aten/neg"), Crowded(200.0)
    resources = device.checker(overload, monkeypatch, []).resources
    for batch, seen in ((50, ["released", "room", "looked", "released"]), (5, ["looked"])):
        source = ModuleSource("1_A.py", "", "batch_size", own_elements=10**9, own_batch=100)
        smallest = replace(overload.check[0], variables={"values": "default", "batch": batch})
        problem = SimpleNamespace(overloads=(replace(overload, module=source, check=(smallest, *overload.check[1:])),))
        device.seen.clear()
        with room.room_to_begin(resources, problem):  # type: ignore[arg-type]
            device.seen.append("looked")
        assert device.seen == seen


def test_a_module_too_large_for_the_device_is_not_looked_at(problem_path: Path) -> None:
    overload = first(problem_path, "aten/neg")
    source = ModuleSource("1_A.py", "", least_elements=1 << 31, own_elements=1 << 31)
    problem = SimpleNamespace(judged=(replace(overload, module=source),))
    for kind, outcomes in ((DeviceKind.CUDA, [Outcome.SKIPPED]), (DeviceKind.CPU, [])):
        found = beyond_memory(problem, kind, H200_GB)  # type: ignore[arg-type]
        assert [verdict.outcome for verdict in found.values()] == outcomes


def test_costly_calls_are_repeated_less_often(problem_path: Path) -> None:
    """In a number that is secret all the same; where some calls are cheap, those are repeated as often as ever."""
    overload = first(problem_path, "aten/neg")
    cases = [case for case in expand_cases(overload, DeviceKind.CPU, None, "seed") if case.phase is not Phase.LARGE]
    bench = [case for case in cases if case.phase is Phase.BENCH]

    def again(is_costly: Callable[[Case], bool]) -> list[list[Case]]:
        return [ALL_CASES.rechecks(cases, NoOthers(overload), random.Random(seed), is_costly) for seed in range(80)]

    least = 2 * len(bench)
    assert {len(each) for each in again(lambda case: False)} == {least + each for each in range(12, 24)}
    assert {len(each) for each in again(lambda case: True)} == {least + each for each in range(3, 6)}
    timed = again(lambda case: case.phase is Phase.BENCH)
    assert {sum(case.phase is Phase.BENCH for case in each) for each in timed} == {least, least + 1, least + 2}
    assert min(map(len, timed)) == least + 12


class NoOthers(OtherValues):
    def of(self, case: Case) -> list[Case]:
        return []


def test_a_call_is_tried_again_when_the_referee_finds_no_memory(
    problem_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overload, device = first(problem_path, "aten/neg"), Crowded(10.0)
    full = torch.OutOfMemoryError("no room")
    case = large(overload)[0]
    assert device.checker(overload, monkeypatch, [full, full, PASSED])._check_case(case) is PASSED
    assert device.seen == ["call", "released", "pause", "call", "released", "pause", "call"]
    device.seen.clear()
    with pytest.raises(torch.OutOfMemoryError):
        device.checker(overload, monkeypatch, [full] * 9)._check_case(case)
    alone = Crowded(10.0, is_alone=True)
    with pytest.raises(torch.OutOfMemoryError):
        alone.checker(overload, monkeypatch, [full] * 9)._check_case(case)
    assert alone.seen == ["call"], "nobody can give any back"


def test_each_attempt_has_seeds_of_its_own_and_the_same_values(
    problem_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random operator that is called with the same seeds gives numbers that the judge has seen."""
    overload = first(problem_path, "aten/neg")
    case = large(overload)[0]
    device = Crowded(10.0)
    once = Checker._check_once
    checker = device.checker(overload, monkeypatch, [])
    given, placed, seeds = [], [], SimpleNamespace(generator=lambda name: name)
    evaluation: Any = SimpleNamespace(seeds=seeds, deadlines=Deadlines(), now=lambda: 0.0, started=0.0)
    checker.evaluation = evaluation
    checker.resources.first_calls = None  # type: ignore[assignment]
    checker.worker.side = SimpleNamespace(warm=set(), unmap=lambda: None)
    call = SimpleNamespace(inputs=SimpleNamespace(bound=SimpleNamespace(specs=())), specs=())
    monkeypatch.setattr(checker.judge, "place", lambda case, generator: placed.append(generator) or call)
    monkeypatch.setattr(checker, "_check_once", once.__get__(checker))

    def run(call: object, generator: Any, *more: object, **named: object) -> Verdict:
        given.append(generator)
        if len(given) < 3:
            raise torch.OutOfMemoryError
        return PASSED

    monkeypatch.setattr(checker, "_allowed_s", lambda case: 1.0)
    monkeypatch.setattr(checker, "_run", run)
    assert checker._check_case(case, again=14) is PASSED
    assert len(set(placed)) == 1
    assert len(set(given)) == 3


def test_the_calls_of_large_cases_are_made_once(problem_path: Path) -> None:
    """By the candidate alone: not by the library before it is timed, and not when it is watched."""
    overload = first(problem_path, "aten/neg")
    cases = expand_cases(overload, "cuda", 80.0, "s")
    judged = SimpleNamespace(cases=[JudgedCase(case, PASSED, 0.0) for case in cases])
    judged.cases_of = lambda each: judged.cases
    found = [each.case.phase for each in Evaluation.repeatable_cases_of(judged, overload)]  # type: ignore[arg-type]
    assert Phase.LARGE not in found
    assert {Phase.CHECK, Phase.BENCH} <= set(found)
