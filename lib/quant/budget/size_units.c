/* Finds the bytes and the loss of each unit of a model in each form.
 *
 * The whole model is decided once for each form. If there are samples, the loss at the outputs from the weights of each
 * layer is measured for two forms: blocks of 4 bits, and the policy's 8 bits together with the values around. The loss
 * of other forms follows from these, because noise at the outputs is proportional to that of the weights. Without
 * samples all layers are weighted equally: the loss is the relative error of the weights, plus that of the inputs if
 * these are rounded (size_inputs.c). */
#include "quant/budget/size_choice_int.h"

#include "data/data.h"
#include "ops/op.h"
#include "quant/job/placed.h"
#include "quant/place/place.h"
#include "quant/simulate/sensitivity.h"
#include "quant/simulate/simulate_int.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"
#include "runtime/runnable.h"

#include <math.h>
#include <string.h>

enum { FLOAT = OCT_SIZE_FLOAT, HALF = OCT_SIZE_HALF, POLICY, PROBE = 6, DYNAMIC = 10, STORED };
const oct_size_form oct_size_forms[OCT_SIZE_FORMS] = {
    [FLOAT] = { "float", OCT_SCHEME_FLOAT, 0, 0 },
    [HALF] = { "fp16", OCT_SCHEME_FP16, 0, 0 },
    [POLICY] = { "8 bits", OCT_SCHEME_AUTO, 0, 0 },
    { "u8/block32", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U8, 32 },
    { "u8/block64", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U8, 64 },
    { "u8/block128", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U8, 128 },
    [PROBE] = { "u4/block32", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U4, 32 },
    { "u4/block16", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U4, 16 },
    { "u4/block64", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U4, 64 },
    { "u4/block128", OCT_SCHEME_WEIGHT_ONLY, OCT_WEIGHT_U4, 128 },
    [DYNAMIC] = { "dynamic", OCT_SCHEME_DYNAMIC, OCT_WEIGHT_S8, 0 },
    [STORED] = { "stored", OCT_SCHEME_STORED, OCT_WEIGHT_S8, 0 },
};

#define LEAST 1e-3 /* share of the noise: layers that cause less are not measured separately */
enum {
    NODE_BYTES = 200,
    MOST_NODE_BYTES = 8 << 10
}; /* bytes that a form adds to the graph at a node: approximately, and at most */

/* ---- the units ---- */

static const oct_tensor *numbers_of(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    bool is_table;
    if (op && (op->quant == OCT_QUANT_WEIGHTED || op->quant == OCT_QUANT_RECURRENT))
        return oct_layer_weights(j->g, id);
    if (!op || !op->picks)
        return NULL;
    return oct_no_table(j, id, &is_table) || !is_table ? NULL : j->g->value[j->g->node[id].in[0]].constant;
}

static bool is_free(const oct_size_units *u, int id)
{
    const oct_policy_row *row = oct_kept_row(&u->first, id);
    return !row->asked && row->scheme != OCT_SCHEME_FLOAT && !oct_kept_float(&u->j->constraints, id) &&
           numbers_of(u->j, id);
}

static oct_status join_unit(oct_size_units *u, int id, const oct_tensor *t, oct_err *err)
{
    oct_size_unit *x = NULL;
    for (size_t i = 0; i < u->n && !x; i++)
        x = numbers_of(u->j, u->unit[i].first) == t ? &u->unit[i] : NULL;
    if (!x) {
        x = &u->unit[u->n++];
        *x = (oct_size_unit){ .first = id, .elements = (double)t->count, .at = FLOAT };
        if (!(x->node = oct_arena_calloc(u->a, u->j->n_layer + 1, sizeof *x->node)))
            return oct_nomem(err);
    }
    x->node[x->n++] = id;
    return OCT_OK;
}

static oct_size_unit *unit_of(oct_size_units *u, int id)
{
    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < u->unit[i].n && !u->unit[i].aside; k++)
            if (u->unit[i].node[k] == id)
                return &u->unit[i];
    return NULL;
}

/* Joins a table that is tied to a product with the product. Its numbers are those of the product, also in the float
 * file, where they are computed from them. */
static void join_tied(oct_size_units *u)
{
    for (size_t i = 0; i < u->n; i++) {
        oct_size_unit *x = &u->unit[i];
        const qtable *t = u->j->constants[x->first].table;
        oct_size_unit *with =
            t && t->tied >= 0 && oct_scheme_of(u->j, x->first) != OCT_SCHEME_FLOAT ? unit_of(u, t->tied) : NULL;
        if (!with || with == x)
            continue;
        for (size_t k = 0; k < x->n; k++)
            with->node[with->n++] = x->node[k];
        x->aside = true;
    }
}

