/* The samples of a simulation. They are read once, and run through the float model once. */
#include "quant/convert/convert_int.h"
#include "quant/simulate/simulate_int.h"

enum { SIM_BYTES = 64 << 20 }; /* memory for the kept inputs and outputs of a half */

/* The bytes of a sample's inputs, and of its outputs as far as their shapes are known. */
static size_t bytes_of(const oct_graph *g, const oct_batch *b)
{
    size_t n = 0;
    for (size_t k = 0; k < g->n_output; k++) {
        const oct_shape *s = &g->value[g->output[k]].shape;
        size_t count = s->rank >= 0 ? sizeof(float) : 0;
        for (int d = 0; d < s->rank && count < SIM_BYTES; d++)
            count *= s->d[d].n > 0 ? (size_t)s->d[d].n : 1;
        n += count;
    }
    for (size_t i = 0; i < b->n_tensors; i++)
        n += b->tensors[i].bytes;
    return n;
}

static oct_status keep_sample(oct_sim_core *s, oct_sim *h, const oct_batch *b, oct_err *err)
{
    sim_sample *x = oct_arena_calloc(s->arena, 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    x->input = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *x->input);
    x->output = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->output);
    x->count = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->count);
    x->error = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->error);
    x->weight = oct_arena_calloc(s->arena, s->n_outputs + 1, sizeof *x->weight);
    if (!x->input || !x->output || !x->count || !x->error || !x->weight)
        return oct_nomem(err);
    for (size_t i = 0; i < b->n_tensors; i++) {
        x->input[i] = b->tensors[i];
        x->input[i].owned = false;
        if (!(x->input[i].data = oct_arena_memdup(s->arena, b->tensors[i].data, b->tensors[i].bytes)))
            return oct_nomem(err);
    }
    h->sample[h->n_samples++] = x;
    return OCT_OK;
}

static oct_status read_samples(oct_sim_core *s, oct_sim *h, size_t samples, oct_err *err)
{
    oct_batch b = OCT_BATCH_INIT;
    oct_status st = OCT_OK;
    size_t bytes = 0;
    while (h->n_samples < samples && (bytes < SIM_BYTES || h->n_samples < 2)) {
        st = oct_source_next(s->c->src, 1, &b, err);
        if (st != OCT_OK || b.n == 0)
            break;
        bytes += bytes_of(s->c->job->g, &b);
        if ((st = keep_sample(s, h, &b, err)) != OCT_OK)
            break;
    }
    oct_batch_free(&b);
    return st;
}

size_t oct_sim_samples(const oct_sim_core *s, oct_sim_size size)
{
    const int64_t n = size.macs / s->macs / 2 * 2, dear = 3 * size.macs / s->macs / 2 * 2,
                  half = size.least > 2 ? size.least / 2 : size.least;
    const int64_t least = dear > size.least ? size.least : dear > half ? dear : half;
    return (size_t)(n < least ? least : n > size.most ? size.most : n);
}

/* Shapes that only samples tell may make runs longer than expected from the model. Then fewer samples are kept, spread
 * over those that were read. */
static oct_status drop_samples(oct_sim_core *s, oct_sim *h, oct_err *err)
{
    sim_graph *real = &s->graph[SIM_REAL];
    oct_plan *plan;
    uint64_t macs = 1;
    if (h->n_samples == 0)
        return OCT_OK;
    OCT_TRY(oct_sim_make_runner(s, real, 0, err));
    OCT_TRY(oct_runner_plan(real->runner[0], h->sample[0]->input, &plan, err));
    for (size_t i = 0; i < oct_plan_n_steps(plan); i++)
        macs += oct_plan_step(plan, i).macs;
    s->macs = macs > INT64_MAX ? INT64_MAX : (int64_t)macs > s->macs ? (int64_t)macs : s->macs;
    const size_t n = oct_sim_samples(s, OCT_SIM_FEW_RUNS), all = h->n_samples;
    for (size_t i = 0; i < n && n < all; i++)
        h->sample[i] = h->sample[i * all / n];
    h->n_samples = n < all ? n : all;
    return OCT_OK;
}

oct_status oct_sim_need_half(oct_sim_core *s, int half, oct_err *err)
{
    oct_sim *h = &s->half[half];
    if (h->core)
        return OCT_OK;
    const size_t samples = oct_sim_samples(s, OCT_SIM_FEW_RUNS);
    const oct_pick pick = oct_pick_half(s->c, half, (int64_t)samples);
    *h = (oct_sim){ .n_samples = 0 };
    if (!(h->sample = oct_arena_calloc(s->arena, samples + 1, sizeof *h->sample)))
        return oct_nomem(err);
    OCT_TRY(oct_sim_make_graph(s, SIM_REAL, NULL, err)); /* its outputs are those of which samples are kept */
    OCT_TRY(oct_source_pick(s->c->src, &pick, err));
    OCT_TRY(read_samples(s, h, samples, err));
    OCT_TRY(drop_samples(s, h, err));
    s->keep = true;
    oct_status st = oct_sim_run(s, h, &s->graph[SIM_REAL], err);
    s->keep = false;
    if (st == OCT_OK)
        st = oct_sim_view_outputs(s, h, err);
    if (st == OCT_OK)
        h->core = s;
    return st;
}
