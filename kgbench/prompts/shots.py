"""Which shipped kernels stand before a question as examples: some of them, never one that gives the answer away.

An example's category shares no word with that of the problem asked: what is a variant of it (``cublasSgemm_v2`` of
``cublasDgemm``, ``add_`` of ``add``, a norm with quantization of the norm) stands under the same words. Of those that
are left, the same source comes first, then the same kind, then the shorter text, which costs less.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.core.errors import UsageError
from kgbench.core.paths import examples_dir, problems_dir
from kgbench.policy.rules import family
from kgbench.problem.model import Problem
from kgbench.problem.registry import load_problem

_FOLDERS: Final[dict[str, tuple[str, ...]]] = {
    "triton": ("triton",),
    "cuda": ("cupy", "load_inline"),
    "torch-cpp": ("load_inline",),
    "any": ("triton",),
}
"""Folders of ``kgbench/examples`` by language of a prompt; of a problem in several, the first one's kernel is taken."""
SHOWN: Final = (
    "aten/add", "aten/cumsum", "aten/exponential_", "aten/gather", "aten/huber_loss", "aten/im2col", "aten/mm",
    "aten/silu", "aten/softmax", "aten/sort", "aten/sum", "aten/t", "cublas/cublasCcopy_v2", "cublas/cublasCsymv_v2",
    "cublas/cublasDasum_v2", "cublas/cublasDgemv_v2", "cublas/cublasSaxpy_v2", "cublas/cublasSdgmm",
    "cublas/cublasSdot_v2", "cublas/cublasSgeam", "cublas/cublasSgemmBatched_64", "cublas/cublasSgemmStridedBatched",
    "cublas/cublasSgemm_v2", "cublas/cublasSger_v2", "cublas/cublasSscal_v2", "cublas/cublasSsyrk_v2",
    "cublas/cublasStbmv_v2", "cublas/cublasStrsm_v2", "cublas/cublasStrsv_v2", "cublas/cublasZgemmStridedBatched",
    "cublas/cublasZswap_v2", "vllm/apply_repetition_penalties_cuda", "vllm/awq_gemm", "vllm/cp_gather_cache",
    "vllm/fused_add_rms_norm", "vllm/gptq_shuffle", "vllm/merge_attn_states", "vllm/moe_sum", "vllm/paged_attention_v1",
    "vllm/reshape_and_cache", "vllm/rms_norm", "vllm/rotary_embedding", "vllm/scaled_int8_quant", "vllm/topk_softmax",
)  # fmt: skip
"""Ids of the problems whose kernels may stand in a prompt. A kernel that ships for another problem stands in none, so
that a question stays the same one from version to version."""


@dataclass(frozen=True)
class Shot:
    problem: Problem
    code: str


def examples_for(problem: Problem, language: str, count: int) -> Sequence[Shot]:
    """So many examples, the same ones each time. UsageError where there are fewer."""
    if not count:
        return ()
    fitting = [shot for shot in _shots(language) if not _akin(shot.problem, problem)]
    if not 0 <= count <= len(fitting):
        raise UsageError(
            "KGB521",
            f"{count} examples before {problem.id} in {language}: expected 0 to {len(fitting)}, as many as there "
            "are for other problems that are not like it",
        )
    return sorted(fitting, key=lambda shot: _rank(shot, problem))[:count]


def _rank(shot: Shot, problem: Problem) -> tuple[bool, bool, int, str]:
    other = shot.problem
    return other.source != problem.source, other.kind != problem.kind, len(shot.code), other.id


def _akin(one: Problem, other: Problem) -> bool:
    """Whether a kernel for one would help with the other."""
    return bool(_words(one) & _words(other)) or family(one.name) == family(other.name)


def _words(problem: Problem) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", problem.category))


@functools.cache
def _shots(language: str) -> tuple[Shot, ...]:
    """The examples in a language, one for each problem."""
    found: dict[str, Shot] = {}
    for name, folder in itertools.product(SHOWN, _FOLDERS[language]):
        path = examples_dir(folder) / f"{name}.py"
        if name not in found and path.is_file():
            found[name] = Shot(load_problem(problems_dir() / f"{name}.yaml"), path.read_text(encoding="utf-8"))
    return tuple(found.values())
