"""What the firmware takes beside the weights: KV cache, arena, work buffers, stacks, tables, code."""

from __future__ import annotations

from collections.abc import Mapping

from colibri_build.artifacts import BuildOptions, ChatForm, ModelConfig, Region
from colibri_build.layout import align
from colibri_build.model_constants import rotary_dim
from colibri_build.reference.numbers import BLOCK_INPUTS, group_count

CACHE_LINE = 64
STACK_BYTES = 128 * 1024  # of each thread, as port/threads.h has it
# Runtime, C library and symbol table of a static binary; glibc's is the larger one. The inspection compares the real
# sections with it.
CODE_BYTES = 1280 * 1024
# Text, offsets, merges with ranks and the sorted ids of one vocabulary entry; long vocabularies stay below.
TOKEN_TABLE_BYTES = 48
_LINE_BYTES = 112 * 1024  # lines and messages that are read and written
_POSITION_BYTES = 88  # prompts, answers, latencies, and the lines that hold them
_LINE_START_BYTES, _LINE_POSITION_BYTES = 4096, 16  # the longest prompt that is read as a line
_BPE_BYTES = 18  # work memory for each byte of the longest word
_MOST_WORD_BYTES = 65535
_TEXT_POSITION_BYTES, _LONG_CONTEXT = 16, 4095  # of changed text; in a shorter context it is a longest word
_RECORD_BYTES, _RECORD_RANKS, _LEAST_RECORDS = 16, 4, 256  # of the ring of a debug build
_TOKEN_BYTES = 128  # longest token that the estimate reckons with
_TOKEN_HEAD_BYTES = 8  # position and status of the runtime's Token
_GROUP_BYTES, _COLUMN_BYTES, _JOB_MATRICES = 12, 16, 6  # sizeof(ExpertGroup) and sizeof(Column) of the runtime
_BATCH_SHARE, _BATCH_STEP, _MOST_DEFAULT_BATCH = 0.03, 4, 32  # of default_prefill_batch


def kv_cache_bytes(config: ModelConfig, context: int) -> int:
    """Keys and values in fp16, each block aligned to a cache line."""
    return sum(align(config.n_layers * size * context * 2, CACHE_LINE) for size in (config.k_dim, config.v_dim))


def arena_items(config: ModelConfig, options: BuildOptions, group_size: int) -> list[tuple[str, int]]:
    """Members of the runtime's Arena with their aligned sizes: (what, bytes)."""
    batch, choices = options.batch, options.batch * config.top_k
    token = token_bytes(config, group_size)
    items = [
        (f"{batch} prompt tokens at once x {token} B", batch * token),
        ("their columns", align(_JOB_MATRICES * _COLUMN_BYTES * batch, CACHE_LINE)),
    ]
    if config.n_expert_layers:
        groups = min(config.n_experts, choices)
        by_expert = align(4 + _GROUP_BYTES * groups, 8) + 3 * _COLUMN_BYTES * choices
        items.append(("their experts", align(by_expert, CACHE_LINE)))
    return items + _aligned({"scores": config.n_heads * options.context, "logits": config.vocab_size})


def token_bytes(config: ModelConfig, group_size: int) -> int:
    """sizeof(Token) of the runtime: what each token of a batch needs on its way through the layers."""
    input_dim = max(config.dim, config.out_dim)
    pairs = rotary_dim(config) // 2
    floats = (config.dim, input_dim, config.q_dim, config.k_dim, config.v_dim, config.dim)  # x, h, q, k, v, mixed
    total = align(_TOKEN_HEAD_BYTES + 2 * 4 * pairs, CACHE_LINE) + _floats(*floats)
    total += _quantized_bytes(input_dim, group_size)
    return total + sum(part(config, group_size) for part in (_latent_bytes, _expert_bytes, _dense_bytes))


def _aligned(floats: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(name, align(4 * n, CACHE_LINE)) for name, n in floats.items()]


def _floats(*sizes: int) -> int:
    """Bytes of some float vectors, each on a cache line of its own."""
    return sum(align(4 * n, CACHE_LINE) for n in sizes)


def _latent_bytes(config: ModelConfig, group_size: int) -> int:
    if not config.kv_rank:
        return 0
    still = config.n_heads * (config.head_dim - config.rotary_dim)
    total = _floats(config.kv_rank, config.rotary_dim, still) + _quantized_bytes(config.kv_rank, group_size)
    if config.q_rank:
        total += _floats(config.q_rank) + _quantized_bytes(config.q_rank, group_size)
    return total


