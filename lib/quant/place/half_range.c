/* Finds what 16-bit floats and 8 bits cannot represent: constants, values seen on samples, and, without samples, values
 * of which too little is known.
 *
 * float16 reaches from 6e-8 to 65504. A value is large if it may exceed 65504: squares, powers, quotients with a
 * computed divisor, and everything that follows until an operator limits the size (a root, a logarithm, a
 * normalization). Of other values the small magnitudes are critical: Log and Div turn into infinity what was rounded to
 * 0. Nodes that touch a large value, and nodes that read or compute a value with critical small magnitudes, stay
 * float32. bfloat16 has the range of float32, so that only constants are checked.
 *
 * With 8 bits there are 255 equal steps from 0 to the largest value. So a node does not compute on 8 bits if its
 * results have critical small magnitudes: a Fourier transform before powers, the filters after these, a running mean
 * that is a divisor. The exception are values that were seen on samples, none of which was smaller than one step. */
#include "eval/metrics/summary.h"
#include "kernels/half.h"
#include "quant/job/placed.h"
#include "quant/place/place.h"

#include <math.h>
#include <string.h>

#define LARGEST_F16 65504.0
#define LARGEST_BF16 3.3895313892515355e38
#define HEADROOM 2         /* a factor: samples do not show all inputs, so float16 keeps one bit in reserve */
#define LEAST_DB 30.0      /* of constants: below this, there are denormals, or zeros in place of an epsilon */
#define NORMAL_F16 0x1p-14 /* below this, float16 loses digits */
#define TINY_F16 0x1p-19   /* below this, the SQNR is less than about 30 dB */
#define DIGITS_F16 0x1p11
#define CODES 255 /* steps of 8 bits from 0 to the largest value */

/* ---- constants ---- */

/* The SQNR in dB, and the largest finite magnitude, of a constant in 16 bits. */
static double measure(const oct_tensor *c, oct_dtype t, double *largest)
{
    enum { CHUNK = 1024 };
    const float *x = c->data;
    uint16_t h[CHUNK];
    float y[CHUNK];
    double signal = 0, noise = 0;
    *largest = 0;
    for (int64_t at = 0; at < c->count; at += CHUNK) {
        size_t n = c->count - at < CHUNK ? (size_t)(c->count - at) : CHUNK;
        oct_narrow(NULL, t, x + at, n, h);
        oct_widen(NULL, t, h, n, y);
        for (size_t i = 0; i < n; i++) {
            const double a = x[at + (int64_t)i], d = a - (double)y[i];
            if (!isfinite(a))
                continue; /* infinities and NaN do not change */
            *largest = fmax(*largest, fabs(a));
            signal += a * a;
            noise += d * d;
        }
    }
    return oct_decibels(signal, noise);
}

double oct_half_sqnr(const oct_tensor *c, oct_dtype t)
{
    return c && c->dtype == OCT_F32 && c->data ? measure(c, t, &(double){ 0 }) : NAN;
}

/* ---- values ---- */

/* What statistics say about a value. */
typedef struct fact {
    bool known, off, pinned;
    double largest, least; /* magnitudes; `least` is the power of two below the smallest that is not 0 */
} fact;

/* The largest power of two that is not above any magnitude seen; 0: none was seen. */
static double least_octave(const oct_stats *s)
{
    int least = 0x100;
    for (int i = 0; i < 512; i++)
        if (s->used[i] && (i & 0xff) < least)
            least = i & 0xff;
    return least == 0x100 ? 0 : ldexp(1.0, least - 127);
}

static fact fact_of(const oct_qjob *j, const oct_calib *c, int value)
{
    const oct_calib_tensor *s = c ? oct_calib_find(c, oct_value_name(j->g, value)) : NULL;
    if (!s)
        return (fact){ .known = false };
    const double lo = s->pinned ? s->pin.lo : s->stats.min, hi = s->pinned ? s->pin.hi : s->stats.max;
    return (fact){ true, s->off, s->pinned, fmax(fabs(lo), fabs(hi)), least_octave(&s->stats) };
}

/* By value: whether it is too large, or may be. */
typedef enum extent {
    FITS = 0,
    COMPRESSED, /* it fits, and was computed from a large value */
    LARGE_HERE, /* it may not fit, but values computed from it are not large for that reason */
    LARGE
} extent;
/* SMALL_TO_SUM: small magnitudes are critical, but not those of the terms of a sum or mean that gives the value */
typedef enum smallness { NOT_SMALL = 0, SMALL_TO_SUM, SMALL } smallness;

