"""The kernels that ship with kgbench: ``kgbench/examples/<language>/<source>/<name>.py``, honest and readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.core.paths import example_languages, examples_dir
from kgbench.models.provider import ModelError, Provider
from kgbench.models.providers.dir import FolderProvider

SUMMARY: Final = "examples        kernels that ship with kgbench, in Triton; or examples:cupy, examples:load_inline"
DEFAULT: Final = "triton"


def provider(argument: str | None) -> Provider:
    """Raises ModelError with the languages there are."""
    language = DEFAULT if argument is None else argument
    if language not in example_languages():
        known = ", ".join(f"examples:{each}" for each in example_languages())
        raise ModelError(
            "KGB508", f"--model examples:{language}: there are no examples in {language!r}. There is: {known}"
        )
    if language == DEFAULT:
        return FolderProvider("examples", examples_dir(), talks=False)
    return FewExamples(f"examples:{language}", examples_dir(language), talks=False)


@dataclass
class FewExamples(FolderProvider):
    """Examples that show a language for some problems only: the others are not asked for."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        return [each for each in super().narrow(ids, chosen=chosen) if self._files(each)]
