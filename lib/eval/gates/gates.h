/* lib/eval/gates/gates.h -- gates: limits that are checked after an evaluation for each quantized model.
 *
 * A gate has the name of its option (max-drop, min-speedup, ...) and a value. The estimate decides whether it is met.
 * `unsure` says that the measurement does not suffice: the limit lies inside the interval, there is no interval, as
 * with few samples, or the times vary too much. */
#ifndef OCT_EVAL_GATES_H
#define OCT_EVAL_GATES_H

#include "eval/run/eval.h"

typedef enum oct_gate_kind {
    OCT_GATE_DROP,      /* max-drop: "0.5%" of the first metric, "top1=0.5%" of the one named; as oct_drop_limit */
    OCT_GATE_AGREEMENT, /* min-agreement: "99%" or 0.99 of the samples */
    OCT_GATE_SQNR,      /* min-sqnr: dB, of the worst output */
    OCT_GATE_SPEEDUP,   /* min-speedup: times as fast as the float model */
    OCT_GATE_LATENCY,   /* max-latency: milliseconds for one sample */
    OCT_GATE_SIZE,      /* max-size: bytes of the file, or a share of the float one's: "25%", "12MB" */
    OCT_GATE_MEMORY,    /* max-memory: the same of the arena and weights for one sample */
    OCT_GATE_KINDS,
    OCT_GATE_BASELINE = OCT_GATE_KINDS /* the model must not be worse than in an earlier report (baseline.h) */
} oct_gate_kind;

typedef struct oct_gate {
    oct_gate_kind kind;
    const oct_metric *metric; /* for a drop, agreement and sqnr; NULL: see `command`, or else the first metric */
    bool command;             /* the metric is that of --metric-cmd */
    oct_drop_limit limit;     /* for a drop and agreement: how much worse is allowed */
    double value;             /* for the others: dB, times, milliseconds or bytes; 0: see `share` */
    double share;             /* a share of the float model's bytes */
    const char *text;         /* the value as the user wrote it */
} oct_gate;

/* Gates in the order in which they were added. {0} is the empty list. Release it with oct_gates_free. */
typedef struct oct_gates {
    oct_arena *arena;
    oct_gate *v;
    size_t n, room;
} oct_gates;
void oct_gates_free(oct_gates *g);

/* The name of the i-th kind, such as "max-drop", or "baseline"; NULL after the last. */
const char *oct_gate_name(size_t kind);
/* Adds a gate by name and value. OCT_EUSAGE: the value is not valid, the metric is unknown, or the gate was added
 * before. */
oct_status oct_gates_add(oct_gates *g, const char *name, const char *value, oct_err *err);
/* Adds the gates of a text. Each line has a name and a value; for max-drop, the metric may stand between them
 * (`max-drop top1 0.5%`). `#` before a word begins a comment. OCT_EMALFORMED with label, line and column. */
oct_status oct_gates_read(oct_gates *g, const char *text, const char *label, oct_err *err);
/* The name of a gate that needs times; NULL: there is none. */
const char *oct_gates_timed(const oct_gates *g);
/* The metrics that the gates need, in the arena of g. */
oct_status oct_gates_metrics(const oct_gates *g, const oct_metric ***metrics, size_t *n, oct_err *err);

/* The limit on the drop of the first metric; NULL: there is none. */
const oct_drop_limit *oct_gates_main_limit(const oct_gates *g);

/* The result of a gate for one model. */
typedef struct oct_gate_result {
    const oct_gate *gate;
    size_t model;                /* the index in oct_eval_result.models, from 1 */
    const oct_eval_score *score; /* the name of the metric; NULL: the gate is not about a metric */
    double estimate, limit;      /* in the units of the gate: drop, share, dB, times, ms, bytes */
    const char *subject;         /* for a baseline, what was compared: "top1", "sqnr", "size", "memory"; else NULL */
    double before;               /* for a baseline: the old estimate, on which the limit is based */
    double lo, hi;               /* NaN: there is no interval */
    const char *method;          /* the method of the interval; NULL: none */
    bool met, unsure;
    uint64_t samples_needed; /* approximately how many samples would suffice; 0: not known, or there are enough */
} oct_gate_result;

/* The results of all gates for all quantized models, model by model, in the arena of r. OCT_EUSAGE: there is no
 * quantized model, or no metric with a drop. */
oct_status oct_gates_judge(const oct_gates *g, oct_eval_result *r, const oct_gate_result **result, size_t *n,
                           oct_err *err);

#endif
