/* Byte-pair merging of one word. */
#ifndef COLIBRI_BPE_H
#define COLIBRI_BPE_H

#include "tokenizer/tables.h"

/* Piece that never merges: a bit beside its id. */
#define BPE_ALONE UINT32_C(0x80000000)

/* Makes the next piece of a word, which starts at byte `at` and follows the one at *last (SIZE_MAX: it is the first).
 */
void bpe_add_piece(size_t at, uint32_t id, size_t *last);

/* Merges the pieces of a word of `length` bytes, the last of which is at `last`, and appends their ids. */
COLIBRI_MUST_CHECK colibri_status bpe_merge(const uint8_t *word, size_t length, size_t last, IdList *out);

#endif
