/* Divides groups of sites until those that matter stand alone. */
#include "quant/simulate/sensitivity.h"

#include "quant/job/placed.h"
#include "quant/simulate/body_sites.h"
#include "quant/simulate/simulate_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN                                                                                                  \
    0.75 /* of a threshold: groups that cause less are not divided. It is below 1 because noise does not add up \
            exactly */
#define LEAST_LEFT 1e-3 /* share of all noise: what remains below this is not known without new measurements */
#define MOST_MACS 6e11  /* multiply-accumulates of a search for the worst sites */
enum { LEAST_WIDTH = 4 };
enum kind { ALL, WEIGHTS, VALUES };

/* A group of neighbouring sites that are measured together. */
typedef struct group {
    size_t place, from, to; /* its index in `known`; its sites */
    double noise;
} group;

typedef struct search {
    oct_sim *s;
    oct_qjob *j;
    oct_site *site; /* the sites of one kind, in the order of the graph */
    size_t n;
    bool *on;      /* the mask of a measurement, by value or by node */
    double *known; /* [4 n + 2]: the noise of groups; the halves of group i are at 2 i and 2 i + 1. NAN: not measured */
    group *group;  /* [2 n + 2] */
    double least;  /* a group with less noise is not divided */
    size_t width;  /* how many groups of a level are divided at most: those with the most noise */
    double untold; /* the most noise of a group that was not divided because of that bound */
    oct_memo *memo;
} search;

static bool *flag_of(const search *x, size_t i)
{
    return &x->on[x->site[i].value >= 0 ? x->site[i].value : x->site[i].node];
}

/* Measures what is not known yet. */
static oct_status measure_mask(oct_sim *s, oct_memo *memo, const char *what, size_t from, size_t to,
                               const oct_sim_mask *m, oct_sim_loss *loss, oct_err *err)
{
    if (memo && oct_memo_find(memo, what, from, to, loss))
        return OCT_OK;
    OCT_TRY(oct_sim_measure(s, m, loss, err));
    return memo ? oct_memo_add(memo, what, from, to, loss, err) : OCT_OK;
}

/* The loss with all sites of a kind rounded. */
static oct_status measure_kind(oct_sim *s, oct_memo *memo, enum kind kind, oct_sim_loss *loss, oct_err *err)
{
    static const char *const what[] = { [ALL] = "all", [WEIGHTS] = "weights", [VALUES] = "values" };
    const oct_sim_mask m = { .weights = kind == VALUES ? OCT_SIM_FLOAT_WEIGHTS : OCT_SIM_ROUNDED_WEIGHTS,
                             .no_values = kind == WEIGHTS };
    return measure_mask(s, memo, what[kind], 0, 0, &m, loss, err);
}

static oct_status measure(search *x, size_t from, size_t to, double *noise, oct_err *err)
{
    const bool weights = x->site[from].node >= 0;
    oct_sim_loss loss;
    if (x->site[from].body)
        return oct_body_sites_measure(x->s, x->j, x->site + from, to - from, x->known[1], noise, err);
    for (size_t i = from; i < to; i++)
        *flag_of(x, i) = true;
    const oct_sim_mask m = { .value = weights ? NULL : x->on,
                             .no_values = weights,
                             .layer = x->on,
                             .weights = weights ? OCT_SIM_SOME_WEIGHTS : OCT_SIM_FLOAT_WEIGHTS };
    const oct_status s = measure_mask(x->s, x->memo, weights ? "weights-of" : "values-of", from, to, &m, &loss, err);
    for (size_t i = from; i < to; i++)
        *flag_of(x, i) = false;
    *noise = s == OCT_OK ? loss.noise : 0;
    return s;
}

static oct_status measure_group(search *x, group *g, oct_err *err)
{
    double *noise = &x->known[g->place];
    if (isnan(*noise))
        OCT_TRY(measure(x, g->from, g->to, noise, err));
    g->noise = *noise;
    return OCT_OK;
}

static int by_place(const void *a, const void *b)
{
    const group *p = a, *q = b;
    return (p->from > q->from) - (p->from < q->from);
}

