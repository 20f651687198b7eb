/* lib/eval/gates.h -- what a quantized model must reach, checked after an evaluation for each of them.
 *
 * A gate has the name of its option (max-drop, min-speedup, ...) and a value. The estimate decides whether it is met; `unsure` says that
 * what was measured cannot tell: the limit lies inside the interval, or the times are too widely spread. */
#ifndef OCT_EVAL_GATES_H
#define OCT_EVAL_GATES_H

#include "eval/eval.h"

typedef enum oct_gate_kind {
    OCT_GATE_DROP,      /* max-drop: "0.5%" of the first metric that has a drop, "top1=0.5%" of the one named; as oct_drop_limit */
    OCT_GATE_AGREEMENT, /* min-agreement: "99%" or 0.99 of the samples */
    OCT_GATE_SQNR,      /* min-sqnr: dB, of the worst output */
    OCT_GATE_SPEEDUP,   /* min-speedup: times as fast as the float model */
    OCT_GATE_LATENCY,   /* max-latency: milliseconds for one sample */
    OCT_GATE_SIZE,      /* max-size: bytes of the file, or a share of the float one's: "25%", "12MB" */
    OCT_GATE_MEMORY,    /* max-memory: the same of the arena and weights for one sample */
    OCT_GATE_KINDS,
    OCT_GATE_BASELINE = OCT_GATE_KINDS /* not to be worse than in an earlier report (baseline.h) */
} oct_gate_kind;

typedef struct oct_gate {
    oct_gate_kind kind;
    const oct_metric *metric; /* of a drop, agreement and sqnr; NULL: see `command`, or the first metric with a drop */
    bool command;             /* the metric is that of --metric-cmd */
    oct_drop_limit limit;     /* of drop and agreement: how much worse is allowed */
    double value;             /* of the others: dB, times, milliseconds, bytes; 0: `share` */
    double share;             /* of the float model's bytes */
    const char *text;         /* the value as it was given */
} oct_gate;

/* Gates in the order in which they were given. {0} is the empty list; release with oct_gates_free. */
typedef struct oct_gates {
    oct_arena *arena;
    oct_gate *v;
    size_t n, room;
} oct_gates;
void oct_gates_free(oct_gates *g);

/* The name of the i-th kind, "max-drop", or "baseline"; NULL beyond. */
const char *oct_gate_name(size_t kind);
/* Adds a gate by its name and value. OCT_EUSAGE: a value that is none, an unknown metric, a gate that was given before. */
oct_status oct_gates_add(oct_gates *g, const char *name, const char *value, oct_err *err);
/* Adds the gates of a text: a line for each, its name and value, of max-drop also the metric between (`max-drop top1 0.5%`); `#` before a
 * word begins a comment. OCT_EMALFORMED with label, line and column. */
oct_status oct_gates_read(oct_gates *g, const char *text, const char *label, oct_err *err);
/* Whether one of them needs times. NULL: none; else its name. */
const char *oct_gates_timed(const oct_gates *g);
/* The metrics that must be computed for them, in the arena of g. */
oct_status oct_gates_metrics(const oct_gates *g, const oct_metric ***metrics, size_t *n, oct_err *err);

/* A gate of one model. */
typedef struct oct_gate_result {
    const oct_gate *gate;
    size_t model;                /* of oct_eval_result.models, from 1 */
    const oct_eval_score *score; /* of the metric; NULL: it is about none */
    double estimate, limit;      /* in the units of the gate: drop, share, dB, times, ms, bytes */
    const char *subject;         /* of a baseline: "top1", "sqnr", "size", "memory"; else NULL */
    double before;               /* of a baseline: the old estimate, from which the limit follows */
    double lo, hi;               /* NaN: there is no interval */
    const char *method;          /* of the interval; NULL: none */
    bool met, unsure;
    uint64_t samples_needed;     /* about how many could tell; 0: not known, or enough are there */
} oct_gate_result;

/* All gates of all quantized models, model by model, in the arena of r. OCT_EUSAGE: there is no such model, or no metric with a drop. */
oct_status oct_gates_judge(const oct_gates *g, oct_eval_result *r, const oct_gate_result **result, size_t *n, oct_err *err);

#endif
