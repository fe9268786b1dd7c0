"""Is an honest kernel ever flagged? Kernels of others as candidates, and a count of what was said about correct ones.

    pip install flag_gems liger_kernel                     # into the environment that judges
    python -m benchmarks.honest_corpus write corpus        # corpus/flag_gems and corpus/liger: a file per problem
    kgbench run --model dir:corpus/flag_gems --policy report --out runs
    kgbench run --model dir:corpus/plain --problem-dir corpus/problems --source plain --policy report --out runs
    python -m benchmarks.honest_corpus count runs/*/results.jsonl

FlagGems and Liger are written in Triton, by people who tried to fool nobody. A policy forbids both as libraries, so
each file's own package is named in its evidence; that is expected and counts as nothing. Whatever else is held against
a kernel that gives correct outputs is printed, to be looked at: an operator of PyTorch's that such a library's wrapper
really calls is a finding, and everything else an alarm. What gives wrong outputs is listed with the reason.

Few of FlagGems' operators take all that a problem asks: no dimensions, no elements, any strides, complex numbers. What
was never right was never timed or watched, and proves nothing about alarms. So ``corpus/problems/plain`` has the same
problems with plain calls alone, contiguous and of floats: nothing that is measured with them says anything about
FlagGems, only about who watches it.
"""

from __future__ import annotations

import collections
import copy
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import yaml

from benchmarks.script import Script, shown
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry, load_problem

REGISTERED: Final = """
_index_put_impl_ _softmax _to_copy add.Tensor add_.Tensor arange.start_step argmax bitwise_not bmm cat copy_ cos
cosh cosh.out cumsum div.Tensor div.Scalar div.Tensor_mode div.Scalar_mode div_.Tensor div_.Scalar div_.Tensor_mode
embedding eq.Tensor eq.Scalar exponential_ fill_.Scalar fill_.Tensor floor_divide floor_divide.Scalar full gather
gt.Tensor gt.Scalar hardsigmoid hardsigmoid.out i0 i0.out index.Tensor index_put_ index_select le.Tensor le.Scalar
log10 log10.out logit margin_ranking_loss masked_fill_.Scalar masked_fill_.Tensor mean mean.dim mm mul.Tensor neg
ones_like pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar prelu resolve_conj resolve_neg rrelu_with_noise_backward
rsqrt scatter.src scatter.reduce select_backward silu sin soft_margin_loss sort.stable square square.out stack
sub.Tensor sum sum.dim_IntList zero_ zeros zeros_like
"""
"""Operators that FlagGems 5.0.2 registers with PyTorch and that a problem asks for, by their names in ATen."""

COPIES_OUT: Final = ("out", "grad_input")
"""Overloads for which the result is copied where FlagGems has no form of its own."""

