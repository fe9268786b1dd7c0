"""The problems that a service judges, each read once, and the public facts about them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kgbench.core.errors import UsageError
from kgbench.llm.conversation import Prompt
from kgbench.problem.model import Problem
from kgbench.problem.problem_cache import ProblemCache
from kgbench.problem.registry import load_summary
from kgbench.prompts.facts import torch_facts
from kgbench.prompts.render import PromptOptions, prompt_for
from kgbench.service.errors import ServiceError


class Problems:
    """Safe from any thread."""

    def __init__(self, problem_dirs: Sequence[Path] = ()) -> None:
        """Raises UsageError for a folder that cannot be one of problems."""
        self._cache = ProblemCache(problem_dirs)
        self._lock = threading.Lock()
        self._summaries: list[dict[str, str]] = []
        self._prompts: dict[tuple[str, str], Prompt] = {}

    def resolve(self, name: str) -> str:
        """The id that a name means. Raises ServiceError."""
        try:
            return self._cache.registry.resolve(name).id
        except UsageError as error:
            raise ServiceError(error.number, error.text, 404) from None

    def load(self, name: str) -> Problem:
        """The problem of an id. Raises ProblemFileError."""
        return self._cache.load(name)

    def all(self) -> list[dict[str, str]]:
        """Id, source, kind, category and summary of each."""
        with self._lock:
            if not self._summaries:
                self._summaries = [
                    {"id": each.id, "source": each.source, "kind": each.kind, "category": each.category,
                     "summary": each.summary}
                    for each in map(load_summary, self._cache.registry.paths.values())
                ]  # fmt: skip
            return list(self._summaries)

    def one(self, name: str) -> dict[str, Any]:
        """The public facts about a problem, above all the functions to define. Raises ServiceError."""
        problem = self.load(self.resolve(name))
        entries = sorted({each.signature.text for each in problem.overloads if each.required})
        return {
            "id": problem.id,
            "source": problem.source,
            "kind": str(problem.kind),
            "category": problem.category,
            "summary": problem.summary,
            "sha256": problem.sha256,
            "entries": entries,
        }

    def prompt(self, name: str, language: str = "triton") -> Prompt:
        """What a model is asked. Raises ServiceError."""
        problem = self.load(self.resolve(name))
        key = (problem.id, language)
        if key not in self._prompts:
            try:
                prompt = prompt_for(problem, PromptOptions(language), torch_facts([problem]))
            except UsageError as error:
                raise ServiceError(error.number, error.text, 404) from None
            self._prompts[key] = prompt
        return self._prompts[key]
