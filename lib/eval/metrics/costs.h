/* lib/eval/metrics/costs.h -- where a run spends time and bytes: each layer of the float model beside its counterpart.
 *
 * A row stands for a value that both models compute (layer_pairs.h), and contains the steps after the previous such
 * value up to this one. These may include a clamp that is a step in one model and part of a convolution in the other,
 * changes of layout, and roundings. So the rows of a model add up to its whole run. */
#ifndef OCT_EVAL_COSTS_H
#define OCT_EVAL_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Quartiles that are further apart than this share of the median are scattered: the time is marked, and no conclusion
 * is drawn from it. */
extern const double oct_scattered_spread;
bool oct_is_scattered(double q1, double median, double q3);

typedef struct oct_eval_cost {
    const char *scheme; /* the scheme of the step with the most multiply-accumulates, or the longest time; NULL: no step
                           of this model belongs to the row */
    size_t steps;
    double seconds, q1, q3; /* of the steps together in one run: median and quartiles over the profiled runs */
    bool scattered;         /* q3 - q1 exceeds oct_scattered_spread times the median */
    uint64_t macs, bytes;   /* multiply-accumulates; bytes read and written */
    uint64_t weights;       /* of these bytes, those of constants as they are stored */
    uint64_t made;          /* bytes of outputs, which are in the arena */
    /* the shortest possible time according to oct_eval_machine, divided by `seconds`: 1 is as fast as possible, and
     * more says that the machine was slower while it was measured. NaN: not measured */
    double roof;
} oct_eval_cost;

typedef struct oct_eval_cost_row {
    const char *name, *op; /* of the float model's step with the most multiply-accumulates, or the longest time */
    oct_eval_cost was, is; /* the cost in the float model, and in this one */
} oct_eval_cost_row;
/* How many times faster the steps became, for every report. NaN: a model has none, or a time is scattered. */
double oct_eval_cost_faster(const oct_eval_cost *was, const oct_eval_cost *is);

/* The peak performance of the machine with the threads and instruction sets of the run, measured beside it: matrix
 * products of 512 x 512 with the kernels that the models use, and copying of 128 kB by each thread, which fits its
 * cache. 0: not measured. */
typedef struct oct_eval_machine {
    double float_macs, int8_macs; /* multiply-accumulates per second */
    double bytes;                 /* bytes read and written per second */
} oct_eval_machine;

#endif
