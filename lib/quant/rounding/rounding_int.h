/* lib/quant/rounding/rounding_int.h -- internals of compensated and learned rounding, shared by rounding*.c. */
#ifndef OCT_QUANT_ROUNDING_INT_H
#define OCT_QUANT_ROUNDING_INT_H

#include "ops/nn/window.h"
#include "quant/simulate/simulate.h"
#include "quant/weights/constants.h"

#include <stdatomic.h>

/* The result of rounding a layer. */
typedef struct rresult {
    size_t weights, scales; /* how many weights, and how many scales */
    bool bound;             /* safe pairs were tried as well */
    int8_t *qvals;          /* [weights]: the result */
    int8_t *safe_qvals;     /* [weights]: the result with safe pairs, if `bound` */
    float *widened;         /* [scales]: the factors on the scales with safe pairs, if `bound` */
    double noise[2];        /* the noise of both results */
} rresult;

/* One of several layers that share their weights. */
typedef struct rmember {
    int node;
    size_t tap;        /* that shows its input: the simulation's, or in a body the value (rounding_bodies.c) */
    oct_window window; /* for a convolution */
    int axis;          /* for a matrix product: the dimension of the input channels */
} rmember;

typedef struct rlayer {
    int node;        /* the first member, which owns the weights */
    rresult to;      /* the result of the rounding */
    rmember *member; /* each member contributes a part of the positions */
    size_t n_member;
    oct_weight_layout l;
    bool kernel;
    int64_t depth, outs; /* for one group */
    int64_t rows;        /* the number of positions over all samples */
    int limit, scales;   /* the bound of the quantized values, and the number of scales */
    oct_pair_sums sums;
    bool bound;      /* pairs of the weights may have to be safe from saturation */
    float *x;        /* [groups][depth][rows], as long as the inputs are kept */
    bool *collected; /* [samples * n_member]: the rows of this sample are present */
    bool rare;       /* it stands in a body that too few samples run: it is rounded to the nearest values */
    float *own;      /* the scales of the weights, for each channel that has one */
    oct_status status;
} rlayer;

typedef struct rounder {
    oct_conversion *c;
    oct_sim *s;
    oct_qjob *j;
    oct_arena *a;
    rlayer *layer;
    qweights **before; /* by node */
    double
        most_lost; /* the largest ratio of noise with safe pairs to noise without, at which a layer gets safe pairs */
    bool safe;     /* try layers with safe pairs, if that costs little */
    bool learns;   /* start from the current weights */
    size_t n, from, to;      /* layers from..to are rounded now, out of n */
    size_t *queue;           /* [n]: their order, the most work first, so that no long work starts late */
    atomic_size_t next;      /* the next in the queue */
    bool *wanted;            /* by value: the inputs of these layers */
    struct rounder *further; /* the same for the next graph that nodes hold; NULL: there is none */
} rounder;

/* rounding_layers.c: finds the layers that will be rounded, and the form of their results. */
oct_status oct_rounder_list(rounder *r, oct_err *err);

/* rounding_bodies.c: appends a rounder for each graph that nodes of r's graph hold. */
oct_status oct_rounder_add_bodies(rounder *r, oct_err *err);
/* What shows a value of r's graph; OCT_NO_TAP: nothing does. */
size_t oct_rounder_tap(const rounder *r, int value);
/* Shows the inputs of the current layers on the samples (oct_rounder_collect). */
oct_status oct_rounder_show(rounder *r, oct_err *err);

/* rounding_inputs.c: the values that the current layers read; by value. */
const bool *oct_rounder_wants(rounder *r);
/* Receives a value of a sample from the simulation. r: the rounder. */
void oct_rounder_collect(void *r, size_t sample, size_t tap, const oct_operand *t);
/* Zeroes the rows of samples that were not shown, or were shown with other shapes. */
void oct_rounder_clear_missing(const rounder *r, const rlayer *x);

/* gptq_rounding.c, rounding_learned.c: round a layer whose inputs are complete. OCT_ENOMEM. */
oct_status oct_rounder_compensate(const rounder *r, rlayer *x);
oct_status oct_rounder_learn(const rounder *r, rlayer *x);

#endif
