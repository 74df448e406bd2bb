/* What the generator says about one tokenizer; tokenizer_tables.c (generated) defines it. */
#ifndef COLIBRI_TOKENIZER_TABLES_H
#define COLIBRI_TOKENIZER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_config.h" /* MODEL_VOCAB_SIZE, MODEL_CONTEXT */

#if MODEL_VOCAB_SIZE < 65536
typedef uint16_t TokenId;
#else
typedef uint32_t TokenId;
#endif

#define NO_TOKEN ((TokenId)-1)

/* Bytes of each token, one after the other: token t has tokenizer_pieces[tokenizer_piece_starts[t]] up to the start of
 * token t+1. A special token, which decodes to nothing, has none. */
extern const unsigned char tokenizer_pieces[];
extern const uint32_t tokenizer_piece_starts[MODEL_VOCAB_SIZE + 1];

/* Token of each single byte. NO_TOKEN: the byte is left out of the text, as the `tokenizers` library does. */
extern const TokenId tokenizer_byte_ids[256];

/* Merges by pair: those with left token t are at tokenizer_merge_starts[t] up to the start of t+1, sorted by right
 * token. The merge of lowest rank is done first; without ranks the rank is the id of the result. */
extern const uint32_t tokenizer_merge_starts[MODEL_VOCAB_SIZE + 1];
extern const TokenId tokenizer_merge_rights[];
extern const TokenId tokenizer_merge_results[];
extern const uint32_t *const tokenizer_merge_ranks; /* NULL: none */

/* Where a word that is a token is taken whole: every vocabulary token, sorted by its bytes. Else the count is 0. */
extern const TokenId tokenizer_sorted_ids[];
extern const uint32_t tokenizer_n_sorted_ids;

/* A token that is matched in the text before anything else. */
typedef struct {
    const char *content;
    uint32_t length; /* bytes, > 0 */
    TokenId id;
} AddedToken;

/* Added tokens sorted by content; those that start with byte b are at starts[b] up to starts[b + 1]. */
typedef struct {
    const AddedToken *tokens;
    uint16_t starts[257];
} AddedSet;

/* The second set is matched only in the text that the first one leaves. */
enum { TOKENIZER_N_ADDED_SETS = 2 };
extern const AddedSet tokenizer_added_sets[TOKENIZER_N_ADDED_SETS];

/* Put before and after every prompt. */
extern const TokenId tokenizer_prefix_ids[];
extern const TokenId tokenizer_suffix_ids[];
extern const int tokenizer_n_prefix_ids;
extern const int tokenizer_n_suffix_ids;

/* A stretch of text that does not start with a space is read as if it did. */
extern const bool tokenizer_add_prefix_space;

/* One piece of a word while it is merged. Positions count bytes that have a token; `previous` and `next` are
 * positions of pieces. */
typedef struct {
    uint32_t id;
    uint32_t rank;   /* of the merge with the next piece; UINT32_MAX: none */
    uint32_t result; /* of that merge */
    uint16_t previous;
    uint16_t next;
} BpePiece;

/* Work memory for one word: what the longest word that fits into the context needs, at most 65535 bytes of text. */
extern BpePiece bpe_pieces[];
extern uint16_t bpe_winners[];
extern const size_t bpe_max_word_bytes;

#endif
