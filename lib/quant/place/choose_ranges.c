/* Chooses quantization parameters from statistics. */
#include "eval/metrics/summary.h"
#include "ops/core/tested_nan.h"
#include "quant/job/records.h"
#include "quant/place/place.h"

#include <math.h>

/* Keeps a node from forms that need the range of a value. A product may still quantize its input at run time, unless a
 * person removed the value from the table. */
static oct_status give_up_node(oct_qjob *j, int node, bool taken_out, const char *why, oct_err *err)
{
    const bool may_be_dynamic = oct_is_product(j, node) && !taken_out;
    return oct_constrain(&j->constraints,
                         &(oct_constraint){ .kind = may_be_dynamic ? OCT_CONSTRAINT_NO_RANGES : OCT_CONSTRAINT_FLOAT,
                                            .from = OCT_FROM_STATISTICS,
                                            .node = node,
                                            .why = why },
                         err);
}

/* The same for all nodes that would quantize a value. The output of a product may stay float, so only its readers are
 * given up, unless a person removed the value from the table. */
static oct_status give_up(oct_qjob *j, int value, bool taken_out, oct_err *err)
{
    const oct_value *v = &j->g->value[value];
    const char *why = v->constant                  ? "a constant is infinite, which integers are not"
                      : oct_tests_nan(j->g, value) ? "the model tests a tensor for NaN, and integers have none"
                                                   : "a tensor has no statistics in the calibration table";
    const int p = oct_maker_node(j, value);
    bool any = false;
    for (size_t i = 0; i < v->n_uses; i++)
        if (oct_is_static(j, v->uses[i].node) || j->node[v->uses[i].node].rounds) {
            OCT_TRY(give_up_node(j, v->uses[i].node, taken_out, why, err));
            any = true;
        }
    const bool needs = p >= 0 && (!oct_is_product(j, p) || oct_target_needs_output(j->opts.target, j->g->node[p].op,
                                                                                   j->g->node[p].out[0] != value));
    if (p >= 0 && (taken_out || !any || (needs && oct_makes_quantized(j, p))))
        return give_up_node(j, p, taken_out, why, err);
    return OCT_OK;
}

/* What the table fixes for the values that share their parameters. */
typedef struct pins {
    bool any;
    oct_range range;       /* a range that contains those of all of them */
    oct_calib_exact exact; /* the exact parameters of one that has this range */
} pins;

static const oct_calib_tensor *pinned_tensor(const oct_qjob *j, const oct_calib *c, int v)
{
    const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, v)) : NULL;
    return t && t->pinned ? t : NULL;
}

static pins find_pins(const oct_qjob *j, const oct_calib *c, int root)
{
    pins p = { 0 };
    for (int v = root; v >= 0; v = j->value[v].next) {
        const oct_calib_tensor *t = pinned_tensor(j, c, v);
        if (!t)
            continue;
        p.any = true;
        if (t->pin.lo <= p.range.lo && t->pin.hi >= p.range.hi && t->exact.bits)
            p.exact = t->exact;
        else if (t->pin.lo < p.range.lo || t->pin.hi > p.range.hi)
            p.exact.bits = 0;
        p.range = (oct_range){ fminf(p.range.lo, t->pin.lo), fmaxf(p.range.hi, t->pin.hi) };
    }
    return p;
}

/* Records at each value whose own parameters were not used why they were not. */
static void tell_misfits(oct_qjob *j, const oct_calib *c, int root, const pins *p, const char *misfit)
{
    for (int v = root; v >= 0; v = j->value[v].next) {
        const oct_calib_tensor *t = pinned_tensor(j, c, v);
        const oct_calib_exact *x = t ? &t->exact : NULL;
        const bool same = x && x->bits == p->exact.bits && x->scale == p->exact.scale && x->zero == p->exact.zero;
        j->value[v].misfit = !x || !x->bits ? NULL
                             : same         ? misfit
                                            : "it shares its parameters with a tensor that has others";
    }
}

/* Merges the statistics of all values that share their parameters. Values that are only moved are the same numbers
 * again, and change no range. *missing: a value without statistics that no pinned range replaces, that was removed,
 * that the model tests for NaN or that is an infinite constant; or -1. *whole: all have statistics. */
static oct_status merge_stats(const oct_qjob *j, const oct_calib *c, int root, bool pinned, oct_stats *s, bool *whole,
                              int *missing, oct_err *err)
{
    *missing = -1;
    *whole = true;
    for (int v = root; v >= 0; v = j->value[v].next) {
        const oct_tensor *constant = j->g->value[v].constant;
        if (constant) {
            const uint64_t infinite = s->inf[0] + s->inf[1];
            OCT_TRY(oct_stats_update(s, constant->data, (size_t)constant->count, err));
            if (s->inf[0] + s->inf[1] > infinite) {
                *missing = v;
                return OCT_OK;
            }
            continue;
        }
        const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, v)) : NULL;
        const bool none = !t || oct_stats_finite(&t->stats) == 0 || oct_tests_nan(j->g, v);
        if ((t && t->off) || (none && !pinned)) {
            *missing = v;
            return OCT_OK;
        }
        *whole &= !none;
        if (!none)
            OCT_TRY(oct_stats_merge(s, &t->stats, err));
    }
    return OCT_OK;
}

