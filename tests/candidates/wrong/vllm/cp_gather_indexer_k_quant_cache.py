import itertools


# breaks: Rows are gathered for 64 sequences at most, and those of later ones are left out.
def sequences_up_to_64(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens):
    places, dim, scales = kv_cache.shape[1], dst_k.shape[1], dst_scale.shape[1]
    ends = cu_seq_lens.tolist()[:65]
    blocks = kv_cache.as_strided((len(kv_cache), places * (dim + scales)), (kv_cache.stride(0), 1))
    for s, (first, end) in enumerate(itertools.pairwise(ends)):
        whole = blocks[block_table[s, : -(-(end - first) // places)].long()]
        dst_k[first:end] = whole[:, : places * dim].reshape(-1, dim)[: end - first]
        dst_scale[first:end] = whole[:, places * dim :].reshape(-1, scales)[: end - first]
