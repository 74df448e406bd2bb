/* Where ids go. */
#ifndef COLIBRI_ID_LIST_H
#define COLIBRI_ID_LIST_H

#include <stdint.h>

#include "colibri.h"

/* Owner of `ids`: the caller of tokenizer_encode. */
typedef struct {
    int *ids; /* [capacity] */
    int capacity;
    int count;
} IdList;

/* COLIBRI_E_PROMPT_TOO_LONG if it is full. */
COLIBRI_MUST_CHECK static inline colibri_status id_list_put(IdList *list, uint32_t id) {
    if (list->count >= list->capacity) {
        return COLIBRI_E_PROMPT_TOO_LONG;
    }
    list->ids[list->count++] = (int)id;
    return COLIBRI_OK;
}

#endif
