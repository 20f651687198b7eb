/* lib/quant/simulate_int.h -- the inside of a simulation: its samples and graphs. */
#ifndef OCT_QUANT_SIMULATE_INT_H
#define OCT_QUANT_SIMULATE_INT_H

#include "base/pool.h"
#include "eval/metric.h"
#include "quant/simulate.h"
#include "runtime/runner.h"

typedef struct sim_sample {
    oct_array *input;  /* [inputs] */
    float **output;    /* [outputs] of the float model */
    int64_t *count;    /* of their elements */
    oct_error *error;  /* [outputs] of the measurement in progress */
} sim_sample;

/* Graphs that differ in their constants. */
typedef struct sim_graph {
    oct_graph *g;
    oct_runner **runner; /* [threads] */
} sim_graph;

typedef struct sim_worker {
    struct oct_sim *s;
    size_t next;   /* tap that is shown next, most likely */
    size_t sample; /* at hand */
    float *plain;
    int64_t cap;
} sim_worker;

struct oct_sim {
    oct_qjob *j;
    oct_arena *arena;
    oct_pool *pool;
    size_t threads, n_inputs, n_outputs;
    sim_worker *worker;
    sim_sample *sample;
    size_t n_samples;
    const char **tap; /* [n_taps] */
    int *tapped;      /* the value of the job that it is */
    size_t n_taps;
    sim_graph real, rounded, some;
    /* the measurement in progress: */
    const oct_sim_mask *mask;
    sim_graph *graph;
    bool keep; /* outputs are those of the float model */
    void (*show)(void *arg, size_t sample, const char *name, const oct_operand *t); /* NULL: values are rounded */
    void *show_arg;
    pthread_mutex_t lock;
    oct_status status;
    oct_err err;
};

/* The tap of a name, or -1; *next: where it is looked for first, as plans show values in nearly the same order. */
int oct_sim_find_tap(const char *const *tap, size_t n, size_t *next, const char *name);

#endif
