"""Judges operators whose outputs chance decides: by distribution, by what seeds do, and against each other.

Each case is four calls. After seed s come the outputs A, without a new seed B, after s again C, after another seed D.
C must be A; A, B and D must differ, and together pass the battery of ``battery.py``. Where a case gives a generator
it is the generator that is seeded so, while the default one is seeded otherwise each time, which must not matter.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from kgbench.baselines.expected import Answer, Expected, Follows, Sampled
from kgbench.core.details.values import Impossible, Seed, SeedFault, Statistic
from kgbench.core.outcomes import Outcome
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.verdict.judge import STRICT_JUDGE, JudgeParts, OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall, synchronize
from kgbench.harness.verdict.random.battery import UNALIKE_BITS, Numbers, codes_of, first_failure
from kgbench.harness.verdict.random.dependence import Dependence
from kgbench.harness.verdict.random.samples import MOST_SAMPLES, joined, numbers_of, random_bits
from kgbench.harness.verdict.secret_draws import SecretGenerator
from kgbench.harness.wire.requests import CallOnce
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import Case
from kgbench.problem.model import Overload

LOW_BITS: Final = 16
"""Low bits that the other seed has in common with the first, so that a kernel which keeps only these is found out."""
SEED_BITS: Final = 31
"""Bits of a seed: as many as ATen's CPU generator takes, without a sign."""
DIGESTED: Final = 1 << 16
"""Most elements by which outputs of different calls are compared; so many are never alike by chance."""

Outputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Seeding:
    """What is seeded before one of the four calls."""

    default: int | None
    """Seed of the default generators; None leaves them as they are."""
    own: int | None
    """Seed of the generator that is passed; None passes that of the call before, as it is now."""

    @property
    def again(self) -> bool:
        return self.default is None and self.own is None


class RandomJudge(OverloadJudge):
    """Judges calls of one overload of kind random."""

    def __init__(self, overload: Overload, device: torch.device, parts: JudgeParts = STRICT_JUDGE) -> None:
        super().__init__(overload, device, parts)
        self.referee = SecretGenerator(device, secrets.token_bytes(32))
        """Generator of numbers that the candidate never sees."""
        self.seen: set[bytes] = set()
        """Digests of all outputs so far with enough random bits."""
        self.dependence = Dependence()
        """What every call's output has of earlier ones."""
        self.timed: dict[str, list[Numbers]] = {}
        """Numbers that the timed calls of a case gave, by the output's name."""

    def check(
        self,
        side: WorkerSide,
        case: Case,
        call: PlacedCall,
        generator: torch.Generator,
        timeout_s: float,
        reference: bool,
    ) -> Verdict:
        """Four calls, judged one by one and together. Raises WorkerFailed."""
        request = self.requests.call(call, reference)
        passed = _takes_generator(call)
        results: list[Outputs] = []
        for seeding in _seedings(generator, passed):
            self.fill(side, call)
            synchronize(self.device)
            reply = side.handle.request(_seeded(request, seeding), timeout_s, call.where)
            verdict = self.contract.check(call, reply)
            if verdict is not PASSED:
                return verdict
            outputs = self.outputs(call, self.collector.collect(side, call, self.collector.claims(reply), timeout_s))
            if isinstance(outputs, Verdict):
                return outputs
            verdict = self.values(call, outputs)
            if verdict is not PASSED:
                return verdict
            results.append(outputs)
        answers = self.answers(call)
        sampled = {name: answer for name, answer in answers.items() if isinstance(answer, Sampled)}
        a, b, _, d = results
        wrong = self._by_seed(sampled, results, passed) or self._together(sampled, [a, b, d], [*answers])
        return Verdict(Outcome.WRONG_VALUE, wrong) if wrong else PASSED

    def values(self, call: PlacedCall, outputs: Outputs) -> Verdict:
        """Whether every value is possible, and everything that is not random is correct."""
        for name, answer in self.answers(call).items():
            got = outputs[name]
            if isinstance(answer, Sampled):
                if impossible := _impossible(name, got, answer):
                    return Verdict(Outcome.WRONG_VALUE, impossible)
                continue
            limits = self.limits(call.case)
            if isinstance(answer, Follows):
                exact = not (answer.rounded and got.dtype.itemsize == 2)
                answer, limits = Expected(answer.value(outputs)), replace(limits, exact=exact)
            mismatch = self.compare(name, got, answer, limits)
            if mismatch is not None:
                return Verdict(Outcome.WRONG_VALUE, mismatch)
        return PASSED

    def judge(self, call: PlacedCall, snapshot: torch.Tensor) -> Verdict:
        """A timed call by itself; ``conclude`` judges all of a case together."""
        outputs = self.outputs(call, snapshot)
        if isinstance(outputs, Verdict):
            return outputs
        verdict = self.values(call, outputs)
        if verdict is not PASSED:
            return verdict
        sampled = {name: answer for name, answer in self.answers(call).items() if isinstance(answer, Sampled)}
        for name, answer in sampled.items():
            if seen := self._new(name, answer, outputs[name]):
                return Verdict(Outcome.WRONG_VALUE, seen)
            parts, numbers = self.timed.setdefault(name, []), numbers_of(answer, outputs[name], self.referee)
            if fault := self.dependence.found(name, numbers):
                return Verdict(Outcome.WRONG_VALUE, Seed(name, fault))
            if sum(map(len, parts)) < MOST_SAMPLES[self.device.type]:
                parts.append(numbers)
        return PASSED

    def judge_suspect(self, call: PlacedCall, snapshot: torch.Tensor, name: str, sampled: torch.Tensor) -> Verdict:
        """A timed call of which these elements came before, or lay there when it began."""
        outputs = self.outputs(call, snapshot)
        if isinstance(outputs, Verdict):
            return outputs
        verdict, answer = self.values(call, outputs), self.answers(call).get(name)
        if verdict is not PASSED or not isinstance(answer, Sampled):
            return verdict
        bits = torch.where(answer.free, answer.bits(outputs[name].dtype), 0.0).expand(answer.shape).reshape(-1)
        alike = float(bits[sampled].sum()) >= UNALIKE_BITS
        return Verdict(Outcome.WRONG_VALUE, Seed(name, SeedFault.SEEN_BEFORE)) if alike else PASSED

    def conclude(self) -> Verdict:
        timed, self.timed = self.timed, {}
        for name, parts in timed.items():
            if failed := first_failure(name, joined(parts)):
                return Verdict(Outcome.WRONG_VALUE, failed)
        return PASSED

    def _by_seed(self, sampled: dict[str, Sampled], results: list[Outputs], passed: bool) -> Seed | None:
        """A verdict on outputs that do not depend on seeds as they must; None where they do."""
        a, b, c, d = results
        for name, answer in sampled.items():
            if not _alike(a[name], c[name]):
                return Seed(name, SeedFault.OTHER_NUMBERS, passed)
            if random_bits(answer, a[name].dtype) < UNALIKE_BITS:
                continue
            if _alike(a[name], b[name]):
                return Seed(name, SeedFault.NOT_ADVANCED, passed)
            if _alike(a[name], d[name]):
                return Seed(name, SeedFault.SAME_NUMBERS, passed)
        return None

    def _together(
        self, sampled: dict[str, Sampled], results: list[Outputs], order: list[str]
    ) -> Seed | Statistic | None:
        """A verdict on outputs that repeat earlier ones or have another distribution; None where neither."""
        for name in order:
            if name not in sampled:
                continue
            for outputs in results:
                if seen := self._new(name, sampled[name], outputs[name]):
                    return seen
            parts = [numbers_of(sampled[name], outputs[name], self.referee) for outputs in results]
            if failed := first_failure(name, joined(parts)):
                return failed
            if fault := next(filter(None, [self.dependence.found(name, part) for part in parts]), None):
                return Seed(name, fault)
        return None

    def _new(self, name: str, answer: Sampled, got: torch.Tensor) -> Seed | None:
        """Whether an earlier call gave the same numbers."""
        free = answer.free.expand(answer.shape).reshape(-1).nonzero()[:DIGESTED, 0]
        bits = answer.bits(got.dtype).expand(answer.shape).reshape(-1)[free]
        if float(bits.sum()) < UNALIKE_BITS:
            return None
        codes = codes_of(got.reshape(-1)[free])
        digest = hashlib.sha256(f"{name} {len(codes)}".encode() + codes.cpu().numpy().tobytes()).digest()
        if digest in self.seen:
            return Seed(name, SeedFault.SEEN_BEFORE)
        self.seen.add(digest)
        return None