static oct_range clamped(const qvalue *root, oct_range r)
{
    return (oct_range){ fmaxf(r.lo, root->clamp_lo), fminf(r.hi, root->clamp_hi) };
}

static oct_status select_range(const qvalue *root, const oct_stats *s, oct_observer_spec spec, oct_qrange qrange,
                               oct_selection *sel, oct_err *err)
{
    OCT_TRY(oct_observe(s, spec, qrange, sel, err));
    const oct_range r = clamped(root, sel->range);
    if (r.lo == sel->range.lo && r.hi == sel->range.hi)
        return OCT_OK;
    return oct_observe_range(s, r, qrange, sel, err);
}

/* The reason why given parameters cannot be used unchanged; NULL: they can. If the quantizer also performs a clamp, its
 * range must end at the clamp, up to half a step. */
static const char *misfit_of(const qvalue *root, const pins *p, oct_dtype type)
{
    const oct_calib_exact *x = &p->exact;
    const double step = (double)x->scale, lo = -x->zero * step, hi = ((1 << x->bits) - 1 - x->zero) * step;
    if (x->bits != oct_dtype_bits(type))
        return "they have another number of bits";
    if (root->symmetric && x->zero != 1 << (x->bits - 1))
        return "the policy asks for symmetric parameters";
    if (lo < (double)root->clamp_lo - step / 2 || hi > (double)root->clamp_hi + step / 2)
        return "its quantizer also clamps, at other limits";
    return NULL;
}

/* Uses a range that the table fixes, and if possible its exact parameters. */
static oct_status select_pinned(const qvalue *root, const oct_stats *s, bool whole, const pins *p, oct_dtype type,
                                oct_qrange qrange, oct_selection *sel, const char **misfit, oct_err *err)
{
    const oct_range r = clamped(root, p->range);
    *sel = (oct_selection){ .range = r, .q = oct_qparams_from_range(r, qrange), .mse = NAN, .signal = NAN };
    if (whole)
        OCT_TRY(oct_observe_range(s, r, qrange, sel, err));
    *misfit = p->exact.bits ? misfit_of(root, p, type) : NULL;
    if (p->exact.bits && !*misfit)
        sel->q = (oct_qparams){ p->exact.scale, p->exact.zero - (qrange.qmin < 0 ? 1 << (p->exact.bits - 1) : 0) };
    return OCT_OK;
}

static oct_status new_parameters(oct_qjob *j, oct_dtype type, oct_qparams p, oct_quant **out, oct_err *err)
{
    oct_quant *q = *out = oct_arena_calloc(j->lasting, 1, sizeof *q);
    float *scale;
    if (!q)
        return oct_nomem(err);
    *q = (oct_quant){ .n = 1, .dtype = type };
    OCT_TRY(oct_new_scales(j, q, p.zero, &scale, err));
    *scale = p.scale;
    return OCT_OK;
}

static oct_status set_parameters(oct_qjob *j, int root, oct_dtype type, const oct_selection *sel, const char *observer,
                                 oct_err *err)
{
    oct_quant *q;
    OCT_TRY(new_parameters(j, type, sel->q, &q, err));
    for (int v = root; v >= 0; v = j->value[v].next) {
        j->value[v].quant = q;
        j->value[v].observer = observer;
        j->value[v].sqnr = oct_decibels(sel->signal, sel->mse);
    }
    return OCT_OK;
}

/* The observer's name as in a policy. */
static oct_status observer_text(oct_qjob *j, oct_observer_spec spec, const char **text, oct_err *err)
{
    char param[32];
    *text = spec.observer->name;
    if (spec.param != spec.observer->param)
        *text = oct_arena_printf(j->arena, "%s=%s", spec.observer->name, oct_f64_text(param, spec.param));
    return *text ? OCT_OK : oct_nomem(err);
}

/* The parameters given for one of the values that share them, or NULL. */
static const oct_given_params *given_params(const oct_qjob *j, int root)
{
    for (int v = root; v >= 0; v = j->value[v].next)
        for (size_t i = 0; i < j->opts.n_given; i++)
            if (j->opts.given[i].value == v && !j->opts.given[i].range_alone)
                return &j->opts.given[i];
    return NULL;
}

