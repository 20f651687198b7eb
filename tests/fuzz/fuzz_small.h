/* tests/fuzz/fuzz_small.h -- for targets that run the models they load: small shapes of inputs, and what takes too long
 * or too much memory. */
#ifndef FUZZ_SMALL_H
#define FUZZ_SMALL_H

#include "runtime/plan.h"

enum { MOST_INPUTS = 8, MOST_TRIPS = 20, MOST_MACS = 1 << 27, MOST_ARENA = 64 << 20 };
static const int64_t most_elements = 1 << 16;

/* Small concrete shapes: what the model says where that is small, else 2. */
static inline bool small_shapes(const oct_graph *g, oct_plan_input *in)
{
    if (g->n_input > MOST_INPUTS)
        return false;
    for (size_t i = 0; i < g->n_input; i++) {
        const oct_value *v = &g->value[g->input[i]];
        int64_t count;
        if (v->shape.rank > OCT_MAX_RANK)
            return false;
        in[i] =
            (oct_plan_input){ .tensor = v->kind == OCT_VALUE_TENSOR, .rank = v->shape.rank < 0 ? 2 : v->shape.rank };
        for (int k = 0; k < in[i].rank; k++)
            in[i].dims[k] = v->shape.rank >= 0 && v->shape.d[k].n >= 0 ? v->shape.d[k].n : 2;
        if (!oct_count(in[i].dims, in[i].rank, &count) || count > most_elements)
            return false;
    }
    return true;
}

static inline bool is_affordable(const oct_plan *p)
{
    uint64_t macs = 0;
    for (size_t i = 0; i < oct_plan_n_steps(p); i++)
        macs += oct_plan_step(p, i).macs;
    return macs <= MOST_MACS && oct_plan_memory_of(p).arena <= MOST_ARENA;
}

#endif