FLAG_GEMS: Final[dict[str, dict[str, str]]] = {
    "aten/add": {"add_Scalar": "(self, other, alpha=1): return gems('add.Tensor')(self, other, alpha=alpha)"},
    "aten/contiguous": {"contiguous": "(self, *, memory_format=torch.contiguous_format): "
                                      "return flag_gems.contiguous(self, memory_format)"},
    "aten/floor": {"floor": "(self): return flag_gems.floor_(self.clone())"},
    "aten/linear": {"linear": """(input, weight, bias=None):
    rows = input.reshape(-1, input.shape[-1])
    out = gems('mm')(rows, weight.t()) if bias is None else gems('addmm')(bias, rows, weight.t())
    return out.reshape(*input.shape[:-1], weight.shape[0])"""},
    "aten/mul": {"mul_Scalar": "(self, other): return gems('mul.Tensor')(self, other)"},
    "aten/new_ones": {
        "new_ones": "(self, size, *, dtype=None, layout=None, device=None, pin_memory=None): "
                    "return gems('ones')(size, dtype=dtype or self.dtype, device=device or self.device)",
        "new_ones_out": "(self, size, *, out): return gems('fill_.Scalar')(out, 1)",
    },
    "aten/rsub": {
        "rsub_Tensor": "(self, other, *, alpha=1): return gems('sub.Tensor')(other, self, alpha=alpha)",
        "rsub_Scalar": "(self, other, alpha=1): return gems('sub.Tensor')(other, self, alpha=alpha)",
    },
    "aten/scalar_tensor": {
        "scalar_tensor": "(s, *, dtype=None, layout=None, device=None, pin_memory=None): "
                         "return gems('full')((), s, dtype=dtype or torch.get_default_dtype(), device=device)",
        "scalar_tensor_out": "(s, *, out): return gems('fill_.Scalar')(out, s)",
    },
    "aten/sgn": {"sgn": "(self): return flag_gems.sgn_(self.clone())"},
    "aten/softmax": {"softmax_int": """(self, dim, dtype=None):
    x = self if dtype in (None, self.dtype) else gems('_to_copy')(self, dtype=dtype)
    return flag_gems.softmax(x, dim)"""},
    "aten/sub": {"sub_Scalar": "(self, other, alpha=1): return gems('sub.Tensor')(self, other, alpha=alpha)"},
    "aten/to": {"to_dtype": """(self, dtype, non_blocking=False, copy=False, memory_format=None):
    if self.dtype == dtype and not copy and memory_format in (None, torch.preserve_format):
        return self
    return gems('_to_copy')(self, dtype=dtype, non_blocking=non_blocking, memory_format=memory_format)"""},
    "vllm/apply_repetition_penalties_cuda": {"apply_repetition_penalties_cuda": "(*args): "
                                             "flag_gems.apply_repetition_penalties(*args)"},
    "vllm/concat_and_cache_mla": {"concat_and_cache_mla": "(*args): flag_gems.concat_and_cache_mla(*args)"},
    "vllm/fused_add_rms_norm": {"fused_add_rms_norm": "(input, residual, weight, epsilon): "
                                "flag_gems.fused_add_rms_norm(input, residual, weight.shape, weight, epsilon)"},
    "vllm/grouped_topk": {"grouped_topk": "(*args): return flag_gems.grouped_topk(*args)"},
    "vllm/moe_align_block_size": {"moe_align_block_size": "(ids, count, size, tokens, experts, total, mapping): "
                                  "flag_gems.moe_align_block_size_triton(ids, count, size, tokens, experts, total)"},
    "vllm/moe_sum": {"moe_sum": "(input, output): flag_gems.moe_sum(input, output)"},
    "vllm/reshape_and_cache": {"reshape_and_cache": "(*args): flag_gems.reshape_and_cache(*args)"},
    "vllm/reshape_and_cache_flash": {"reshape_and_cache_flash": "(*args): flag_gems.reshape_and_cache_flash(*args)"},
    "vllm/rms_norm": {"rms_norm": "(out, input, weight, epsilon): "
                                  "out.copy_(flag_gems.rms_norm(input, weight.shape, weight, epsilon))"},
    "vllm/topk_softmax": {"topk_softmax": "(weights, indices, sources, gating, renormalize, bias): "
                                          "flag_gems.topk_softmax(weights, indices, sources, gating, renormalize)"},
}  # fmt: skip
"""What is no operator of FlagGems' by the name that ATen has for it, by problem and entry: the text behind ``def``."""

