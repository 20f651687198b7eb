/* lib/quant/layer_costs_int.h -- the costs of a job's nodes, among which by_cost.c chooses. */
#ifndef OCT_QUANT_LAYER_COSTS_INT_H
#define OCT_QUANT_LAYER_COSTS_INT_H

#include "quant/job.h"

/* The costs of all nodes, by how they run; what is unknown is the same in each way. */
struct oct_job_costs {
    size_t n;                                     /* tables */
    double (*node)[OCT_COST_TABLES][OCT_COST_HOWS];          /* by node; ns */
    bool *known, *dynamic, *blocks, *wide;        /* by node: on floats and in another way, or dynamically, in blocks of 8 bits, or with activations of 16, in
                                                   * each table */
    double (*border)[OCT_COST_TABLES][2];                    /* by value; ns */
    double on_floats[OCT_COST_TABLES];                       /* the whole model */
};

/* Whether a use reads the reals of a value: all but integer nodes, and clamps that go away. */
bool oct_reads_reals(const oct_qjob *j, const oct_use *u);
/* Into j->costs, in the job's arena. */
oct_status oct_costs_find(oct_qjob *j, oct_err *err);

#endif
