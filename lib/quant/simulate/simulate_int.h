/* lib/quant/simulate/simulate_int.h -- internals of a simulation: its samples and graphs. */
#ifndef OCT_QUANT_SIMULATE_INT_H
#define OCT_QUANT_SIMULATE_INT_H

#include "base/pool.h"
#include "eval/metrics/metric.h"
#include "quant/simulate/simulate.h"
#include "runtime/runner.h"

typedef struct oct_sim_core oct_sim_core;

typedef struct sim_sample {
    oct_array *input; /* [inputs] */
    float **output;   /* [outputs] of the float model, as they are seen (sim_views.c) */
    int64_t *count; /* [outputs]: how many elements each has; 0 if an output is not finite, so that it does not count */
    float **weight; /* [outputs][rows]: by how much the errors of a box count; NULL: no boxes */
    oct_error *error;     /* [outputs] of the measurement in progress */
    oct_plan_state state; /* the state of the float graph at the point where a measurement rounded its first value, or
                             where a show ended */
    bool *passed;         /* [n_taps]: the values that were shown before that point */
} sim_sample;

/* How an output is seen before its error is measured. */
typedef struct sim_view {
    enum { SIM_VIEW_PLAIN, SIM_VIEW_LOGITS, SIM_VIEW_CENTERED, SIM_VIEW_SHARES, SIM_VIEW_BOXES } kind;
    double typical;              /* of boxes: the median of their areas */
    int64_t outer, along, inner; /* of rows that a Softmax compares: how many there are before, on and behind its axis;
                                    inner 0: unknown */
} sim_view;

/* The graphs of a simulation, which differ in their constants. */
typedef enum sim_constants { SIM_REAL, SIM_ROUNDED, SIM_SOME, SIM_GRAPHS } sim_constants;
typedef struct sim_graph {
    oct_graph *g;
    oct_runner **runner; /* [threads] */
} sim_graph;

typedef struct sim_worker {
    oct_sim_core *s;
    oct_plan *plan; /* the plan that is running */
    bool real;      /* nothing has been rounded so far in this run, and a state should be kept */
    bool ahead;     /* the run is beyond the point of the state that is kept */
    bool *passed;   /* [n_taps]: the values shown so far, as long as nothing was rounded */
    size_t sample;  /* the index of the sample that is running */
    float *plain;
    int64_t cap;
} sim_worker;

/* Some of the samples of one half. */
struct oct_sim {
    oct_sim_core *core;
    sim_sample **sample;
    size_t n_samples;
};

/* What the simulations of a conversion share. */
struct oct_sim_core {
    oct_conversion *c;
    oct_arena *arena;
    oct_pool *pool;
    size_t threads, n_inputs, n_outputs;
    sim_worker *worker;
    oct_sim half[2]; /* all samples that are kept */
    sim_view *view;  /* [outputs]; NULL: no half is kept so far */
    int64_t macs;    /* multiply-accumulates of a run; more than the graph says if only samples tell the shapes */
    /* these depend on decisions: */
    uint64_t revision;
    oct_arena *decided;
    const char **tap; /* [n_taps] */
    int *tapped;      /* the corresponding rounding (simulate.h) */
    size_t n_taps;
    sim_graph graph[SIM_GRAPHS];
    oct_sim_end *end; /* [n_outputs]; the same in all graphs */
    /* the current run: */
    const oct_sim *set;
    const oct_sim_mask *mask;
    sim_graph *now;
    bool keep; /* the outputs are those of the float model */
    void (*show)(void *arg, size_t sample, size_t tap,
                 const oct_operand *t); /* NULL: values are rounded, and not shown */
    void *show_arg;
    const bool *wanted; /* by value: whether it is shown */
    pthread_mutex_t lock;
};

/* The graph of a kind, and with it the taps. It is made if it does not exist. rounds: for SIM_SOME, as in
 * oct_sim_graph. */
oct_status oct_sim_make_graph(oct_sim_core *s, sim_constants kind, const bool *rounds, oct_err *err);
oct_status oct_sim_make_runner(oct_sim_core *s, sim_graph *g, size_t thread, oct_err *err);
void oct_sim_drop_runners(oct_sim_core *s); /* Frees memory; the graphs are made again when they are needed. */
/* Runs a graph on samples. */
oct_status oct_sim_run(oct_sim_core *s, const oct_sim *set, sim_graph *g, oct_err *err);

/* sim_states.c. Prepares memory for the states of the samples of a set: */
oct_status oct_sim_need_states(oct_sim_core *s, const oct_sim *set, oct_err *err);
void oct_sim_drop_states(oct_sim_core *s);
/* Runs the sample of a worker, starting from the kept state if possible. */
oct_status oct_sim_run_sample(sim_worker *w, oct_runner *r, oct_plan **plan, oct_err *err);
bool oct_sim_is_on(const oct_sim_core *s, size_t tap); /* the measurement rounds this value */
/* oct_sim_pass: a tap was shown, and its value is not rounded. oct_sim_end_real: a value is about to be rounded for the
 * first time in the run. */
void oct_sim_pass(sim_worker *w, size_t tap);
void oct_sim_end_real(sim_worker *w);

/* sim_views.c: chooses how outputs are seen, by the samples of the half that is kept first, and shows those of a half
 * so. Then: the same for n numbers of output k in a measurement, in place. */
oct_status oct_sim_view_outputs(oct_sim_core *s, const oct_sim *h, oct_err *err);
void oct_sim_view(const oct_sim_core *s, const sim_sample *x, size_t k, float *y, int64_t n);

/* sim_samples.c: makes sure that the samples of a half are kept, with the outputs of the float model. */
oct_status oct_sim_need_half(oct_sim_core *s, int half, oct_err *err);
/* How many samples a size stands for. */
size_t oct_sim_samples(const oct_sim_core *s, oct_sim_size size);

#endif
