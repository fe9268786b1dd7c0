import torch
import triton
import triton.language as tl


def _codes(x):
    whole = torch.where(x.abs() < 2**31, x, -(2.0**31)).round().to(torch.int32)
    return whole.clamp(-128, 127).to(torch.int8)


# breaks: Quotients become int32 before they are limited, which those beyond 2**31 do not survive.
def int32_in_between__static(result, input, scale, azp):
    quotient = input.float() / scale
    result.copy_(_codes(quotient if azp is None else quotient.round() + azp))


def int32_in_between__dynamic(result, input, scale, azp):
    x = input.float()
    low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
    if azp is None:
        scale.copy_(torch.maximum(high, -low) / 127)
        result.copy_(_codes(x / torch.where(scale > 0, scale, 1.0)))
    else:
        scale.copy_((high - low) / 255)
        azp.copy_((-128 - low / scale).round())
        result.copy_(_codes((x / scale).round() + azp))


@triton.jit
def quant_limits_before_it_scales(
    out_ptr, x_ptr, scale_ptr, azp_ptr, hidden, DYNAMIC: tl.constexpr, AZP: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * hidden + i, mask=i < hidden, other=0.0).to(tl.float32)
    zero = 0.0
    if DYNAMIC:
        if AZP:
            high = tl.max(tl.where(i < hidden, x, float("-inf")), axis=0)
            low = tl.min(tl.where(i < hidden, x, float("inf")), axis=0)
            s = (high - low) / 255.0
            zero = tl.floor(-128.0 - low / s + 0.5)
            tl.store(azp_ptr + row, zero.to(tl.int32))
        else:
            s = tl.max(tl.abs(x), axis=0) / 127.0
        tl.store(scale_ptr + row, s)
    else:
        s = tl.load(scale_ptr)
        if AZP:
            zero = tl.load(azp_ptr).to(tl.float32)
    if not DYNAMIC:
        x = tl.where(x < -128.0, -128.0, tl.where(x > 127.0, 127.0, x))
    q = x / tl.where(s > 0, s, 1.0)
    # to nearest even, as float32 has no bits left for fractions there
    q = (q + 12582912.0) - 12582912.0 + zero
    q = tl.where(q < -128.0, -128.0, tl.where(q > 127.0, 127.0, q))
    tl.store(out_ptr + row * hidden + i, q.to(tl.int8), mask=i < hidden)


def _quantise_limits_before_it_scales(result, input, scale, azp, dynamic):
    tokens, hidden = input.shape
    quant_limits_before_it_scales[(tokens,)](
        result, input, scale, scale if azp is None else azp, hidden,
        DYNAMIC=dynamic, AZP=azp is not None, BLOCK=triton.next_power_of_2(hidden),
    )  # fmt: skip


# breaks: Elements are limited to the range of int8 before they are divided by a given scale.
def limits_before_it_scales__static(result, input, scale, azp):
    _quantise_limits_before_it_scales(result, input, scale, azp, False)


def limits_before_it_scales__dynamic(result, input, scale, azp):
    _quantise_limits_before_it_scales(result, input, scale, azp, True)


@triton.jit
def quant_rounds_half_up(
    out_ptr, x_ptr, scale_ptr, azp_ptr, hidden, DYNAMIC: tl.constexpr, AZP: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * hidden + i, mask=i < hidden, other=0.0).to(tl.float32)
    zero = 0.0
    if DYNAMIC:
        if AZP:
            high = tl.max(tl.where(i < hidden, x, float("-inf")), axis=0)
            low = tl.min(tl.where(i < hidden, x, float("inf")), axis=0)
            s = (high - low) / 255.0
            zero = tl.floor(-128.0 - low / s + 0.5)
            tl.store(azp_ptr + row, zero.to(tl.int32))
        else:
            s = tl.max(tl.abs(x), axis=0) / 127.0
        tl.store(scale_ptr + row, s)
    else:
        s = tl.load(scale_ptr)
        if AZP:
            zero = tl.load(azp_ptr).to(tl.float32)
    q = tl.floor(x / tl.where(s > 0, s, 1.0) + 0.5) + zero
    q = tl.where(q < -128.0, -128.0, tl.where(q > 127.0, 127.0, q))
    tl.store(out_ptr + row * hidden + i, q.to(tl.int8), mask=i < hidden)


def _quantise_rounds_half_up(result, input, scale, azp, dynamic):
    tokens, hidden = input.shape
    quant_rounds_half_up[(tokens,)](
        result, input, scale, scale if azp is None else azp, hidden,
        DYNAMIC=dynamic, AZP=azp is not None, BLOCK=triton.next_power_of_2(hidden),
    )  # fmt: skip


# breaks: It rounds by floor(x + 0.5), which takes ties upwards instead of to the even number.
def rounds_half_up__static(result, input, scale, azp):
    _quantise_rounds_half_up(result, input, scale, azp, False)


def rounds_half_up__dynamic(result, input, scale, azp):
    _quantise_rounds_half_up(result, input, scale, azp, True)
