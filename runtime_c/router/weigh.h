/* From logits to scores, and from the scores of the chosen experts to their weights: by softmax over them, over
 * all or, with MODEL_SCORING_SPARSEMIXER, over those that come close (softmax.c); with MODEL_SCORING_SIGMOID, by
 * sigmoid (sigmoid.c). */
#ifndef COLIBRI_ROUTER_WEIGH_H
#define COLIBRI_ROUTER_WEIGH_H

#include "router/router.h"

#ifdef MODEL_HAS_EXPERTS
/* Scores have the order of the logits. */
void score_experts(const float logits[MODEL_N_EXPERTS], float scores[MODEL_N_EXPERTS]);

/* out->weights of out->experts, before MODEL_ROUTED_SCALE. */
void weigh_experts(const float scores[MODEL_N_EXPERTS], Routing *out);
#endif

#endif
