/* lib/forms/qlinear.h -- the table of integer operators that have scales and zero points as inputs, for reading and
 * writing. */
#ifndef OCT_FORMS_QLINEAR_H
#define OCT_FORMS_QLINEAR_H

#include "graph/graph.h"

/* The scale and the zero point follow the tensor to which they belong. */
typedef struct oct_qlinear {
    const char *type, *domain; /* the integer operator */
    const char *op;            /* the operator of the default domain that it computes */
    int64_t opset;             /* the opset of that operator */
    int n_data;                /* how many data inputs it has; -1: any number */
    int first;                 /* the slot of the first data input; each is followed by its scale and zero point */
    int bias; /* the slot of the bias, int32 with the product of the inputs' scales as its scale; -1: there is none */
    int y;    /* the slot of the output's scale; if it is absent, the output is float, where y_real allows that */
    bool y_real;
} oct_qlinear;

const oct_qlinear *oct_qlinear_all(size_t *n);
/* The entry of an integer operator, or of the float operator for which there is one; NULL: there is none. */
const oct_qlinear *oct_qlinear_of(const oct_node *n);
const oct_qlinear *oct_qlinear_for(const char *op);
/* The slot of data input i. Those of its scale and zero point are 1 and 2 more. */
static inline int oct_qlinear_slot(const oct_qlinear *f, int i)
{
    return f->first + 3 * i;
}
/* If data input i, with this rank, has several scales: the dimension along which they are. It is that of the output
 * channels of weights. */
int oct_qlinear_axis(const oct_qlinear *f, const oct_node *n, int i, int rank);

#endif