/* ---- decisions ---- */

/* Returns to the decisions of the policy. */
static oct_status restore(oct_size_units *u, oct_err *err)
{
    OCT_TRY(oct_decisions_restore(u->j, &u->first, err));
    u->c->decided = true;
    oct_conversion_edited(u->c);
    return OCT_OK;
}

static const char *rule_of(const oct_size_form *f)
{
    switch (f->scheme) {
    case OCT_SCHEME_FLOAT: return "float, for the size that was asked for";
    case OCT_SCHEME_FP16: return "16-bit floats, for the size that was asked for";
    case OCT_SCHEME_DYNAMIC: return "8 bits, for the size that was asked for";
    default:
        return f->weights == OCT_WEIGHT_U4 ? "weights in 4 bits, for the size that was asked for"
                                           : "weights in 8 bits, for the size that was asked for";
    }
}

static oct_status give_form(oct_size_units *u, int id, const oct_size_form *f, const char *why, oct_err *err)
{
    return oct_constrain(&u->j->constraints,
                         &(oct_constraint){ .kind = OCT_CONSTRAINT_FORM,
                                            .from = OCT_FROM_SIZE,
                                            .node = id,
                                            .why = why,
                                            .scheme = f->scheme,
                                            .weights = f->weights,
                                            .block = f->block },
                         err);
}

/* Products of two activations have no weights. On integers they would lose accuracy and save no bytes, so they become
 * float. */
static oct_status free_products(oct_size_units *u, oct_err *err)
{
    static const oct_size_form real = { "float", OCT_SCHEME_FLOAT, 0, 0 };

    for (size_t i = 0; i < u->j->n_layer; i++) {
        const int id = u->j->layer[i];
        const oct_op *op = oct_op_of(u->j->g, id);
        if (op && op->quant == OCT_QUANT_WEIGHTED && !oct_layer_weights(u->j->g, id) && !oct_row_of(u->j, id)->asked)
            OCT_TRY(
                give_form(u, id, &real, "it has no weights, and the size that was asked for is about weights", err));
    }
    return OCT_OK;
}

/* A table of its own is the same in every form, and is kept. Everything else about it is decided anew. */
static oct_status keep_table(oct_size_units *u, qconstants *q, oct_err *err)
{
    const qtable *t = q->table;
    q->table = NULL;
    if (!t || t->tied >= 0 || !t->quant.qvals)
        return OCT_OK;
    return (q->table = oct_arena_memdup(u->j->arena, t, sizeof *t)) ? OCT_OK : oct_nomem(err);
}

static oct_status set_form(oct_size_units *u, const oct_size_unit *x, int form, oct_err *err)
{
    const oct_size_form *f = &oct_size_forms[form];
    for (size_t k = 0; k < x->n; k++) {
        qconstants *q = &u->j->constants[x->node[k]];
        OCT_TRY(keep_table(u, q, err));
        q->weights[0] = q->weights[1] = NULL;
        q->stored = NULL;
        q->bias = NULL;
        if (f->scheme == OCT_SCHEME_AUTO)
            continue;
        OCT_TRY(give_form(u, x->node[k], f, rule_of(f), err));
    }
    return OCT_OK;
}

/* Sets the form of the nodes between layers. */
static oct_status set_others(oct_size_units *u, oct_err *err)
{
    const bool half = u->others == OCT_SIZE_OTHERS_HALF;
    const oct_size_form *f = &oct_size_forms[half ? HALF : FLOAT];
    const char *why = half ? rule_of(f) : "values between layers lose less so";

    for (size_t i = 0; i < u->j->n_layer && u->others != OCT_SIZE_OTHERS_POLICY; i++) {
        const int id = u->j->layer[i];
        const oct_policy_row *row = oct_kept_row(&u->first, id);
        if (!unit_of(u, id) && !row->asked && row->scheme != OCT_SCHEME_FLOAT)
            OCT_TRY(give_form(u, id, f, why, err));
    }
    return OCT_OK;
}

oct_status oct_size_apply(oct_size_units *u, oct_err *err)
{
    OCT_TRY(restore(u, err));
    OCT_TRY(free_products(u, err));
    for (size_t i = 0; i < u->n; i++)
        if (!u->unit[i].aside)
            OCT_TRY(set_form(u, &u->unit[i], u->unit[i].at, err));
    OCT_TRY(set_others(u, err));
    oct_conversion_changed(u->c);
    return oct_conversion_settle(u->c, err);
}

