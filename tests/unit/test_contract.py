"""What a worker claims to have returned becomes a detail: what was got and what is correct. It may claim anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.details.failures import Breach, Crash, HostMemory, RuleBroken  # noqa: E402
from kgbench.core.details.outputs import (  # noqa: E402
    Alias,
    Aliasing,
    Attribute,
    Dtype,
    Shape,
    StorageOffset,
    Strides,
    WrongAttribute,
)
from kgbench.core.details.union import Detail  # noqa: E402
from kgbench.core.details.where import Purpose, Where  # noqa: E402
from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.verdicts import PASSED, Verdict  # noqa: E402
from kgbench.harness.verdict.contract import MALFORMED, OutputContract  # noqa: E402
from kgbench.harness.verdict.inputs import GUARD_BYTES  # noqa: E402
from kgbench.harness.verdict.output_specs import OutputSpec  # noqa: E402
from kgbench.harness.wire.forks import EndCause, WorkerEnded  # noqa: E402
from kgbench.harness.workers.handle import WorkerFailed, WorkerHandle, _exit_outcome  # noqa: E402
from kgbench.problem.registry import Registry  # noqa: E402

RIGHT: dict[str, Any] = {
    "type": "Tensor", "device": "cpu", "requires_grad": False, "dtype": "float32", "shape": [5, 3], "strides": [3, 1],
    "lazy": [False, False], "shares": [],
}  # fmt: skip


def verdict_on(reply: Any) -> Verdict:
    overload = Registry().find("aten/softmax").overloads[0]
    contract = OutputContract(overload, torch.device("cpu"), cast("Any", None))
    spec = OutputSpec("float32", (5, 3), (3, 1))
    call = SimpleNamespace(specs=(spec,), outputs=("return",), inputs=SimpleNamespace(start=256), end=1024)
    return contract.check(cast("Any", call), reply)


def test_what_is_promised_passes() -> None:
    assert verdict_on({"outputs": [RIGHT]}) is PASSED


@pytest.mark.parametrize(
    ("claimed", "outcome", "detail"),
    [
        ({"shape": [3, 5]}, Outcome.WRONG_SHAPE, Shape("return", (3, 5), (5, 3))),
        ({"shape": [True, 5]}, Outcome.WRONG_SHAPE, Shape("return", None, (5, 3))),
        ({"shape": "x" * 9}, Outcome.WRONG_SHAPE, Shape("return", None, (5, 3))),
        ({"shape": [7] * 65}, Outcome.WRONG_SHAPE, Shape("return", None, (5, 3))),
        ({"shape": [1 << 63, 5]}, Outcome.WRONG_SHAPE, Shape("return", None, (5, 3))),
        ({"strides": [1, 5]}, Outcome.WRONG_SHAPE, Strides("return", (1, 5), (3, 1))),
        ({"strides": {"a": 1}}, Outcome.WRONG_SHAPE, Strides("return", None, (3, 1))),
        ({"dtype": "float16"}, Outcome.WRONG_DTYPE, Dtype("return", "float16", "float32")),
        ({"dtype": ["float32"]}, Outcome.WRONG_DTYPE, Dtype("return", "['float32']", "float32")),
        ({"type": "dict"}, Outcome.REJECTED, WrongAttribute("return", Attribute.TYPE, "dict", "a plain torch.Tensor")),
        ({"device": "meta"}, Outcome.REJECTED, WrongAttribute("return", Attribute.DEVICE, "meta", "cpu")),
        ({"requires_grad": 0}, Outcome.REJECTED, WrongAttribute("return", Attribute.REQUIRES_GRAD, "0", "False")),
        ({"at": 256}, Outcome.REJECTED, Alias("return", Aliasing.LIES_IN_INPUT)),
        ({"at": 1023}, Outcome.REJECTED, Alias("return", Aliasing.LIES_IN_INPUT)),
        ({"shares": [0]}, Outcome.REJECTED, Alias("return", Aliasing.SHARES_STORAGE)),
        (
            {"lazy": [True, False]},
            Outcome.REJECTED,
            WrongAttribute("return", Attribute.LAZY_BITS, "[True, False]", "[False, False]"),
        ),
    ],
)
def test_a_wrong_claim_is_told_as_data(claimed: dict[str, Any], outcome: Outcome, detail: Detail) -> None:
    assert verdict_on({"outputs": [{**RIGHT, **claimed}]}) == Verdict(outcome, detail)


def view_at(at: Any, strides: Any = (3, 1)) -> Verdict:
    """Of a view that begins three float32 elements into the storage of its base, which begins at 512 + 64 bytes."""
    overload = Registry().find("aten/softmax").overloads[0]
    contract = OutputContract(overload, torch.device("cpu"), cast("Any", None))
    chunk = SimpleNamespace(offset=512, storage_bytes=400)
    inputs = SimpleNamespace(start=256, chunks={"self": chunk})
    call = SimpleNamespace(
        specs=(OutputSpec("float32", (5, 3), (3, 1), 3, "self"),), outputs=("return",), inputs=inputs, end=4096
    )
    claim = {**RIGHT, "at": at, "strides": list(strides), "shares": [0]}
    return contract.check(cast("Any", call), {"outputs": [claim]})


def test_where_a_view_lies_is_told_as_data() -> None:
    begin = 512 + GUARD_BYTES
    assert view_at(begin + 12) is PASSED
    assert view_at(begin + 8) == Verdict(Outcome.WRONG_SHAPE, StorageOffset("return", 2.0, 3))
    assert view_at(begin + 13) == Verdict(Outcome.WRONG_SHAPE, StorageOffset("return", 3.25, 3))
    elsewhere = Verdict(Outcome.WRONG_VALUE, Alias("self", Aliasing.LIES_ELSEWHERE))
    assert [view_at(at) for at in (begin - 1, begin + 400, None, "12", True)] == [elsewhere] * 5


def test_strides_of_a_view_are_as_many_as_its_dimensions() -> None:
    """Where the problem's file promises none."""
    overload = Registry().find("aten/softmax").overloads[0]
    contract = OutputContract(overload, torch.device("cpu"), cast("Any", None))
    inputs = SimpleNamespace(start=256, chunks={"self": SimpleNamespace(offset=512, storage_bytes=400)})
    promise = OutputSpec("float32", (5, 3), None, None, "self")
    call = SimpleNamespace(specs=(promise,), outputs=("return",), inputs=inputs)
    for strides, verdict in (([3, 1], PASSED), ([3], MALFORMED), (None, MALFORMED), ([3, 1 << 40], MALFORMED)):
        claim = {**RIGHT, "at": 512 + GUARD_BYTES, "strides": strides, "shares": [0]}
        assert contract.check(cast("Any", call), {"outputs": [claim]}) == verdict, strides


