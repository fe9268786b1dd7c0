"""NVIDIA's GPUs: torch.cuda for what torch wraps, the driver for shared memory and for streams that wait."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

import torch

from kgbench.harness.wire.gpu import Gpu, T

LARGE_BYTES: Final = 1 << 30
"""Bytes from which a mapping is reached with offsets that do not fit into 32 bits."""
EMPTY_BYTES: Final = 1 << 36
"""Addresses without memory on either side of a large mapping: 2³² elements of 16 bytes.

A kernel whose offsets wrap around at 2³¹ faults there. Without them the driver places such a mapping beside memory of
its own: on H200s with driver 580 a kernel that wrote over it left a device on which no process could begin.
"""


class Cuda(Gpu):
    """The driver is imported by its first call: it is not installed where there is no GPU."""

    def name(self) -> str:
        return torch.cuda.get_device_name(0)

    def capability(self) -> int:
        major, minor = torch.cuda.get_device_capability(0)
        return 10 * major + minor

    def properties(self) -> dict[str, Any]:
        told = torch.cuda.get_device_properties(0)
        found = {name: getattr(told, name) for name in dir(told) if not name.startswith("_")}
        return {name: value for name, value in found.items() if isinstance(value, (int, float, str))}

    def memory_bytes(self, device: torch.device | None = None) -> int:
        return int(torch.cuda.get_device_properties(0 if device is None else device).total_memory)

    def l2_bytes(self, device: torch.device) -> int:
        return int(torch.cuda.get_device_properties(device).L2_cache_size)

    def version(self) -> str | None:
        return torch.version.cuda

    def is_touched(self) -> bool:
        return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]

    def wait(self, device: torch.device | None = None) -> None:
        torch.cuda.synchronize(device)

    def stream(self) -> int:
        return int(torch.cuda.current_stream().cuda_stream)

    def another_stream(self) -> AbstractContextManager[Any]:
        return torch.cuda.stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]

    def idle(self, cycles: int) -> None:
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]

    def events(self) -> tuple[Any, Any]:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        return begin, end

    def recorded(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = work()
        return graph.replay, result

    def stream_wait(self, stream: int, address: int, value: int) -> None:
        driver = _driver()
        flag = driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
        _check(driver.cuStreamWaitValue32(stream, address, value, flag))

    def stream_write(self, stream: int, address: int, value: int) -> None:
        driver = _driver()
        flag = driver.CUstreamWriteValue_flags.CU_STREAM_WRITE_VALUE_DEFAULT
        _check(driver.cuStreamWriteValue32(stream, address, value, flag))

    def free_bytes(self) -> int:
        return int(torch.cuda.mem_get_info()[0])

    def cached_bytes(self) -> int:
        return torch.cuda.memory_reserved()

    def release_cached(self) -> None:
        torch.cuda.empty_cache()

    def create(self, nbytes: int, device: int) -> tuple[int, int, Any]:
        """Shared by POSIX descriptor: exact size, offset 0, any uid."""
        driver = _driver()
        prop = driver.CUmemAllocationProp()
        prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        prop.location.id = device
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        prop.requestedHandleTypes = kind
        flag = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        granularity = int(_check(driver.cuMemGetAllocationGranularity(prop, flag)))
        nbytes = -(-max(nbytes, 1) // granularity) * granularity
        handle = _check(driver.cuMemCreate(nbytes, prop, 0))
        fd = int(_check(driver.cuMemExportToShareableHandle(handle, kind, 0)))
        return fd, nbytes, handle

    def opened(self, fd: int) -> Any:
        driver = _driver()
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        return _check(driver.cuMemImportFromShareableHandle(fd, kind))

    def map(self, handle: Any, nbytes: int, device: int) -> int:
        driver, empty = _driver(), _empty_bytes(nbytes)
        address = int(_check(driver.cuMemAddressReserve(nbytes + 2 * empty, 0, 0, 0))) + empty
        _check(driver.cuMemMap(address, nbytes, 0, handle, 0))
        access = driver.CUmemAccessDesc()
        access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = device
        access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        _check(driver.cuMemSetAccess(address, nbytes, [access], 1))
        # The mapping keeps the allocation alive; the handle is no longer needed.
        _check(driver.cuMemRelease(handle))
        return address

    def unmap(self, address: int, nbytes: int) -> None:
        driver, empty = _driver(), _empty_bytes(nbytes)
        _check(driver.cuMemUnmap(address, nbytes))
        _check(driver.cuMemAddressFree(address - empty, nbytes + 2 * empty))

    def bytes_at(self, address: int, nbytes: int, device: int) -> torch.Tensor:
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8, device=f"cuda:{device}")
        return torch.as_tensor(_DevicePointer(address, nbytes), device=f"cuda:{device}")

    def register(self, address: int, nbytes: int) -> int:
        driver = _driver()
        _check(driver.cuMemHostRegister(address, nbytes, driver.CU_MEMHOSTREGISTER_DEVICEMAP))
        return int(_check(driver.cuMemHostGetDevicePointer(address, 0)))

    def set_random_state(self, state: torch.Tensor, device: torch.device) -> None:
        torch.cuda.set_rng_state(state, device)

    def activity(self) -> Any:
        from torch._C import _profiler

        return _profiler.ProfilerActivity.CUDA


def _empty_bytes(nbytes: int) -> int:
    """Bytes of addresses that stay without memory on either side of a mapping of so many bytes."""
    return EMPTY_BYTES if nbytes >= LARGE_BYTES else 0


class _DevicePointer:
    """The interface by which torch wraps device memory that it did not allocate."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def _driver() -> Any:
    from cuda.bindings import driver

    return driver


def _check(result: tuple[Any, ...]) -> Any:
    """The value of a driver call. Raises OutOfMemoryError, and RuntimeError naming any other status."""
    status, *values = result
    if int(status) != 0:
        kind = torch.OutOfMemoryError if status.name == "CUDA_ERROR_OUT_OF_MEMORY" else RuntimeError
        raise kind(f"CUDA driver: {status.name}")
    return values[0] if values else None