static int largest_first(const void *a, const void *b)
{
    const group *p = a, *q = b;
    return p->noise != q->noise ? (p->noise < q->noise ? 1 : -1) : by_place(a, b);
}

/* Keeps those groups that will be divided, in the order of the graph. */
static size_t choose_groups(search *x, group *g, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (g[i].to - g[i].from > 1 && g[i].noise >= x->least)
            g[left++] = g[i];
    if (left <= x->width)
        return left;
    qsort(g, left, sizeof *g, largest_first);
    x->untold = fmax(x->untold, g[x->width].noise);
    qsort(g, x->width, sizeof *g, by_place);
    return x->width;
}

/* Divides all sites level by level down to single ones. Each level is measured in the order of the graph, so that a
 * measurement can continue where the previous one began to round. */
static oct_status divide(search *x, oct_err *err)
{
    group *g = x->group;
    size_t n = x->n ? 1 : 0;
    g[0] = (group){ 1, 0, x->n, 0 };
    x->untold = x->least;
    while (n > 0) {
        for (size_t i = 0; i < n; i++) {
            OCT_TRY(measure_group(x, &g[i], err));
            if (g[i].to - g[i].from == 1)
                x->site[g[i].from].noise = g[i].noise;
        }
        n = choose_groups(x, g, n);
        for (size_t i = n; i-- > 0;) {
            const group whole = g[i];
            const size_t middle = whole.from + (whole.to - whole.from) / 2;
            g[2 * i] = (group){ 2 * whole.place, whole.from, middle, 0 };
            g[2 * i + 1] = (group){ 2 * whole.place + 1, middle, whole.to, 0 };
        }
        n *= 2;
    }
    return OCT_OK;
}

/* Opens a search among sites of one kind. all: the noise of all of them. */
static oct_status open_sites(search *x, double all, oct_arena *arena, oct_err *err)
{
    x->known = oct_arena_calloc(arena, 4 * x->n + 2, sizeof *x->known);
    x->group = oct_arena_calloc(arena, 2 * x->n + 2, sizeof *x->group);
    if (!x->known || !x->group)
        return oct_nomem(err);
    for (size_t i = 0; i < 4 * x->n + 2; i++)
        x->known[i] = NAN;
    x->known[1] = all;
    return OCT_OK;
}

static int by_noise(const void *a, const void *b)
{
    const oct_site *p = a, *q = b;
    if (p->noise != q->noise)
        return p->noise > q->noise ? -1 : 1;
    if (p->body != q->body)
        return strcmp(p->body ? p->body->where : "", q->body ? q->body->where : "");
    return p->value != q->value ? (p->value > q->value ? 1 : -1) : (p->node > q->node) - (p->node < q->node);
}

static size_t list_values(const oct_qjob *j, oct_site *site)
{
    size_t n = 0;
    for (size_t v = 0; v < j->n_values; v++) {
        const bool own = oct_quant_of(j, v) && oct_params_root(j, (int)v) == (int)v;
        if (!j->g->value[v].dead && !j->g->value[v].constant && (own || oct_is_rounded_at_run(j, (int)v)))
            site[n++] = (oct_site){ .value = (int)v, .node = -1 };
    }
    return n;
}

static oct_site layer_site(const oct_qjob *j, int node)
{
    return (oct_site){ .value = -1, .node = node, .scheme = oct_scheme_of(j, node) };
}

static size_t list_layers(const oct_qjob *j, oct_site *site)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_sim_rounds(j, j->layer[i]))
            site[n++] = layer_site(j, j->layer[i]);
    return n;
}

static oct_status measure_kinds(oct_sim *s, oct_memo *memo, oct_sensitivity *out, oct_err *err)
{
    *out = (oct_sensitivity){ .samples = s->n_samples };
    OCT_TRY(measure_kind(s, memo, ALL, &out->all, err));
    OCT_TRY(measure_kind(s, memo, WEIGHTS, &out->weights, err));
    return measure_kind(s, memo, VALUES, &out->values, err);
}

