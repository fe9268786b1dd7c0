"""The kernels that ship with kgbench: ``kgbench/examples/<language>/<source>/<name>.py``, honest and readable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.core.paths import example_languages, examples_dir
from kgbench.models.provider import ModelError, Provider
from kgbench.models.providers.dir import FolderProvider

FORM: Final = "examples"
SUMMARY: Final = "kernels that ship with kgbench, in Triton; or examples:cupy, examples:load_inline"
DEFAULT: Final = "triton"
"""Language of the examples where none is named."""
DEMO: Final = (
    "aten/softmax", "aten/add", "aten/gather", "aten/mm", "aten/silu", "aten/t",
    "vllm/rms_norm", "vllm/cp_gather_cache", "vllm/fused_add_rms_norm", "vllm/merge_attn_states",
    "vllm/reshape_and_cache", "vllm/rotary_embedding",
    "cublas/cublasSgemm_v2", "cublas/cublasCcopy_v2", "cublas/cublasSdot_v2", "cublas/cublasSgeam",
    "cublas/cublasSscal_v2", "cublas/cublasSsyrk_v2",
)  # fmt: skip
"""Ids of the examples that ``kgbench demo`` judges: six of each source, among those that take the least time in
Triton's interpreter; together about 50 s of one core, starts included."""


def provider(argument: str | None, alias: str | None = None) -> Provider:
    """Raises ModelError with the languages there are."""
    language = DEFAULT if argument is None else argument
    if language not in example_languages():
        known = ", ".join(f"examples:{each}" for each in example_languages())
        raise ModelError(
            "KGB508", f"--model examples:{language}: there are no examples in {language!r}. There is: {known}"
        )
    name = "examples" if language == DEFAULT else f"examples:{language}"
    return ExamplesProvider(alias or name, examples_dir(language), talks=False)


@dataclass
class ExamplesProvider(FolderProvider):
    """Examples for some problems: without ``--problems`` only those are selected."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        selected = super().narrow(ids, chosen=chosen)
        return selected if chosen else [each for each in selected if self._files(each)]
