"""The provider `acme`: a kernel for each of Acme's problems, right or, as `acme:wrong`, not."""

from collections.abc import Iterable, Sequence

from kgbench.models.provider import Candidate, ModelError, Provider
from kgbench.problem.model import Problem

FORM = "acme"
SUMMARY = "Acme's own kernels; or acme:wrong"
FACTORS = {"acme/double": 2, "acme/triple": 3}


def provider(argument: str | None, alias: str | None = None) -> Provider:
    if argument not in (None, "wrong"):
        raise ModelError("KGB503", f"--model acme:{argument}: there is acme and acme:wrong")
    return Kernels(alias or ("acme" if argument is None else "acme:wrong"), wrong=argument is not None)


class Kernels:
    timed = True
    notes: Sequence[str] = ()

    def __init__(self, model: str, wrong: bool) -> None:
        self.model, self.wrong = model, wrong

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        return [each for each in ids if each in FACTORS]

    def samples_of(self, problem_id: str) -> int:
        return 1

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        factor = FACTORS[problem.id] + self.wrong
        text = f"def {problem.name}(self):\n    return {factor} * self\n"
        return (Candidate(problem.id, self.model, source_text=text),)