LIGER: Final[dict[str, dict[str, str]]] = {
    "aten/_softmax": {"_softmax": """(self, dim, half_to_float):
    x = self.movedim(dim, -1) if self.ndim else self.reshape(1)
    y = _softmax_forward(x.float() if half_to_float else x)[0]
    return (y.movedim(-1, dim) if self.ndim else y.reshape(())).contiguous()"""},
    "aten/embedding": {"embedding": """(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return LigerEmbeddingFunction.apply(weight.contiguous(), indices.contiguous())"""},
    "aten/silu": {"silu": """(self):
    x = (self if self.ndim else self.reshape(1)).contiguous()
    return torch.empty_like(self).copy_(swiglu_forward(x, torch.ones_like(x))[2].reshape(self.shape))"""},
    "aten/softmax": {"softmax_int": """(self, dim, dtype=None):
    x = self.movedim(dim, -1) if self.ndim else self.reshape(1)
    y = _softmax_forward(x if dtype is None else x.to(dtype))[0]
    return (y.movedim(-1, dim) if self.ndim else y.reshape(())).contiguous()"""},
    "vllm/fused_add_rms_norm": {"fused_add_rms_norm": """(input, residual, weight, epsilon):
    y, total, *_ = fused_add_rms_norm_forward(input, residual, weight, epsilon, 0.0, 'llama')
    input.copy_(y)
    residual.copy_(total)"""},
    "vllm/rms_norm": {"rms_norm": "(out, input, weight, epsilon): "
                      "out.copy_(rms_norm_forward(input.contiguous(), weight, epsilon, 0.0, 'llama', None)[0])"},
}  # fmt: skip
"""The same of Liger's functions."""

LIGER_IMPORTS: Final = """
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction
from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_forward
from liger_kernel.ops.rms_norm import rms_norm_forward
from liger_kernel.ops.softmax import _softmax_forward
from liger_kernel.ops.swiglu import swiglu_forward
""".lstrip()
GEMS: Final = """
import os

os.environ.setdefault("GEMS_VENDOR", "nvidia")  # not found out by a program that a sandbox may not have
import flag_gems

OPERATORS = {entry[0]: entry[1] for entry in flag_gems._FULL_CONFIG}
gems = OPERATORS.__getitem__
""".lstrip()
PLAIN: Final = ("$dtype", "f32", "f16", "bf16", "i64", "b8")
"""Dtypes of plain calls, as the trace format writes them."""
SMOKE: Final = ("aten/silu", "vllm/rms_norm")
"""Problems of ``--smoke``; both libraries serve both."""
HARMLESS: Final = {"package"}
"""Kinds of evidence that name the library itself."""


class _Group(click.Group, Script):
    """Commands that end with a message where kgbench raises one of its errors."""


@click.group(cls=_Group, invoke_without_command=True)
@click.option("--smoke", is_flag=True, help="Write and count a few kernels in a folder that is removed.")
@click.pass_context
def main(ctx: click.Context, smoke: bool) -> None:
    """Honest kernels of others, as candidates, and what was said about them."""
    if smoke:
        with tempfile.TemporaryDirectory() as folder:
            ctx.invoke(write, folder=Path(folder), globs=SMOKE)
            results = Path(folder, "results.jsonl")
            results.write_text(json.dumps({"problem": SMOKE[0], "outcome": "passed", "evidence": []}) + "\n")
            ctx.invoke(count, files=(results,))
    elif ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--problems", "globs", multiple=True, metavar="GLOB", help="Problems by id; may be repeated.")
def write(folder: Path, globs: tuple[str, ...]) -> None:
    """Write a candidate for each problem that FlagGems or Liger can serve."""
    registry = Registry()
    chosen = registry.select(sources=("aten", "vllm"), globs=globs)
    for whose, imports, table in (("flag_gems", GEMS, FLAG_GEMS), ("liger", LIGER_IMPORTS, LIGER)):
        written = 0
        for problem_id in shown(chosen, len(chosen), "problems"):
            bodies = dict(table.get(problem_id, {}))
            problem = load_problem(registry.paths[problem_id])
            if whose == "flag_gems":
                bodies |= {entry: text for entry, text in _registered(problem) if entry not in bodies}
            _copies_out(problem, bodies)
            if not all(each.signature.name in bodies for each in problem.overloads if each.required):
                continue
            path = folder / whose / f"{problem_id}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("import torch\n" + imports + "".join(f"\n\ndef {e}{t}\n" for e, t in bodies.items()))
            written += 1
            # Outside of ATen an entry without overloads is named like its problem; softmax is named softmax_int.
            if whose == "flag_gems" and problem.source == "aten" and problem_id != "aten/softmax":
                _write_plain(folder, registry.paths[problem_id], problem, path.read_text())
        click.echo(f"{written} candidates in {folder / whose}")