/* ---- the bytes of a unit ---- */

static double bytes_of(const oct_quant *q, const oct_tensor *qvals)
{
    const bool zeros = q->dtype == OCT_U4 || q->dtype == OCT_U8, blocks = q->block > 0;
    const double values = (double)(qvals ? qvals->bytes : 0),
                 zero = blocks ? (zeros ? oct_dtype_bits(q->dtype) / 8.0 : 0) : 1;
    return values + (double)q->n * (sizeof(float) + zero);
}

/* Adds the bytes of a node's own constants; *error: that of its weights. */
static double node_bytes(const oct_qjob *j, int id, const qweights **last, double *sqnr)
{
    const qconstants *q = &j->constants[id];
    const qweights *w = q->weights[0];
    double bytes = 0;
    if (q->table && q->table->tied < 0)
        bytes += bytes_of(&q->table->quant, q->table->quant.qvals);
    if (q->table && isnan(*sqnr))
        *sqnr = q->table->sqnr;
    for (int k = 0; q->stored && k < 2; k++)
        bytes += bytes_of(&q->stored->quant[k], q->stored->quant[k].qvals);
    if (q->stored)
        *sqnr = q->stored->sqnr;
    for (int k = 0; k < 2 && q->weights[k]; k++)
        if (q->weights[k] != *last)
            bytes += bytes_of(&q->weights[k]->quant,
                              q->weights[k]->quant.qvals ? q->weights[k]->quant.qvals : q->weights[k]->qvals);
    if (q->bias)
        bytes += 2.0 * sizeof(float) * q->bias->n;
    *last = w ? w : *last;
    if (w)
        *sqnr = w->sqnr;
    return bytes + NODE_BYTES;
}

static void collect(oct_size_units *u, int form)
{
    for (size_t i = 0; i < u->n; i++) {
        oct_size_unit *x = &u->unit[i];
        oct_size_option *o = &x->option[form];
        const qweights *last = NULL;
        double sqnr = NAN, halves = 0;
        bool real = false;
        *o = (oct_size_option){ .there = !x->aside };
        for (size_t k = 0; k < x->n && o->there; k++) {
            const int id = x->node[k];
            const bool half = oct_half_type(u->j, id) != OCT_UNDEFINED;
            real |= oct_scheme_of(u->j, id) == OCT_SCHEME_FLOAT && !half;
            halves += half;
            if (half && isnan(sqnr))
                sqnr = oct_half_sqnr(numbers_of(u->j, id), OCT_F16);
            if (!real && !half)
                o->bytes += node_bytes(u->j, id, &last, &sqnr);
        }
        if (form == FLOAT)
            *o = (oct_size_option){ !x->aside, x->elements * sizeof(float), 0, 0 };
        else
            o->there &= !real && !isnan(sqnr);
        if (o->there && form != FLOAT) {
            o->bytes = halves > 0 ? x->elements * 2 + NODE_BYTES * halves : o->bytes;
            o->error = oct_size_ratio(sqnr);
            o->there = o->bytes < x->elements * sizeof(float);
        }
    }
}

/* ---- the loss of a unit ---- */

static bool can_measure(const oct_conversion *c)
{
    return c->src && !c->o.synthetic && oct_runnable_whole(c->m->graph) && !oct_source_is_once(c->src);
}

static bool is_around(const oct_size_units *u, int id, const oct_site *s)
{
    return (oct_is_static(u->j, id) || oct_is_dynamic(u->j, id)) && oct_site_touches(u->j, id, s->value);
}

/* Divides the noise of a value equally among the layers around it. */
static void add_value(oct_size_units *u, const oct_site *s, int form)
{
    size_t n = 0;
    for (size_t i = 0; i < u->j->n_layer; i++)
        n += unit_of(u, u->j->layer[i]) && is_around(u, u->j->layer[i], s);
    for (size_t i = 0; i < u->j->n_layer; i++)
        if (unit_of(u, u->j->layer[i]) && is_around(u, u->j->layer[i], s))
            unit_of(u, u->j->layer[i])->option[form].noise += s->noise / (double)n;
}

/* Adds the noise of the units that were not measured separately: together, all units cost as much as everything that is
 * rounded. */
static void raise_to(oct_size_units *u, int form, double all)
{
    double sum = 0;
    for (size_t i = 0; i < u->n; i++)
        sum += u->unit[i].aside ? 0 : u->unit[i].option[form].noise;
    for (size_t i = 0; i < u->n && sum > 0 && sum < all && isfinite(all); i++)
        u->unit[i].option[form].noise *= all / sum;
}

