/* Grids: from statistics to scale and zero point. */
#include "quant/job.h"

#include <math.h>
#include <string.h>

/* Forces the nodes that would quantize value to float, with the reason. */
static void give_up(oct_qjob *j, int value, const char *why)
{
    const oct_value *v = &j->g->value[value];
    int p = v->producer;
    if (p >= 0 && j->node[p].role == OCT_ROLE_CLAMP)
        p = j->g->value[j->g->node[p].in[0]].producer;
    if (p >= 0)
        j->node[p].barred = why;
    for (size_t i = 0; i < v->n_uses; i++) {
        int user = v->uses[i].node;
        if (j->node[user].role == OCT_ROLE_PRODUCT || j->node[user].role == OCT_ROLE_INTEGER)
            j->node[user].barred = why;
    }
}

static oct_status constant_stats(const oct_tensor *t, oct_stats *s, oct_err *err)
{
    return oct_stats_update(s, t->data, (size_t)t->count, err);
}

/* Statistics of all members of a group, merged. Members that only move another member's data are the same values again, which
 * changes no range. *missing: a member without statistics. */
static oct_status group_stats(oct_qjob *j, const oct_calib *c, int root, oct_stats *s, const oct_calib_tensor **pinned,
                              int *missing, oct_err *err)
{
    *pinned = NULL;
    *missing = -1;
    for (size_t v = 0; v < j->n_values; v++) {
        if (!j->value[v].wanted || oct_grid_root(j, (int)v) != root)
            continue;
        const oct_value *x = &j->g->value[v];
        if (x->konst) {
            OCT_TRY(constant_stats(x->konst, s, err));
            continue;
        }
        const oct_calib_tensor *t = c ? oct_calib_find(c, oct_value_name(j->g, (int)v)) : NULL;
        if (!t || t->off || oct_stats_finite(&t->stats) == 0) {
            *missing = (int)v;
            return OCT_OK;
        }
        if (t->pinned)
            *pinned = t;
        OCT_TRY(oct_stats_merge(s, &t->stats, err));
    }
    return OCT_OK;
}

/* The policy row that speaks for a group: of the product or operator that makes its first value, else of the first reader. */
static const oct_policy_row *row_of(const oct_qjob *j, int root)
{
    const oct_policy_row *row = NULL;
    for (size_t v = 0; v < j->n_values && !row; v++)
        if (j->value[v].wanted && oct_grid_root(j, (int)v) == root)
            row = oct_maker_row(j, (int)v);
    for (size_t v = 0; v < j->n_values && !row; v++)
        if (j->value[v].wanted && oct_grid_root(j, (int)v) == root)
            row = oct_reader_row(j, (int)v);
    return row;
}

/* The whole group must lie inside every clamp that its quantizers do. */
static void group_clamp(const oct_qjob *j, int root, float *lo, float *hi)
{
    *lo = -INFINITY;
    *hi = INFINITY;
    for (size_t v = 0; v < j->n_values; v++)
        if (j->value[v].wanted && oct_grid_root(j, (int)v) == root) {
            *lo = fmaxf(*lo, j->value[v].clamp_lo);
            *hi = fminf(*hi, j->value[v].clamp_hi);
        }
}

static oct_status choose(oct_qjob *j, const oct_calib *c, int root, bool *failed, oct_err *err)
{
    const oct_policy_row *row = row_of(j, root);
    const oct_calib_tensor *pinned;
    int missing;
    oct_stats s;
    oct_grid grid;
    oct_selection sel;
    oct_dtype type = j->opts.activations ? j->opts.activations : row && row->activations ? row->activations : OCT_U8;
    oct_observer_spec spec = row && row->observer.observer ? row->observer : j->observer;
    float lo, hi;
    group_clamp(j, root, &lo, &hi);
    OCT_TRY(oct_grid_of(type, j->value[root].symmetric, &grid, err));
    oct_stats_init(&s);
    oct_status st = group_stats(j, c, root, &s, &pinned, &missing, err);
    if (st == OCT_OK && missing >= 0) {
        give_up(j, missing, "a tensor has no statistics in the calibration table");
        *failed = true;
    } else if (st == OCT_OK) {
        if (pinned)
            st = oct_observe_range(&s, pinned->pin, grid, &sel, err);
        else
            st = oct_observe(&s, spec, grid, &sel, err);
        if (st == OCT_OK && (sel.range.lo < lo || sel.range.hi > hi)) {
            oct_range r = { fmaxf(sel.range.lo, lo), fminf(sel.range.hi, hi) };
            st = oct_observe_range(&s, r, grid, &sel, err);
        }
    }
    if (st == OCT_OK && missing < 0)
        for (size_t v = 0; v < j->n_values; v++)
            if (j->value[v].wanted && oct_grid_root(j, (int)v) == root) {
                qvalue *q = &j->value[v];
                q->has_grid = true;
                q->dtype = type;
                q->q = sel.q;
                q->observer = pinned ? "pinned" : spec.observer->name;
                q->sqnr = sel.mse > 0 ? 10 * log10(sel.signal / sel.mse) : INFINITY;
            }
    oct_stats_free(&s);
    return st;
}

oct_status oct_choose_grids(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err)
{
    *changed = false;
    for (size_t v = 0; v < j->n_values; v++) {
        if (!j->value[v].wanted || j->value[v].has_grid)
            continue;
        oct_status s = choose(j, c, oct_grid_root(j, (int)v), changed, err);
        if (s != OCT_OK) {
            oct_within(err, "value '%s'", j->g->value[v].name);
            return s;
        }
    }
    return OCT_OK;
}