@pytest.mark.parametrize("value", [{"float": 10**400}, {"complex": [10**400, "1"]}, {"float": "x"}, {"complex": 1}])
def test_a_number_that_is_none_is_malformed(value: Any) -> None:
    overload = Registry().find("aten/item").overloads[0]
    contract = OutputContract(overload, torch.device("cpu"), cast("Any", SimpleNamespace(value=lambda arguments: 1.0)))
    call = SimpleNamespace(inputs=SimpleNamespace(arguments=dict))
    assert contract.check(cast("Any", call), {"outputs": [{"type": "float", "value": value}]}) is MALFORMED


@pytest.mark.parametrize("reply", [{}, {"outputs": "x"}, {"outputs": ["x"]}, {"outputs": [None]}])
def test_what_is_no_claim_is_malformed(reply: dict[str, Any]) -> None:
    assert verdict_on(reply) is MALFORMED


def test_another_number_of_values_is_counted() -> None:
    counted = WrongAttribute("return", Attribute.COUNT, "2", "1")
    assert verdict_on({"outputs": [RIGHT, RIGHT]}) == Verdict(Outcome.REJECTED, counted)


@pytest.mark.parametrize(
    ("report", "outcome", "detail"),
    [
        (WorkerEnded(EndCause.MEMORY), Outcome.OUT_OF_MEMORY, HostMemory()),
        (
            WorkerEnded(EndCause.OUTPUT, output_bytes=9 << 20),
            Outcome.REJECTED,
            RuleBroken(Breach.PRINTED, "more than 9 MiB"),
        ),
        (WorkerEnded(EndCause.PROCESSES), Outcome.REJECTED, RuleBroken(Breach.PROCESSES)),
        (WorkerEnded(EndCause.SUPERVISOR_GONE), Outcome.REJECTED, RuleBroken(Breach.SUPERVISOR)),
        (WorkerEnded(returncode=-11), Outcome.CRASHED, Crash("SIGSEGV")),
        (WorkerEnded(returncode=3), Outcome.CRASHED, Crash(code=3)),
        (WorkerEnded(EndCause.WRITTEN), Outcome.REJECTED, RuleBroken(Breach.WRITTEN)),
        (WorkerEnded(EndCause.REFEREE_GONE), Outcome.CRASHED, Crash(cause="the referee released it")),
        (
            WorkerEnded(EndCause.SUPERVISOR_FAILED, "OSError(28)"),
            Outcome.CRASHED,
            Crash(cause="supervisor failed: OSError(28)"),
        ),
        (WorkerEnded(), Outcome.CRASHED, Crash()),
    ],
)
def test_the_end_of_a_worker_is_told_as_data(report: WorkerEnded, outcome: Outcome, detail: Detail) -> None:
    assert _exit_outcome(report) == (outcome, detail)


def test_a_failed_workers_verdict_has_its_place() -> None:
    failure = WorkerFailed(cast(WorkerHandle, None), Outcome.CRASHED, Crash("SIGSEGV"), Where(Purpose.IMPORT))
    assert failure.verdict == Verdict(Outcome.CRASHED, Crash("SIGSEGV"), Where(Purpose.IMPORT))
    assert str(failure) == failure.reason == "import: killed by SIGSEGV"
