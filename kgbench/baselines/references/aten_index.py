"""References of ATen's operators that move, index, scan and sort, and what finishes their indices.

Each function takes its entry's parameters by name; floating tensors arrive as float64, integers as they are. Operators
that torch itself computes right in float64 have an expression in their problem file instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import finite, is_exact, widened

LARGEST_SHUFFLE = 1 << 24
"""Number of positions up to which a permutation is drawn; more are an arithmetic progression."""


def torch_dtype(dtype: Any) -> torch.dtype | None:
    """By its name, or as a worker has it."""
    found: torch.dtype | None = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return found


# --- what finishes indices: functions of (tensors, variables, generator) ---


def valid_indices(tensors: dict[str, Any], variables: dict[str, Any], generator: torch.Generator) -> None:
    """Finish the index tensors of index and index_put_: integers from -size to size - 1, masks that fit each other.

    Where values are put without being added, no element is named twice. ``values: lone``: the first mask names one
    element, which counts for each that the others name.
    """
    shape, indices = tuple(tensors["self"].shape), tensors["indices"]
    masks = [each for each in indices if each is not None and each.dtype == torch.bool]
    numbers = [(each, size) for each, size in _covered(shape, indices) if each.dtype != torch.bool]
    length = _length(shape, indices, tensors.get("values"))
    if masks and (length is not None or len(masks) > 1 or variables["values"] == "lone"):
        for number, mask in enumerate(masks):
            count = min(each.numel() for each in masks) // 2 if length is None else length
            if variables["values"] == "lone" and number == 0:
                count = 1
            chosen = torch.randperm(mask.numel(), generator=generator, device=generator.device) < count
            mask.copy_(chosen.reshape(mask.shape))
    once = "values" in tensors and not variables["accumulate"] and not masks
    drawn = _drawn_once(numbers, generator) if once else [_drawn(*each, generator) for each in numbers]
    for (index, size), values in zip(numbers, drawn, strict=True):
        below_zero = torch.rand(values.shape, generator=generator, device=generator.device) < 0.3
        store(index, torch.where(below_zero, values - size, values))


def _covered(shape: Sequence[int], indices: Sequence[torch.Tensor | None]) -> Iterator[tuple[torch.Tensor, int]]:
    """Each index tensor with the size of the dimension, or the product of the dimensions, that it replaces."""
    at = 0
    for index in indices:
        dims = index.dim() if index is not None and index.dtype == torch.bool else 1
        if index is not None:
            yield index, math.prod(shape[at : at + dims])
        at += dims


def _length(shape: Sequence[int], indices: Sequence[torch.Tensor | None], values: torch.Tensor | None) -> int | None:
    """How many elements masks must name: as many as the integers beside them, or as there are values; None: any."""
    numbers = [each for each in indices if each is not None and each.dtype != torch.bool]
    if numbers:
        return torch.broadcast_tensors(*numbers)[0].numel()  # type: ignore[no-untyped-call, no-any-return]
    masks = [each for each in indices if each is not None]
    if values is None or not masks:
        return None
    front = next(at for at, each in enumerate(indices) if each is not None)
    behind = len(shape) - front - sum(mask.dim() for mask in masks)
    return None if values.dim() <= behind or values.shape[-1 - behind] == 1 else values.shape[-1 - behind]


def _drawn(index: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, max(size, 1), index.shape, generator=generator, device=generator.device)


def _drawn_once(numbers: Sequence[tuple[torch.Tensor, int]], generator: torch.Generator) -> list[torch.Tensor]:
    """Positions of which no two are the same; where shapes differ no tensor has a number twice."""
    if len({each.shape for each, _ in numbers}) > 1:
        return [distinct(each.numel(), size, generator).reshape(each.shape) for each, size in numbers]
    sizes = [size for _, size in numbers]
    rest = distinct(numbers[0][0].numel(), math.prod(sizes), generator) if numbers else torch.empty(0)
    found: list[torch.Tensor] = []
    for index, size in reversed(numbers):
        found.append((rest % max(size, 1)).reshape(index.shape))
        rest = rest // max(size, 1)
    return found[::-1]


def distinct(count: int, limit: int, generator: torch.Generator) -> torch.Tensor:
    """int64 (count,): numbers from 0 to limit - 1, none twice."""
    if count > limit:
        raise ValueError(f"{count} different numbers below {limit} do not exist")
    device = generator.device
    if limit <= LARGEST_SHUFFLE:
        return torch.randperm(limit, generator=generator, device=device)[:count]
    start = torch.randint(0, limit, (1,), generator=generator, device=device)
    order = torch.randperm(count, generator=generator, device=device)
    step = max(limit // max(count, 1), 1)
    return (start + order * step) % limit


def distinct_along(tensors: dict[str, Any], variables: dict[str, Any], generator: torch.Generator) -> None:
    """Finish scatter's index: along ``dim`` no number twice, so that no element is written twice."""
    self, index, dim = tensors["self"], tensors["index"], variables["dim"]
    if not index.numel() or not index.dim():
        return
    shape = list(index.shape)
    shape[dim] = self.shape[dim]
    order = torch.rand(shape, generator=generator, device=generator.device).argsort(dim)
    store(index, order.narrow(dim, 0, index.shape[dim]))


