/* Dividing groups of sites until those that matter stand alone. */
#include "quant/sensitivity.h"

#include "quant/simulate_int.h"

#include <math.h>
#include <stdlib.h>

typedef struct search {
    oct_sim *s;
    oct_site *site; /* of one kind, in the order of the graph */
    size_t n;
    bool *on;       /* by value or by node */
    double least;   /* noise of a group that is not divided */
    oct_memo *memo;
} search;

static bool *flag_of(const search *x, size_t i)
{
    return &x->on[x->site[i].value >= 0 ? x->site[i].value : x->site[i].node];
}

/* Measures what is not known yet. */
static oct_status measure_mask(const search *x, const char *what, size_t from, size_t to, const oct_sim_mask *m, oct_sim_loss *loss, oct_err *err)
{
    if (x->memo && oct_memo_find(x->memo, what, from, to, loss))
        return OCT_OK;
    OCT_TRY(oct_sim_measure(x->s, m, loss, err));
    return x->memo ? oct_memo_add(x->memo, what, from, to, loss, err) : OCT_OK;
}

static oct_status measure(search *x, size_t from, size_t to, double *noise, oct_err *err)
{
    const bool weights = x->site[from].node >= 0;
    oct_sim_loss loss;
    for (size_t i = from; i < to; i++)
        *flag_of(x, i) = true;
    const oct_sim_mask m = { .value = weights ? NULL : x->on, .no_values = weights, .layer = x->on,
                             .weights = weights ? OCT_SIM_SOME_WEIGHTS : OCT_SIM_FLOAT_WEIGHTS };
    const oct_status s = measure_mask(x, weights ? "weights-of" : "values-of", from, to, &m, &loss, err);
    for (size_t i = from; i < to; i++)
        *flag_of(x, i) = false;
    *noise = s == OCT_OK ? loss.noise : 0;
    return s;
}

static oct_status divide(search *x, size_t from, size_t to, oct_err *err)
{
    double noise;
    OCT_TRY(measure(x, from, to, &noise, err));
    if (to - from == 1) {
        x->site[from].noise = noise;
        return OCT_OK;
    }
    if (noise < x->least)
        return OCT_OK;
    const size_t middle = from + (to - from) / 2;
    OCT_TRY(divide(x, from, middle, err));
    return divide(x, middle, to, err);
}

static int by_noise(const void *a, const void *b)
{
    const oct_site *p = a, *q = b;
    if (p->noise != q->noise)
        return p->noise > q->noise ? -1 : 1;
    return p->value != q->value ? (p->value > q->value ? 1 : -1) : (p->node > q->node) - (p->node < q->node);
}

static size_t list_values(const oct_qjob *j, oct_site *site)
{
    size_t n = 0;
    for (size_t v = 0; v < j->n_values; v++)
        if (j->value[v].quant && !j->g->value[v].constant && j->value[v].same == (int)v)
            site[n++] = (oct_site){ (int)v, -1, 0 };
    return n;
}

static size_t list_layers(const oct_qjob *j, oct_site *site)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_sim_rounds(j, j->layer[i]))
            site[n++] = (oct_site){ -1, j->layer[i], 0 };
    return n;
}

oct_status oct_sensitivity_measure(oct_sim *s, oct_qjob *j, double least, bool weights, oct_memo *memo, oct_arena *arena,
                                   oct_sensitivity *out, oct_err *err)
{
    const size_t most = j->n_values + j->n_nodes;
    search x = { .s = s, .memo = memo, .site = oct_arena_calloc(arena, most + 1, sizeof *x.site), .on = oct_arena_calloc(arena, most + 1, sizeof *x.on) };
    *out = (oct_sensitivity){ .site = x.site, .least = least, .of_layers = weights, .samples = s->n_samples };
    if (!x.site || !x.on)
        return oct_nomem(err);
    OCT_TRY(measure_mask(&x, "all", 0, 0, &(oct_sim_mask){ .weights = OCT_SIM_ROUNDED_WEIGHTS }, &out->all, err));
    OCT_TRY(measure_mask(&x, "weights", 0, 0, &(oct_sim_mask){ .weights = OCT_SIM_ROUNDED_WEIGHTS, .no_values = true }, &out->weights, err));
    OCT_TRY(measure_mask(&x, "values", 0, 0, &(oct_sim_mask){ .weights = OCT_SIM_FLOAT_WEIGHTS }, &out->values, err));
    x.n = list_values(j, x.site);
    x.least = out->values.noise * least;
    if (x.n)
        OCT_TRY(divide(&x, 0, x.n, err));
    out->n = x.n;
    x.site += x.n;
    x.n = weights ? list_layers(j, x.site) : 0;
    x.least = out->weights.noise * least;
    if (x.n)
        OCT_TRY(divide(&x, 0, x.n, err));
    out->n += x.n;
    qsort(out->site, out->n, sizeof *out->site, by_noise);
    return OCT_OK;
}

bool oct_site_touches(const oct_qjob *j, int id, int root)
{
    const oct_node *n = &j->g->node[id];
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0 && j->value[n->in[k]].wanted && oct_params_root(j, n->in[k]) == root)
            return true;
    for (int k = 0; k < n->n_out; k++) {
        const int v = k == 0 ? oct_quantized_output(j, id) : n->out[k];
        if (v >= 0 && j->value[v].wanted && oct_params_root(j, v) == root)
            return true;
    }
    return false;
}

bool oct_site_counts(const oct_qjob *j, const oct_site *s)
{
    return s->noise > 0 && (s->value < 0 || j->value[s->value].quant);
}

double oct_sensitivity_left(const oct_qjob *j, const oct_sensitivity *s)
{
    double left = s->all.noise, most = 0;
    for (size_t i = 0; i < s->n; i++)
        if (oct_site_counts(j, &s->site[i]))
            most = fmax(most, s->site[i].noise);
        else
            left -= s->site[i].noise;
    return fmax(left, most);
}
