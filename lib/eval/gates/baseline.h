/* lib/eval/gates/baseline.h -- the report of an earlier run, and what became worse since.
 *
 * Models pair by path, else by file name; where both runs have one quantized model, these do. Of each pair are
 * compared: metrics with a drop   worse when the whole interval of the new drop lies beyond the old drop; without an
 * interval when the drop is larger SQNR of the outputs   worse by more than OCT_BASELINE_DB size and memory       more
 * than OCT_BASELINE_SHARE larger maxerr, which is one value's, is not; nor are times, which are the machine's, nor what
 * only one of the reports has. */
#ifndef OCT_EVAL_BASELINE_H
#define OCT_EVAL_BASELINE_H

#include "base/buf.h"
#include "eval/gates/gates.h"

#define OCT_BASELINE_DB 0.1
#define OCT_BASELINE_SHARE 0.01

typedef struct oct_baseline_drop {
    const char *metric;
    double drop;
} oct_baseline_drop;

typedef struct oct_baseline_model {
    const char *name;
    double size_bytes, peak_bytes;
    double sqnr_db; /* INFINITY: the outputs are equal; NaN: not known */
    oct_baseline_drop *drops;
    size_t n_drops;
} oct_baseline_model;

typedef struct oct_baseline {
    const char *label;
    oct_baseline_model *models; /* the quantized models */
    size_t n_models;
    double samples;
} oct_baseline;

/* Reads a report that `qeval --json` wrote; everything is in arena. OCT_EMALFORMED: the file is not a report, has
 * another schema, or has no quantized model. OCT_EUNSUPPORTED: this build cannot read JSON. */
oct_status oct_baseline_read(const char *text, size_t size, const char *label, oct_arena *arena, oct_baseline **b,
                             oct_err *err);

/* Appends the results of the comparison to the n results at *result, which are in the arena of r. OCT_EUSAGE: a model
 * has no counterpart. */
oct_status oct_baseline_judge(const oct_baseline *b, oct_eval_result *r, const oct_gate_result **result, size_t *n,
                              oct_err *err);

/* Appends, with commas between, metrics with a drop that are not compared: to `now` those that the report does not have
 * of each counterpart, to `then` those that it alone has. */
void oct_baseline_gaps(const oct_baseline *b, const oct_eval_result *r, oct_buf *now, oct_buf *then);

#endif
