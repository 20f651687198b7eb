/* Squared differences, sample by sample. */
#include "eval/sets/value_set.h"

#include "eval/sets/judging.h"
#include "base/bytes.h"
#include "eval/metrics/summary.h"

#include "base/mem.h"

#include <math.h>

typedef struct one {
    double squares, count;
} one;

typedef struct values {
    oct_set base;
    one *v; /* [base.n] */
    size_t cap;
    double lo, hi; /* the range of the float model's values */
    bool ranged;   /* the range is known */
} values;

/* A NaN does not widen the range. */
static void widen(values *x, double lo, double hi)
{
    x->lo = !x->ranged || lo < x->lo || isnan(x->lo) ? lo : x->lo;
    x->hi = !x->ranged || hi > x->hi || isnan(x->hi) ? hi : x->hi;
    x->ranged = true;
}

static oct_status values_add(oct_set *s, const oct_set_view *v, oct_err *err)
{
    values *x = (values *)s;
    const oct_set_tensor *t, *ref;
    OCT_TRY(oct_output_find(&s->judging->rule->output, 0, v->out, v->n_out, &t, err));
    ref = &v->ref[t - v->out];
    if (!OCT_SET_GROW(x->v, s->n, x->cap))
        return oct_nomem(err);
    one *o = &x->v[s->n];
    *o = (one){ t->n == ref->n ? 0 : INFINITY, (double)t->n };
    for (size_t i = 0; i < t->n && t->n == ref->n; i++) {
        const double y = ref->v[i], d = y - (double)t->v[i];
        widen(x, y, y);
        o->squares += t->v[i] == ref->v[i] ? 0 : isfinite(d) ? d * d : INFINITY;
    }
    s->n++;
    return OCT_OK;
}

static void values_release(oct_set *s)
{
    oct_free(((values *)s)->v);
}

static void values_save(oct_set *s, oct_buf *b)
{
    values *x = (values *)s;
    oct_buf_add_u64(b, s->n);
    oct_buf_add_u64(b, x->ranged);
    oct_buf_add_f64(b, x->lo);
    oct_buf_add_f64(b, x->hi);
    for (size_t i = 0; i < s->n; i++) {
        oct_buf_add_f64(b, x->v[i].squares);
        oct_buf_add_f64(b, x->v[i].count);
    }
    s->n = 0;
    x->ranged = false;
}

static oct_status values_load(oct_set *s, oct_bytes *r, oct_err *err)
{
    values *x = (values *)s;
    const size_t n = (size_t)oct_bytes_u64(r);
    const bool ranged = oct_bytes_u64(r) != 0;
    const double lo = oct_bytes_f64(r), hi = oct_bytes_f64(r);
    r->bad |= n > r->n / 16;
    if (ranged && !r->bad)
        widen(x, lo, hi);
    for (size_t i = 0; i < n && !r->bad; i++) {
        if (!OCT_SET_GROW(x->v, s->n, x->cap))
            return oct_nomem(err);
        x->v[s->n].squares = oct_bytes_f64(r);
        x->v[s->n++].count = oct_bytes_f64(r);
    }
    return OCT_OK;
}

const oct_set_type oct_set_of_values = { sizeof(values), values_add, NULL, values_release, values_save, values_load };

double oct_values_share(const oct_set *s, const double *draws, double *scratch)
{
    const values *x = (const values *)s;
    const double peak = s->judging->rule->peak > 0 ? s->judging->rule->peak : x->hi - x->lo;
    double squares = 0, count = 0;
    for (size_t i = 0; i < s->n; i++) {
        const double w = draws ? draws[i] : 1;
        if (w > 0) {
            squares += w * x->v[i].squares;
            count += w * x->v[i].count;
        }
    }
    if (!(count > 0))
        return NAN;
    return squares == 0 ? 0 : squares / count / (peak * peak);
}

double oct_values_psnr(const oct_set *s, const double *draws, double *scratch)
{
    const double share = oct_values_share(s, draws, scratch);
    return isinf(share) ? -INFINITY : oct_decibels(1, share);
}
