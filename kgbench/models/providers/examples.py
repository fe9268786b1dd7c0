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
    name = "examples" if language == DEFAULT else f"examples:{language}"
    return ExamplesProvider(name, examples_dir(language), talks=False)


@dataclass
class ExamplesProvider(FolderProvider):
    """Examples for some problems: without ``--problems`` only those are selected."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        selected = super().narrow(ids, chosen=chosen)
        return selected if chosen else [each for each in selected if self._files(each)]
