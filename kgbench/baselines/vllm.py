"""vLLM's compiled operators, through ``torch.ops``, without importing any of vLLM's Python.

The wheel's shared libraries are found by ``importlib.util.find_spec("vllm")`` and loaded; the operators are then in
``torch.ops._C`` and its siblings. The table in ``vllm_operators.py`` has each problem's operator and its declaration,
so that a version with another signature is unavailable and not called wrongly.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch

from kgbench.baselines.registry import Baseline, Unavailable
from kgbench.baselines.vllm_operators import Operator, Registration, operator_of
from kgbench.core.details.sentences import words_of
from kgbench.core.kinds import DeviceKind
from kgbench.problem import blas
from kgbench.problem.model import Needs

INSTALL_HINT: Final = "install the vllm wheel that was built for this torch (pip install vllm)"


def load(name: str, device_kind: DeviceKind) -> Baseline:
    """The operator of the problem ``vllm/<name>`` on the current CUDA device.

    Raises ``Unavailable`` without a GPU, without vLLM or with a vLLM that declares it differently, ``ValueError`` for a
    name without a row.
    """
    operator, short = operator_of(name), blas.split(name)[0]
    if device_kind != DeviceKind.CUDA or not torch.cuda.is_available():
        raise Unavailable("vLLM's compiled operators need an NVIDIA GPU")
    failures = _load_libraries()
    version = _version()
    if operator.capability is not None:
        _check_capability(operator.capability, f"{version}'s {short}")
    schemas, _ = registered_schemas(operator)
    found, reason = choose(short, operator, schemas, version)
    if found is None:
        tried = "; ".join(f"{file} did not load: {why}" for file, why in failures.items())
        raise Unavailable(f"{reason} ({tried}; {INSTALL_HINT})" if tried else reason)
    overload = registered(found.name)
    assert overload is not None
    call = found.adapter(overload) if found.adapter else overload
    return Baseline(call=call, library=version, notes={"operator": found.name})


def registered_schemas(operator: Operator) -> tuple[dict[str, str], str]:
    """The schemas, by registered name, of an operator's registrations in the installed vLLM, and vLLM's version.

    Needs no GPU. Raises ``Unavailable`` without vLLM.
    """
    _load_libraries()
    found = {each.name: registered(each.name) for each in operator.registrations}
    return {name: str(overload._schema) for name, overload in found.items() if overload is not None}, _version()


def choose(name: str, operator: Operator, schemas: Mapping[str, str], version: str) -> tuple[Registration | None, str]:
    """The registration to call, or why there is none. ``schemas``: of existing registrations, by registered name."""
    if not schemas:
        return None, f"{version} has no {name}"
    differences = []
    for each in operator.registrations:
        if each.name in schemas:
            difference = schema_difference(schemas[each.name], each.parameters)
            if not difference:
                return each, ""
            differences.append(f"{version} declares {each.name} otherwise: {difference}")
    return None, f"{differences[0]}; install vllm 0.20.2"


def _check_capability(built_for: tuple[int, int], what: str) -> None:
    """Raises Unavailable on a GPU for which the wheel has no code."""
    major, minor = torch.cuda.get_device_capability()
    if lacking := Needs(*built_for).lacking(10 * major + minor):
        raise Unavailable(f"{what} {words_of(lacking)}")


def schema_difference(schema: str, parameters: str) -> str:
    """Where a registered schema's parameters differ from ``parameters``; empty if a call with ``parameters`` works.

    ``schema``: as PyTorch prints it, ``_C::rms_norm(Tensor($0! -> ) result, …) -> ()``.
    """
    found = split_parameters(schema)
    wanted = [parameter.strip() for parameter in parameters.split(",")]
    for position, want in enumerate(wanted):
        have = found[position] if position < len(found) else "nothing"
        if have.partition("=")[0] != want:
            return f"parameter {position + 1} is '{have}', expected '{want}'"
    missing = [parameter for parameter in found[len(wanted) :] if "=" not in parameter]
    return f"it also needs '{missing[0]}'" if missing else ""


def split_parameters(schema: str) -> list[str]:
    """``["Tensor result", "Tensor input", …]`` of a schema, without alias marks such as ``($0! -> )``."""
    text = re.sub(r"\((?:\$\d+|[a-z])!?(?: -> [^)]*)?\)", "", schema)
    depth, parameters = 1, [""]
    for character in text[text.index("(") + 1 :]:
        depth += (character in "([") - (character in ")]")
        if depth == 0:
            break
        if character == "," and depth == 1:
            parameters.append("")
        else:
            parameters[-1] += character
    return [parameter.strip() for parameter in parameters if parameter.strip() not in ("", "*")]


@functools.cache
def _load_libraries() -> dict[str, str]:
    """Load every compiled library of the installed vLLM; file name → reason for those that did not load."""
    spec = importlib.util.find_spec("vllm")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.so"))
    if not files:
        raise Unavailable(f"vLLM is {'without compiled libraries' if spec else 'not installed'}; {INSTALL_HINT}")
    failures = {}
    for path in files:
        try:
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        except OSError as error:
            failures[path.name] = str(error).splitlines()[0][:200]
    return failures


def loaded_version() -> str:
    """Name and version of the installed vLLM, whose libraries are loaded. Raises ``Unavailable`` without one."""
    _load_libraries()
    return _version()


def registered(name: str) -> torch._ops.OpOverload | None:
    """The operator ``namespace::name`` of a loaded library; None without one."""
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return None if packet is None else packet.default


def _version() -> str:
    try:
        return f"vLLM {importlib.metadata.version('vllm')}"
    except importlib.metadata.PackageNotFoundError:
        return "vLLM of unknown version"
