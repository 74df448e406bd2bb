#include "model/groups.h"

#include "model/arena.h"

#ifdef MODEL_HAS_EXPERTS
/* Fills expert, first and n of every group, and where each expert's group is. */
static void count_choices(int n, ExpertGroups *by_expert, int group_of[MODEL_N_EXPERTS]) {
    by_expert->n_groups = 0;
    for (int e = 0; e < MODEL_N_EXPERTS; e++) {
        group_of[e] = -1;
    }
    for (int choice = 0; choice < n * MODEL_TOP_K; choice++) {
        int expert = arena.tokens[choice / MODEL_TOP_K].routing.experts[choice % MODEL_TOP_K];
        if (group_of[expert] < 0) {
            group_of[expert] = by_expert->n_groups;
            by_expert->groups[by_expert->n_groups++] = (ExpertGroup){.expert = expert};
        }
        by_expert->groups[group_of[expert]].n++;
    }
    int first = 0;
    for (int g = 0; g < by_expert->n_groups; g++) {
        by_expert->groups[g].first = first;
        first += by_expert->groups[g].n;
    }
}

void group_by_expert(int n) {
    ExpertGroups *by_expert = &arena.by_expert;
    int group_of[MODEL_N_EXPERTS];
    int n_placed[MAX_GROUPS] = {0};
    count_choices(n, by_expert, group_of);
    for (int choice = 0; choice < n * MODEL_TOP_K; choice++) {
        Token *token = &arena.tokens[choice / MODEL_TOP_K];
        int rank = choice % MODEL_TOP_K;
        int group = group_of[token->routing.experts[rank]];
        int column = by_expert->groups[group].first + n_placed[group]++;
        by_expert->gate[column] = (Column){&token->input.view, token->gate[rank]};
        by_expert->up[column] = (Column){&token->input.view, token->up[rank]};
        by_expert->down[column] = (Column){&token->hidden[rank].view, token->down[rank]};
    }
}
#endif