def _takes_generator(call: PlacedCall) -> bool:
    """Whether a case passes a generator."""
    return any(each.type.startswith("Generator") and each.value is not None for each in call.inputs.bound.arguments)


def _seedings(generator: torch.Generator, passed: bool) -> tuple[Seeding, ...]:
    """The four of a case, with seeds that are drawn."""
    size = (4,)
    first, drawn, before, after = torch.randint(
        1 << SEED_BITS, size, generator=generator, device=generator.device
    ).tolist()
    other = first ^ ((1 + drawn % ((1 << (SEED_BITS - LOW_BITS)) - 1)) << LOW_BITS)
    if passed:
        return Seeding(before, first), Seeding(None, None), Seeding(after, first), Seeding(before, other)
    return Seeding(first, None), Seeding(None, None), Seeding(first, None), Seeding(other, None)


def _seeded(request: CallOnce, seeding: Seeding) -> CallOnce:
    if seeding.again:
        return replace(request, again=True)
    request = replace(request, seed=seeding.default)
    if seeding.own is None:
        return request
    own = {"Generator": seeding.own}
    args = [own if _is_generator(each) else each for each in request.args]
    kwargs = {name: own if _is_generator(each) else each for name, each in request.kwargs.items()}
    return replace(request, args=args, kwargs=kwargs)


def _is_generator(encoded: Any) -> bool:
    return isinstance(encoded, dict) and "Generator" in encoded


def _alike(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two outputs are equal to the last bit."""
    return torch.equal(codes_of(first), codes_of(second))


def _impossible(name: str, got: torch.Tensor, answer: Answer) -> Impossible | None:
    assert isinstance(answer, Sampled)
    wrong = ~answer.possible(got)
    if not bool(wrong.any()):
        return None
    index = tuple(wrong.nonzero()[0].tolist())
    return Impossible(name, index, f"{got[index].item():.9g}", float(wrong.double().mean()), tuple(got.shape))
