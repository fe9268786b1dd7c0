"""What verdicts say: every type has a name, a sentence and a form in JSON from which it comes back whole. No torch."""

from __future__ import annotations

import json
import typing
from typing import Any

import pytest

from kgbench.core.details.failures import Raised
from kgbench.core.details.outputs import Shape
from kgbench.core.details.sentences import sentence, words_of
from kgbench.core.details.union import DETAILS, Detail, detail_from_json, detail_to_json, where_from_json
from kgbench.core.details.values import Mismatch, RootMeanSquare
from kgbench.core.details.where import Purpose, Where
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result, result_from_json
from tests.unit.made_details import with_secrets

WHERE = Where(Purpose.AGAIN, "int", "fuzz-3-float32", 4, repeated=True, sizes={"m": 3, "pad": 1.5, "upper": False})


def test_every_type_of_the_union_has_a_name() -> None:
    assert set(DETAILS.values()) == set(typing.get_args(Detail))
    assert len(DETAILS) == len(typing.get_args(Detail))


@pytest.mark.parametrize("name", DETAILS)
def test_every_detail_has_a_sentence(name: str) -> None:
    place = "case fuzz-3-float32 (m=3, pad=1.5, upper=False): correct at first, then wrong: "
    for detail in with_secrets(DETAILS[name]):
        assert words_of(detail).strip() or () in vars(detail).values()
        assert sentence(detail, WHERE).startswith(place)


@pytest.mark.parametrize("name", DETAILS)
def test_every_detail_comes_back_from_json(name: str) -> None:
    for detail in with_secrets(DETAILS[name]):
        case = CaseResult("fuzz-3", "int", "fuzz", "float32", {"m": 3}, Outcome.REJECTED, detail=detail, where=WHERE)
        result = Result("aten/x", "m", 0, Outcome.REJECTED, detail=detail, where=WHERE, cases=(case,))
        data = json.loads(json.dumps(result.to_json()))
        assert data["detail"]["type"] == data["cases"][0]["detail"]["type"] == name
        assert result_from_json(data) == result


def test_no_detail_has_a_field_that_is_called_as_the_types_name() -> None:
    for cls in DETAILS.values():
        assert "type" not in typing.get_type_hints(cls)


@pytest.mark.parametrize(
    ("detail", "where", "words"),
    [
        (Shape("return", (3, 5), (5, 3)), None, "wrong shape: got [3, 5], expected [5, 3]"),
        (Shape("return[1]", None, ()), None, "return[1]: wrong shape: got none, expected []"),
        (Shape("return", (1,), ()), Where(Purpose.CALL, "", "1"), "case 1: wrong shape: got [1], expected []"),
        (
            Mismatch("return", (3, 5), "1", "2", "1e-06", 0.25, (4, 6), "float32"),
            Where(Purpose.WINDOW, "", "bench-1", sizes={"m": 4}),
            "case bench-1 (m=4): in a timed window: return[3, 5]: got 1, wanted 2, limit 1e-06; "
            "25.0% of [4, 6] float32 wrong",
        ),
        (Raised("ValueError", "no"), Where(Purpose.IMPORT), "import: ValueError: no"),
    ],
)  # fmt: skip
def test_sentences(detail: Detail, where: Where | None, words: str) -> None:
    assert sentence(detail, where) == words


def test_a_runs_sentence_stands_beside_its_detail_and_says_the_same() -> None:
    result = Result("aten/x", "m", 0, Outcome.WRONG_SHAPE, detail=Shape("return", (3, 5), (5, 3)))
    assert result.to_json()["reason"] == result.reason == "wrong shape: got [3, 5], expected [5, 3]"


def stored(**more: Any) -> dict[str, Any]:
    return {"problem": "aten/x", "model": "m", "sample": 0, "outcome": "rejected", **more}


def test_a_detail_of_a_newer_version_leaves_the_sentence() -> None:
    found = result_from_json(stored(reason="it sang", detail={"type": "song", "length": 3}))
    assert (found.detail, found.reason) == (None, "it sang")
    assert detail_from_json({"type": "shape", "output": "return"}) is None
    assert detail_from_json({"type": "seed", "output": "x", "fault": "a newer fault"}) is None
    assert where_from_json({"purpose": "a newer purpose"}) is None
    assert detail_to_json(None) is None


def test_an_older_run_keeps_its_sentence_and_its_first_wrong_element() -> None:
    wrong = {
        "output": "return", "index": [3], "got": "1", "wanted": "2", "limit": "1e-06", "wrong_share": 0.25,
        "shape": [4], "dtype": "float32",
    }  # fmt: skip
    case = {
        "id": "1", "overload": "", "phase": "check", "dtype": "float32", "variables": {}, "outcome": "wrong value",
        "reason": "as it was said then", "mismatch": wrong,
    }  # fmt: skip
    together = {**wrong, "index": [], "got": "root mean square error 0.00135", "limit": "2e-06"}
    cases = [case, {**case, "mismatch": together}, {**case, "mismatch": None}]
    found = result_from_json(stored(reason="then, too", cases=cases))
    first, second, third = found.cases
    assert (found.reason, first.reason) == ("then, too", "as it was said then")
    assert first.mismatch == first.detail == Mismatch("return", (3,), "1", "2", "1e-06", 0.25, (4,), "float32")
    assert second.detail == RootMeanSquare("return", 0.00135, 2e-06, (4,), "float32")
    assert third.detail is None
