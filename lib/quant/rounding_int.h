/* lib/quant/rounding_int.h -- the inside of compensated and learned rounding, shared by rounding*.c. */
#ifndef OCT_QUANT_ROUNDING_INT_H
#define OCT_QUANT_ROUNDING_INT_H

#include "ops/nn/window.h"
#include "quant/round_parts.h"
#include "quant/simulate.h"

#include <stdatomic.h>

/* One of the layers that have their weights in common. */
typedef struct rmember {
    int node;
    const char *input; /* the name that its input is shown under */
    oct_window window; /* of a convolution */
    int axis;          /* of a matrix product's input channels */
} rmember;

typedef struct rlayer {
    int node;            /* the first member, which has the weights */
    oct_rounded to;      /* what these become */
    rmember *member;     /* each gives a part of the positions */
    size_t n_member;
    oct_weight_layout l;
    bool kernel;
    int64_t depth, outs; /* of one group */
    int64_t rows;        /* positions, of all samples */
    int limit, scales;   /* of its weights */
    bool bound;          /* pairs of these may have to be safe */
    float *x;            /* [groups][depth][rows], while its inputs are kept */
    bool *collected;     /* [samples * n_member]: the rows of a sample are there */
    float *own;          /* steps of its weights, by channel that has one */
    oct_status status;
} rlayer;

typedef struct rounder {
    oct_conversion *c;
    oct_sim *s;
    oct_qjob *j;
    oct_arena *a;
    rlayer *layer;
    qweights **before;  /* by node */
    double most_lost;   /* by safe pairs, of a layer */
    bool safe;          /* layers are tried with safe pairs, where that costs little */
    bool learns;        /* goes on from the weights that are there */
    const char *method; /* its name */
    size_t n, from, to; /* those at hand */
    size_t *queue;      /* [n]: these, the most work first, so that none is begun late that takes long */
    atomic_size_t next; /* of the queue */
    bool *wanted;       /* by value: what they read */
} rounder;

/* rounding_layers.c: layers that are rounded, with the form of what they become. */
oct_status oct_rounder_list(rounder *r, oct_err *err);

/* rounding_inputs.c: the values that the layers at hand read; by value. */
const bool *oct_rounder_wants(rounder *r);
/* Takes a value of a sample, which the simulation shows. r: a rounder. */
void oct_rounder_collect(void *r, size_t sample, const char *name, const oct_operand *t);
/* For samples that did not come by, or with other shapes. */
void oct_rounder_clear_missing(const rounder *r, const rlayer *x);

/* rounding_compensated.c, rounding_learned.c: a layer, of which the inputs are there. OCT_ENOMEM. */
oct_status oct_rounder_compensate(const rounder *r, rlayer *x);
oct_status oct_rounder_learn(const rounder *r, rlayer *x);

/* rounding.c */
oct_status oct_rounder_make_results(rounder *r, rlayer *x, oct_err *err);
/* Rounds those that are listed. */
oct_status oct_rounder_round(rounder *r, oct_err *err);

/* rounding_share.c: the same, but where parts have what the method gives, that is taken; trials behind it, which begin with other decisions, round. */
oct_status oct_rounder_round_or_take(rounder *r, oct_err *err);
/* Lists, rounds and writes the part of the options (c->written), but where files have what the method gives, or no layer is rounded. */
oct_status oct_rounder_write_part(rounder *r, oct_err *err);

#endif
