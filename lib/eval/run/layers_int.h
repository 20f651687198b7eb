/* lib/eval/run/layers_int.h -- the state of a comparison layer by layer, shared by layer_errors.c, which runs it, and
 * layer_list.c, which makes the results. */
#ifndef OCT_EVAL_LAYERS_INT_H
#define OCT_EVAL_LAYERS_INT_H

#include "eval/metrics/error_sum.h"
#include "eval/run/eval_int.h"
#include "eval/pairs/pairs.h"
#include "eval/run/scaled.h"

/* One of the models. */
typedef struct ev_side {
    const oct_eval_model *model;
    oct_runner *runner;
    const oct_pair **pair; /* per tap; NULL: this model has no such value. For the reference: all are NULL */
    const char **name;     /* per tap: the name of the value in this model, or NULL */
    const char **shows;    /* those of them that are not NULL */
    size_t *tap_of;        /* [n_shows]: the tap of each */
    size_t n_shows;
    oct_error_sum *error; /* per tap: the error including that of everything before it */
    oct_error_sum *own;   /* per tap: the error of the layer alone */
    ev_codes *codes;      /* per tap */
    ev_channels *channels;
    const char **scheme;         /* per tap; NULL: the tap was never shown */
    bool news;                   /* this run has shown a tap that no earlier run has shown */
    size_t *shown;               /* per tap: how often it was shown in this run */
    oct_scaled_channels *scaled; /* values whose channels were scaled in comparison with the float model */
    size_t n_scaled;
    oct_pairs pairs;
    ev_layers *l;
} ev_side;

/* The values of a tap that the reference has shown in this run. */
typedef struct ev_shown {
    ev_floats values;
    int64_t *end; /* [n]: how many elements there were after each time */
    size_t n, cap;
    bool full; /* there was no room for more */
} ev_shown;

/* The most elements of values that are shown repeatedly, as in loops. Iterations beyond that are not compared. */
enum { MOST_AGAIN = 1 << 24 };

struct ev_layers {
    oct_arena *arena;
    const char **tap; /* names in the reference model, in the order of the model */
    size_t n_tap, cap_tap;
    size_t *order;    /* per tap: oct_pair.order */
    ev_shown *kept;   /* per tap */
    oct_stats *stats; /* per tap: statistics of the reference's values; NULL until the sides exist */
    int64_t again;    /* how many elements come from repeated values */
    bool *varies;     /* per tap: the value depends on an input, and is not in a body */
    ev_side *side;
    size_t n_side;
    ev_floats scratch, moved;
    int64_t rows;
    size_t n;
    bool replacing; /* in this run, layers read the reference's values */
    bool no_own;    /* a model cannot run in that way */
};

#endif