/* Opens a search among the values, with room for the layers. out: what each kind of sites causes together. */
static oct_status begin(search *x, oct_sim *s, oct_qjob *j, oct_memo *memo, oct_arena *arena, oct_sensitivity *out,
                        oct_err *err)
{
    const size_t most = j->n_values + j->n_nodes + oct_body_sites_most(j);
    *x = (search){ .s = s,
                   .j = j,
                   .memo = memo,
                   .site = oct_arena_calloc(arena, most + 1, sizeof *x->site),
                   .on = oct_arena_calloc(arena, most + 1, sizeof *x->on) };
    if (!x->site || !x->on)
        return oct_nomem(err);
    out->site = x->site;
    x->n = x->width = list_values(j, x->site);
    return open_sites(x, out->values.noise, arena, err);
}

oct_status oct_sensitivity_measure(oct_sim *s, oct_qjob *j, double least, bool weights, oct_memo *memo,
                                   oct_arena *arena, oct_sensitivity *out, oct_err *err)
{
    search x, layers;
    OCT_TRY(measure_kinds(s, memo, out, err));
    OCT_TRY(begin(&x, s, j, memo, arena, out, err));
    out->least = least;
    out->of_layers = weights;
    x.least = out->values.noise * least;
    OCT_TRY(divide(&x, err));
    out->n = x.n;
    if (weights) {
        layers = x; /* their sites follow the values */
        layers.site += x.n;
        layers.n = layers.width = list_layers(j, layers.site);
        /* what all weights cost is no bound here: it includes constants of operators that are not layers */
        OCT_TRY(open_sites(&layers, NAN, arena, err));
        layers.least = out->weights.noise * least;
        OCT_TRY(divide(&layers, err));
        out->n += layers.n;
    }
    qsort(out->site, out->n, sizeof *out->site, by_noise);
    return OCT_OK;
}

oct_status oct_sensitivity_of_weights(oct_sim *s, oct_qjob *j, const bool *layer, oct_arena *arena,
                                      oct_sensitivity *out, oct_err *err)
{
    search x;
    *out = (oct_sensitivity){ .samples = s->n_samples, .of_layers = true };
    OCT_TRY(measure_kind(s, NULL, WEIGHTS, &out->weights, err));
    x = (search){ .s = s,
                  .site = oct_arena_calloc(arena, j->n_nodes + 1, sizeof *x.site),
                  .on = oct_arena_calloc(arena, j->n_nodes + 1, sizeof *x.on) };
    if (!x.site || !x.on)
        return oct_nomem(err);
    x.n = list_layers(j, x.site);
    out->site = x.site;
    for (size_t i = 0; i < x.n; i++) {
        x.site[out->n] = x.site[i];
        if (!layer[x.site[i].node])
            continue;
        OCT_TRY(measure(&x, out->n, out->n + 1, &x.site[out->n].noise, err));
        out->n++;
    }
    qsort(out->site, out->n, sizeof *out->site, by_noise);
    return OCT_OK;
}

/* The noise that a search found of a node; NAN: it did not look. */
static double noise_of(const oct_sensitivity *before, int node)
{
    for (size_t i = 0; before && i < before->n; i++)
        if (!before->site[i].body && before->site[i].node == node)
            return before->site[i].noise;
    return NAN;
}

/* Appends the recurrent layers on integers to the sites, each measured. */
static oct_status measure_recurrent(const search *x, const oct_qjob *j, const oct_sensitivity *before, size_t *n,
                                    oct_err *err)
{
    search one = *x;
    for (size_t i = *n = 0; i < j->n_layer; i++) {
        if (!oct_is_dynamic_recurrent(j, j->layer[i]))
            continue;
        const size_t at = x->n + (*n)++;
        x->site[at] = layer_site(j, j->layer[i]);
        x->site[at].noise = noise_of(before, j->layer[i]);
        if (isnan(x->site[at].noise))
            OCT_TRY(measure(&one, at, at + 1, &x->site[at].noise, err));
    }
    return OCT_OK;
}

/* Opens a search among the sites in bodies, which stand behind the n others. */
static oct_status begin_bodies(const search *x, size_t n, oct_arena *arena, search *in, oct_err *err)
{
    double all = 0;
    *in = *x;
    in->site = x->site + n;
    in->n = in->width = oct_body_sites_list(x->j, in->site);
    if (in->n)
        OCT_TRY(oct_body_sites_all(x->s, x->j, &all, err));
    return open_sites(in, all, arena, err);
}

