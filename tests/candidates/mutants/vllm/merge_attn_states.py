import torch


def merge(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, with_prefix, output_scale=None,
    *,
    absent=lambda lse: torch.where(torch.isinf(lse), float("-inf"), lse),
    largest=torch.maximum,
    columns=lambda share, tokens: share.mT[:, :, None],
    filled=lambda out, empty, prefix: torch.where(empty.mT[:, :, None], prefix, out),
    merged_lse=lambda m, a, b: m + torch.log(a + b),
    late_output=lambda late, suffix, out: torch.where(late[:, None, None], suffix, out),
    scaled=lambda out, scale: out / scale,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    p, s = absent(prefix_lse), absent(suffix_lse)
    m, empty = largest(p, s), torch.isinf(p) & torch.isinf(s)
    a, b = torch.exp(p - m), torch.exp(s - m)
    left, right = (columns(x / (a + b), len(output)) for x in (a, b))
    out = left * prefix_output.float() + right * suffix_output.float()
    out = filled(out, empty, prefix_output.float())
    lse = torch.where(empty, float("-inf"), merged_lse(m, a, b))
    late = torch.arange(len(output), device=output.device) >= (len(output) if with_prefix is None else with_prefix)
    out = late_output(late, suffix_output.float(), out)
    lse = torch.where(late, suffix_lse, lse)
    if output_scale is not None:
        out = scaled(out, output_scale).clamp(-448, 448)
    output.copy_(out)
    if output_lse is not None:
        output_lse.copy_(lse)


# breaks: It divides 0 by 0 where no part has keys.
def empty_is_nan(*given):
    merge(*given, filled=lambda out, empty, prefix: out)


# breaks: It takes +inf for a part that has all weight.
def infinite_wins(*given):
    merge(*given, absent=lambda lse: torch.clamp(lse, max=1e30))


# breaks: It answers the larger lse.
def lse_of_larger(*given):
    merge(*given, merged_lse=lambda m, a, b: m)


# breaks: It merges also tokens that have no prefix.
def merges_without_prefix(*given):
    merge(*given, late_output=lambda late, suffix, out: out)


# breaks: It multiplies by the scale.
def multiplies_by_scale(*given):
    merge(*given, scaled=lambda out, scale: out * scale)


# breaks: It reads lse as (tokens, heads).
def tokens_first(*given):
    merge(*given, columns=lambda share, tokens: share.reshape(tokens, -1)[:, :, None])


# breaks: It does not subtract the larger lse.
def unstable(*given):
    merge(*given, largest=lambda p, s: torch.zeros_like(p))
