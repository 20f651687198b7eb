/* Compares one form for all layers with the choice layer by layer.
 *
 * The expected loss is a sum of estimates. A choice among many prefers those whose estimates are too low. So if one
 * form for all layers fits the limit as well, both are compared. With samples this uses the outputs of the quantized
 * graphs, on the half that has not chosen; without samples, the same estimate. With samples, a form is not tried if it
 * is expected to lose far more than another one, or clearly more than another form of blocks with the same number of
 * bits. */
#include "quant/budget/size_choice_int.h"

#include "eval/run/eval.h"
#include "quant/job/annotate.h"

#include <math.h>

enum { LEAST_SAMPLES = 4, MOST_SAMPLES = 32 };
#define MOST_MACS 4800000000 /* multiply-accumulates of all samples that compare, together */

enum { OWN = -1, MOST = OCT_SIZE_FORMS + 2 };
/* A factor on the noise. Among blocks with the same number of bits the estimate is that exact; among other forms it may
 * be off by about 6 dB. */
#define CLEARLY 2.0
#define FAR 30.0

typedef struct rival {
    int form;       /* the form of all units; OWN: those chosen unit by unit */
    const int *own; /* these forms */
    oct_size_others others;
    double noise;
} rival;

/* ---- the candidates ---- */

/* The form of a unit. Layers that cannot have the form for all are float, as with the option for all layers. */
static int form_in(const oct_size_unit *x, int form)
{
    return x->option[form].there ? form : OCT_SIZE_FLOAT;
}

static void set_all(oct_size_units *u, const rival *r)
{
    u->others = r->others;
    for (size_t i = 0; i < u->n; i++)
        u->unit[i].at = r->form == OWN ? r->own[i] : u->unit[i].aside ? 0 : form_in(&u->unit[i], r->form);
}

/* The form of the other nodes, as with the option for all layers. */
static oct_size_others others_of(int form)
{
    return form == OCT_SIZE_HALF                            ? OCT_SIZE_OTHERS_HALF
           : oct_size_forms[form].scheme == OCT_SCHEME_AUTO ? OCT_SIZE_OTHERS_POLICY
                                                            : OCT_SIZE_OTHERS_FLOAT;
}

static bool has_form(const oct_size_units *u, int form)
{
    for (size_t i = 0; i < u->n; i++)
        if (!u->unit[i].aside && (form == OCT_SIZE_FLOAT || u->unit[i].option[form].there))
            return true;
    return false;
}

/* Whether both are blocks with the same number of bits. */
static bool same_kind(int a, int b)
{
    if (a == b || a == OWN || b == OWN)
        return a == b && a != OWN;
    const oct_size_form *f = &oct_size_forms[a], *g = &oct_size_forms[b];
    return f->scheme == OCT_SCHEME_WEIGHT_ONLY && g->scheme == OCT_SCHEME_WEIGHT_ONLY && f->weights == g->weights;
}

/* Lists the choice unit by unit, followed by the forms for all, the best first. Whether one fits is known only after
 * deciding, because nodes between layers take bytes too. 0: there are none. */
static size_t list_rivals(oct_size_units *u, int *const own[2], rival r[MOST])
{
    size_t n = 0, first;
    for (int i = 0; i < 2; i++)
        if (own[i])
            r[n++] =
                (rival){ .form = OWN, .own = own[i], .others = i ? OCT_SIZE_OTHERS_FLOAT : OCT_SIZE_OTHERS_POLICY };
    first = n;
    for (int f = 0; f < OCT_SIZE_FORMS; f++) {
        rival x = { .form = f, .others = others_of(f) };
        if (!has_form(u, f) || (x.others == OCT_SIZE_OTHERS_POLICY && u->file[f] > u->c->size.limit))
            continue;
        set_all(u, &x);
        x.noise = oct_size_noise(u);
        size_t at = n++;
        for (; at > first && r[at - 1].noise > x.noise; at--)
            r[at] = r[at - 1];
        r[at] = x;
    }
    return n;
}

/* ---- their loss ---- */

/* The smallest SQNR in dB of an output of the graph with its current decisions. */
static oct_status run(oct_conversion *c, const oct_graph *quantized, const oct_eval_options *o, oct_size_rival *x,
                      oct_err *err)
{
    const oct_eval_model models[2] = { { c->o.name, c->m->graph, 0 }, oct_conversion_result(c, c->o.name, quantized) };
    const int64_t fit = MOST_MACS / oct_sample_macs(c->m->graph);
    const oct_pick pick = oct_pick_half(c, 1,
                                        fit < LEAST_SAMPLES  ? LEAST_SAMPLES
                                        : fit > MOST_SAMPLES ? MOST_SAMPLES
                                                             : fit);
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
    oct_eval_options o = { .pool = pool };
    oct_status s = oct_conversion_kept(c, c->m->graph, &o.kept, err);
    if (s == OCT_OK)
        s = oct_quantized_copy(c->job, &g, err);
    if (s == OCT_OK) {
        s = run(c, g, &o, x, err);
        oct_graph_destroy(g);
    }
    oct_pool_destroy(pool);
    return s;
}

/* Decides with the current forms of the units, and fills x if the result fits. */
static oct_status try_all(oct_size_units *u, oct_size_rival *x, bool *fits, oct_err *err)
{
    oct_conversion *c = u->c;
    OCT_TRY(oct_size_apply(u, err));
    OCT_TRY(oct_conversion_size(c, &x->bytes, err));
    *fits = x->bytes <= c->size.limit;
    x->sqnr = oct_size_decibels(oct_size_noise(u));
    return *fits && u->measured ? measure(c, x, err) : OCT_OK;
}

/* Whether a form that was tried is expected to be so much better that this one is not worth a run. */
static bool is_beaten(const rival *r, const size_t *at, size_t n, const rival *x)
{
    bool beaten = false;
    for (size_t k = 0; k < n; k++)
        beaten |=
            r[at[k]].form != OWN && r[at[k]].noise * (same_kind(r[at[k]].form, x->form) ? CLEARLY : FAR) < x->noise;
    return beaten;
}

oct_status oct_size_compare(oct_size_units *u, int *const own[2], oct_err *err)
{
    oct_size_choice *z = &u->c->size;
    rival r[MOST];
    size_t at[MOST];
    const size_t n = list_rivals(u, own, r);
    double most = -INFINITY;
    if (!(z->rival = oct_arena_calloc(u->c->arena, MOST, sizeof *z->rival)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++) {
        oct_size_rival *x = &z->rival[z->n_rivals];
        bool fits;
        if (u->measured && is_beaten(r, at, z->n_rivals, &r[i]))
            continue;
        set_all(u, &r[i]);
        *x = (oct_size_rival){ .form = r[i].form == OWN ? "" : oct_size_forms[r[i].form].name,
                               .between = r[i].form == OWN && r[i].others == OCT_SIZE_OTHERS_FLOAT };
        OCT_TRY(try_all(u, x, &fits, err));
        if (!fits && i > 0)
            continue;
        if (i == 0 || x->sqnr > most) {
            most = isnan(x->sqnr) ? -INFINITY : x->sqnr;
            z->taken = z->n_rivals;
        }
        at[z->n_rivals++] = i;
    }
    if (z->n_rivals == 1 && r[0].form == OWN)
        z->n_rivals = 0;
    set_all(u, &r[n ? at[z->taken] : 0]);
    return oct_size_apply(u, err);
}
