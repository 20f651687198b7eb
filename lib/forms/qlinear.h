/* lib/forms/qlinear.h -- the table of operators on integers whose scales and zero points are inputs, for reading and writing. */
#ifndef OCT_FORMS_QLINEAR_H
#define OCT_FORMS_QLINEAR_H

#include "graph/graph.h"

/* Scale and zero point follow the tensor that they belong to. */
typedef struct oct_qlinear {
    const char *type, *domain; /* the operator on integers */
    const char *op;            /* of the default domain, which it computes ... */
    int64_t opset;             /* ... as it is in this opset */
    int n_data;                /* data inputs; -1: any number */
    int first;                 /* the slot of the first of them; the others stand behind its scale and zero point, and so on */
    int bias;                  /* the slot of the bias, int32 at the product of the inputs' scales; -1: there is none */
    int y;                     /* the slot of the output's scale; without one the output is real, where y_real allows it */
    bool y_real;
} oct_qlinear;

const oct_qlinear *oct_qlinear_all(size_t *n);
/* The form of a node by its own type, or that of the operator that it stands for; NULL: none. */
const oct_qlinear *oct_qlinear_of(const oct_node *n);
const oct_qlinear *oct_qlinear_for(const char *op);
/* The slot of data input i; of its scale and zero point: 1 and 2 more. */
static inline int oct_qlinear_slot(const oct_qlinear *f, int i)
{
    return f->first + 3 * i;
}
/* The dimension of data input i, of this rank, along which its scales lie where it has several: the output channels of weights. */
int oct_qlinear_axis(const oct_qlinear *f, const oct_node *n, int i, int rank);

#endif
