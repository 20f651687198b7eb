/* lib/eval/costs.h -- where the time and the bytes of a run go: each layer of the float model beside what became of it.
 *
 * A row stands for a value that both models compute (layer_pairs.h), and for the steps behind the last such value up to it: a clamp that is a step in
 * one model and part of a convolution in the other, changes of layout, roundings. So the rows of a model add up to its run. */
#ifndef OCT_EVAL_COSTS_H
#define OCT_EVAL_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Quartiles further apart than this share of the median are wide: the time is marked, and nothing is concluded from it. */
#define OCT_WIDE_SPREAD 0.1
bool oct_is_wide(double q1, double median, double q3);

typedef struct oct_eval_cost {
    const char *scheme;   /* of the step with the most multiply-accumulates, or time; NULL: no step of this model belongs to the row */
    size_t steps;
    double seconds, q1, q3; /* of one run of them: median and quartiles over the runs that were profiled */
    bool wide;            /* q3 - q1 is more than OCT_WIDE_SPREAD of the median */
    uint64_t macs, bytes; /* multiply-accumulates; bytes read and written */
    uint64_t weights;     /* bytes of constants among these, as they are stored */
    uint64_t made;        /* bytes of results, which lie in the arena */
    double roof;          /* share of the shortest possible time that oct_eval_machine tells in `seconds`: 1 is as fast as it can be, and more says that the
                           * machine was slower while it was measured. NaN: not measured */
} oct_eval_cost;

typedef struct oct_eval_cost_row {
    const char *name, *op; /* of the float model's step with the most multiply-accumulates, or time */
    oct_eval_cost was, is; /* of the float model, and of this one */
} oct_eval_cost_row;

/* What the machine can do at best with the threads and instruction sets of the run, measured beside it: products of matrices of 512 x 512 by the
 * kernels that the models run with, and copying of 128 kB by each thread, which its cache holds. 0: not measured. */
typedef struct oct_eval_machine {
    double float_macs, int8_macs; /* multiply-accumulates a second */
    double bytes;                 /* read and written a second */
} oct_eval_machine;

#endif
