"""What an author is told about its own kernel: enough to go on, and nothing of a hidden call. No torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Mismatch, Result
from kgbench.problem.registry import Registry
from kgbench.prompts.feedback import feedback_turn, verdict_words
from tests.unit.made_results import timing

SOFTMAX = Registry().find("aten/softmax")
VARIABLES = {"call": "((T([7351, 97], f32), -1), {})", "pad": 7351, "beta": 7351, "values": "special"}
WRONG = Mismatch("return", (3, 5), "0.751", "0.7351", "7.351e-07", 0.25, (7351, 97), "float32")
PEAKS = {"gb_per_s": 1000, "gflop_per_s": {"float32": 20000}}


def failed(outcome: Outcome, reason: str = "", mismatch: Mismatch | None = None, log: str = "", **more: Any) -> Result:
    """Two right cases and one that is not, each with variables that nobody may be told."""
    right = [CaseResult(f"check-{n}-float32", "", "check", "float32", VARIABLES, Outcome.PASSED) for n in (1, 2)]
    case = CaseResult("fuzz-7351-float32", "", "fuzz", "float32", VARIABLES, outcome, reason, mismatch)
    return Result("aten/softmax", "m", 0, outcome, reason, cases=(*right, case), log_tail=log, **more)


def told(wrong: Mismatch) -> str:
    return verdict_words(SOFTMAX, failed(Outcome.WRONG_VALUE, "", wrong))


# --- wrong values ---


def test_a_wrong_value_is_told_in_words_and_small_numbers() -> None:
    words = told(WRONG)
    assert "wrong value" in words
    assert "in `softmax_int`, a random call, float32" in words
    assert "the result (2-dimensional, float32) at index [3, 5] is off by about 2e-02 of its value" in words
    assert "out of all proportion more than rounding explains" in words
    assert "25 % of its elements are wrong" in words
    assert "Calls judged up to there: 3, of which 2 are right." in words


@pytest.mark.parametrize(
    ("got", "wanted", "limit", "said"),
    [
        ("nan", "0.7351", "1e-6", "is NaN where a finite number is right"),
        ("0.751", "nan", "1e-6", "is a finite number where NaN is right"),
        ("inf", "0.7351", "1e-6", "is an infinity where a finite number is right"),
        ("inf", "-inf", "1e-6", "with the wrong sign"),
        ("0", "0.7351", "1e-6", "is exactly 0, and is off by about 1e+00"),
        ("0.7351", "0", "1e-6", "where 0 is right"),
        ("1.0", "1.0001", "0.00005", "a little more than rounding explains"),
        ("1.0", "1.0001", "0.000005", "a good deal more"),
        ("7351", "7350", "exact", "is off by 1"),
        ("True", "False", "exact", "another value than is right"),
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
    words = told(replace(WRONG, got="root mean square error 7.351e-3", wanted="an error of rounding"))
    assert "all together are further off than by rounding" in words


def test_nothing_of_a_hidden_call_is_told() -> None:
    """Every secret of these results has 7351 in it: values, limits, sizes, variables, cases."""
    hidden = "case fuzz-7351-float32 (pad=7351, call=((T([7351, 97], f32), -1), {})): "
    results = [
        failed(Outcome.WRONG_VALUE, hidden + "return[3, 5]: got 0.751, wanted 0.7351, limit 7.351e-07", WRONG),
        failed(Outcome.WRONG_VALUE, hidden + "self: the values vary too much (variance: 7351, limit 7351, 9 samples)"),
        failed(
            Outcome.WRONG_VALUE,
            "in a timed window of " + hidden + "return[1]: got 7351, which cannot come out there; x",
        ),
        failed(Outcome.WRONG_VALUE, hidden + "returned 7351, 7352 is right"),
        failed(Outcome.WRONG_SHAPE, hidden + "returned shape [97, 7351], [7351, 97] is right"),
        failed(Outcome.WRONG_SHAPE, hidden + "returned strides [1, 7351], [7351, 1] are right"),
        failed(Outcome.INPUT_CHANGED, hidden + "changed input 'self' at storage element 7351 (1 of 7351 elements)"),
        failed(Outcome.TIMEOUT, hidden + "no answer within 10 s", log="[0.7351]\n"),
        failed(Outcome.REJECTED, hidden + "returned dict, a plain torch.Tensor is promised", log="0.7351\n"),
        failed(Outcome.OUT_OF_MEMORY, hidden + "host memory limit exceeded", log="0.7351\n"),
    ]
    for result in results:
        words = feedback_turn(SOFTMAX, "", result)
        assert "735" not in words, (result.reason, words)
        assert str(result.outcome) in words


def test_what_is_harmless_is_told() -> None:
    hidden = "case fuzz-1-float32: "
    said = {
        "self: the values vary too much (variance: 3, limit 2, 9 samples)": "self: the values vary too much",
        "returned dict, a plain torch.Tensor is promised": "returned dict, a plain torch.Tensor is promised",
        "no answer within 10 s": "no answer within 10 s",
    }
    for (reason, words), outcome in zip(
        said.items(), (Outcome.WRONG_VALUE, Outcome.REJECTED, Outcome.TIMEOUT), strict=True
    ):
        assert f"What: {words}" in verdict_words(SOFTMAX, failed(outcome, hidden + reason))
    shape = verdict_words(SOFTMAX, failed(Outcome.WRONG_SHAPE, hidden + "returned shape [97, 5], [5, 97] is right"))
    assert "its size is wrong in dimension 0, 1" in shape
    assert "perhaps the result is transposed" in shape


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


def raised(log: str, reason: str = "case fuzz-7351-float32: X: 7351", outcome: Outcome = Outcome.RUNTIME_ERROR) -> str:
    return feedback_turn(SOFTMAX, CODE, failed(outcome, reason, log=log))


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


def test_a_compilers_message_at_import_is_told_as_it_is() -> None:
    log = BEGIN + "RuntimeError: Error building extension 'dot': error: identifier \"x\" is undefined at 3.5\n"
    words = raised(log, "import: RuntimeError: Error building", Outcome.RUNTIME_ERROR)
    assert "Error building extension 'dot': error: identifier \"x\" is undefined at 3.5" in words


def test_of_a_crash_the_place_is_told_and_nothing_printed() -> None:
    log = "0.7351\nFatal Python error: Segmentation fault\n\nCurrent thread 0x7351 (most recent call first):\n" + (
        '  File "/tmp/w/kernel.py", line 4 in softmax_int\n  File "/opt/kgbench/harness/worker.py", line 1 in _called\n'
    )
    words = raised(log, "case check-1: killed by SIGSEGV", Outcome.CRASHED)
    assert 'Fatal Python error: Segmentation fault\n  File "kernel.py", line 4 in softmax_int' in words
    assert "735" not in words
    assert "worker" not in words


def test_a_long_log_is_cut_at_its_begin() -> None:
    words = raised("x\n" * 5000 + "SyntaxError: the end\n", "import: SyntaxError: the end", Outcome.COMPILE_ERROR)
    assert "SyntaxError: the end" in words
    assert len(words) < 4000


def test_a_reply_without_code_is_told_why() -> None:
    result = Result("aten/softmax", "m", 0, Outcome.NO_CODE, "the reply has no code block")
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
    assert "right in all 2 calls" in words
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
    case = replace(right(1.0).cases[0], outcome=Outcome.WRONG_VALUE, mismatch=WRONG, timing=None)
    result = Result("aten/softmax", "m", 0, Outcome.WRONG_VALUE, cases=(case,), preset="gpu140")
    assert "in the timed call `softmax_int(self=float32[4096, 4096], dim=-1)`" in verdict_words(SOFTMAX, result)