oct_status oct_sensitivity_add_bodies(oct_sim *s, oct_qjob *j, double least, oct_arena *arena, oct_sensitivity *out,
                                      oct_err *err)
{
    search in, x = { .s = s, .j = j, .site = out->site };
    OCT_TRY(begin_bodies(&x, out->n, arena, &in, err));
    if (!in.n)
        return OCT_OK;
    in.least = in.known[1] * least;
    OCT_TRY(divide(&in, err));
    out->n += in.n;
    qsort(out->site, out->n, sizeof *out->site, by_noise);
    return OCT_OK;
}

/* The noise that remains without the sites, n of them, that cause at least `share` of it. */
static double left_without_worst(const search *x, size_t n, double all, double share)
{
    for (double left = all;;) {
        double rest = all;
        for (size_t i = 0; i < n; i++)
            rest -= x->site[i].noise >= share * left ? x->site[i].noise : 0;
        rest = fmax(rest, LEAST_LEFT * all);
        if (!(rest < left))
            return left;
        left = rest;
    }
}

/* Limits the number of groups so that the search takes about MOST_MACS, except for a few groups that must be
 * measured. */
static size_t width_of(const search *x)
{
    double levels = 1;
    for (size_t n = x->n; n > 1; n = (n + 1) / 2)
        levels++;
    const double width = MOST_MACS / (2 * levels * (double)x->s->core->macs * (double)x->s->n_samples);
    return width < LEAST_WIDTH ? LEAST_WIDTH : width < (double)x->n ? (size_t)width : x->n;
}

oct_status oct_sensitivity_find_worst(oct_sim *s, oct_qjob *j, double share, const oct_sensitivity *before,
                                      oct_arena *arena, oct_sensitivity *out, oct_err *err)
{
    search x, bodies;
    size_t recurrent;
    if (before)
        *out = *before;
    else
        OCT_TRY(measure_kinds(s, NULL, out, err));
    OCT_TRY(begin(&x, s, j, NULL, arena, out, err));
    if (before)
        memcpy(x.known, before->known, (4 * x.n + 2) * sizeof *x.known);
    x.width = width_of(&x);
    OCT_TRY(measure_recurrent(&x, j, before, &recurrent, err));
    OCT_TRY(begin_bodies(&x, x.n + recurrent, arena, &bodies, err));
    const size_t n = x.n + recurrent + bodies.n;
    for (double left = out->all.noise, more = INFINITY; left < more;) {
        x.least = bodies.least = MARGIN * share * left;
        OCT_TRY(divide(&x, err));
        OCT_TRY(divide(&bodies, err));
        more = left;
        left = left_without_worst(&x, n, out->all.noise, share);
    }
    out->n = n;
    out->known = x.known;
    out->least = out->values.noise > 0 ? fmin(x.untold / out->values.noise, 1) : 0;
    qsort(out->site, out->n, sizeof *out->site, by_noise);
    return OCT_OK;
}

bool oct_site_touches(const oct_qjob *j, int id, int root)
{
    const oct_node *n = &j->g->node[id];
    if (oct_is_dynamic_product(j, id) && n->in[0] == root)
        return true;
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0 && oct_is_wanted(j, n->in[k]) && oct_params_root(j, n->in[k]) == root)
            return true;
    for (int k = 0; k < n->n_out; k++) {
        const int v = k == 0 ? oct_quantized_output(j, id) : n->out[k];
        if (v >= 0 && oct_is_wanted(j, v) && oct_params_root(j, v) == root)
            return true;
    }
    return false;
}

bool oct_site_counts(const oct_qjob *j, const oct_site *s)
{
    const oct_qjob *of = oct_site_job(j, s);
    if (s->value < 0)
        return s->noise > 0 && oct_scheme_of(of, s->node) == s->scheme;
    return s->noise > 0 && (oct_quant_of(of, s->value) || oct_is_rounded_at_run(of, s->value));
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