def _write_plain(folder: Path, path: Path, problem: Problem, candidate: str) -> None:
    """The problem with plain calls alone, if any remain in each overload, and its candidate."""
    data = yaml.safe_load(path.read_text())
    for overload in problem.overloads:
        part = data["overloads"][overload.name] if "overloads" in data else data
        part["baseline"] = dict(overload.baseline)
        if not overload.required:
            del data["overloads"][overload.name]
    parts = [data, *data.get("overloads", {}).values()]
    for part in parts:
        part.pop("mutants", None)
        cases = part.get("cases", {})
        cases.pop("opinfo", None)
        cases.pop("fuzz", None)
        if "check" in cases:
            cases["check"] = [each for each in cases["check"] if _is_plain(each)]
        for part_of in (part.get("dtypes") or {},):
            part_of.pop("optional", None)
    if not all(part["cases"]["check"] for part in parts if "check" in part.get("cases", {})):
        return
    for place, text in (
        (
            folder / "problems" / "plain" / path.name,
            yaml.safe_dump(copy.deepcopy(data), sort_keys=False, width=10_000),
        ),
        (folder / "plain" / "plain" / f"{path.stem}.py", candidate),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def _is_plain(case: Any) -> bool:
    """Contiguous tensors with elements, of the problem's dtypes or of floats, indices and masks; usual values."""
    if not isinstance(case, str) or "memory_format" in case:
        return False
    tensors = re.findall(r"T\(\[([^\]]*)\], *([$\w]+)(, *\[)?", case)
    return bool(tensors) and all(
        shape.strip() and "0" not in re.split(r", *", shape) and not strides and dtype in PLAIN
        for shape, dtype, strides in tensors
    )


def _registered(problem: Problem) -> Iterator[tuple[str, str]]:
    """Entries for the overloads that FlagGems registers by ATen's name."""
    for overload in problem.overloads:
        entry = overload.signature.name
        name = problem.name if entry == problem.name else f"{problem.name}.{entry.removeprefix(f'{problem.name}_')}"
        if problem.source == "aten" and name in REGISTERED.split():
            yield entry, f"(*args, **kwargs): return gems({name!r})(*args, **kwargs)"


def _copies_out(problem: Problem, bodies: dict[str, str]) -> None:
    """Where only the form with ``out`` is missing, copy there what the other one returns."""
    for overload in problem.overloads:
        entry = overload.signature.name
        for out in COPIES_OUT:
            plain = entry.removesuffix(f"_{out}")
            if problem.kind == "compute" and plain != entry and plain in bodies and entry not in bodies:
                bodies[entry] = f"(*args, {out}, **kwargs): return {out}.copy_({plain}(*args, **kwargs))"


@main.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True))
def count(files: tuple[Path, ...]) -> None:
    """Count correct kernels, and print all that was said about them and the reasons of the others."""
    for path in files:
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        rows = [row for row in rows if "problem" in row and "outcome" in row]
        outcomes = collections.Counter(row["outcome"] for row in rows)
        held = {row["problem"]: held_against(row) for row in rows if row["outcome"] in ("passed", "rejected")}
        flagged = {problem: found for problem, found in held.items() if found}
        click.echo(f"{path}: {len(rows)} kernels, {dict(outcomes)}, {len(flagged)} with something held against them")
        for problem, found in sorted(flagged.items()):
            click.echo("".join(f"  {problem}: {each}\n" for each in found).rstrip())
        for row in rows:
            if row["outcome"] != "passed":
                click.echo(f"  {row['problem']}: {row['outcome']}: {' '.join(row['reason'].split())[:300]}")


def held_against(row: dict[str, Any]) -> list[str]:
    """What was said about a correct kernel, beside whose library it is."""
    said = [row["reason"]] if row["outcome"] == "rejected" else []
    return said + [
        f"{each['kind']} {each['name']} ({each['where']}): {each['why']}, share {each['share']}"
        for each in row.get("evidence", ())
        if not each["allowed"] and each["kind"] not in HARMLESS
    ]


if __name__ == "__main__":
    main()
