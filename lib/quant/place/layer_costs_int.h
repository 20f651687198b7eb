/* lib/quant/place/layer_costs_int.h -- the costs of a job's nodes, by which by_cost.c chooses. */
#ifndef OCT_QUANT_LAYER_COSTS_INT_H
#define OCT_QUANT_LAYER_COSTS_INT_H

#include "quant/job/placed.h"

/* The costs of all nodes for each way of running them. An unknown cost is the same in every way. */
struct oct_job_costs {
    size_t n;                                       /* how many tables */
    double (*node)[OCT_COST_TABLES][OCT_COST_HOWS]; /* by node, in nanoseconds */
    /* by node: whether every table has its time in float, and also its time in another way; when it is dynamic; with
     * weights in 8-bit blocks; with 16-bit activations */
    bool *known, *dynamic, *blocks, *wide;
    double (*border)[OCT_COST_TABLES][2]; /* by value, in nanoseconds */
    double on_floats[OCT_COST_TABLES];    /* of the whole model */
};

/* Whether a use of a value reads it in float. All uses do, except integer nodes and clamps that are removed. */
bool oct_reads_reals(const oct_qjob *j, const oct_use *u);
/* Computes j->costs, in the job's arena. */
oct_status oct_costs_find(oct_qjob *j, oct_err *err);

#endif
