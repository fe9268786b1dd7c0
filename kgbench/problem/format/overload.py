"""Makes an ``Overload`` from its keys in a problem file."""

from __future__ import annotations

from kgbench.core.kinds import Kind
from kgbench.problem.format.body import Part
from kgbench.problem.model import Argument, Overload, Returned, Tolerance


def judged_overload(part: Part, arguments: tuple[Argument, ...]) -> Overload:
    """An overload that is judged. All its keys must be present and valid."""
    cost, needs, mutants = part.get("cost"), part.get("needs"), part.get("mutants")
    tolerance, returns = part.get("tolerance"), part.get("returns")
    return Overload(
        name=part.name,
        required=part.required,
        reason=part.values.get("reason", ""),
        signature=part.signature,
        arguments=arguments,
        variables=part.get("variables") or {},
        defaults=part.get("defaults") or {},
        dtypes=tuple(part.values["dtypes"].required),
        optional_dtypes=tuple(part.values["dtypes"].optional),
        check=tuple(part.cases.check),
        fuzz=part.fuzz(),
        bench=part.bench(),
        baseline=part.baseline(),
        fallback=part.fallback(),
        reference=part.values["reference"],
        prepare=part.get("prepare"),
        tolerance=Tolerance("exact") if tolerance is None else tolerance.made(),
        cost=None if cost is None else cost.made(),
        alias=part.get("alias"),
        equivalent={} if mutants is None else mutants.equivalent,
        opinfo=tuple(part.cases.opinfo),
        large=tuple(part.cases.large),
        returned_argument=returns if isinstance(returns, str) else "",
        returns=_returned(part),
        values_defined=part.get("values") != "undefined",
        kind=part.kind,
        canonical=part.get("canonical"),
        needs=None if needs is None else needs.made(),
        subnormals_may_be_zero=_may_flush(part),
    )


def named_overload(part: Part) -> Overload:
    """An overload that is not judged: the file gives its signature and the reason, and no cases."""
    return Overload(
        name=part.name, required=False, reason=part.values["reason"], signature=part.signature, arguments=(),
        variables={}, defaults={}, dtypes=(), optional_dtypes=(), check=(), fuzz=None, bench={}, baseline={},
        fallback=None, reference="", prepare=None, tolerance=Tolerance("exact"), cost=None, alias=None, equivalent={},
    )  # fmt: skip


def _may_flush(part: Part) -> bool:
    """Whether subnormal numbers may become zero: what the file says, else whether results are rounded."""
    said, tolerance = part.get("subnormals"), part.get("tolerance")
    if said is not None:
        return bool(said == "zero")
    return part.kind == Kind.COMPUTE and tolerance is not None and tolerance.rule != "exact"


def _returned(part: Part) -> tuple[Returned, ...]:
    returns = part.get("returns")
    return tuple(item.made() for item in returns) if isinstance(returns, list) else ()
