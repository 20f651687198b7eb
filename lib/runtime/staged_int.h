/* lib/runtime/staged_int.h -- internals of plans that run in stages: staged.c (the run), cut.c (making a stage), body.c
 * (nested graphs). */
#ifndef OCT_RUNTIME_STAGED_INT_H
#define OCT_RUNTIME_STAGED_INT_H

#include "runtime/plan_int.h"

/* The number of stages that are kept; more if one run needs more. */
enum { RT_STAGES = 32 };

/* A tensor that is there. */
typedef struct rt_live {
    int value;
    oct_plan_input as;
} rt_live;

typedef struct rt_stage {
    oct_arena *arena;
    bool ready;
    uint64_t used;
    /* what it depends on */
    bool *done; /* nodes that have run before */
    rt_live *live;
    size_t n_live;
    /* what it does */
    oct_graph *g;   /* a section of the plan's graph with the same indices, also for inputs and outputs */
    oct_plan *plan; /* NULL: nothing but constants */
    int *constant;  /* values that became constants when the section was made */
    size_t n_constant;
    bool *done_after; /* nodes that have run once the stage has run: n_node more than before */
    size_t n_node;
} rt_stage;

/* One graph nested in a node. */
typedef struct rt_body {
    int node;
    const char *attr;
    oct_graph *g;        /* a copy that stands alone */
    size_t n_own;        /* number of its own inputs; captured values follow */
    int *captured;       /* value of the outer graph, for each of these */
    oct_datum **feed;    /* [g->n_input], of the call in progress */
    oct_plan_input *was; /* [n_own], in the iteration before */
    bool *varies;        /* [n_own]: the shape has changed between iterations of the call in progress */
    rt_kept kept;
} rt_body;

typedef struct rt_time {
    double seconds;
    uint64_t calls;
} rt_time;

typedef struct rt_staged {
    oct_datum **datum; /* for each value of the plan's graph: its datum in the current run; constants always */
    bool *done;        /* by node */
    bool
        *varies; /* for each value: its shape changes between runs; so it enters a stage only if nothing else can run */
    bool all_in; /* from there on */
    size_t left; /* nodes */
    uint64_t clock, began;
    rt_live *live;
    size_t n_live;
    rt_stage **stage;
    size_t n_stage, cap_stage;
    rt_body **body;
    size_t n_body, cap_body;
    rt_time *time;    /* by node */
    oct_datum **feed; /* of a stage: [n_value] */
} rt_staged;

/* Fills a stage whose dependencies are set. */
oct_status rt_cut(oct_plan *p, rt_stage *st, oct_err *err);

/* oct_exec.body, with an rt_call. */
typedef struct rt_call {
    oct_plan *p;
    int node;
    uint64_t calls; /* of its graphs until now */
} rt_call;
oct_status rt_run_body(void *arg, const char *attr, oct_datum *const *in, size_t n_in, oct_datum **out, size_t n_out,
                       oct_err *err);
void rt_free_body(rt_body *b);

#endif
