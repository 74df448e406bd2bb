/* The tokens that go through the layers together: arena.tokens[0 .. n-1], at consecutive positions. What the tokens
 * share, such as a matrix that is read once for all, changes no token's bits. */
#ifndef COLIBRI_BATCH_H
#define COLIBRI_BATCH_H

#include "model/arena.h"

/* The first token's fault, COLIBRI_OK if none has one. */
static inline colibri_status batch_status(int n) {
    colibri_status status = COLIBRI_OK;
    for (int i = 0; i < n && status == COLIBRI_OK; i++) {
        status = arena.tokens[i].status;
    }
    return status;
}

#endif
