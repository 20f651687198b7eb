/* lib/quant/simulate_int.h -- the inside of a simulation: its samples and graphs. */
#ifndef OCT_QUANT_SIMULATE_INT_H
#define OCT_QUANT_SIMULATE_INT_H

#include "base/pool.h"
#include "eval/metric.h"
#include "quant/simulate.h"
#include "runtime/runner.h"

typedef struct oct_sim_core oct_sim_core;

typedef struct sim_sample {
    oct_array *input;  /* [inputs] */
    float **output;    /* [outputs] of the float model */
    int64_t *count;    /* of their elements */
    oct_error *error;  /* [outputs] of the measurement in progress */
    oct_plan_state state; /* of the float graph, where a measurement rounded its first value or a show ended */
    bool *passed;      /* [n_taps]: values shown on the way there */
} sim_sample;

/* Graphs that differ in their constants. */
typedef enum sim_constants { SIM_REAL, SIM_ROUNDED, SIM_SOME, SIM_GRAPHS } sim_constants;
typedef struct sim_graph {
    oct_graph *g;
    oct_runner **runner; /* [threads] */
} sim_graph;

typedef struct sim_worker {
    oct_sim_core *s;
    size_t next;      /* tap that is shown next, most likely */
    oct_plan *plan;   /* that runs */
    bool real;        /* nothing has been rounded yet, and a state is wanted */
    bool ahead;       /* of the state that is kept */
    bool *passed;     /* [n_taps]: values shown so far, while nothing was rounded */
    size_t sample;    /* at hand */
    float *plain;
    int64_t cap;
} sim_worker;

/* Some of the samples of a half. */
struct oct_sim {
    oct_sim_core *core;
    sim_sample **sample;
    size_t n_samples;
};

/* What simulations of a conversion share. */
struct oct_sim_core {
    oct_conversion *c;
    oct_arena *arena;
    oct_pool *pool;
    size_t threads, n_inputs, n_outputs;
    sim_worker *worker;
    oct_sim half[2];  /* all that are kept */
    int64_t macs;     /* of a run; more than the graph says where only samples tell shapes */
    /* what follows from decisions: */
    uint64_t revision;
    oct_arena *decided;
    const char **tap; /* [n_taps] */
    int *tapped;      /* the value of the job that it is */
    size_t n_taps;
    sim_graph graph[SIM_GRAPHS];
    /* the run in progress: */
    const oct_sim *set;
    const oct_sim_mask *mask;
    sim_graph *now;
    bool keep; /* outputs are those of the float model */
    void (*show)(void *arg, size_t sample, const char *name, const oct_operand *t); /* NULL: values are rounded */
    void *show_arg;
    const bool *wanted; /* by value: what is shown */
    pthread_mutex_t lock;
};

/* The tap of a name, or -1; *next: where it is looked for first, as plans show values in nearly the same order. */
int oct_sim_find_tap(const char *const *tap, size_t n, size_t *next, const char *name);
/* Settles the conversion, and drops what follows from older decisions. */
oct_status oct_sim_follow(oct_sim_core *s, oct_err *err);
/* The graph of a kind, and with it the taps; it is made now if it is not there. rounds: as oct_sim_graph has it, of SIM_SOME. */
oct_status oct_sim_make_graph(oct_sim_core *s, sim_constants kind, const bool *rounds, oct_err *err);
oct_status oct_sim_make_runner(oct_sim_core *s, sim_graph *g, size_t thread, oct_err *err);
void oct_sim_drop_runners(oct_sim_core *s); /* for memory; they are made again when they are needed */
/* Runs a graph on samples. */
oct_status oct_sim_run(oct_sim_core *s, const oct_sim *set, sim_graph *g, oct_err *err);

/* sim_states.c. Room for states of the samples of a set: */
oct_status oct_sim_need_states(oct_sim_core *s, const oct_sim *set, oct_err *err);
void oct_sim_drop_states(oct_sim_core *s);
/* Runs the worker's sample, from the state that is kept where that can be. */
oct_status oct_sim_run_sample(sim_worker *w, oct_runner *r, oct_plan **plan, oct_err *err);
bool oct_sim_is_on(const oct_sim_core *s, size_t tap); /* the measurement rounds it */
/* A tap was shown and stays real; one that is on is about to be rounded. */
void oct_sim_pass(sim_worker *w, size_t tap);
void oct_sim_end_real(sim_worker *w);

/* sim_samples.c: sees that the samples of a half are kept, with the float model's outputs. */
oct_status oct_sim_need_half(oct_sim_core *s, int half, oct_err *err);
/* How many samples a size means. */
size_t oct_sim_samples(const oct_sim_core *s, oct_sim_size size);

#endif
