import torch
import triton
import triton.language as tl


@triton.jit
def largest(x_ptr, out_ptr, hidden, x_row, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + i, mask=i < hidden, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.max(tl.abs(x), axis=0))


def _row_maxima(input):
    tokens, hidden = input.shape
    out = torch.empty(tokens, dtype=torch.float32, device=input.device)
    largest[(tokens,)](input, out, hidden, input.stride(0), BLOCK=triton.next_power_of_2(hidden))
    return out


def _store(result, input, s):
    result.copy_((input.float() / s).clamp(-448, 448).to(torch.float8_e4m3fn))


# breaks: scale_ub is taken for the least of the largest elements, not for the greatest.
def bound_from_below__static(result, input, scale):
    if scale.ndim == 2:
        rows, columns = input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[1]
        scale = scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    _store(result, input, scale)


def bound_from_below__dynamic(result, input, scale):
    scale.copy_(_row_maxima(input).max() / 448)
    _store(result, input, scale)


def bound_from_below__per_token(result, input, scale, scale_ub):
    top = _row_maxima(input)
    if scale_ub is not None:
        top = torch.maximum(top, scale_ub)
    scale.copy_((top / 448).clamp(min=1 / (448 * 512)).unsqueeze(1))
    _store(result, input, scale)


# breaks: With given scales it saturates before it divides by them, which shows where a scale is above 1.
def saturates_before_it_scales__static(result, input, scale):
    if scale.ndim == 2:
        rows, columns = input.shape[0] // scale.shape[0], input.shape[1] // scale.shape[1]
        scale = scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    result.copy_((input.float().clamp(-448, 448) / scale).clamp(-448, 448).to(torch.float8_e4m3fn))


def saturates_before_it_scales__dynamic(result, input, scale):
    scale.copy_(_row_maxima(input).max() / 448)
    _store(result, input, scale)


def saturates_before_it_scales__per_token(result, input, scale, scale_ub):
    top = _row_maxima(input)
    if scale_ub is not None:
        top = torch.minimum(top, scale_ub)
    scale.copy_((top / 448).clamp(min=1 / (448 * 512)).unsqueeze(1))
    _store(result, input, scale)
