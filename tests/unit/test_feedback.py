"""What an author is told about its own kernel: enough to go on, and nothing of a hidden call. No torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from kgbench.core.details.absence import CodeProblem, NoCode
from kgbench.core.details.failures import Crash, Deadline, Evidence, Limit, NoEntry, PolicyBroken, Raised
from kgbench.core.details.outputs import (
    Attribute,
    Dtype,
    Guard,
    InputChanged,
    Shape,
    StorageOffset,
    Strides,
    WrongAttribute,
)
from kgbench.core.details.union import DETAILS, Detail
from kgbench.core.details.values import Mismatch, RootMeanSquare, Statistic, StatisticalTest
from kgbench.core.details.where import Purpose, Where
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.problem.registry import Registry
from kgbench.prompts.author import Author
from kgbench.prompts.feedback import feedback_turn, verdict_words
from kgbench.prompts.public import public_words
from tests.unit.made_details import with_secrets
from tests.unit.made_results import timing

SOFTMAX = Registry().find("aten/softmax")
VARIABLES = {"call": "((T([7351, 97], f32), -1), {})", "pad": 7351, "beta": 7351, "values": "special"}
WRONG = Mismatch("return", (3, 5), "0.751", "0.7351", "7.351e-07", 0.25, (7351, 97), "float32")
PEAKS = {"gb_per_s": 1000, "gflop_per_s": {"float32": 20000}}


WHERE = Where(Purpose.CALL, "", "fuzz-7351-float32", sizes={"pad": 7351})


def failed(outcome: Outcome, detail: Detail | None, log: str = "", where: Where = WHERE, **more: Any) -> Result:
    """Two correct cases and one that is not, each with variables that nobody may be told."""
    right = [CaseResult(f"check-{n}-float32", "", "check", "float32", VARIABLES, Outcome.PASSED) for n in (1, 2)]
    case = CaseResult(WHERE.case, "", "fuzz", "float32", VARIABLES, outcome, detail=detail, where=where)
    both = {"detail": detail, "where": where}
    return Result("aten/softmax", "m", 0, outcome, **both, cases=(*right, case), log_tail=log, **more)


def told(wrong: Detail) -> str:
    return verdict_words(SOFTMAX, failed(Outcome.WRONG_VALUE, wrong))


# --- wrong values ---


def test_a_wrong_value_is_told_in_words_and_small_numbers() -> None:
    words = told(WRONG)
    assert "wrong value" in words
    assert "in `softmax_int`, a random call, float32" in words
    assert "the result (2-dimensional, float32) at index [3, 5] is off by about 2e-02 of its value" in words
    assert "vastly more than rounding explains" in words
    assert "25 % of its elements are wrong" in words
    assert "Calls judged up to there: 3, of which 2 are correct." in words


@pytest.mark.parametrize(
    ("got", "wanted", "limit", "said"),
    [
        ("nan", "0.7351", "1e-6", "is NaN, expected a finite number"),
        ("0.751", "nan", "1e-6", "is a finite number, expected NaN"),
        ("inf", "0.7351", "1e-6", "is an infinity, expected a finite number"),
        ("inf", "-inf", "1e-6", "with the wrong sign"),
        ("0", "0.7351", "1e-6", "is exactly 0, and is off by about 1e+00"),
        ("0.7351", "0", "1e-6", "where 0 is expected"),
        ("1.0", "1.0001", "0.00005", "a little more than rounding explains"),
        ("1.0", "1.0001", "0.000005", "much more"),
        ("7351", "7350", "exact", "is off by 1"),
        ("True", "False", "exact", "has a wrong value"),
        ("(1+7351j)", "(1+7352j)", "1e-6", "is off by about 1e-04 of its value"),
    ],
)
def test_sorts_of_wrong_values(got: str, wanted: str, limit: str, said: str) -> None:
    words = told(replace(WRONG, got=got, wanted=wanted, limit=limit))
    assert said in words
    assert "735" not in words


def test_a_guess_names_no_variable_of_a_hidden_call() -> None:
    """`kgbench check` says more: pad is 7351."""
    words = told(replace(WRONG, got="nan", wrong_share=0.9))
    assert "Guess: perhaps an intermediate result overflows" in words
    assert "735" not in words


def test_together_too_far_off_is_said_so() -> None:
    words = told(RootMeanSquare("return", 7.351e-3, 7.351e-6, (7351, 97), "float32"))
    assert "all together are further off than by rounding" in words
    assert "perhaps products or sums are kept in fewer bits" in words
    assert "735" not in words


def test_no_place_in_a_hidden_call_is_told_that_says_how_large_it_is() -> None:
    words = told(replace(WRONG, index=(7350, 0), wrong_share=1 / 7351))
    assert "at index [over 31, 0]" in words
    assert "perhaps the last row is left out" in words
    assert "perhaps the last tile of rows is left out" in told(replace(WRONG, index=(7296, 0), wrong_share=55 / 7351))
    assert "735" not in words


OUTCOME_OF: dict[type, Outcome] = {
    Shape: Outcome.WRONG_SHAPE, Strides: Outcome.WRONG_SHAPE, StorageOffset: Outcome.WRONG_SHAPE,
    Dtype: Outcome.WRONG_DTYPE, Guard: Outcome.INPUT_CHANGED, InputChanged: Outcome.INPUT_CHANGED,
    Raised: Outcome.RUNTIME_ERROR, Crash: Outcome.CRASHED, Deadline: Outcome.TIMEOUT, NoCode: Outcome.NO_CODE,
}  # fmt: skip


def is_silent(said: Result) -> bool:
    words = feedback_turn(SOFTMAX, "", said)
    assert str(said.outcome) in words
    return "735" not in words and "secret" not in words


@pytest.mark.parametrize("name", DETAILS)
def test_nothing_of_a_hidden_call_is_told(name: str) -> None:
    """Every field of every type holds a secret: sizes, values, limits, names, texts."""
    where = Where(Purpose.CALL, "secret7351", "fuzz-7351", 7351, sizes={"secret7351": 7351})
    outcome = OUTCOME_OF.get(DETAILS[name], Outcome.WRONG_VALUE)
    for detail in with_secrets(DETAILS[name]):
        result = failed(outcome, detail, log="[0.7351]\n", where=where)
        for said in (result, replace(result, cases=()), replace(result, outcome=Outcome.REJECTED)):
            assert is_silent(said), (detail, feedback_turn(SOFTMAX, "", said))


@pytest.mark.parametrize("purpose", Purpose)
def test_nothing_of_a_hidden_calls_place_is_told(purpose: Purpose) -> None:
    where = Where(purpose, "secret7351", "fuzz-7351", 7351, sizes={"secret7351": 7351})
    for repeated in (False, True):
        assert is_silent(failed(Outcome.WRONG_VALUE, WRONG, where=replace(where, repeated=repeated)))


def test_a_type_without_public_facts_tells_its_outcome_alone() -> None:
    @dataclass(frozen=True)
    class Unlisted:
        size: int = 7351

    assert public_words(Unlisted(), Author(SOFTMAX, "")) == []  # type: ignore[arg-type]
    result = replace(failed(Outcome.REJECTED, None), reason="returned shape [7351, 97]")
    words = verdict_words(SOFTMAX, result)
    assert "it broke the rules of the calling convention" in words
    assert "735" not in words


def test_what_is_harmless_is_told() -> None:
    said: dict[Detail, str] = {
        Statistic("self", StatisticalTest.VARIANCE, 7351.0, 2.0, 9, high=True): "`self`: the values vary too much",
        WrongAttribute(
            "return", Attribute.TYPE, "dict", "a plain torch.Tensor"
        ): "returned dict, expected a plain torch",
        Dtype("return", "float64", "float32"): "What: the result is float64, expected float32",
        Deadline(Limit.ANSWER, 10.0): "What: it gave no answer in time",
        Shape("return", (97, 5, 1), (97, 5)): "What: the result has 3 dimensions, expected 2",
        Guard("self", behind=True, distance=4): "What: wrote past the end of `self`",
        NoEntry("softmax_int", ("softmax",)): "What: the file defines no function `softmax_int`",
        PolicyBroken(Evidence("operator", "aten::_softmax", why="7351")): "an operator of PyTorch did work",
    }
    for detail, words in said.items():
        assert words in verdict_words(SOFTMAX, failed(Outcome.REJECTED, detail)), detail
    shape = verdict_words(SOFTMAX, failed(Outcome.WRONG_SHAPE, Shape("return", (97, 5), (5, 97))))
    assert "its size is wrong in dimension 0, 1" in shape
    assert "perhaps the result is transposed" in shape


def test_names_are_told_that_the_author_has_written() -> None:
    code = "import liger_kernel\ntorch.mm(a, b)\nclass Lazy(torch.Tensor): pass\n"
    told_of = {
        PolicyBroken(Evidence("operator", "aten::mm", where="case 7351", why="7351")): "aten::mm",
        PolicyBroken(Evidence("package", "liger_kernel.size7351")): "liger_kernel",
        WrongAttribute("return", Attribute.TYPE, "Lazy", "a plain torch.Tensor"): "returned Lazy",
    }
    for detail, name in told_of.items():
        words = verdict_words(SOFTMAX, failed(Outcome.REJECTED, detail), code=code)
        assert name in words
        assert "735" not in words
    assert "Lazy" not in verdict_words(SOFTMAX, failed(Outcome.REJECTED, detail))


def test_the_sort_of_call_is_told() -> None:
    again = replace(WHERE, purpose=Purpose.AGAIN, number=7351)
    assert "its first calls were correct" in verdict_words(SOFTMAX, failed(Outcome.WRONG_VALUE, WRONG, where=again))
    assert "the same input was correct just before" in verdict_words(
        SOFTMAX, failed(Outcome.WRONG_VALUE, WRONG, where=replace(again, repeated=True))
    )


# --- messages of compilers and interpreters ---

CODE = """\
import torch
def softmax_int(self, dim, dtype=None):
    check(self)
    return torch.softmaxx(self, dim)