static bool is_recurrent(const oct_size_units *u, const oct_size_unit *x)
{
    return oct_op_of(u->j->g, x->first)->quant == OCT_QUANT_RECURRENT;
}

/* The ratio of the noise at the outputs to the error of the weights, as measured in a form; 0: it was not measured. */
static double gain_of(const oct_size_unit *x, int form)
{
    const oct_size_option *probe = &x->option[form];
    return x->told && probe->there && probe->error > 0 && probe->noise > 0 ? probe->noise / probe->error : 0;
}

/* Adds the noise of the units' weights in a form. It is computed from the measurement with the probe if that suffices,
 * and else measured. */
static oct_status measure_weights(oct_size_units *u, oct_sim *sim, int form, oct_err *err)
{
    oct_sensitivity s;
    bool *layer = oct_arena_calloc(u->a, u->j->n_nodes + 1, sizeof *layer);
    if (!layer)
        return oct_nomem(err);
    for (size_t i = 0; i < u->n; i++) {
        oct_size_unit *x = &u->unit[i];
        const double gain = x->aside ? 0 : gain_of(x, PROBE);
        x->option[form].noise += gain * x->option[form].error;
        for (size_t k = 0; k < x->n && !x->aside; k++)
            layer[x->node[k]] = gain <= 0;
    }
    OCT_TRY(oct_sensitivity_of_weights(sim, u->j, layer, u->a, &s, err));
    for (size_t i = 0; i < s.n; i++) {
        oct_size_unit *x = unit_of(u, s.site[i].node);
        x->option[form].noise +=
            fmax(s.site[i].noise, LEAST / 4 * s.weights.noise); /* it was too small to be measured separately */
        x->told = true;
    }
    if (form == PROBE) /* nothing else is rounded */
        raise_to(u, form, s.weights.noise);
    return OCT_OK;
}

/* Measures the noise of all units in a form. */
static oct_status measure(oct_size_units *u, int form, oct_err *err)
{
    oct_sim *sim;
    oct_sensitivity s;
    OCT_TRY(oct_conversion_sim(u->c, OCT_SIM_MANY_RUNS, 0, &sim, err));
    u->measured = true;
    for (size_t i = 0; i < u->n; i++)
        u->unit[i].option[form].noise = 0;
    OCT_TRY(measure_weights(u, sim, form, err));
    if (form != POLICY)
        return OCT_OK;
    OCT_TRY(oct_sensitivity_measure(sim, u->j, LEAST, false, NULL, u->a, &s, err));
    for (size_t i = 0; i < s.n; i++)
        if (s.site[i].noise > 0)
            add_value(u, &s.site[i], form);
    raise_to(u, form, s.all.noise);
    return OCT_OK;
}

/* The noise from the inputs of a unit's layers. The measured noise of the policy's form contains it. */
static double inputs_noise(const oct_size_units *u, const oct_size_unit *x, oct_scheme scheme)
{
    double noise = 0;
    for (size_t k = 0; k < x->n; k++)
        noise += oct_size_input_noise(u, x->node[k], scheme);
    return noise;
}

/* Computes what was not measured from the errors of the weights, and of inputs in 8 bits. */
static void expect(const oct_size_units *u, oct_size_unit *x)
{
    const oct_scheme scheme = oct_kept_scheme(&u->first, x->first);
    const bool stored = scheme == OCT_SCHEME_DYNAMIC && is_recurrent(u, x) && gain_of(x, STORED) > 0;
    const double told = gain_of(x, x->option[PROBE].there ? PROBE
                                   : stored               ? STORED
                                                          : POLICY),
                 gain = told > 0 ? told : 1;
    const bool known = told > 0, whole = known && (scheme == OCT_SCHEME_STATIC || scheme == OCT_SCHEME_DYNAMIC);
    for (int f = 0; f < OCT_SIZE_FORMS; f++) {
        oct_size_option *o = &x->option[f];
        if (f != PROBE && (f != POLICY || !x->told))
            o->noise = gain * o->error;
        else if (!known)
            o->noise = o->error;
        if (f == DYNAMIC && whole && scheme == OCT_SCHEME_DYNAMIC && x->option[POLICY].there)
            o->noise = x->option[POLICY].noise;
        else if (f == DYNAMIC || (f == POLICY && !whole))
            o->noise += gain * inputs_noise(u, x, f == DYNAMIC ? OCT_SCHEME_DYNAMIC : scheme);
    }
}

