/* lib/eval/layers_int.h -- the state of a comparison layer by layer, shared by layer_errors.c (running) and layer_list.c (what is found). */
#ifndef OCT_EVAL_LAYERS_INT_H
#define OCT_EVAL_LAYERS_INT_H

#include "eval/error_sum.h"
#include "eval/eval_int.h"
#include "eval/pairs.h"
#include "eval/scaled.h"

/* A model. */
typedef struct ev_side {
    const oct_eval_model *model;
    oct_runner *runner;
    const oct_pair **pair; /* per tap; NULL: this model has no such value. Of the reference: all NULL */
    const char **name;   /* per tap: what the model calls the value, or NULL */
    const char **shows;  /* those that are not NULL */
    size_t n_shows;
    oct_error_sum *error; /* per tap, of everything before it too */
    oct_error_sum *own;  /* per tap, of the layer alone */
    ev_codes *codes;     /* per tap */
    ev_channels *channels;
    const char **scheme; /* per tap; NULL: never shown */
    bool news;           /* this run has shown taps that none before it has */
    size_t *shown;       /* per tap: how often in this run */
    oct_scaled_channels *scaled; /* values whose channels are not the float model's as they are */
    size_t n_scaled;
    oct_pairs pairs;
    ev_layers *l;
} ev_side;

/* What the reference has shown of a tap in this run. */
typedef struct ev_shown {
    ev_floats values;
    int64_t *end;  /* [n]: elements up to that time */
    size_t n, cap;
    bool full;     /* there was no room for more */
} ev_shown;

/* Elements of all that is shown again, such as in loops: beyond them later iterations are not compared. */
enum { MOST_AGAIN = 1 << 24 };

struct ev_layers {
    oct_arena *arena;
    const char **tap; /* names in the reference model, in its order */
    size_t n_tap, cap_tap;
    size_t *order;    /* per tap: oct_pair.order */
    ev_shown *kept;   /* per tap */
    oct_stats *stats; /* per tap, of the reference's values; NULL until sides are made */
    int64_t again;    /* elements in them but for the first time of each */
    bool *varies;     /* per tap: it depends on an input, and is not of a body */
    ev_side *side;
    size_t n_side;
    ev_floats scratch, moved;
    int64_t rows;
    size_t n;
    bool replacing;   /* this run reads the reference's values */
    bool no_own;      /* a model cannot run so */
};

/* The node that computes a value: what only quantizes or dequantizes it is passed through. NULL: none. */
const oct_node *ev_computing_node(const oct_graph *g, int value);

#endif
