#include "tokenizer/bpe.h"

#include "tokenizer/vocabulary.h"

/* Marks the ends of the list of pieces. */
#define NO_POSITION UINT16_MAX
#define NO_RANK UINT64_MAX

/* Ranks: of a regular merge (result + 1) << 32 | its order among those with this result, below EXCEPTION; of an
 * exception `after` << 32 | EXCEPTION | order, which comes after all regular ones whose result is below `after`. */
#define EXCEPTION UINT32_C(0x80000000)

typedef struct {
    const uint8_t *bytes;
    size_t length;
} Word;

static uint64_t exception_rank(uint32_t result, size_t left_bytes) {
    const uint64_t wanted = (uint64_t)result << 32 | (uint32_t)left_bytes;
    uint32_t low = 0;
    uint32_t high = tokenizer_n_exceptions;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const MergeException *item = &tokenizer_exceptions[middle];
        const uint64_t key = (uint64_t)item->result << 32 | item->left_bytes;
        if (key == wanted) {
            return (uint64_t)item->after << 32 | EXCEPTION | item->order;
        }
        if (key < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NO_RANK;
}

/* Bytes of the piece at `at` and its successor together; 0 if there is none. */
static size_t pair_bytes(const Word *word, size_t at) {
    const size_t next = bpe_pieces[at].next;
    if (next == NO_POSITION) {
        return 0;
    }
    const size_t after = bpe_pieces[next].next;
    return (after == NO_POSITION ? word->length : after) - at;
}

/* Rank of the merge of the piece at `at` with its successor. */
static uint64_t merge_rank(const Word *word, size_t at) {
    const size_t length = pair_bytes(word, at);
    const BpePiece *piece = &bpe_pieces[at];
    if (length == 0 || length > tokenizer_max_token_bytes || ((piece->id | bpe_pieces[piece->next].id) & BPE_ALONE)) {
        return NO_RANK;
    }
    const size_t left_bytes = piece->next - at;
    const TokenId result = token_find_merge(word->bytes + at, length, left_bytes);
    if (result == NO_TOKEN) {
        return NO_RANK;
    }
    if (tokenizer_splits[result] == SPLIT_LISTED) {
        return exception_rank(result, left_bytes);
    }
    const uint32_t minor = tokenizer_longest_first ? EXCEPTION - 1 - (uint32_t)left_bytes : piece->id;
    return ((uint64_t)result + 1) << 32 | minor;
}

/* In a short word the best merge is looked for anew each time. */
enum { SHORT_WORD = 16 };

static size_t best_of_short(void) {
    size_t best = 0;
    for (size_t at = bpe_pieces[0].next; at != NO_POSITION; at = bpe_pieces[at].next) {
        if (bpe_pieces[at].rank < bpe_pieces[best].rank) {
            best = at;
        }
    }
    return best;
}

/* In a long one it is kept by a knockout tournament over the n positions: node k is played by nodes 2k and 2k+1, leaves
 * are n .. 2n-1, node 1 holds the winner. A change costs log2(n) matches; equal ranks are won by the leftmost. */
static size_t winner_of(size_t node, size_t n) {
    return node >= n ? node - n : bpe_winners[node];
}

static void play(size_t node, size_t n) {
    const size_t a = winner_of(2 * node, n);
    const size_t b = winner_of(2 * node + 1, n);
    const uint64_t rank_a = bpe_pieces[a].rank;
    const uint64_t rank_b = bpe_pieces[b].rank;
    const bool a_wins = rank_a < rank_b || (rank_a == rank_b && a < b);
    bpe_winners[node] = (uint16_t)(a_wins ? a : b);
}

static void replay(size_t position, size_t n) {
    if (n <= SHORT_WORD) {
        return;
    }
    for (size_t node = (position + n) / 2; node > 0; node /= 2) {
        play(node, n);
    }
}

static uint32_t result_of(const Word *word, size_t at) {
    const uint64_t rank = bpe_pieces[at].rank;
    return (rank & EXCEPTION) != 0 ? token_find(word->bytes + at, pair_bytes(word, at)) : (uint32_t)(rank >> 32) - 1;
}

/* Merges the piece at `at` with its successor. */
static void merge(const Word *word, size_t at) {
    BpePiece *piece = &bpe_pieces[at];
    const size_t right = piece->next;
    piece->id = result_of(word, at);
    piece->next = bpe_pieces[right].next;
    if (piece->next != NO_POSITION) {
        bpe_pieces[piece->next].previous = (uint16_t)at;
    }
    bpe_pieces[right].rank = NO_RANK;
    piece->rank = merge_rank(word, at);
    replay(right, word->length);
    replay(at, word->length);
    if (piece->previous != NO_POSITION) {
        bpe_pieces[piece->previous].rank = merge_rank(word, piece->previous);
        replay(piece->previous, word->length);
    }
}

void bpe_add_piece(size_t at, uint32_t id, size_t *last) {
    const bool first = *last == SIZE_MAX;
    for (size_t unused = first ? at : *last + 1; unused < at; unused++) {
        bpe_pieces[unused].rank = NO_RANK;
    }
    if (!first) {
        bpe_pieces[*last].next = (uint16_t)at;
    }
    bpe_pieces[at].id = id;
    bpe_pieces[at].previous = first ? NO_POSITION : (uint16_t)*last;
    bpe_pieces[at].next = NO_POSITION;
    *last = at;
}

colibri_status bpe_merge(const uint8_t *bytes, size_t length, size_t last, IdList *out) {
    const Word word = {bytes, length};
    for (size_t unused = last + 1; unused < length; unused++) {
        bpe_pieces[unused].rank = NO_RANK;
    }
    for (size_t at = 0; at != NO_POSITION; at = bpe_pieces[at].next) {
        bpe_pieces[at].rank = merge_rank(&word, at);
    }
    if (length > SHORT_WORD) {
        for (size_t node = length - 1; node > 0; node--) {
            play(node, length);
        }
    }
    for (;;) {
        const size_t best = length > SHORT_WORD ? winner_of(1, length) : best_of_short();
        if (bpe_pieces[best].rank == NO_RANK) {
            break;
        }
        merge(&word, best);
    }
    colibri_status status = COLIBRI_OK;
    for (size_t at = 0; at != NO_POSITION && status == COLIBRI_OK; at = bpe_pieces[at].next) {
        status = id_list_put(out, bpe_pieces[at].id & ~BPE_ALONE);
    }
    return status;
}
