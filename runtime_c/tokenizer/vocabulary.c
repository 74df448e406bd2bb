#include "tokenizer/vocabulary.h"

#include <string.h>

/* As in render/token_hash.py. */
#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)
#define LENGTH_MULTIPLIER UINT64_C(0xD1B54A32D192ED03)

#define LOW_BITS UINT64_C(0x0101010101010101)
#define HIGH_BITS UINT64_C(0x8080808080808080)
#define EVEN_BYTES UINT64_C(0x00FF00FF00FF00FF)

static size_t long_length(uint32_t id) {
    uint32_t low = 0;
    uint32_t high = tokenizer_n_long_lengths;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (tokenizer_long_lengths[middle][0] <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return tokenizer_long_lengths[low][1];
}

static size_t length_of(uint32_t id) {
    const size_t length = tokenizer_lengths[id];
    return length != LENGTH_LISTED ? length : long_length(id);
}

/* Lengths of the tokens before `id` in its block, together. Eight lengths are added up at once, in pairs of 16 bits. */
static size_t lengths_before(uint32_t id) {
    const uint32_t first = id / TOKENS_A_BLOCK * TOKENS_A_BLOCK;
    const unsigned n = id - first;
    uint64_t lengths;
    memcpy(&lengths, tokenizer_lengths + first, sizeof lengths);
    lengths &= (UINT64_C(1) << 8 * n) - 1;
    if (((~lengths - LOW_BITS) & lengths & HIGH_BITS) != 0) { /* one of them is LENGTH_LISTED */
        size_t sum = 0;
        for (uint32_t i = first; i < id; i++) {
            sum += length_of(i);
        }
        return sum;
    }
    const uint64_t pairs = (lengths & EVEN_BYTES) + (lengths >> 8 & EVEN_BYTES);
    return (size_t)((pairs * UINT64_C(0x0001000100010001)) >> 48);
}

static const uint8_t *start_of(uint32_t id) {
    return tokenizer_texts + tokenizer_block_starts[id / TOKENS_A_BLOCK] + lengths_before(id);
}

TokenText token_text(uint32_t id) {
    return (TokenText){start_of(id), length_of(id)};
}

/* Whether an ascending list of n ids has this one. */
static bool is_in(const TokenId *ids, uint32_t n, uint32_t id) {
    uint32_t low = 0;
    uint32_t high = n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && ids[low] == id;
}

bool token_is_silent(uint32_t id) {
    return is_in(tokenizer_silent_ids, tokenizer_n_silent_ids, id);
}

static uint64_t load_32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t load_64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t mix(uint64_t state) {
    state *= MULTIPLIER;
    return state ^ state >> 32;
}

static uint64_t hash_of(const uint8_t *bytes, size_t length) {
    uint64_t state = length * LENGTH_MULTIPLIER + tokenizer_hash.seed;
    size_t n = length;
    for (; n >= 8; n -= 8, bytes += 8) {
        state = mix(state ^ load_64(bytes));
    }
    if (n >= 4) {
        return mix(state ^ (load_32(bytes) | load_32(bytes + n - 4) << 32));
    }
    if (n > 0) {
        const uint32_t tail = bytes[0] | (uint32_t)bytes[n / 2] << 8 | (uint32_t)bytes[n - 1] << 16;
        return mix(state ^ tail);
    }
    return state;
}

/* a * b / 2^32 */
static uint32_t scale(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* The only token whose text could be this one. */
static uint32_t candidate(const uint8_t *bytes, size_t length) {
    const uint64_t hash = hash_of(bytes, length);
    const uint32_t pilot = tokenizer_hash.pilots[scale((uint32_t)(hash >> 32), tokenizer_hash.n_buckets)];
    const uint32_t slot = scale((uint32_t)hash + pilot * (uint32_t)(hash >> 16), tokenizer_hash.n_slots);
    const size_t bit = (size_t)slot * tokenizer_hash.slot_bits;
    const uint64_t word = load_32(tokenizer_hash.slots + bit / 8);
    return (uint32_t)(word >> bit % 8) & ((UINT32_C(1) << tokenizer_hash.slot_bits) - 1);
}

static bool has_text(uint32_t id, const uint8_t *bytes, size_t length) {
    return length_of(id) == length && memcmp(start_of(id), bytes, length) == 0;
}

TokenId token_find(const uint8_t *bytes, size_t length) {
    const uint32_t id = candidate(bytes, length);
    return has_text(id, bytes, length) ? (TokenId)id : NO_TOKEN;
}

TokenId token_whole(const uint8_t *bytes, size_t length) {
    const TokenId id = length <= tokenizer_max_token_bytes ? token_find(bytes, length) : NO_TOKEN;
    return id != NO_TOKEN && is_in(tokenizer_unmade_ids, tokenizer_n_unmade_ids, id) ? NO_TOKEN : id;
}

TokenId token_find_merge(const uint8_t *bytes, size_t length, size_t left_bytes) {
    const uint32_t id = candidate(bytes, length);
    const uint8_t split = tokenizer_splits[id];
    const bool may_merge = split == left_bytes || split >= SPLIT_LISTED;
    return may_merge && has_text(id, bytes, length) ? (TokenId)id : NO_TOKEN;
}
