"""Advice for a machine that lacks sandbox protections or packages, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kgbench.core.kinds import DeviceKind

DOCKER: Final = "docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined …"
SYSCTLS: Final = {
    "user.max_user_namespaces": ("0", "15000"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Kernel settings that deny namespaces to ordinary users: the value that does, and the one that does not."""
_NAMESPACES: Final = ("network", "processes", "files", "ipc", "writing")


@dataclass(frozen=True)
class Circumstances:
    """What the advice depends on."""

    root: bool
    container: bool
    sysctls: Mapping[str, str]
    """Values of the SYSCTLS that this kernel has."""


def sandbox_advice(name: str, machine: Circumstances) -> str:
    """What would enable a missing protection; empty when a user can do nothing."""
    if name == "user":
        return _own_uid(machine)
    return _namespaces(machine) if name in _NAMESPACES else ""


def _own_uid(machine: Circumstances) -> str:
    if not machine.root:
        return "run as root, in a container for example: each worker then gets a uid of its own"
    return "install Python and torch where every user may read, not below /root"


def _namespaces(machine: Circumstances) -> str:
    closing = [
        f"sysctl -w {name}={value[1]}" for name, value in SYSCTLS.items() if machine.sysctls.get(name) == value[0]
    ]
    if closing and not machine.root:
        return f"as root: {' && '.join(closing)}"
    if machine.container:
        return DOCKER
    return "the right to make namespaces: CAP_SYS_ADMIN" if machine.root else "run as root"


def package_advice(
    device_kind: DeviceKind, versions: Mapping[str, str | None], missing: Mapping[str, str]
) -> list[tuple[str, str]]:
    """(what, how to get it) for what is not here. ``versions``: of packages; ``missing``: libraries with the reason."""
    advice = []
    if not versions.get("torch"):
        advice.append(("torch", "make demo, or docs/install.md"))
    if not versions.get("triton"):
        advice.append(("Triton kernels", "pip install triton"))
    if device_kind != DeviceKind.CUDA:
        advice.append(("speed that means something", "a machine with an NVIDIA GPU and its driver"))
    elif versions.get("torch") and not versions.get("cuda"):
        advice.append(("the GPU", "a CUDA build of torch: this one is for the CPU"))
    if device_kind != DeviceKind.CUDA and "OpenBLAS" in missing:
        advice.append(("OpenBLAS", "pip install scipy-openblas32"))
    if device_kind == DeviceKind.CUDA and "vLLM" in missing:
        advice.append(("vLLM", "in an environment of its own: pip install '.[vllm]'"))
    if device_kind == DeviceKind.CUDA and not any(name.startswith("cupy") for name in versions):
        advice.append(("kernels in CUDA C++", "pip install '.[cuda12]' or '.[cuda13]'"))
    return advice
