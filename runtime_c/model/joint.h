/* Several attention matrices as one job of the threads: their panels laid end to end. */
#ifndef COLIBRI_JOINT_H
#define COLIBRI_JOINT_H

#include "model/product.h"

/* Of panels begin .. end-1 of all matrices, computes those that fall on `w`, whose first panel is number `start`. */
static inline void joint_product(const Matrix *w, const Column *columns, int n, int start, int begin, int end) {
    int first = begin > start ? begin - start : 0;
    int last = end - start < panels_of(w->rows) ? end - start : panels_of(w->rows);
    if (first < last) {
        product(MODEL_ATTENTION_FORMAT, w, columns, n, first, last);
    }
}

#endif