typedef struct ranges {
    oct_qjob *j;
    const oct_calib *c;
    bool bytes; /* the check is for 8 bits, not for 16-bit floats */
    extent *large;
    extent *powers; /* what would be large without samples; this finds spectra, whatever their size on the samples */
    smallness *small;
    unsigned char
        *constant; /* what was found of a constant: 0 nothing so far, or 1 + whether it reaches beyond float16 */
    bool *changed;
} ranges;

static bool is_variable(const oct_qjob *j, int value)
{
    return oct_is_f32(j, value) && !j->g->value[value].constant;
}

/* Whether a finite element exceeds LARGEST_F16. Positive floats are ordered as their bits are. */
static bool reaches_beyond(const oct_tensor *k)
{
    enum { LARGEST = 0x477fe000, INFINITE = 0x7f800000, CHUNK = 1024 };
    const float *x = k->data;
    for (int64_t at = 0; at < k->count; at += CHUNK) {
        const int64_t end = k->count - at < CHUNK ? k->count : at + CHUNK;
        int beyond = 0;
        for (int64_t i = at; i < end; i++) {
            int32_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            bits &= INT32_MAX;
            beyond |= (bits > LARGEST) & (bits < INFINITE);
        }
        if (beyond)
            return true;
    }
    return false;
}

/* The extent of a constant, which is looked at once: decisions are made many times, and read each several times. */
static extent constant_extent(const ranges *r, int value)
{
    enum { MOST = 1 << 20 }; /* larger constants are weights, not masks */
    const oct_tensor *k = r->j->g->value[value].constant;
    if (!r->constant[value])
        r->constant[value] = 1 + (k->data && k->count <= MOST && reaches_beyond(k));
    return r->constant[value] > 1 ? LARGE : FITS;
}

/* The largest extent among the values that a node reads, constants included. large: for each value. */
static extent largest_read(const ranges *r, int id, const extent *large)
{
    const oct_node *n = &r->j->g->node[id];
    extent largest_extent = FITS;
    for (int i = 0; i < n->n_in; i++) {
        if (!oct_is_f32(r->j, n->in[i]))
            continue;
        const bool constant = r->j->g->value[n->in[i]].constant;
        const extent w = constant ? constant_extent(r, n->in[i]) : large[n->in[i]];
        largest_extent = w > largest_extent ? w : largest_extent;
    }
    return largest_extent;
}

/* The extent of a node's outputs, as far as its operator determines it. */
static extent extent_made(const ranges *r, int id, const extent *large)
{
    const oct_growth growth = oct_node_growth(r->j->g, id);
    const oct_op *op = oct_op_of(r->j->g, id);
    const extent read = op ? largest_read(r, id, large) : FITS;
    if (growth == OCT_GROWS || read == LARGE)
        return LARGE;
    return growth == OCT_GROWS_SUMS ? LARGE_HERE : read == COMPRESSED && !oct_op_is_layer(op) ? COMPRESSED : FITS;
}

static void find_large(const ranges *r, int id, const oct_calib *c, extent *large)
{
    const oct_node *n = &r->j->g->node[id];
    const extent made = extent_made(r, id, large);
    for (int k = 0; k < n->n_out; k++) {
        if (!oct_is_f32(r->j, n->out[k]))
            continue;
        const fact f = fact_of(r->j, c, n->out[k]);
        const extent follows = k > 0 || !oct_node_compresses(r->j->g, id) ? made : made == LARGE ? COMPRESSED : FITS;
        large[n->out[k]] = !f.known ? follows : f.largest > LARGEST_F16 / (f.pinned ? 1 : HEADROOM) ? LARGE : FITS;
    }
}

/* Whether a layer reads a spectrum: powers, or their roots. */
static bool reads_spectrum(const ranges *r, int id)
{
    const extent read = largest_read(r, id, r->powers);
    return read == LARGE || read == COMPRESSED;
}

/* Whether small inputs give small outputs, so that a loss in the input is a loss in the output. This holds for layers
 * that filter a spectrum, so that the source of a spectrum before a logarithm is found. Of operators that limit sizes,
 * it holds for those that work element by element (Sqrt, but not Softmax). */
static bool carries_small(const ranges *r, int id)
{
    const oct_op *op = oct_op_of(r->j->g, id);
    float lo, hi;
    if (!op || oct_op_is_layer(op))
        return op && reads_spectrum(r, id);
    return op->homogeneous || op->multiplies || op->alias || op->permutes || op->moves || op->reduces || op->delicate ||
           (op->compresses && op->quant == OCT_QUANT_UNARY) || oct_op_clamp(r->j->g, id, &lo, &hi);
}

