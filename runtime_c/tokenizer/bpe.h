/* Byte-pair encoding of one word. */
#ifndef COLIBRI_BPE_H
#define COLIBRI_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "colibri.h"

/* Where ids go. Owner of `ids`: the caller of tokenizer_encode. */
typedef struct {
    int *ids; /* [capacity] */
    int capacity;
    int count;
} IdList;

COLIBRI_MUST_CHECK colibri_status id_list_put(IdList *list, uint32_t id);

/* Appends the ids of one word, which starts with one more space if space_before. COLIBRI_E_PROMPT_TOO_LONG if they do
 * not fit. */
COLIBRI_MUST_CHECK colibri_status bpe_encode(const uint8_t *word, size_t length, bool space_before, IdList *out);

#endif
