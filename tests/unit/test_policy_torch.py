"""The policy's table against PyTorch's own registry: what a schema, a tag or a name says of an operator."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.policy.rules import family, group_of  # noqa: E402
from kgbench.policy.tables import GROUPS, METHODS, NAMESPACES, PLAIN  # noqa: E402

pytestmark = pytest.mark.torch

SCHEMAS: dict[str, list] = {}
for _schema in torch._C._jit_get_all_schemas():
    if _schema.name.startswith("aten::"):
        SCHEMAS.setdefault(_schema.name.removeprefix("aten::"), []).append(_schema)

OUTSIDE = {
    "autograd and autocast; candidates run without either": (
        "_autocast_to_full_precision", "_autocast_to_reduced_precision", "_fw_primal", "_grad_sum_to_size",
        "_make_dual", "_test_autograd_multiple_dispatch_view", "_unpack_dual",
    ),
    "sparse and nested tensors; no problem has one": (
        "_indices", "_ncf_unsqueeze", "_ncf_view", "_nested_get_values", "_nested_view_from_buffer",
        "_nested_view_from_jagged", "_sparse_broadcast_to", "_values", "ccol_indices", "coalesce", "col_indices",
        "crow_indices", "indices", "row_indices", "values",
    ),
    "TorchScript's own lists, dictionaries and futures": (
        "__getitem__", "_unwrap_optional", "get", "keys", "local_value", "pop", "setdefault", "to_here",
    ),
}  # fmt: skip
"""Operators that return a view and are in no group, with the reason."""

POINTWISE_IN_GROUPS = {"clone", "positive"}
"""Tagged pointwise by PyTorch, and yet they only move values."""


def tagged(tag: object) -> set[str]:
    """Names of the operators with a tag."""
    names = set()
    for name in SCHEMAS:
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None and any(tag in getattr(packet, each).tags for each in packet.overloads()):
            names.add(name)
    return names


def returns_a_view(schema) -> bool:
    return any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns)


def test_every_name_is_an_operator_of_this_torch() -> None:
    named = {name for names in (*GROUPS.values(), *OUTSIDE.values()) for name in names}
    assert named - set(SCHEMAS) == set()


@pytest.mark.in_turn("kgbench/policy/", turns=3)
def test_no_namespace_of_pytorchs_is_taken_for_a_candidates() -> None:
    code = "import torch; print(*torch._C._dispatch_get_all_op_names())"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    harmless = {"aten", "profiler", "export", "debug_mode_ops"}
    assert {name.partition("::")[0] for name in names} - set(NAMESPACES) <= harmless


def test_every_operator_that_returns_a_view_is_placed() -> None:
    placed = {name for group in ("views", "lazy bits", "copies") for name in GROUPS[group]}
    placed |= {name for names in OUTSIDE.values() for name in names}
    views = {name for name, schemas in SCHEMAS.items() if any(map(returns_a_view, schemas))}
    assert views - placed == set()
    assert tagged(torch.Tag.inplace_view) - set(GROUPS["views"]) - set(GROUPS["allocation"]) == set()


def test_copying_views_are_copies() -> None:
    outside = {family(name) for names in OUTSIDE.values() for name in names}
    copying = {name for name in tagged(torch.Tag.view_copy) if name.endswith("_copy")}
    placed = {name for name in copying if group_of(name) in ("copies", "lazy bits") or family(name) in outside}
    assert copying - placed == set()


def test_what_is_allowed_computes_nothing() -> None:
    named = {name for names in GROUPS.values() for name in names}
    assert tagged(torch.Tag.reduction) & named == set()
    assert tagged(torch.Tag.pointwise) & named <= POINTWISE_IN_GROUPS
    assert tagged(torch.Tag.nondeterministic_seeded) & named == set()


def test_metadata_and_host_return_no_tensor_and_memory_is_made_of_sizes() -> None:
    for name in (*GROUPS["metadata"], *GROUPS["host"]):
        for schema in SCHEMAS[name]:
            assert not any("Tensor" in str(each.type) for each in schema.returns), name
    for name in (*GROUPS["allocation"], *GROUPS["fills"]):
        for schema in SCHEMAS[name]:
            tensors = [each for each in schema.arguments if "Tensor" in str(each.type) and not each.is_out]
            assert len(tensors) <= 2, name


def test_methods_and_functions_are_what_the_table_takes_them_for() -> None:
    assert {name for name in METHODS if not hasattr(torch.Tensor, name)} == set()
    assert {name for name in METHODS if name not in SCHEMAS} == set()
    assert {name for name in PLAIN if not hasattr(torch, name)} == set()
    operators = {name for name in PLAIN for schema in SCHEMAS.get(name, ()) if "Tensor" in str(schema)}
    assert operators == set()