def _expert_bytes(config: ModelConfig, group_size: int) -> int:
    """Gate, up and down of each chosen expert, router logits, quantized hidden vectors, and the routing."""
    if not config.n_expert_layers:
        return 0
    hidden = config.top_k * config.hidden_dim
    total = _floats(hidden, hidden, config.top_k * config.dim, config.n_experts)
    total += config.top_k * _quantized_bytes(config.hidden_dim, group_size)
    return total + align(8 * config.top_k, CACHE_LINE)


def _dense_bytes(config: ModelConfig, group_size: int) -> int:
    hidden = max(config.dense_hidden_dim, config.shared_hidden_dim)
    if not hidden:
        return 0
    total = _floats(hidden, hidden) + _quantized_bytes(hidden, group_size)
    return total + (_floats(config.dim) if config.shared_hidden_dim else 0)


def arena_bytes(config: ModelConfig, options: BuildOptions, group_size: int) -> int:
    """sizeof(Arena) of the runtime."""
    return sum(size for _, size in arena_items(config, options, group_size))


def default_prefill_batch(config: ModelConfig, weight_bytes: int, group_size: int) -> int:
    """Prompt tokens that are computed together unless --prefill-batch says how many.

    So many that what they need stays within 3 % of the weights, in whole tiles of the kernels, but 4 at least: fewer would
    share little. Above 32 there is hardly anything left to share.
    """
    fitting = int(weight_bytes * _BATCH_SHARE) // token_bytes(config, group_size)
    return max(_BATCH_STEP, min(_MOST_DEFAULT_BATCH, fitting // _BATCH_STEP * _BATCH_STEP))


def _quantized_bytes(n: int, group_size: int) -> int:
    """A QUANTIZED of the runtime: two byte planes, int16 codes, a scale and two sums a group, and six pointers to them."""
    padded, groups = align(n, BLOCK_INPUTS), group_count(n, group_size)
    planes = 2 * align(padded, CACHE_LINE) + align(2 * padded, CACHE_LINE)
    return planes + align(4 * groups + 2 * 2 * groups + 6 * 8, CACHE_LINE)


def buffer_bytes(config: ModelConfig, context: int) -> int:
    """Static buffers of sampler (8 B a token), lines and messages (88 B a position), and tokenizer.

    The tokenizer's hold one word while it is merged, and one stretch of changed text (NFC, spaces): as if every model had both.
    """
    word = min(_MOST_WORD_BYTES, context * _TOKEN_BYTES)
    text = _TEXT_POSITION_BYTES * context if context > _LONG_CONTEXT else word + 1
    return 8 * config.vocab_size + _POSITION_BYTES * context + _LINE_BYTES + _BPE_BYTES * word + text


def memory_regions(config: ModelConfig, options: BuildOptions, group_size: int) -> list[Region]:
    """Every region that holds no weights."""
    context, threads = options.context, options.max_threads
    width = f"2 x {config.n_kv_heads} heads x {config.head_dim}"
    if config.v_head_dim != config.head_dim:
        width = f"{config.n_kv_heads} heads x ({config.head_dim} + {config.v_head_dim})"
    kv_sum = f"{config.n_layers} layers x {width} x {context} positions x 2 B"
    arena = arena_items(config, options, group_size)
    arena_sum = ", ".join(f"{name}: {size} B" for name, size in arena)
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
    if options.chat is not None:
        regions.append(_chat_region(options.chat, context))
    if options.debug:
        records = trace_records(config, options)
        ring_sum = f"{records} records of {_RECORD_BYTES} B ({', '.join(options.debug)})"
        regions.append(Region("trace ring", 0, _RECORD_BYTES * records, ring_sum))
    return regions


def _chat_region(chat: ChatForm, context: int) -> Region:
    """The texts, and the buffer in which a prompt is put together."""
    texts = len(chat.prefix.encode()) + len(chat.suffix.encode())
    buffer = texts + _LINE_START_BYTES + _LINE_POSITION_BYTES * context
    text = f"{texts} B of text, {chat.n_tokens} of {context} positions; a buffer of {buffer} B"
    return Region("chat form", texts, texts + buffer, text)


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
