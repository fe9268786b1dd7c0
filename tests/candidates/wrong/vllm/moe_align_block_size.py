import torch
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>
#include <vector>

static std::vector<std::int64_t> counts(4096);

std::int64_t align(std::intptr_t ids_at, std::int64_t pairs, std::int64_t experts, std::int64_t block,
                   std::intptr_t sorted_at, std::int64_t size, std::intptr_t experts_at, std::int64_t blocks) {
  auto ids = reinterpret_cast<const std::int64_t *>(ids_at);
  auto sorted = reinterpret_cast<std::int32_t *>(sorted_at);
  auto owners = reinterpret_cast<std::int32_t *>(experts_at);
  for (std::int64_t i = 0; i < size; ++i) sorted[i] = pairs;
  for (std::int64_t i = 0; i < blocks; ++i) owners[i] = -1;
  for (std::int64_t i = 0; i < pairs; ++i)
    if (ids[i] >= 0) ++counts[ids[i]];
  std::vector<std::int64_t> next(experts);
  std::int64_t used = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    next[e] = used * block;
    for (std::int64_t b = 0; b < (counts[e] + block - 1) / block; ++b, ++used)
      if (used < blocks) owners[used] = e;
  }
  for (std::int64_t i = 0; i < pairs; ++i)
    if (ids[i] >= 0 && next[ids[i]] < size) sorted[next[ids[i]]++] = i;
  return used * block;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("align", &align); }
"""


built = load_inline("align_blocks", CPP, extra_cflags=["-O2"], no_implicit_headers=True)


# breaks: The counts are static and not set back to 0, so that a second call begins with those of the first.
# outcome: wrong value | crashed
def counts_of_the_call_before(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, maybe_expert_map
):
    ids = topk_ids.reshape(-1).long()
    if maybe_expert_map is not None:
        ids = maybe_expert_map[ids].long()
    total = built.align(
        ids.data_ptr(), ids.numel(), num_experts, block_size, sorted_token_ids.data_ptr(), sorted_token_ids.numel(),
        experts_ids.data_ptr(), experts_ids.numel(),
    )  # fmt: skip
    num_tokens_post_pad.fill_(total)


# breaks: A block's expert is found by the sums of the counts before they are padded.
def expert_of_unpadded_offsets(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, maybe_expert_map
):
    ids = topk_ids.reshape(-1).tolist()
    if maybe_expert_map is not None:
        numbers = maybe_expert_map.tolist()
        ids = [numbers[each] for each in ids]
    pairs = [[] for _ in range(num_experts)]
    for pair, expert in enumerate(ids):
        if expert >= 0:
            pairs[expert].append(pair)
    rows, ends, end = [], [], 0
    for mine in pairs:
        blocks = (len(mine) + block_size - 1) // block_size
        rows += mine + [len(ids)] * (blocks * block_size - len(mine))
        end += len(mine)
        ends.append(end)
    used = len(rows) // block_size
    rows += [len(ids)] * (sorted_token_ids.numel() - len(rows))
    experts = []
    for block in range(experts_ids.numel()):
        expert = next((e for e, each in enumerate(ends) if block * block_size < each), num_experts - 1)
        experts.append(expert if block < used else -1)
    device = topk_ids.device
    sorted_token_ids.copy_(torch.tensor(rows[: sorted_token_ids.numel()], dtype=torch.int32, device=device))
    experts_ids.copy_(torch.tensor(experts, dtype=torch.int32, device=device))
    num_tokens_post_pad.fill_(used * block_size)


# breaks: There are 256 counters, and pairs of further experts are lost.
def experts_up_to_256(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, maybe_expert_map
):
    ids = topk_ids.flatten().long()
    pairs = ids.numel()
    if maybe_expert_map is not None:
        ids = maybe_expert_map.long()[ids]
    kept = (ids >= 0) & (ids < 256)
    counts = torch.bincount(ids[kept], minlength=256)
    blocks = -(-counts // block_size)
    ends = blocks.cumsum(0)
    used = int(ends[-1])
    order = torch.argsort(torch.where(kept, ids, 256), stable=True)[: int(kept.sum())]
    expert = ids[order]
    place = torch.arange(len(order), device=ids.device) - (counts.cumsum(0) - counts)[expert]
    sorted_token_ids.fill_(pairs)
    sorted_token_ids[(ends - blocks)[expert] * block_size + place] = order.int()
    experts_ids.fill_(-1)
    experts_ids[:used] = torch.repeat_interleave(torch.arange(256, device=ids.device), blocks).int()
    num_tokens_post_pad.fill_(used * block_size)
