/* One form for all layers, against what was chosen layer by layer.
 *
 * The expected loss is a sum of estimates, and a choice among many takes those that err to its side. So where one form for all layers fits into
 * the same bytes, it is compared: with samples by the outputs of the quantized graphs, on the half that has not chosen; without by the same estimate.
 * Of each kind of form the one that is expected to lose least is tried, and of these the best few, as each costs a run of these samples. */
#include "quant/size_choice_int.h"

#include "eval/eval.h"

#include <math.h>

enum { MOST_RIVALS = 3, LEAST_SAMPLES = 4, MOST_SAMPLES = 32 };
#define MOST_MACS 4800000000 /* of the samples that compare, together */
#define SLACK 1.01           /* bytes of units are known about */

typedef struct rival {
    int form;
    double noise;
} rival;

/* ---- which ---- */

/* Layers that cannot have the form are float, as with an option for all of them. */
static int form_in(const oct_size_unit *x, int form)
{
    return x->option[form].there ? form : OCT_SIZE_FLOAT;
}

static void set_all(oct_size_units *u, int form)
{
    for (size_t i = 0; i < u->n; i++)
        u->unit[i].at = u->unit[i].aside ? 0 : form_in(&u->unit[i], form);
}

/* Bytes of all units as they are. */
static double bytes_now(const oct_size_units *u)
{
    double bytes = 0;
    for (size_t i = 0; i < u->n; i++)
        bytes += u->unit[i].aside ? 0 : u->unit[i].option[u->unit[i].at].bytes;
    return bytes;
}

static bool has_form(const oct_size_units *u, int form)
{
    for (size_t i = 0; i < u->n; i++)
        if (!u->unit[i].aside && (form == OCT_SIZE_FLOAT || u->unit[i].option[form].there))
            return true;
    return false;
}

/* Blocks of as many bits are of one kind. */
static bool same_kind(int a, int b)
{
    const oct_size_form *f = &oct_size_forms[a], *g = &oct_size_forms[b];
    return a == b || (f->scheme == OCT_SCHEME_WEIGHT_ONLY && g->scheme == OCT_SCHEME_WEIGHT_ONLY && f->weights == g->weights);
}

/* The best few that may fit, the best first. room: bytes of all units. */
static size_t list_rivals(oct_size_units *u, double room, rival r[OCT_SIZE_FORMS])
{
    size_t n = 0;
    for (int f = 0; f < OCT_SIZE_FORMS; f++) {
        if (!has_form(u, f))
            continue;
        set_all(u, f);
        if (bytes_now(u) > room * SLACK)
            continue;
        rival x = { f, oct_size_noise(u) };
        size_t at = n++;
        for (; at > 0 && r[at - 1].noise > x.noise; at--)
            r[at] = r[at - 1];
        r[at] = x;
    }
    return n;
}

/* ---- what they lose ---- */

/* Of the outputs of the graph as it is decided: dB, the smallest. */
static oct_status run(oct_conversion *c, const oct_graph *quantized, const oct_eval_options *o, oct_size_rival *x, oct_err *err)
{
    const oct_eval_model models[2] = { { c->o.name, c->m->graph, 0 }, { c->o.name, quantized, 0 } };
    const int64_t fit = MOST_MACS / oct_sample_macs(c->m->graph);
    const oct_pick pick = oct_pick_half(c, 1, fit < LEAST_SAMPLES ? LEAST_SAMPLES : fit > MOST_SAMPLES ? MOST_SAMPLES : fit);
    oct_eval_result *r = NULL;
    oct_status s = oct_source_pick(c->src, &pick, err);
    if (s == OCT_OK)
        s = oct_eval(models, 2, c->src, o, &r, err);
    if (s == OCT_OK) {
        x->sqnr = r->models[1].sqnr_db;
        c->size.samples = r->samples;
    }
    oct_eval_free(r);
    return s == OCT_OK ? oct_source_pick(c->src, &(oct_pick){ 0 }, err) : s;
}

static oct_status measure(oct_conversion *c, oct_size_rival *x, oct_err *err)
{
    oct_graph *g;
    oct_pool *pool = oct_pool_create(c->o.job.threads);
    if (!pool)
        return oct_pool_fail(c->o.job.threads, err);
    oct_pool_relax(pool);
    const oct_eval_options o = { .pool = pool };
    oct_status s = oct_quantized_copy(c->job, &g, err);
    if (s == OCT_OK) {
        s = run(c, g, &o, x, err);
        oct_graph_destroy(g);
    }
    oct_pool_destroy(pool);
    return s;
}

/* Decides with the units as they are, and fills x where that fits. */
static oct_status try_all(oct_size_units *u, oct_size_rival *x, bool *fits, oct_err *err)
{
    oct_conversion *c = u->c;
    OCT_TRY(oct_size_apply(u, err));
    OCT_TRY(oct_conversion_size(c, &x->bytes, err));
    *fits = x->bytes <= c->size.limit;
    x->sqnr = oct_size_decibels(oct_size_noise(u));
    return *fits && u->measured ? measure(c, x, err) : OCT_OK;
}

oct_status oct_size_compare(oct_size_units *u, oct_err *err)
{
    oct_size_choice *z = &u->c->size;
    rival r[OCT_SIZE_FORMS + 1];
    int *own = oct_arena_calloc(u->a, u->n + 1, sizeof *own);
    z->rival = oct_arena_calloc(u->c->arena, 1 + MOST_RIVALS, sizeof *z->rival);
    if (!own || !z->rival)
        return oct_nomem(err);
    const double room = bytes_now(u) + (double)(z->limit - z->now);
    for (size_t i = 0; i < u->n; i++)
        own[i] = u->unit[i].at;
    const size_t n = list_rivals(u, room, r);
    bool fits = true;
    int best = -1, fitting[MOST_RIVALS];
    for (size_t i = 0; i < u->n; i++)
        u->unit[i].at = own[i];
    z->rival[0] = (oct_size_rival){ .form = "" };
    OCT_TRY(n ? try_all(u, &z->rival[0], &fits, err) : OCT_OK);
    z->n_rivals = n > 0;
    double most = isnan(z->rival[0].sqnr) ? -INFINITY : z->rival[0].sqnr;
    for (size_t i = 0; i < n && z->n_rivals <= MOST_RIVALS; i++) {
        oct_size_rival *x = &z->rival[z->n_rivals];
        bool known = false; /* one of its kind, with less noise, fits */
        for (size_t k = 1; k < z->n_rivals; k++)
            known |= same_kind(fitting[k - 1], r[i].form);
        if (known)
            continue;
        set_all(u, r[i].form);
        x->form = oct_size_forms[r[i].form].name;
        OCT_TRY(try_all(u, x, &fits, err));
        if (!fits)
            continue;
        if (x->sqnr > most) {
            most = x->sqnr;
            best = r[i].form;
            z->taken = z->n_rivals;
        }
        fitting[z->n_rivals++ - 1] = r[i].form;
    }
    if (best >= 0)
        set_all(u, best);
    for (size_t i = 0; i < u->n && best < 0; i++)
        u->unit[i].at = own[i];
    return n ? oct_size_apply(u, err) : OCT_OK;
}