/* Whether the policy has a recurrent layer on integers: what its weights cost alone is measured where these are
 * stored. */
static bool has_dynamic_recurrent(const oct_size_units *u)
{
    bool any = false;
    for (size_t i = 0; i < u->n; i++)
        any |= is_recurrent(u, &u->unit[i]) && oct_kept_scheme(&u->first, u->unit[i].first) == OCT_SCHEME_DYNAMIC;
    return any;
}

static bool is_measured(const oct_size_units *u, int form)
{
    return (form == PROBE || form == POLICY || (form == STORED && has_dynamic_recurrent(u))) && can_measure(u->c);
}

static oct_status try_form(oct_size_units *u, int form, oct_err *err)
{
    oct_qjob *j = u->j;
    oct_arena *lasting = j->lasting;
    if (!(j->lasting = oct_arena_create())) {
        j->lasting = lasting;
        return oct_nomem(err);
    }
    for (size_t i = 0; i < u->n; i++)
        u->unit[i].at = form;
    oct_status s = oct_size_apply(u, err);
    if (s == OCT_OK && (form == PROBE || form == POLICY))
        join_tied(u);
    if (s == OCT_OK)
        collect(u, form);
    if (s == OCT_OK)
        s = oct_conversion_size(u->c, &u->file[form], err);
    if (s == OCT_OK && is_measured(u, form))
        s = measure(u, form, err);
    const oct_status restored = restore(u, s == OCT_OK ? err : NULL);
    oct_arena_destroy(j->lasting);
    j->lasting = lasting;
    return s == OCT_OK ? restored : s;
}

/* Among the forms that quantize, the one with the smallest file. */
static int smallest(const oct_size_units *u)
{
    int best = PROBE;
    for (int f = 0; f < OCT_SIZE_FORMS; f++)
        if (f != FLOAT && f != HALF && u->file[f] < u->file[best])
            best = f;
    return best;
}

/* What a form adds to the graph is known only approximately. Files with one form for all units show it, in comparison
 * with the smallest of them. It is divided equally among the nodes. If it is more than nodes can take, numbers are
 * stored twice (in tables that are tied to products), and it is divided in proportion to the numbers. */
static void settle_bytes(oct_size_units *u, int form, int least)
{
    double more = (double)u->file[form] - (double)u->file[least], nodes = 0, elements = 0;
    for (size_t i = 0; i < u->n; i++) {
        const oct_size_unit *x = &u->unit[i];
        if (x->aside)
            continue;
        more -= x->option[x->option[form].there ? form : FLOAT].bytes -
                x->option[x->option[least].there ? least : FLOAT].bytes;
        nodes += x->option[form].there ? (double)x->n : 0;
        elements += x->option[form].there ? x->elements : 0;
    }
    const bool small = fabs(more) < nodes * MOST_NODE_BYTES;
    for (size_t i = 0; i < u->n && nodes > 0; i++) {
        const oct_size_unit *x = &u->unit[i];
        double *bytes = &u->unit[i].option[form].bytes;
        if (!x->aside && x->option[form].there)
            *bytes = fmax(*bytes + more * (small ? (double)x->n / nodes : x->elements / elements), 1);
    }
}

oct_status oct_size_list(oct_conversion *c, oct_arena *a, oct_size_units *u, oct_err *err)
{
    static const int order[OCT_SIZE_FORMS] = { PROBE, POLICY, FLOAT, HALF, 3, 4, 5, 7, 8, 9, DYNAMIC, STORED };
    oct_qjob *j = c->job;
    *u = (oct_size_units){ .c = c, .j = j, .a = a };
    OCT_TRY(oct_conversion_settle(c, err));
    u->unit = oct_arena_calloc(a, j->n_layer + 1, sizeof *u->unit);
    if (!u->unit)
        return oct_nomem(err);
    OCT_TRY(oct_decisions_keep(j, a, &u->first, err));
    for (size_t i = 0; i < j->n_layer; i++)
        if (is_free(u, j->layer[i]))
            OCT_TRY(join_unit(u, j->layer[i], numbers_of(j, j->layer[i]), err));
    for (size_t i = 0; i < OCT_SIZE_FORMS; i++)
        OCT_TRY(try_form(u, order[i], err));
    const int least = smallest(u);
    for (int f = OCT_SIZE_FORMS - 1; f >= 0; f--) /* float is last, because it replaces forms that do not exist */
        if (f != least)
            settle_bytes(u, f, least);
    for (size_t i = 0; i < u->n; i++)
        expect(u, &u->unit[i]);
    return OCT_OK;
}
