"""A run folder made by hand, of any size: real problems, made-up verdicts, and texts of candidates that mean harm."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from kgbench.core.details.failures import Evidence
from kgbench.core.details.values import Mismatch
from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.core.types import CaseResult, Library, Result, Timing, Window
from kgbench.llm.conversation import Prompt, Question, Reply, Sampling, Turn, Usage
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry, load_problem
from kgbench.store.replies import StoredReply
from kgbench.store.writer import RunStore

HOSTILE: Final = (
    "</script><img src=x onerror=\"document.title='owned'\"><!-- <script>document.title='owned'</script> \u202e"
)
PEAKS: Final = {"gb_per_s": 4232, "gflop_per_s": {"float32": 51284, "float16": 755757, "bfloat16": 811290}}
DEVICE: Final = {
    "name": "NVIDIA H200",
    "kind": "cuda",
    "memory_gb": 151.0,
    "driver": "580.1",
    "versions": {"torch": "2.11.0"},
    "peaks": PEAKS,
    "sandbox": {"level": "isolated"},
}
_FAILURES: Final = (Outcome.WRONG_VALUE, Outcome.COMPILE_ERROR, Outcome.TIMEOUT, Outcome.REJECTED, Outcome.CRASHED)


def make_run(out: Path, *, problems: int = 6, samples: int = 2, windows: int = 10, code_lines: int = 0) -> Path:
    """Writes ``out/made`` and gives its path. The same arguments make the same run."""
    registry = Registry()
    ids = registry.ids()
    chosen = [load_problem(registry.paths[ids[number * len(ids) // problems]]) for number in range(problems)]
    info = {
        "started": "2026-01-02T03:04:05+00:00",
        "kgbench": "0.1.0",
        "command": ["kgbench", "run", "--model", f"m {HOSTILE}"],
        "model": f"mock {HOSTILE}",
        "samples": samples,
        "timed": True,
        "machine": {"name": "box", "cpus": 2},
        "device": DEVICE,
        "problem_set_sha256": "ab" * 32,
        "problems": [{"id": each.id, "kind": each.kind, "sha256": each.sha256, "overloads": []} for each in chosen],
        "timed_s": 1.0,
        "wall_s": 2.0,
    }
    store = RunStore.create(out, "made", info, seed="0" * 32)
    chance = random.Random(7)
    for problem in chosen:
        for sample in range(samples):
            _add(store, problem, sample, chance, windows, code_lines)
    store.finish("finished", finished="2026-01-02T04:04:05+00:00", seed="0" * 32)
    return out / "made"


def _add(store: RunStore, problem: Problem, sample: int, chance: random.Random, windows: int, code_lines: int) -> None:
    right = chance.random() < 0.6
    outcome = Outcome.PASSED if right else chance.choice(_FAILURES)
    prompt = Prompt(f"You write kernels of {problem.source}.", (Turn("user", f"Write {problem.id}. {HOSTILE}"),))
    code = _code(problem, sample, code_lines, chance)
    store.save_candidate(problem.id, sample, code)
    question = Question(problem, sample, 0, prompt, Sampling())
    store.save_reply(question, StoredReply(Reply(code, "mock-1", Usage()), code, "the only block", 0.01, prompt.sha256))
    cases = tuple(_cases(problem, outcome, chance, windows))
    reason = "" if right else f"case {cases[-1].id}: {HOSTILE}"
    log = "" if right else f"Traceback (most recent call last):\n  {HOSTILE}\n\x1b[31mred\x1b[0m"
    store.append(
        Result(
            problem=problem.id,
            model="mock",
            sample=sample,
            outcome=outcome,
            reason=reason,
            candidate_sha256="cd" * 32,
            problem_sha256=problem.sha256,
            source=problem.source,
            kind=problem.kind,
            device="cuda",
            cases=cases,
            library=Library("cuBLAS 13.1.0", notes={"math_mode": "default"}),
            seconds={"total": 12.5},
            log_tail=log,
            policy=PolicyMode.STRICT,
            evidence=(Evidence("kernel", f"own_{HOSTILE}", "check-1", 3, 0.98), _bought(outcome)),
        )
    )


def _bought(outcome: Outcome) -> Evidence:
    allowed = outcome is not Outcome.REJECTED
    return Evidence("operator", "aten::mm", "bench-1", 2, 0.4, allowed, "" if allowed else "it does the work")


def _code(problem: Problem, sample: int, lines: int, chance: random.Random) -> str:
    example = examples_dir() / f"{problem.id}.py"
    text = example.read_text() if example.is_file() else f"def {problem.name}(*args):\n    return args[0]\n"
    more = "".join(
        f"    x{n} = tl.load(p + {chance.randrange(4096)}, mask=m{n % 7})  # step {n}\n" for n in range(lines)
    )
    return f'"""Sample {sample} of {problem.id}: {HOSTILE}"""\n\n{text}\n\ndef helper():\n{more}    return None\n'


def _cases(problem: Problem, outcome: Outcome, chance: random.Random, windows: int) -> list[CaseResult]:
    overload = problem.overloads[0].name
    shapes = {"dtype": "float32", "n": 4096, "note": HOSTILE}
    cases = [CaseResult(f"check-{n}-float32", overload, "check", "float32", shapes, Outcome.PASSED) for n in range(20)]
    if outcome is not Outcome.PASSED:
        wrong = Mismatch("return", (1, 2), f"nan {HOSTILE}", "1.5", "1e-3", 0.25, (4, 8), "float32")
        shown = wrong if outcome is Outcome.WRONG_VALUE else None
        return [*cases, CaseResult("fuzz-1", overload, "fuzz", "float32", shapes, outcome, HOSTILE, shown)]
    speed = 2 ** chance.uniform(-2, 1.5)
    for number in range(4):
        timing = _timing(chance, speed, windows)
        name = f"bench-gpu140-{number}-float32"
        cases.append(CaseResult(name, overload, "bench", "float32", shapes, Outcome.PASSED, timing=timing))
    return cases


def _timing(chance: random.Random, speed: float, windows: int) -> Timing:
    library = chance.uniform(20, 400)
    candidate = library / speed
    times = {"library": library, "candidate": candidate}
    drawn = tuple(
        Window(side, "window", 5, 5 * us * chance.gauss(1, 0.01), 5 * us)
        for _ in range(windows)
        for side, us in times.items()
    )
    return Timing(
        library_us=library,
        candidate_us=candidate,
        ratio=speed,
        low=speed / 1.02,
        high=speed * 1.02,
        scored_by="window",
        launch_bound=False,
        queued=True,
        windows=drawn,
    )
