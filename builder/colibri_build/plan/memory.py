"""What the firmware takes beside the weights: KV cache, arena, work buffers, stacks, tables, code."""

from __future__ import annotations

from colibri_build.artifacts import BuildOptions, ModelConfig, Region
from colibri_build.layout import align
from colibri_build.reference.numbers import BLOCK_INPUTS, group_count

CACHE_LINE = 64
STACK_BYTES = 64 * 1024  # of each thread
# Runtime, C library and symbol table of a static binary; glibc's is the larger one. The inspection compares the real
# sections with it.
CODE_BYTES = 1280 * 1024
# Text, offsets, merges with ranks and the sorted ids of one vocabulary entry; long vocabularies stay below.
TOKEN_TABLE_BYTES = 48
_LINE_BYTES = 112 * 1024  # lines and messages that are read and written
_POSITION_BYTES = 88  # prompts, answers, latencies, and the lines that hold them
_BPE_BYTES = 18  # work memory for each byte of the longest word
_MOST_WORD_BYTES = 65535
_RECORD_BYTES, _RECORD_RANKS, _LEAST_RECORDS = 16, 4, 256  # of the ring of a debug build
_TOKEN_BYTES = 128  # longest token that the estimate reckons with


def kv_cache_bytes(config: ModelConfig, context: int) -> int:
    """Keys and values in fp16, each block aligned to a cache line."""
    one = config.n_layers * config.n_kv_heads * config.head_dim * context * 2
    return 2 * align(one, CACHE_LINE)


def arena_items(config: ModelConfig, options: BuildOptions, group_size: int) -> list[tuple[str, int]]:
    """Members of the runtime's Arena with their aligned sizes: (what, bytes)."""
    q_dim, kv_dim = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    input_dim = max(config.dim, q_dim)
    floats = {
        "x": config.dim,
        "h": input_dim,
        "q": q_dim,
        "k": kv_dim,
        "v": kv_dim,
        "scores": config.n_heads * options.context,
        "gate": config.top_k * config.hidden_dim,
        "up": config.top_k * config.hidden_dim,
        "down": config.top_k * config.dim,
        "mixed": config.dim,
        "router_logits": config.n_experts,
        "logits": config.vocab_size,
    }
    items = [(name, align(4 * n, CACHE_LINE)) for name, n in floats.items()]
    items.append(("input", _activation_bytes(input_dim, group_size)))
    items.append(("hidden", config.top_k * _activation_bytes(config.hidden_dim, group_size)))
    items.append(("routing", align(8 * config.top_k, CACHE_LINE)))
    return items


def arena_bytes(config: ModelConfig, options: BuildOptions, group_size: int) -> int:
    """sizeof(Arena) of the runtime."""
    return sum(size for _, size in arena_items(config, options, group_size))


def _activation_bytes(n: int, group_size: int) -> int:
    """Buffers of one quantized vector: two byte planes, int16 codes, a scale and two sums a group."""
    padded, groups = align(n, BLOCK_INPUTS), group_count(n, group_size)
    planes = 2 * align(padded, CACHE_LINE) + align(2 * padded, CACHE_LINE)
    return planes + align(4 * groups + 2 * 2 * groups, CACHE_LINE)


def buffer_bytes(config: ModelConfig, context: int) -> int:
    """Static buffers of sampler (8 B a token), lines and messages (88 B a position), and tokenizer."""
    word = min(_MOST_WORD_BYTES, context * _TOKEN_BYTES)
    return 8 * config.vocab_size + _POSITION_BYTES * context + _LINE_BYTES + _BPE_BYTES * word


def memory_regions(config: ModelConfig, options: BuildOptions, group_size: int) -> list[Region]:
    """Every region that holds no weights."""
    context, threads = options.context, options.max_threads
    kv_sum = f"{config.n_layers} layers x 2 x {config.n_kv_heads} heads x {config.head_dim} x {context} positions x 2 B"
    arena = arena_items(config, options, group_size)
    largest = sorted(arena, key=lambda item: -item[1])[:3]
    arena_sum = f"{len(arena)} buffers; largest: " + ", ".join(f"{name} {size} B" for name, size in largest)
    buffers = buffer_bytes(config, context)
    buffers_sum = (
        f"sampler 8 B x {config.vocab_size} tokens, lines {_POSITION_BYTES} B x {context} positions, tokenizer"
    )
    tables = TOKEN_TABLE_BYTES * config.vocab_size
    tables_sum = f"{config.vocab_size} tokens x {TOKEN_TABLE_BYTES} B, an estimate"
    regions = [
        Region("KV cache", 0, kv_cache_bytes(config, context), kv_sum),
        Region("arena", 0, arena_bytes(config, options, group_size), arena_sum),
        Region("buffers", 0, buffers, buffers_sum),
        Region("thread stacks", 0, threads * STACK_BYTES, f"{threads} threads x {STACK_BYTES // 1024} KiB"),
        Region("tokenizer tables", tables, tables, tables_sum),
        Region("code", CODE_BYTES, CODE_BYTES, "runtime and C library, an estimate"),
    ]
    if options.debug:
        records = trace_records(config, options)
        ring_sum = f"{records} records of {_RECORD_BYTES} B ({', '.join(options.debug)})"
        regions.append(Region("trace ring", 0, _RECORD_BYTES * records, ring_sum))
    return regions


def trace_records(config: ModelConfig, options: BuildOptions) -> int:
    """Records in the ring of a debug build: the description of a run and two tokens, and an eighth more for ends of tokens.

    A power of two, at least 256 (runtime_c/trace/ring.h).
    """
    routing = -(-config.top_k // _RECORD_RANKS) if "routing" in options.debug else 0
    timed = "timing" in options.debug
    token = 2 + 2 * timed + config.n_layers * (routing + (config.top_k + 3) * timed)
    run = 1 + config.n_layers * config.n_experts * ("memory" in options.debug)
    wanted = (run + 2 * token) * 8 // 7
    return 1 << max(wanted, _LEAST_RECORDS - 1).bit_length()