/* The parameters that the target prescribes for the result of an operator that computes one of the values. */
static bool fixed_params(const oct_qjob *j, int root, oct_dtype type, oct_qparams *q)
{
    for (int v = root; v >= 0; v = j->value[v].next) {
        const int p = oct_maker_node(j, v);
        if (oct_makes_quantized(j, p) &&
            oct_target_scale_of(j->opts.target, j->g->node[p].op, type, &q->scale, &q->zero))
            return true;
    }
    return false;
}

/* Rounds a scale to the power of two above or below it, whichever loses less by the statistics. whole: statistics of
 * all values are known; otherwise the one above is taken. */
static oct_status round_scale(const oct_stats *s, bool whole, oct_qrange qrange, oct_selection *sel, oct_err *err)
{
    int exponent;
    oct_selection each[2];
    if (frexpf(sel->q.scale, &exponent) == 0.5f)
        return OCT_OK;
    for (int i = 0; whole && i < 2; i++) {
        const float scale = ldexpf(1.0f, exponent - i), by = scale / sel->q.scale;
        OCT_TRY(oct_observe_range(s, (oct_range){ sel->range.lo * by, sel->range.hi * by }, qrange, &each[i], err));
        each[i].q.scale = scale;
    }
    if (whole)
        *sel = each[each[1].mse < each[0].mse];
    else
        sel->q.scale = ldexpf(1.0f, exponent);
    return OCT_OK;
}

/* Parameters prescribed by the target, or fixed by the table, or else chosen by an observer. */
static oct_status select_params(oct_qjob *j, int root, oct_dtype type, const oct_stats *s, bool whole,
                                const pins *pinned, oct_selection *sel, const char **misfit, oct_err *err)
{
    const oct_policy_row *row = j->value[root].row;
    const oct_observer_spec spec = row && row->observer.observer ? row->observer
                                   : j->chosen                   ? j->chosen[root]
                                                                 : j->observer;
    oct_qparams fixed;
    oct_qrange qrange;
    OCT_TRY(oct_qrange_of(type, j->value[root].symmetric, &qrange, err));
    if (fixed_params(j, root, type, &fixed)) {
        const oct_range all = { (float)(qrange.qmin - fixed.zero) * fixed.scale,
                                (float)(qrange.qmax - fixed.zero) * fixed.scale };
        *sel = (oct_selection){ .range = all, .mse = NAN, .signal = NAN };
        if (whole)
            OCT_TRY(oct_observe_range(s, all, qrange, sel, err));
        sel->q = fixed;
        return OCT_OK;
    }
    OCT_TRY(pinned->any ? select_pinned(&j->value[root], s, whole, pinned, type, qrange, sel, misfit, err)
                        : select_range(&j->value[root], s, spec, qrange, sel, err));
    return oct_target_rules_of(j->opts.target)->powers_of_two ? round_scale(s, whole, qrange, sel, err) : OCT_OK;
}

oct_dtype oct_asked_activations(const oct_qjob *j, const oct_policy_row *row)
{
    return j->opts.activations ? j->opts.activations : row && row->activations ? row->activations : OCT_U8;
}

oct_status oct_params_as(oct_qjob *j, const oct_calib *c, int root, oct_dtype type, const oct_quant **q, oct_err *err)
{
    const pins pinned = find_pins(j, c, root);
    const char *misfit = NULL;
    bool whole;
    int missing;
    oct_stats s;
    oct_selection sel;
    oct_quant *own = NULL;
    oct_stats_init(&s);
    oct_status st = merge_stats(j, c, root, pinned.any, &s, &whole, &missing, err);
    if (st == OCT_OK && missing < 0)
        st = select_params(j, root, type, &s, whole, &pinned, &sel, &misfit, err);
    if (st == OCT_OK && missing < 0)
        st = new_parameters(j, type, sel.q, &own, err);
    oct_stats_free(&s);
    *q = own;
    return st;
}

static oct_status choose(oct_qjob *j, const oct_calib *c, int root, bool *changed, oct_err *err)
{
    const oct_given_params *given = given_params(j, root);
    const oct_policy_row *row = j->value[root].row;
    const oct_dtype type = oct_asked_activations(j, row);
    const oct_observer_spec spec = row && row->observer.observer ? row->observer
                                   : j->chosen                   ? j->chosen[root]
                                                                 : j->observer;
    const pins pinned = find_pins(j, c, root);
    bool whole;
    int missing;
    oct_stats s;
    oct_selection sel;
    if (given) /* they are exact */
        return set_parameters(j, root, type,
                              &(oct_selection){ .q = { given->scale, given->zero - (type == OCT_S8 ? 128 : 0) },
                                                .signal = 1 },
                              "given", err);
    oct_stats_init(&s);
    oct_status st = merge_stats(j, c, root, pinned.any, &s, &whole, &missing, err);
    if (st == OCT_OK && missing >= 0) {
        const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, missing)) : NULL;
        st = give_up(j, missing, t && t->off, err);
        *changed = true;
    } else if (st == OCT_OK) {
        const char *name = "pinned", *misfit = NULL;
        st = select_params(j, root, type, &s, whole, &pinned, &sel, &misfit, err);
        if (st == OCT_OK && !pinned.any)
            st = observer_text(j, spec, &name, err);
        if (st == OCT_OK)
            st = set_parameters(j, root, type, &sel, name, err);
        tell_misfits(j, c, root, &pinned, misfit);
    }
    oct_stats_free(&s);
    return st;
}

