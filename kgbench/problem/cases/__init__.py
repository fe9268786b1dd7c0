"""Expands a problem's templates to cases, and binds a case to the exact arguments of one call.

The results are sizes, strides and Python values, no tensors. ``kgbench/harness/verdict/draws.py`` draws the values.
"""

from kgbench.problem.cases.bind import bind
from kgbench.problem.cases.calls import parsed_call
from kgbench.problem.cases.concrete import (
    BoundArgument,
    BoundCase,
    BoundDraw,
    Case,
    TensorSpec,
    case_bytes,
    sampled_rows,
)
from kgbench.problem.cases.expand import (
    bench_cases,
    choose_preset,
    expand_cases,
    expand_for_all_devices,
    judged_dtypes,
)
from kgbench.problem.cases.layout import last_place, may_overlap
from kgbench.problem.cases.most import CALL_GB, MOST_ELEMENTS, reach, too_large
from kgbench.problem.cases.other_values import OtherValues
from kgbench.problem.cases.sizes import ALWAYS, MOST_ROWS, Sizes, sizes_of

__all__ = (
    "ALWAYS", "CALL_GB", "MOST_ELEMENTS", "MOST_ROWS", "BoundArgument", "BoundCase", "BoundDraw", "Case", "OtherValues",
    "Sizes", "TensorSpec", "bench_cases", "bind", "case_bytes", "choose_preset", "expand_cases",
    "expand_for_all_devices", "judged_dtypes", "last_place", "may_overlap", "parsed_call", "reach", "sampled_rows",
    "sizes_of", "too_large",
)  # fmt: skip