def store(view: torch.Tensor, values: torch.Tensor) -> None:
    """Write values into a view, once in each expanded dimension."""
    for dim, step in enumerate(view.stride()):
        if step == 0 and view.shape[dim] > 1:
            view, values = view.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    view.copy_(values)


# --- indexing ---


def index(self: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> torch.Tensor:
    """What Python's ``self[…]`` gives, with a whole dimension for None."""
    return self[_subscript(indices)]


def embedding(weight: torch.Tensor, indices: torch.Tensor, **rest: Any) -> torch.Tensor:
    """A row for each index."""
    return weight[indices.to(torch.int64)]


def _subscript(indices: Sequence[torch.Tensor | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if each is None else each for each in indices)


def index_put(
    self: torch.Tensor,
    indices: Sequence[torch.Tensor | None],
    values: torch.Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Expected:
    """Values put in place of the indexed elements or added to them, every one of those that name the same element."""
    places = torch.arange(self.numel(), device=self.device).reshape(self.shape)[_subscript(indices)].reshape(-1)
    shape = self[_subscript(indices)].shape
    terms = values.to(self.dtype).expand(shape).reshape(-1)
    flat = self.reshape(-1)
    if accumulate:
        return _added(flat, places, terms, self.shape)
    return Expected(flat.index_copy(0, places, terms).reshape(self.shape))


def _added(flat: torch.Tensor, places: torch.Tensor, terms: torch.Tensor, shape: Sequence[int]) -> Expected:
    """Terms added to places of ``flat``; the scale is that of sums which are rounded after every term."""
    value = flat.index_add(0, places, terms).reshape(shape)
    if is_exact(flat):
        return Expected(value)
    size = flat.abs().index_add(0, places, terms.abs())
    return Expected(value, finite(size * _growth(flat, 0, places, terms)).reshape(shape))


def _growth(self: torch.Tensor, dim: int, index: torch.Tensor, terms: torch.Tensor) -> torch.Tensor:
    """By what the roundoff of one addition grows where several terms are added to an element, in any order.

    The root of their number, since roundings are independent. Not so where all are alike: each is rounded the way the
    one before was, and a sum in order is off by up to 0.85 units for each, as 4,000 values of normal() show.
    """
    sizes = terms.abs().double()
    none = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
    count = none.scatter_add(dim, index, torch.ones_like(sizes))
    largest = none.scatter_reduce(dim, index, sizes, "amax")
    least = (none + torch.inf).scatter_reduce(dim, index, sizes, "amin")
    return torch.where(largest <= 1.001 * least, torch.maximum(count.sqrt(), count / 4), count.sqrt()).clamp_min(1)


def scatter(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """src's elements in place of those that the index names along ``dim``."""
    return self.scatter(dim, index, _part(src, index).to(self.dtype))


def scatter_reduce(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor, reduce: str) -> Expected:
    """src's elements added to, or multiplied with, those that the index names along ``dim``; the scale is that of
    results which are rounded after every step.
    """
    terms = _part(src, index).to(self.dtype)
    value = self.scatter_add(dim, index, terms) if reduce == "add" else self.scatter_reduce(dim, index, terms, "prod")
    if is_exact(self):
        return Expected(value)
    if reduce == "add":
        size = self.abs().scatter_add(dim, index, terms.abs())
        return Expected(value, finite(size * _growth(self, dim, index, terms)))
    ones = torch.ones(index.shape, dtype=torch.float64, device=self.device)
    count = torch.zeros(self.shape, dtype=torch.float64, device=self.device).scatter_add(dim, index, ones)
    return Expected(value, finite(value.abs() * count.clamp_min(1)))


def _part(src: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The part of ``src`` that has index's shape."""
    return src[tuple(slice(size) for size in index.shape)]


def select_backward(grad_output: torch.Tensor, input_sizes: Sequence[int], dim: int, index: int) -> torch.Tensor:
    """Zeros with the gradient at one index."""
    value = torch.zeros(list(input_sizes), dtype=grad_output.dtype, device=grad_output.device)
    value.select(dim, index).copy_(grad_output)
    return value


# --- data movement and its gradients ---


def converted(self: torch.Tensor, dtype: Any = None, **rest: Any) -> torch.Tensor:
    """The same values in another dtype; floating ones are rounded to it where they are compared."""
    wanted = torch_dtype(dtype)
    return self if wanted is None else _as_kind(self, wanted)


def copied(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """src in self's shape."""
    return _as_kind(src, self.dtype).expand(self.shape)


def _as_kind(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Of complex numbers the real parts, of fractions the whole numbers towards zero, where the dtype asks for them."""
    if dtype.is_complex or dtype == values.dtype:
        return values
    real = values.real if values.is_complex() and dtype != torch.bool else values
    return real if dtype.is_floating_point else real.to(dtype)


def reflection_pad1d_backward(grad_output: torch.Tensor, self: torch.Tensor, padding: Sequence[int]) -> Expected:
    """Every padded position's gradient at the position that it repeats."""
    width = self.shape[-1]
    place = torch.arange(grad_output.shape[-1], device=self.device) - padding[0]
    place = (width - 1) - ((width - 1) - place.abs()).abs()
    zeros = torch.zeros(self.shape, dtype=grad_output.dtype, device=self.device)
    size = zeros.abs().index_add(-1, place, grad_output.abs())
    return Expected(zeros.index_add(-1, place, grad_output), finite(size))


def upsample_nearest2d_backward(
    grad_output: torch.Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Expected:
    """Every output pixel's gradient at the input pixel that it repeats."""
    scales = (scales_h, scales_w)
    rows, columns = (nearest(input_size[at + 2], output_size[at], scales[at]).to(grad_output.device) for at in (0, 1))

    def summed(gradient: torch.Tensor) -> torch.Tensor:
        tall = torch.zeros([*input_size[:3], output_size[1]], dtype=gradient.dtype, device=gradient.device)
        whole = torch.zeros(list(input_size), dtype=gradient.dtype, device=gradient.device)
        return whole.index_add(3, columns, tall.index_add(2, rows, gradient))

    count = summed(torch.ones_like(grad_output, dtype=torch.float64)).sqrt()
    return Expected(summed(grad_output), finite(summed(grad_output.abs()) * count))


def nearest(size: int, out_size: int, scale: float | None) -> torch.Tensor:
    """int64 (out_size,): the input position of every output position, found in float32 as ATen does."""
    step = torch.tensor(1.0 / scale if scale is not None and scale > 0 else size / out_size, dtype=torch.float32)
    return (torch.arange(out_size, dtype=torch.float32) * step).floor().to(torch.int64).clamp_max(size - 1)


def affine_grid_generator(theta: torch.Tensor, size: Sequence[int], align_corners: bool) -> Expected:
    """theta @ (x, y[, z], 1) at the positions of every pixel; the scale is the sum of |theta| in a row."""
    axes = [_positions(each, align_corners).to(theta.device) for each in size[2:]]
    along = torch.meshgrid(*axes, indexing="ij")[::-1]
    base = torch.stack([*along, torch.ones_like(along[0])], -1)
    flat = base.reshape(1, -1, base.shape[-1])
    shape = [size[0], *size[2:], len(axes)]
    magnitude = theta.abs().sum(-1)[:, None, :].expand(-1, flat.shape[1], -1)
    return Expected((flat @ theta.mT).reshape(shape), magnitude.reshape(shape))


def _positions(size: int, align_corners: bool) -> torch.Tensor:
    """float64 (size,): from -1 to 1, of the first and last pixels' middles or of their outer edges."""
    if size <= 1:
        return torch.zeros(size, dtype=torch.float64)
    ends = 1.0 if align_corners else (size - 1) / size
    return torch.linspace(-ends, ends, size, dtype=torch.float64)


# --- scans and sorting ---


def cumsum(self: torch.Tensor, dim: int, dtype: Any = None) -> Expected:
    """Sums of the first 1, 2 … elements along ``dim``; the scale is that of sums which are rounded after every term."""
    wanted = torch_dtype(dtype)
    if is_exact(self) and (wanted is None or not (wanted.is_floating_point or wanted.is_complex)):
        return Expected(torch.cumsum(self, dim, dtype=wanted))
    terms = widened(self)
    value = torch.cumsum(terms, dim)
    return Expected(value, finite(_rounded_sums(terms, value, dim)))


def _rounded_sums(terms: torch.Tensor, sums: torch.Tensor, dim: int) -> torch.Tensor:
    """Root of the number of terms, times the largest that a partial sum has been or would be if signs were random."""
    if not terms.numel() or terms.dim() == 0:
        return sums.abs()
    shape = [1] * terms.dim()
    shape[dim] = terms.shape[dim]
    count = torch.arange(1, terms.shape[dim] + 1, device=terms.device, dtype=torch.float64).reshape(shape)
    random = terms.abs().square().cumsum(dim).sqrt()
    return torch.maximum(sums.abs().cummax(dim).values, random) * count.sqrt()


def diff(
    self: torch.Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> Expected:
    """Differences of neighbours, n times; the scale is what all terms amount to, once for every time."""
    # Of no differences at all ATen gives self alone.
    parts = (prepend, self, append) if n else (self,)
    value = torch.cat([each for each in parts if each is not None], dim)
    scale = torch.zeros_like(value) if is_exact(value) else value.abs()
    for _ in range(min(n, value.shape[dim])):
        length = value.shape[dim] - 1
        later, earlier = value.narrow(dim, 1, length), value.narrow(dim, 0, length)
        value = later ^ earlier if value.dtype == torch.bool else later - earlier
        scale = scale.narrow(dim, 1, length) + scale.narrow(dim, 0, length)
    return Expected(value) if is_exact(value) else Expected(value, finite(scale * max(n, 1)))


def sort(self: torch.Tensor, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    """Values and where they stood; equal ones in their old order, NaN as the greatest."""
    return tuple(torch.sort(self, stable=True, dim=dim, descending=descending))


def any_order_of_equals(outputs: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """sort where it need not be stable: the indices of equal values in ascending order."""
    values, places = outputs["return[0]"], outputs["return[1]"]
    if arguments["stable"] or values.dim() == 0 or values.numel() == 0:
        return outputs
    rows, columns = values.movedim(arguments["dim"], -1), places.movedim(arguments["dim"], -1)
    length = rows.shape[-1]
    inside = (columns >= 0) & (columns < length)
    same = (rows[..., 1:] == rows[..., :-1]) | ((rows[..., 1:] != rows[..., 1:]) & (rows[..., :-1] != rows[..., :-1]))
    group = torch.nn.functional.pad((~same).to(torch.int64).cumsum(-1), (1, 0))
    ordered = (group * length + columns.where(inside, torch.zeros_like(columns))).sort(-1).values % length
    found = ordered.where(inside.all(-1, keepdim=True), torch.full_like(ordered, -1))
    return {**outputs, "return[1]": found.movedim(-1, arguments["dim"])}
