/* lib/forms/qlinear.h -- the table of operators on integers whose scales and zero points are inputs, for reading and writing. */
#ifndef OCT_FORMS_QLINEAR_H
#define OCT_FORMS_QLINEAR_H

#include "graph/graph.h"

/* Inputs of data, scale and zero point, and what else; -1: there is none. */
typedef struct oct_qlinear {
    const char *type, *domain; /* the operator on integers */
    const char *op;            /* of the default domain, which it computes ... */
    int64_t opset;             /* ... as it is in this opset */
    int n_data;                /* data inputs; -1: any number, three inputs each, from x[0] on */
    int x[2], scale[2], zero[2];
    int bias;                  /* int32 at the product of the inputs' scales */
    int y_scale, y_zero;       /* without a scale the output is real, where y_real allows it */
    bool y_real;
} oct_qlinear;

const oct_qlinear *oct_qlinear_all(size_t *n);
/* The form of a node by its own type, or that of the operator that it stands for; NULL: none. */
const oct_qlinear *oct_qlinear_of(const oct_node *n);
const oct_qlinear *oct_qlinear_for(const char *op);

#endif
