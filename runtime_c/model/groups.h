/* The tokens of a batch by the experts that they chose, so that an expert's weights are read once for all of them. */
#ifndef COLIBRI_GROUPS_H
#define COLIBRI_GROUPS_H

/* arena.by_expert from the routing of n tokens: one group for each expert that was chosen, in the order of the first
 * choice, by token and then by rank; in a group, tokens ascend. For one token, group and rank are the same. */
void group_by_expert(int n);

#endif
