"""A problem as a prompt: the templates filled with what ``words.py`` says of the problem."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from kgbench.core.errors import UsageError
from kgbench.core.names import did_you_mean
from kgbench.llm.conversation import Prompt, Turn
from kgbench.policy.tables import KIND_WORDS
from kgbench.problem.cases import CALL_GB, MOST_ELEMENTS
from kgbench.problem.model import SOURCES, Problem, module_of
from kgbench.prompts.facts import TorchFacts
from kgbench.prompts.gpus import Gpu
from kgbench.prompts.shots import examples_for
from kgbench.prompts.words import problem_words

if TYPE_CHECKING:
    from jinja2 import Environment

LANGUAGES: Final[dict[str, str]] = {
    "triton": "Triton",
    "cuda": "CUDA C++",
    "torch-cpp": "C++ and CUDA as a PyTorch extension",
    "any": "whatever serves best",
}
"""What a kernel may be asked for in, with its name in a sentence."""


@dataclass(frozen=True)
class PromptOptions:
    """The options of a prompt. The defaults are those of ``kgbench run``."""

    language: str = "triton"
    """One of LANGUAGES."""
    shots: int = 0
    """Examples before the question: other problems, with kernels that ship with kgbench."""
    bench_shapes: bool = True
    """Whether the calls that are timed are told."""
    target: Gpu | None = None
    """The GPU that the kernel is for; None is any."""
    agent: bool = False
    """The prompt is for a program with a working folder, not for a single reply."""

    @property
    def language_words(self) -> str:
        return LANGUAGES[self.language]


def prompt_for(problem: Problem, options: PromptOptions, facts: TorchFacts | None = None) -> Prompt:
    """What is sent for a problem. The same arguments give the same text.

    ``facts``: what torch says of ATen's operators; without them the prompt has the problem file's words alone. Raises
    UsageError for a language that there is none of, or more shots than there are examples.
    """
    if options.language not in LANGUAGES:
        words = f"there is no language '{options.language}'; {did_you_mean(options.language, LANGUAGES)}"
        raise UsageError("KGB520", words)
    if options.shots and module_of(problem) is not None:
        raise UsageError("KGB525", f"--shots: {problem.id} is a module, and the examples are functions; leave it out")
    turns = [_question(problem, options, facts)]
    for shot in reversed(examples_for(problem, options.language, options.shots)):
        # Asked as a single reply, since an example has no working folder.
        asked = _question(shot.problem, replace(options, agent=False), facts)
        turns[:0] = [asked, Turn("assistant", f"```python\n{shot.code.strip()}\n```")]
    if module_of(problem) is not None:
        system = _filled("module.j2", {"options": options, "may_call": KIND_WORDS[problem.kind]})
        return Prompt(system, tuple(turns))
    system = _filled(
        _template(problem.source), {"options": options, "call_gb": CALL_GB, "most_elements": f"{MOST_ELEMENTS:,}"}
    )
    return Prompt(system, tuple(turns))


def _question(problem: Problem, options: PromptOptions, facts: TorchFacts | None) -> Turn:
    known = facts.operators.get(problem.id) if facts else None
    said = problem_words(problem, bench_shapes=options.bench_shapes, target=options.target)
    if (module := module_of(problem)) is not None:
        return Turn("user", _filled("module_problem.j2", {"problem": said, "text": module.text.strip()}))
    values = {"problem": said, "facts": known, "torch": facts.version if facts else "", "options": options}
    return Turn("user", _filled("problem.j2", values))


def _template(source: str) -> str:
    """A user's own source has no conventions that are known, only the shared ones."""
    return f"{source}.j2" if source in SOURCES else "shared.j2"


def _filled(template: str, values: dict[str, Any]) -> str:
    return _environment().get_template(template).render(values).strip() + "\n"


@functools.cache
def _environment() -> Environment:
    """Text, not HTML, so that nothing is escaped; a name that no value has is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("kgbench.prompts", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