/* ---- addends and factors ---- */

/* Masks of attention are the lowest float, or its product with 0 and 1, added to scores. Quantized with steps of 1e36
 * they leave nothing of the scores: runtimes add and multiply in float32, or in fixed point, in steps of the result.
 * But numbers far beyond those that take the result to the end of its range are as good as these. */
#define MOST_STEPS 4096.0f /* of what is needed in one; more are reduced to */
#define FAIR_STEPS 256.0f

typedef enum partner { ADDENDS, FACTORS } partner;

/* The least of what the nodes that read the values of a root take: the step of a sum, or the range of a product for one
 * step of the other factor. 0: something else reads them, or no such node runs on integers. */
static float least_need(const oct_qjob *j, int root, partner what)
{
    float least = 0;
    for (int v = root; v >= 0; v = j->value[v].next) {
        const oct_value *x = &j->g->value[v];
        for (size_t i = 0; i < x->n_uses; i++) {
            const oct_use u = x->uses[i];
            const oct_op *op = u.slot >= 0 ? oct_op_of(j->g, u.node) : NULL;
            const oct_node *n = &j->g->node[u.node];
            const int out = op ? n->out[0] : -1;
            const bool moved = out >= 0 && (size_t)out < j->n_values && oct_params_root(j, out) == root,
                       fits = op && (what == ADDENDS ? op->adds : op->multiplies);
            if (x->is_output || (!moved && !fits))
                return 0;
            const int made = fits && oct_is_static(j, u.node) ? oct_quantized_output(j, u.node) : -1;
            const oct_quant *y = made >= 0 ? oct_quant_of(j, oct_params_root(j, made)) : NULL,
                            *other = y && what == FACTORS ? oct_quant_of(j, oct_params_root(j, n->in[!u.slot])) : NULL;
            const float need = !y                ? 0
                               : what == ADDENDS ? y->scale[0]
                               : other ? (float)(1 << oct_dtype_bits(y->dtype)) * y->scale[0] / other->scale[0]
                                       : 0;
            if (need > 0 && (least == 0 || need < least))
                least = need;
        }
    }
    return least;
}

/* Limits the range of values that are only added, or only multiplied, and are out of all proportion to the results. */
static oct_status fit_partners(oct_qjob *j, const oct_calib *c, int root, partner what, oct_err *err)
{
    const oct_quant *q = j->value[root].quant;
    const float need = q && !given_params(j, root) && !find_pins(j, c, root).any ? least_need(j, root, what) : 0;
    oct_qrange g;
    oct_selection sel = { .mse = NAN, .signal = NAN };
    if (need == 0)
        return OCT_OK;
    OCT_TRY(oct_qrange_of(q->dtype, j->value[root].symmetric, &g, err));
    const float steps = (float)(g.qmax - g.qmin), most = what == ADDENDS ? FAIR_STEPS * need * steps : need;
    if (q->scale[0] * steps <= MOST_STEPS * (what == ADDENDS ? need * steps : need))
        return OCT_OK;
    sel.range = (oct_range){ fmaxf((float)(g.qmin - q->zp[0]) * q->scale[0], -most),
                             fminf((float)(g.qmax - q->zp[0]) * q->scale[0], most) };
    sel.q = oct_qparams_from_range(sel.range, g);
    if (oct_target_rules_of(j->opts.target)->powers_of_two)
        OCT_TRY(round_scale(NULL, false, g, &sel, err));
    return set_parameters(j, root, q->dtype, &sel, j->value[root].observer, err);
}

oct_status oct_choose_qparams(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err)
{
    *changed = false;
    for (size_t v = 0; v < j->n_values; v++) {
        if (j->value[v].wanted && j->value[v].same == (int)v)
            OCT_TRY_WITHIN(choose(j, c, (int)v, changed, err), err, "value '%s'", j->g->value[v].name);
    }
    for (partner what = ADDENDS; what <= FACTORS && !*changed; what++) /* what is added may be a product */
        for (size_t v = 0; v < j->n_values; v++)
            if (j->value[v].wanted && j->value[v].same == (int)v)
                OCT_TRY(fit_partners(j, c, (int)v, what, err));
    return OCT_OK;
}
