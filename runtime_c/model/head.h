/* The output head. */
#ifndef COLIBRI_HEAD_H
#define COLIBRI_HEAD_H

#include "model/arena.h"

/* arena.logits from token->x. COLIBRI_E_NOT_FINITE if one is NaN or infinite. */
COLIBRI_MUST_CHECK colibri_status output_head(Token *token);

#endif