/* What the readers of a node's outputs require of its inputs. */
static smallness asked_of(const ranges *r, int id)
{
    const oct_node *n = &r->j->g->node[id];
    smallness asked = NOT_SMALL;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && r->small[n->out[k]] > asked)
            asked = r->small[n->out[k]];
    if (!carries_small(r, id) || (asked == SMALL_TO_SUM && oct_op_of(r->j->g, id)->reduces))
        return NOT_SMALL;
    return asked;
}

/* The smallest magnitude that is not lost. The outputs of a layer have an error from rounding its inputs, which is
 * relative to the largest one. */
static double least_held(const ranges *r, const fact *f)
{
    return r->bytes ? f->largest / CODES : fmax(NORMAL_F16, f->largest / DIGITS_F16);
}

/* A logarithm distinguishes small values in any case; a divisor only must not be 0. */
static void find_small(ranges *r, int id)
{
    const oct_node *n = &r->j->g->node[id];
    const oct_op *op = oct_op_of(r->j->g, id);
    const smallness asked = asked_of(r, id);
    for (int i = 0; i < n->n_in; i++) {
        const bool delicate = i < 32 && oct_node_delicate(r->j->g, id) >> i & 1;
        const smallness wants = !delicate              ? asked
                                : op->compresses       ? SMALL
                                : asked > SMALL_TO_SUM ? asked
                                                       : SMALL_TO_SUM;
        if (!is_variable(r->j, n->in[i]) || wants <= r->small[n->in[i]])
            continue;
        const fact f = fact_of(r->j, r->c, n->in[i]);
        if (!f.known || (f.least > 0 && f.least < least_held(r, &f)))
            r->small[n->in[i]] = wants;
    }
}

/* ---- nodes ---- */

static oct_status bar(const ranges *r, int id, const char *why, oct_err *err)
{
    *r->changed = true;
    return oct_keep_float(&r->j->constraints, id, OCT_FROM_RANGES, why, err);
}

/* Whether constants below float16's smallest step (6e-8) may become 0. A bias may: it is added to a sum whose own
 * rounding has errors of that size, unless small values of the sum are critical. */
static bool may_vanish(const ranges *r, int id, int slot)
{
    const oct_op *op = oct_op_of(r->j->g, id);
    return op && oct_op_is_layer(op) && op->weights.bias > 0 && slot == op->weights.bias &&
           !r->small[r->j->g->node[id].out[0]];
}

static oct_status check_constant(const ranges *r, int id, int value, int slot, oct_err *err)
{
    const oct_dtype t = oct_half_type(r->j, id);
    const oct_value *v = &r->j->g->value[value];
    const char *type = oct_dtype_name(t);
    double largest, most = t == OCT_F16 ? LARGEST_F16 : LARGEST_BF16, db = measure(v->constant, t, &largest);
    if (largest > most)
        return bar(r, id,
                   oct_arena_printf(r->j->arena, "its constant '%s' reaches %.4g, beyond the %.4g of %s", v->name,
                                    largest, most, type),
                   err);
    if (db < LEAST_DB && !may_vanish(r, id, slot))
        return bar(r, id,
                   oct_arena_printf(r->j->arena, "its constant '%s' is too small for %s (SQNR %.0f dB)", v->name, type,
                                    db),
                   err);
    return OCT_OK;
}

static oct_status check_seen(const ranges *r, int id, int value, const fact *f, oct_err *err)
{
    const char *name = r->j->g->value[value].name;
    if (f->off)
        return bar(r, id, oct_arena_printf(r->j->arena, "'%s' is commented out in the table", name), err);
    if (r->large[value] > COMPRESSED)
        return bar(r, id,
                   oct_arena_printf(r->j->arena, "'%s' reaches %.4g, %s the 65504 of float16", name, f->largest,
                                    f->largest > LARGEST_F16 ? "beyond" : "too near"),
                   err);
    if (f->largest > 0 && f->largest < TINY_F16)
        return bar(r, id,
                   oct_arena_printf(r->j->arena, "'%s' stays below %.2g, too small for float16", name, f->largest),
                   err);
    return OCT_OK;
}

/* Checks a value that the node reads (slot) or computes (slot -1). */
static oct_status check_value(const ranges *r, int id, int value, int slot, oct_err *err)
{
    const char *name = r->j->g->value[value].name;
    const fact f = fact_of(r->j, r->c, value);
    if (f.known)
        OCT_TRY(check_seen(r, id, value, &f, err));
    else if (r->large[value] > COMPRESSED)
        return bar(r, id,
                   oct_arena_printf(r->j->arena, "without samples it is not known whether float16 holds '%s'", name),
                   err);
    const bool decides = r->small[value] && (slot < 0 || (slot < 32 && oct_node_delicate(r->j->g, id) >> slot & 1));
    if (oct_kept_float(&r->j->constraints, id) || !decides)
        return OCT_OK;
    return bar(
        r, id,
        f.known ? oct_arena_printf(
                      r->j->arena,
                      "'%s' has values from %.2g to %.2g, of which the small ones matter and are too small for float16",
                      name, f.least, f.largest)
                : oct_arena_printf(r->j->arena,
                                   "the small values of '%s' matter, and without samples it is not "
                                   "known whether they are too small for float16",
                                   name),
        err);
}

