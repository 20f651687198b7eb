/* Runs the graph with float16 on a few samples, and returns nodes to float32 where values are lost.
 *
 * Statistics of the float model tell which values float16 can represent. They do not tell what happens when rounded
 * values nearly cancel: 1 / (a - b) of numbers around 1000 may divide by 0. So the decided graph is run. If a value is
 * infinite or NaN that was finite in float, the float16 node that computes it becomes float32; if that node is float32
 * already, the nodes that compute its inputs do. */
#include "quant/convert/convert_int.h"

#include "quant/job/annotate.h"
#include "quant/place/place.h"
#include "runtime/runner.h"

#include <math.h>

enum { MOST_ROUNDS = 64 };

typedef struct half_trial {
    oct_conversion *c;
    const char **name; /* [n]: values that are finite in float, in the order of the graph */
    size_t n;
    const char *lost; /* the first of these in a run that is not finite; NULL: none */
} half_trial;

static bool has_float16(const oct_qjob *j)
{
    bool any = false;
    for (size_t i = 0; i < j->g->n_order; i++)
        any |= oct_half_type(j, j->g->order[i]) == OCT_F16;
    return any;
}

/* Whether a value is finite in float, according to the table. A NaN would have ended calibration. */
static bool is_finite_in_float(const half_trial *t, int value)
{
    const oct_calib_tensor *s = oct_calib_find(t->c->calib, oct_value_name(t->c->job->g, value));
    return s && s->stats.inf[0] + s->stats.inf[1] == 0;
}

static oct_status list_values(half_trial *t, oct_err *err)
{
    const oct_graph *g = t->c->job->g;
    if (!(t->name = oct_arena_calloc(t->c->arena, g->n_value + 1, sizeof *t->name)))
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++)
        for (int k = 0; k < g->node[g->order[i]].n_out; k++) {
            const int v = g->node[g->order[i]].out[k];
            if (oct_is_f32(t->c->job, v) && is_finite_in_float(t, v))
                t->name[t->n++] = oct_value_name(g, v);
        }
    return OCT_OK;
}

static oct_status look(void *arg, size_t tap, const oct_operand *x, oct_err *err)
{
    half_trial *t = arg;
    oct_operand plain = *x;
    if (t->lost || x->q || x->count == 0)
        return OCT_OK;
    float *y = oct_alloc((size_t)x->count * sizeof *y);
    if (!y)
        return oct_nomem(err);
    plain.layout = OCT_LAYOUT_PLAIN; /* the order of the elements does not matter here */
    const oct_status s = oct_operand_to_f32(&plain, y, err);
    bool finite = true;
    for (int64_t i = 0; s == OCT_OK && i < x->count; i++)
        finite &= isfinite(y[i]) != 0;
    oct_free(y);
    if (!finite)
        t->lost = t->name[tap];
    return s;
}

static oct_status run_samples(half_trial *t, oct_runner *r, oct_err *err)
{
    oct_batch batch = { 0 };
    oct_plan *plan;
    oct_status s = OCT_OK;
    while (s == OCT_OK && !t->lost) {
        s = oct_source_next(t->c->src, 1, &batch, err);
        if (s != OCT_OK || batch.n == 0)
            break;
        s = oct_runner_run(r, batch.tensors, &plan, err);
    }
    oct_batch_free(&batch);
    return s;
}

/* Runs the graph with the current decisions. */
static oct_status run(half_trial *t, oct_err *err)
{
    const oct_plan_opts o = { .taps = t->name, .n_taps = t->n, .no_passes = true };
    const oct_pick pick = oct_pick_half(t->c, 0, 8);
    oct_graph *g;
    oct_runner *r = NULL;
    t->lost = NULL;
    OCT_TRY(oct_source_pick(t->c->src, &pick, err));
    OCT_TRY(oct_quantized_copy(t->c->job, &g, err));
    oct_status s = oct_runner_create(g, &o, NULL, 0, &r, err);
    if (s == OCT_OK) {
        oct_runner_set_tap(r, look, t);
        s = run_samples(t, r, err);
    }
    oct_runner_destroy(r);
    oct_graph_destroy(g);
    return s == OCT_OK ? oct_source_pick(t->c->src, &(oct_pick){ 0 }, err) : s;
}

/* Keeps in float32 the nearest float16 nodes before the lost value, looking through float32 nodes. asked: [nodes],
 * zeroed. */
static oct_status take_back(half_trial *t, bool *asked, bool *changed, oct_err *err)
{
    oct_qjob *j = t->c->job;
    const oct_graph *g = j->g;
    const int maker = g->value[oct_graph_find(g, t->lost)].producer;
    if (maker >= 0)
        asked[maker] = true;
    for (size_t i = g->n_order; i-- > 0;) {
        const int id = g->order[i];
        if (asked[id] && oct_half_type(j, id) == OCT_F16) {
            OCT_TRY(oct_keep_float(&j->constraints, id, OCT_FROM_RUN,
                                   oct_arena_printf(t->c->arena,
                                                    "in float16 it makes '%s' infinite or NaN for a sample", t->lost),
                                   err));
            *changed = true;
            continue;
        }
        for (int k = 0; asked[id] && k < g->node[id].n_in; k++)
            if (oct_is_f32(j, g->node[id].in[k]) && g->value[g->node[id].in[k]].producer >= 0)
                asked[g->value[g->node[id].in[k]].producer] = true;
    }
    return OCT_OK;
}

static oct_status mend(half_trial *t, bool *changed, oct_err *err)
{
    oct_conversion *c = t->c;
    bool *asked = oct_calloc(c->job->n_nodes + 1, sizeof *asked);
    oct_conversion_say(c, 1, "float16: '%s' is infinite or NaN for a sample; the nodes that compute it stay float32",
                       t->lost);
    oct_status s = asked ? take_back(t, asked, changed, err) : oct_nomem(err);
    oct_free(asked);
    if (s != OCT_OK || !*changed)
        return s;
    oct_conversion_changed(c);
    return oct_conversion_settle(c, err);
}

oct_status oct_half_try(oct_conversion *c, oct_err *err)
{
    half_trial t = { .c = c };
    if (!c->src || !c->calib || c->o.job.half_io || !has_float16(c->job) || oct_conversion_unjudged(c, c->m->graph))
        return OCT_OK;
    OCT_TRY(list_values(&t, err));
    for (int round = 0; round < MOST_ROUNDS && has_float16(c->job); round++) {
        bool changed = false;
        OCT_TRY(run(&t, err));
        if (t.lost)
            OCT_TRY(mend(&t, &changed, err));
        if (!changed)
            break;
    }
    return OCT_OK;
}
