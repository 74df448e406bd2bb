#include "tokenizer/bpe.h"

#include <string.h>

#include "tokenizer/tables.h"

/* Marks the ends of the list of pieces. */
#define NO_POSITION UINT16_MAX
#define NO_RANK UINT32_MAX

colibri_status id_list_put(IdList *list, uint32_t id) {
    if (list->count >= list->capacity) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    list->ids[list->count++] = (int)id;
    return COLIBRI_OK;
}

/* Fills in rank and result of the merge of the piece at `at` with its successor. */
static void find_merge(size_t at) {
    BpePiece *piece = &bpe_pieces[at];
    piece->rank = NO_RANK;
    if (piece->next == NO_POSITION) {
        return;
    }
    const uint32_t right = bpe_pieces[piece->next].id;
    uint32_t low = tokenizer_merge_starts[piece->id];
    uint32_t high = tokenizer_merge_starts[piece->id + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (tokenizer_merge_rights[middle] < right) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < tokenizer_merge_starts[piece->id + 1] && tokenizer_merge_rights[low] == right) {
        piece->result = tokenizer_merge_results[low];
        piece->rank = tokenizer_merge_ranks != NULL ? tokenizer_merge_ranks[low] : piece->result;
    }
}

/* The best merge is kept by a knockout tournament over the n positions: node k is played by nodes 2k and 2k+1, leaves
 * are n .. 2n-1, node 1 holds the winner. A change costs log2(n) matches; equal ranks are won by the leftmost. */
static size_t winner_of(size_t node, size_t n) {
    return node >= n ? node - n : bpe_winners[node];
}

static void play(size_t node, size_t n) {
    const size_t a = winner_of(2 * node, n);
    const size_t b = winner_of(2 * node + 1, n);
    const uint32_t rank_a = bpe_pieces[a].rank;
    const uint32_t rank_b = bpe_pieces[b].rank;
    const bool a_wins = rank_a < rank_b || (rank_a == rank_b && a < b);
    bpe_winners[node] = (uint16_t)(a_wins ? a : b);
}

static void replay(size_t position, size_t n) {
    for (size_t node = (position + n) / 2; node > 0; node /= 2) {
        play(node, n);
    }
}

/* Merges the piece at `at` with its successor. */
static void merge(size_t at, size_t n) {
    BpePiece *piece = &bpe_pieces[at];
    BpePiece *right = &bpe_pieces[piece->next];
    const size_t right_position = piece->next;
    piece->id = piece->result;
    piece->next = right->next;
    if (piece->next != NO_POSITION) {
        bpe_pieces[piece->next].previous = (uint16_t)at;
    }
    right->rank = NO_RANK;
    find_merge(at);
    replay(right_position, n);
    replay(at, n);
    if (piece->previous != NO_POSITION) {
        find_merge(piece->previous);
        replay(piece->previous, n);
    }
}

/* Makes one piece of each byte that has a token; returns their number, or bpe_max_word_bytes + 1 if there are more. */
static size_t split_bytes(const uint8_t *word, size_t length, bool space_before) {
    size_t n = 0;
    for (size_t i = 0; i < length + space_before; i++) {
        const uint8_t byte = !space_before ? word[i] : i == 0 ? ' ' : word[i - 1];
        const TokenId id = tokenizer_byte_ids[byte];
        if (id == NO_TOKEN) {
            continue;
        }
        if (n == bpe_max_word_bytes) {
            return n + 1;
        }
        bpe_pieces[n].id = id;
        bpe_pieces[n].previous = n == 0 ? NO_POSITION : (uint16_t)(n - 1);
        bpe_pieces[n].next = (uint16_t)(n + 1);
        n++;
    }
    if (n > 0) {
        bpe_pieces[n - 1].next = NO_POSITION;
    }
    return n;
}

/* Order of a token's bytes and a word's: < 0, 0 or > 0. */
static int compare_piece(uint32_t id, const uint8_t *word, size_t length, bool space_before) {
    const unsigned char *piece = tokenizer_pieces + tokenizer_piece_starts[id];
    size_t n = tokenizer_piece_starts[id + 1] - tokenizer_piece_starts[id];
    if (space_before) {
        if (n == 0 || piece[0] != ' ') {
            return n == 0 || piece[0] < ' ' ? -1 : 1;
        }
        piece++;
        n--;
    }
    const int order = memcmp(piece, word, n < length ? n : length);
    return order != 0 ? order : (n > length) - (n < length);
}

/* The token that is the whole word, or NO_TOKEN. */
static TokenId find_whole(const uint8_t *word, size_t length, bool space_before) {
    uint32_t low = 0;
    uint32_t high = tokenizer_n_sorted_ids;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = compare_piece(tokenizer_sorted_ids[middle], word, length, space_before);
        if (order == 0) {
            return tokenizer_sorted_ids[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NO_TOKEN;
}

colibri_status bpe_encode(const uint8_t *word, size_t length, bool space_before, IdList *out) {
    const TokenId whole = find_whole(word, length, space_before);
    if (whole != NO_TOKEN) {
        return id_list_put(out, whole);
    }
    const size_t n = split_bytes(word, length, space_before);
    if (n == 0) {
        return COLIBRI_OK;
    }
    if (n > bpe_max_word_bytes) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    for (size_t i = 0; i < n; i++) {
        find_merge(i);
    }
    for (size_t node = n - 1; node > 0; node--) {
        play(node, n);
    }
    for (size_t best = winner_of(1, n); bpe_pieces[best].rank != NO_RANK; best = winner_of(1, n)) {
        merge(best, n);
    }
    colibri_status status = COLIBRI_OK;
    for (size_t at = 0; at != NO_POSITION && status == COLIBRI_OK; at = bpe_pieces[at].next) {
        status = id_list_put(out, bpe_pieces[at].id);
    }
    return status;
}