static oct_status check_node(const ranges *r, int id, oct_err *err)
{
    const oct_node *n = &r->j->g->node[id];
    for (int i = 0; i < n->n_in + n->n_out && !oct_kept_float(&r->j->constraints, id); i++) {
        const int v = oct_half_operand(r->j, id, i);
        const oct_tensor *k = oct_graph_constant(r->j->g, v);
        if (k && k->data)
            OCT_TRY(check_constant(r, id, v, i, err));
        else if (v >= 0 && oct_half_type(r->j, id) == OCT_F16)
            OCT_TRY(check_value(r, id, v, i < n->n_in ? i : -1, err));
    }
    return OCT_OK;
}

static oct_status check_all(const ranges *r, oct_err *err)
{
    const oct_graph *g = r->j->g;
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_half_type(r->j, g->order[i]))
            OCT_TRY(check_node(r, g->order[i], err));
    return OCT_OK;
}

/* ---- 8 bits ---- */

/* The output of an integer layer, or of a node between such layers, that has critical small values; -1: none. Layers
 * that the policy names are not changed. */
static int deciding_output(const ranges *r, int id)
{
    const oct_scheme scheme = oct_scheme_of(r->j, id);
    const oct_node *n = &r->j->g->node[id];
    if ((scheme != OCT_SCHEME_STATIC && scheme != OCT_SCHEME_DYNAMIC) || oct_is_absorbed(r->j, id) ||
        oct_row_of(r->j, id)->named)
        return -1;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && r->small[n->out[k]])
            return n->out[k];
    return -1;
}

static oct_status check_bytes(const ranges *r, oct_err *err)
{
    const oct_graph *g = r->j->g;
    for (size_t i = 0; i < g->n_order; i++) {
        const int v = deciding_output(r, g->order[i]);
        if (v < 0)
            continue;
        const fact f = fact_of(r->j, r->c, v);
        const char *name = g->value[v].name;
        OCT_TRY(
            bar(r, g->order[i],
                f.known
                    ? oct_arena_printf(r->j->arena,
                                       "'%s' goes into a logarithm or a quotient and has values from %.2g to %.2g: "
                                       "8 bits would round the small ones to 0",
                                       name, f.least, f.largest)
                    : oct_arena_printf(
                          r->j->arena,
                          "'%s' goes into a logarithm or a quotient, and 8 bits may round its small values to 0", name),
                err));
    }
    return OCT_OK;
}

static oct_status find_ranges(ranges *r, oct_err *err)
{
    const oct_graph *g = r->j->g;
    r->large = oct_calloc(g->n_value + 1, sizeof *r->large);
    r->powers = oct_calloc(g->n_value + 1, sizeof *r->powers);
    r->small = oct_calloc(g->n_value + 1, sizeof *r->small);
    r->constant = oct_calloc(g->n_value + 1, sizeof *r->constant);
    if (!r->large || !r->powers || !r->small || !r->constant)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_order; i++) {
        find_large(r, g->order[i], NULL, r->powers);
        find_large(r, g->order[i], r->c, r->large);
    }
    for (size_t i = g->n_order; i-- > 0;)
        find_small(r, g->order[i]);
    return OCT_OK;
}

static void free_ranges(ranges *r)
{
    oct_free(r->large);
    oct_free(r->powers);
    oct_free(r->small);
    oct_free(r->constant);
}

oct_status oct_bytes_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err)
{
    ranges r = { .j = j, .c = c, .bytes = true, .changed = changed };
    oct_status s = find_ranges(&r, err);
    if (s == OCT_OK)
        s = check_bytes(&r, err);
    free_ranges(&r);
    return s;
}

oct_status oct_half_check(oct_qjob *j, const oct_calib *c, bool *changed, oct_err *err)
{
    ranges r = { .j = j, .c = c, .changed = changed };
    bool any = false;
    for (size_t i = 0; i < j->g->n_order; i++)
        any |= oct_half_type(j, j->g->order[i]) != OCT_UNDEFINED;
    if (!any)
        return OCT_OK;
    oct_status s = find_ranges(&r, err);
    if (s == OCT_OK)
        s = check_all(&r, err);
    free_ranges(&r);
    return s;
}
