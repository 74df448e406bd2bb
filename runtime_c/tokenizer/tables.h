/* What the generator says about one tokenizer; tokenizer_tables.c (generated) defines it. */
#ifndef COLIBRI_TOKENIZER_TABLES_H
#define COLIBRI_TOKENIZER_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_config.h" /* MODEL_VOCAB_SIZE, MODEL_CONTEXT */
#include "tokenizer/steps.h"

#if MODEL_VOCAB_SIZE < 65536
typedef uint16_t TokenId;
#else
typedef uint32_t TokenId;
#endif

#define NO_TOKEN ((TokenId)-1)

/* Texts of the tokens, one after the other by id; none for a token that neither prints nor merges. Where each 8th one
 * starts. Length in bytes, filled up to whole blocks, or LENGTH_LISTED: its (id, length) is in the list, which goes up.
 */
enum { TOKENS_A_BLOCK = 8, LENGTH_LISTED = 255 };
extern const unsigned char tokenizer_texts[];
extern const uint32_t tokenizer_block_starts[];
extern const uint8_t tokenizer_lengths[];
extern const uint32_t tokenizer_long_lengths[][2];
extern const uint32_t tokenizer_n_long_lengths;

/* Tokens that have a text because they merge, and print nothing; ascending. */
extern const TokenId tokenizer_silent_ids[];
extern const uint32_t tokenizer_n_silent_ids;

/* Tokens that encoding looks up, but that merging does not make of their own text; ascending, in most vocabularies
 * none. A word that is any other of those tokens is taken at once. */
extern const TokenId tokenizer_unmade_ids[];
extern const uint32_t tokenizer_n_unmade_ids;

/* Hash table over the texts that encoding looks up (vocabulary.c). Slots are numbers of slot_bits bits. */
typedef struct {
    uint64_t seed;
    const uint8_t *pilots; /* [n_buckets] */
    const uint8_t *slots;  /* ids, packed */
    uint32_t n_buckets;
    uint32_t n_slots;
    uint32_t slot_bits; /* at most 24 */
} TokenHash;
extern const TokenHash tokenizer_hash;

/* Token of each single byte. NO_TOKEN: the byte is left out of the text, as the `tokenizers` library does. */
extern const TokenId tokenizer_byte_ids[256];

/* How each token comes out of a merge: NO_SPLIT: of none; ANY_SPLIT: of any two tokens that make up its text;
 * SPLIT_LISTED: see the exceptions; else of the two tokens whose left one has that many bytes. Merges are done in the
 * order of the results; those with one result in the order of their left tokens, or the longest left part first. */
enum { NO_SPLIT = 0, SPLIT_LISTED = 254, ANY_SPLIT = 255 };
extern const uint8_t tokenizer_splits[];
extern const bool tokenizer_longest_first;

/* A merge outside these rules, done right after those with a result below `after`; several of them in the order of
 * `order`. Sorted by (result, left_bytes). */
typedef struct {
    uint32_t result;
    uint32_t left_bytes;
    uint32_t after;
    uint32_t order;
} MergeException;
extern const MergeException tokenizer_exceptions[];
extern const uint32_t tokenizer_n_exceptions;

/* Added tokens: matched in the text before anything else. */
enum { ADDED_LSTRIP = 1, ADDED_RSTRIP = 2 }; /* takes the white space on that side with it */
typedef struct {
    const char *content;
    uint32_t length; /* bytes, > 0 */
    TokenId id;
    uint8_t strip;
} AddedToken;

/* Added tokens sorted by content; those that start with byte b are at starts[b] up to starts[b + 1]. */
typedef struct {
    const AddedToken *tokens;
    uint16_t starts[257];
} AddedSet;

/* The second set is matched only in the normalized text that the first one leaves. */
enum { TOKENIZER_N_ADDED_SETS = 2 };
extern const AddedSet tokenizer_added_sets[TOKENIZER_N_ADDED_SETS];

/* Put before and after every prompt. */
extern const TokenId tokenizer_prefix_ids[];
extern const TokenId tokenizer_suffix_ids[];
extern const int tokenizer_n_prefix_ids;
extern const int tokenizer_n_suffix_ids;

/* The steps of this tokenizer beside those that all have in common. */
extern const TokenizerSteps tokenizer_steps;

/* One piece of a word while it is merged, at the position of its first byte. `previous` and `next` are positions. */
typedef struct {
    uint64_t rank; /* of the merge with the next piece */
    uint32_t id;
    uint16_t previous;
    uint16_t next;
} BpePiece;

/* Work memory for one word: what the longest word that fits into the context needs, at most 65535 bytes of text. */
extern BpePiece bpe_pieces[];
extern uint16_t bpe_winners[];
extern const size_t bpe_max_word_bytes;
extern const size_t tokenizer_max_token_bytes;

#endif
