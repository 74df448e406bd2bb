#include "tokenizer/vocabulary.h"

#include <string.h>

/* As in render/token_hash.py. */
#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)
#define LENGTH_MULTIPLIER UINT64_C(0xD1B54A32D192ED03)

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

static const uint8_t *start_of(uint32_t id) {
    size_t start = tokenizer_block_starts[id / TOKENS_A_BLOCK];
    for (uint32_t i = id / TOKENS_A_BLOCK * TOKENS_A_BLOCK; i < id; i++) {
        start += length_of(i);
    }
    return tokenizer_texts + start;
}

TokenText token_text(uint32_t id) {
    return (TokenText){start_of(id), length_of(id)};
}

bool token_is_silent(uint32_t id) {
    uint32_t low = 0;
    uint32_t high = tokenizer_n_silent_ids;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (tokenizer_silent_ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < tokenizer_n_silent_ids && tokenizer_silent_ids[low] == id;
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

TokenId token_find_merge(const uint8_t *bytes, size_t length, size_t left_bytes) {
    const uint32_t id = candidate(bytes, length);
    const uint8_t split = tokenizer_splits[id];
    const bool may_merge = split == left_bytes || split >= SPLIT_LISTED;
    return may_merge && has_text(id, bytes, length) ? (TokenId)id : NO_TOKEN;
}