def check(x):
    raise ValueError(f"{x.tolist()}")
"""
BEGIN = """Traceback (most recent call last):
  File "/opt/x/kgbench/harness/worker.py", line 88, in serve
    reply = handlers[message["op"]](message, fds)
            ^^^^^^^^^^
  File "/tmp/kgbench-worker-1/kernel.py", line 4, in softmax_int
    return torch.softmaxx(self, dim)
           ^^^^^^^^^^^^^^
"""


def raised(log: str, outcome: Outcome = Outcome.RUNTIME_ERROR) -> str:
    return feedback_turn(SOFTMAX, CODE, failed(outcome, Raised("X", "7351"), log))


def imported(log: str, outcome: Outcome) -> str:
    return feedback_turn(SOFTMAX, CODE, failed(outcome, Raised("X", ""), log, Where(Purpose.IMPORT)))


def test_an_exceptions_words_are_told_without_paths_and_frames_of_ours() -> None:
    words = raised(BEGIN + "AttributeError: module 'torch' has no attribute 'softmaxx'. Did you mean: 'softmax'?\n")
    assert 'File "kernel.py", line 4, in softmax_int\n    return torch.softmaxx(self, dim)' in words
    assert "AttributeError: module 'torch' has no attribute 'softmaxx'. Did you mean: 'softmax'?" in words
    for secret in ("worker", "/tmp", "/opt", "handlers", "7351"):
        assert secret not in words


@pytest.mark.parametrize(
    "ending",
    [
        "ValueError: invalid literal for int() with base 10: '[0.7351, 0.17351]'\n",
        "KeyError: '7351 7351 7351'\n",
        'RuntimeError: "0.7351, 0.2"\n',
        "RuntimeError: 0.7351 is no 1.7351e-3 and -7351.5\n",
        "IndexError: " + "1 " * 20 + "7351\n",
        "OverflowError: 73517351\n",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x7351 and 7x3)\n",
    ],
)
def test_an_exception_cannot_carry_inputs_out(ending: str) -> None:
    words = raised(BEGIN + ending)
    assert ending.partition(":")[0] in words
    assert "735" not in words


def test_an_exception_that_the_kernel_raises_itself_is_named_and_no_more() -> None:
    frame = '  File "/tmp/w/kernel.py", line 6, in check\n    raise ValueError(f"{x.tolist()}")\n'
    log = BEGIN.replace("return torch.softmaxx(self, dim)", "check(self)") + frame + "ValueError: [0, 73, 51]\nand 73\n"
    words = raised(log)
    assert "ValueError (raised by the kernel itself" in words
    assert "73" not in words
    assert "73" not in raised(BEGIN + '  File "<string>", line 1, in <module>\nValueError: [0, 73, 51]\n')


def test_sizes_that_a_library_names_stay() -> None:
    words = raised(BEGIN + "RuntimeError: The size of tensor a (5) must match the size of tensor b (7)\n")
    assert "The size of tensor a (5) must match the size of tensor b (7)" in words


def test_numbers_of_the_kernels_own_text_stay() -> None:
    place = "triton.compiler.errors.CompilationError: at 3:45:\n"
    words = raised(BEGIN + place + "shapes 1024 and 2048\n")
    assert "at 3:45:" in words
    assert "shapes # and #" in words
    code = CODE + "BLOCK = 1024\n"
    log = BEGIN + "ValueError: shapes 1024 and 2048\n"
    result = failed(Outcome.RUNTIME_ERROR, Raised("X", "7351"), log)
    assert "shapes 1024 and #" in feedback_turn(SOFTMAX, code, result)


def test_a_compilers_message_at_import_is_told_as_it_is() -> None:
    log = BEGIN + "RuntimeError: Error building extension 'dot': error: identifier \"x\" is undefined at 3.5\n"
    words = imported(log, Outcome.RUNTIME_ERROR)
    assert "Error building extension 'dot': error: identifier \"x\" is undefined at 3.5" in words


def test_of_a_crash_the_place_is_told_and_nothing_printed() -> None:
    log = "0.7351\nFatal Python error: Segmentation fault\n\nCurrent thread 0x7351 (most recent call first):\n" + (
        '  File "/tmp/w/kernel.py", line 4 in softmax_int\n  File "/opt/kgbench/harness/worker.py", line 1 in _called\n'
    )
    words = feedback_turn(SOFTMAX, CODE, failed(Outcome.CRASHED, Crash("SIGSEGV"), log))
    assert 'Fatal Python error: Segmentation fault\n  File "kernel.py", line 4 in softmax_int' in words
    assert "735" not in words
    assert "worker" not in words


def test_a_long_log_is_cut_at_its_begin() -> None:
    words = imported("x\n" * 5000 + "SyntaxError: the end\n", Outcome.COMPILE_ERROR)
    assert "SyntaxError: the end" in words
    assert len(words) < 4000


def test_a_reply_without_code_is_told_why() -> None:
    result = Result("aten/softmax", "m", 0, Outcome.NO_CODE, detail=NoCode(CodeProblem.NO_BLOCK, "7351"))
    words = feedback_turn(SOFTMAX, "", result)
    assert "no code block" in words
    assert "exactly one fenced ```python block" in words


# --- right ---


def right(ratio: float, **more: Any) -> Result:
    variables = {"self_shape": (4096, 4096), "self_dtype": "float32"}
    times = (ratio, 2.0)
    cases = tuple(
        CaseResult(f"bench-gpu140-{n}-float32", "", "bench", "float32", variables, Outcome.PASSED, timing=timing(each))
        for n, each in enumerate(times, 1)
    )
    return Result("aten/softmax", "m", 0, Outcome.PASSED, cases=cases, preset="gpu140", **more)


def test_a_right_kernel_is_told_its_speed_per_timed_call() -> None:
    words = feedback_turn(SOFTMAX, "", right(0.5), peaks=PEAKS)
    assert "correct in all 2 calls" in words
    assert "- `softmax_int(self=float32[4096, 4096], dim=-1)`: 0.50x (100 µs, the library 100 µs)" in words
    # 2 * 4 bytes * 4096² in 100 µs at 1000 GB/s
    assert "134% of what memory and arithmetic of the device allow" in words
    assert "Over all of them: 1.00 times as fast as the library." in words
    assert "make it faster" in words


def test_without_peaks_there_is_no_roofline() -> None:
    assert "allow" not in feedback_turn(SOFTMAX, "", right(0.5))


def test_in_the_interpreter_no_speed_is_told() -> None:
    words = feedback_turn(SOFTMAX, "", right(0.5, interpreted=True))
    assert "Its speed is not known: it ran in Triton's interpreter." in words
    assert "µs" not in words


def test_beside_a_fallback_it_is_called_so() -> None:
    result = right(0.5)
    cases = tuple(replace(each, timing=timing(0.5, against="fallback")) for each in result.cases)
    words = feedback_turn(SOFTMAX, "", replace(result, cases=cases))
    assert "a plain PyTorch expression, since the library does not run here 100 µs" in words


def test_a_failure_in_a_timed_call_names_the_call() -> None:
    """Timed calls are no secret: the prompt has them."""
    case = replace(right(1.0).cases[0], outcome=Outcome.WRONG_VALUE, detail=WRONG, timing=None)
    result = Result("aten/softmax", "m", 0, Outcome.WRONG_VALUE, cases=(case,), preset="gpu140")
    assert "in the timed call `softmax_int(self=float32[4096, 4096], dim=-1)`" in verdict_words(SOFTMAX, result)
