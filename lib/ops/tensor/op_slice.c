/* lib/ops/tensor/op_slice.c -- Slice and Pad: boxes cut out of a tensor, and put into a larger one. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"

#include <string.h>

/* ------------------------------------------------------------------ Slice */

/* First index and number of elements of start:end:step on an axis of n elements. */
static int64_t slice_axis(int64_t n, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1;
    start = start < 0 ? start + n : start; /* n >= 0, so neither sum can overflow */
    end = end < 0 ? end + n : end;
    start = start < lo ? lo : start > hi ? hi : start;
    end = end < lo ? lo : end > hi ? hi : end;
    *first = start;
    uint64_t span, by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 ? end <= start : end >= start)
        return 0;
    span = step > 0 ? (uint64_t)(end - start) : (uint64_t)(start - end);
    return (int64_t)((span - 1) / by + 1);
}

/* The four arguments as dimensions that may be unknown. */
static int slice_arg(const oct_infer *c, const char *attr, int slot, oct_dim *d)
{
    if (c->opset < 10) {
        int n;
        const int64_t *v = oct_node_ints(oct_in_node(c), attr, &n);
        if (v == NULL)
            return OCT_ARG_ABSENT;
        if (n > OCT_MAX_RANK)
            return OCT_ARG_UNKNOWN;
        for (int i = 0; i < n; i++)
            d[i] = oct_known_of(v[i]);
        return n;
    }
    if (oct_in_value(c, slot) == NULL)
        return OCT_ARG_ABSENT;
    return oct_in_ints(c, slot, d, OCT_MAX_RANK);
}

static oct_dim sliced_dim(oct_dim n, oct_dim start, oct_dim end, int64_t step)
{
    oct_dim open = { -1, NULL };
    int64_t s, e, first;
    bool ks = oct_known_get(start, &s), ke = oct_known_get(end, &e);
    if (ks && s == 0 && step == 1 && !ke && oct_dim_same(end, n))
        return n;
    if (!ks || !ke)
        return open;
    if (n.n >= 0)
        return oct_dim_of(slice_axis(n.n, s, e, step, &first));
    if (step == 1 && s == 0 && e >= INT32_MAX)
        return n;
    if (step == -1 && s == -1 && e <= -INT32_MAX)
        return n;
    return open;
}

static oct_status slice_known(const oct_infer *c, oct_dim start, oct_dim end, int64_t step, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX], part[OCT_KNOWN_MAX];
    int n = oct_in_ints(c, 0, d, OCT_KNOWN_MAX);
    int64_t s, e, first;
    if (n < 0 || !oct_known_get(start, &s) || !oct_known_get(end, &e))
        return OCT_OK;
    int64_t m = slice_axis(n, s, e, step, &first);
    for (int64_t i = 0; i < m; i++)
        part[i] = d[first + i * step];
    return oct_out_known(c, 0, (int)m, part, err);
}

static oct_status slice_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_dim start[OCT_MAX_RANK], end[OCT_MAX_RANK], axes[OCT_MAX_RANK], steps[OCT_MAX_RANK], d[OCT_MAX_RANK];
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    int n = slice_arg(c, "starts", 1, start), m = slice_arg(c, "ends", 2, end);
    int na = slice_arg(c, "axes", 3, axes), ns = c->opset < 10 ? OCT_ARG_ABSENT : slice_arg(c, "", 4, steps);
    for (int i = 0; i < in.rank; i++)
        d[i] = (oct_dim){ -1, NULL };
    if (n < 0 || m < 0 || na == OCT_ARG_UNKNOWN || ns == OCT_ARG_UNKNOWN)
        return oct_out_shape(c, 0, in.rank, d, err);
    if (n != m || (na >= 0 && na != n) || (ns >= 0 && ns != n) || n > in.rank)
        return oct_fail(err, OCT_EMALFORMED, "starts, ends, axes and steps have %d, %d, %d and %d elements", n, m, na,
                        ns);
    oct_dim out[OCT_MAX_RANK];
    for (int i = 0; i < in.rank; i++)
        out[i] = in.d[i];
    int64_t step = 1;
    uint32_t seen = 0;
    for (int i = 0; i < n; i++) {
        int axis = i;
        int64_t v;
        if (na >= 0 && !oct_known_get(axes[i], &v))
            return oct_out_shape(c, 0, in.rank, d, err);
        if (na >= 0)
            OCT_TRY(oct_axis(v, in.rank, &axis, err));
        step = 1;
        bool known = ns < 0 || oct_known_get(steps[i], &step);
        if (known && step == 0)
            return oct_fail(err, OCT_EMALFORMED, "the step of axis %d is 0", axis);
        if (seen >> axis & 1)
            return oct_fail(err, OCT_EMALFORMED, "axis %d is given twice", axis);
        seen |= 1u << axis;
        out[axis] = known ? sliced_dim(in.d[axis], start[i], end[i], step) : d[axis];
        if (!known)
            step = 0;
    }
    OCT_TRY(oct_out_shape(c, 0, in.rank, out, err));
    return oct_known_wanted(c) && n == 1 && step != 0 ? slice_known(c, start[0], end[0], step, err) : OCT_OK;
}

static oct_status slice_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const uint8_t *table;
    if (s->in[0]->rank != s->out[0]->rank)
        return oct_fail(err, OCT_EMALFORMED, "the output has another number of dimensions");
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    OCT_TRY(oct_q8_move_table(s->in[0], s->out[0], p->arena, &table, err));
    s->state = (void *)(uintptr_t)table;
    return OCT_OK;
}

static oct_status slice_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool attrs = s->opset < 10;
    int64_t start[OCT_MAX_RANK], end[OCT_MAX_RANK], axes[OCT_MAX_RANK], steps[OCT_MAX_RANK];
    int n = oct_step_ints(s, attrs ? "starts" : NULL, attrs ? -1 : 1, start, OCT_MAX_RANK);
    int m = oct_step_ints(s, attrs ? "ends" : NULL, attrs ? -1 : 2, end, OCT_MAX_RANK);
    int na = oct_step_ints(s, attrs ? "axes" : NULL, attrs ? -1 : 3, axes, OCT_MAX_RANK);
    int ns = oct_step_ints(s, NULL, attrs ? -1 : 4, steps, OCT_MAX_RANK);
    if (n < 0 || n != m || n > x->rank || (na >= 0 && na != n) || (ns >= 0 && ns != n))
        return oct_fail(err, OCT_EMALFORMED, "starts, ends, axes and steps do not fit");
    int64_t stride[OCT_MAX_RANK] = { 0 }, offset = 0, dims[OCT_MAX_RANK];
    oct_operand_strides(x, stride);
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < n; i++) {
        int axis = i;
        int64_t first, step = ns >= 0 ? steps[i] : 1;
        if (na >= 0)
            OCT_TRY(oct_axis(axes[i], x->rank, &axis, err));
        if (step == 0)
            return oct_fail(err, OCT_EMALFORMED, "the step of axis %d is 0", axis);
        dims[axis] = slice_axis(x->dims[axis], start[i], end[i], step, &first);
        if (dims[axis] > 0)
            offset += first * stride[axis];
        stride[axis] = dims[axis] > 1 ? stride[axis] * step : 0;
    }
    for (int i = 0; i < x->rank; i++)
        if (dims[i] != y->dims[i])
            return oct_fail(err, OCT_EMALFORMED, "axis %d has %lld elements after slicing, expected %lld", i,
                            (long long)dims[i], (long long)y->dims[i]);
    oct_nd d;
    size_t size = oct_elem_size(x->dtype);
    oct_nd_init(&d, y);
    oct_nd_add_strides(&d, stride);
    if (y->count > 0)
        oct_nd_copy(&d, r->pool, y->data, (const uint8_t *)x->data + (size_t)offset * size, size, s->state);
    return OCT_OK;
}

/* Opset 10: all arguments become inputs. */
static oct_status slice_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 9)
        return OCT_OK;
    OCT_TRY(oct_raise_ints(g, node, "starts", 1, err));
    OCT_TRY(oct_raise_ints(g, node, "ends", 2, err));
    return oct_raise_ints(g, node, "axes", 3, err);
}

const oct_op oct_op_slice = {
    OCT_SCHEMA("Slice", "", 1, 1, 5, 1, 1),
    .infer = slice_infer,
    .prepare = slice_prepare,
    .run = slice_run,
    OCT_MOVES_ELEMENTS,
    .raise = slice_raise,
};

/* ------------------------------------------------------------------ Pad */

/* begin[rank] and end[rank] from pads (n of them) and axes (na, or absent). */
static oct_status spread_pads(const int64_t *pads, int n, const int64_t *axes, int na, int rank, int64_t *begin,
                              int64_t *end, oct_err *err)
{
    int k = na >= 0 ? na : rank;
    uint32_t mask;
    if (n != 2 * k)
        return oct_fail(err, OCT_EMALFORMED, "%d pads for %d axes", n, k);
    if (na >= 0)
        OCT_TRY(oct_axes_mask(axes, na, rank, &mask, err));
    memset(begin, 0, OCT_MAX_RANK * sizeof *begin);
    memset(end, 0, OCT_MAX_RANK * sizeof *end);
    for (int i = 0; i < k; i++) {
        int axis = i;
        if (na >= 0)
            OCT_TRY(oct_axis(axes[i], rank, &axis, err));
        begin[axis] = pads[i];
        end[axis] = pads[k + i];
    }
    return OCT_OK;
}

static oct_status pad_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    bool attrs = c->opset < 11;
    int64_t pads[2 * OCT_MAX_RANK], axes[OCT_MAX_RANK], begin[OCT_MAX_RANK], end[OCT_MAX_RANK];
    oct_dim d[OCT_MAX_RANK];
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    int n = oct_arg_ints(c, attrs ? "pads" : NULL, attrs ? -1 : 1, pads, 2 * OCT_MAX_RANK);
    int na = oct_arg_ints(c, NULL, attrs ? -1 : 3, axes, OCT_MAX_RANK);
    if (n == OCT_ARG_ABSENT)
        return oct_fail(err, OCT_EMALFORMED, "'pads' is missing");
    for (int i = 0; i < in.rank; i++)
        d[i] = (oct_dim){ -1, NULL };
    if (n < 0 || na == OCT_ARG_UNKNOWN)
        return oct_out_shape(c, 0, in.rank, d, err);
    OCT_TRY(spread_pads(pads, n, axes, na, in.rank, begin, end, err));
    for (int i = 0; i < in.rank; i++) {
        int64_t sum;
        if (begin[i] == 0 && end[i] == 0)
            d[i] = in.d[i];
        else if (in.d[i].n >= 0) {
            if (__builtin_add_overflow(begin[i], end[i], &sum) || __builtin_add_overflow(sum, in.d[i].n, &sum) ||
                sum < 0)
                return oct_fail(err, OCT_EMALFORMED, "axis %d cannot be padded by %lld and %lld", i,
                                (long long)begin[i], (long long)end[i]);
            d[i] = oct_dim_of(sum);
        }
    }
    return oct_out_shape(c, 0, in.rank, d, err);
}

typedef struct pad_state {
    const uint8_t *table;
} pad_state;

static oct_status pad_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    pad_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    if (st == NULL)
        return oct_nomem(err);
    s->state = st;
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    const oct_operand *v = s->n_in > 2 && s->opset >= 11 ? s->in[2] : NULL;
    if (v != NULL && !oct_q8(s->out[0]) && v->dtype != s->in[0]->dtype)
        return oct_fail(err, OCT_EMALFORMED, "the value is %s, the input %s", oct_dtype_name(v->dtype),
                        oct_dtype_name(s->in[0]->dtype));
    int64_t entries = 0; /* one input index per output coordinate of each axis */
    for (int i = 0; i < s->out[0]->rank; i++)
        entries += s->out[0]->dims[i];
    s->scratch = (size_t)entries * sizeof(int64_t);
    return oct_q8_move_table(s->in[0], s->out[0], p->arena, &st->table, err);
}

/* The value to pad with, as bytes of an output element. */
static void pad_value(const oct_step *s, uint8_t value[16])
{
    const oct_operand *y = s->out[0], *v = s->n_in > 2 && s->opset >= 11 ? s->in[2] : NULL;
    memset(value, 0, 16);
    if (v != NULL && v->count == 0)
        v = NULL;
    if (oct_q8(y)) {
        double real = 0.0;
        if (v != NULL && oct_q8(v))
            real = v->q->scale[0] * (float)(oct_elem_int(v, 0) - v->q->zp[0]);
        else if (v != NULL)
            real = oct_elem_double(v, 0);
        else if (s->opset < 11)
            real = oct_node_float(s->node, "value", 0.0f);
        value[0] = (uint8_t)oct_q8_quantize(y, (float)real);
    } else if (v != NULL) {
        memcpy(value, v->data, oct_elem_size(v->dtype));
    } else if (s->opset < 11) {
        float f = oct_node_float(s->node, "value", 0.0f);
        oct_elem_store(y->dtype, value, 0, 1, 1, OCT_DOM_F, &f);
    }
}

/* How many of `dim` elements a negative pad takes away. */
static int64_t cut_by(int64_t pad, int64_t dim)
{
    return pad >= 0 ? 0 : pad > -dim ? -pad : dim;
}

/* The input where it lies within the output, then the value before and behind it on each axis: of the axes in front of
 * that one, only where the input lies. */
static void pad_constant(const oct_step *s, const oct_run *r, const int64_t *begin, const int64_t *end)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const pad_state *st = s->state;
    const size_t size = oct_elem_size(x->dtype);
    uint8_t value[16];
    int64_t sx[OCT_MAX_RANK] = { 0 }, first[OCT_MAX_RANK] = { 0 }, ox = 0, oy = 0;
    pad_value(s, value);
    oct_operand_strides(x, sx);
    oct_nd inside, d;
    oct_nd_init(&inside, y);
    oct_nd_init(&d, y);
    oct_nd_add_strides(&d, (const int64_t[OCT_MAX_RANK]){ 0 });
    for (int i = 0; i < x->rank; i++) {
        const int64_t cut = cut_by(begin[i], x->dims[i]), m = x->dims[i] - cut - cut_by(end[i], x->dims[i]);
        inside.dims[i] = m < 0 ? 0 : m;
        first[i] = begin[i] <= 0           ? 0
                   : begin[i] < y->dims[i] ? begin[i]
                                           : y->dims[i]; /* a cut may take more than x has */
        ox += cut * sx[i];
    }
    for (int i = 0; i < x->rank; i++) {
        const int64_t stride = inside.stride[0][i], last = first[i] + inside.dims[i];
        for (int side = 0; side < 2; side++) {
            oct_nd slab = d;
            slab.dims[i] = side == 0 ? first[i] : y->dims[i] - last;
            oct_nd_copy(&slab, r->pool, (uint8_t *)y->data + (size_t)(oy + (side == 0 ? 0 : last * stride)) * size,
                        value, size, NULL);
        }
        d.dims[i] = inside.dims[i];
        oy += first[i] * stride;
    }
    oct_nd_add_strides(&inside, sx);
    oct_nd_copy(&inside, r->pool, (uint8_t *)y->data + (size_t)oy * size, (const uint8_t *)x->data + (size_t)ox * size,
                size, st->table);
}

/* Input index for an output coordinate, `i` places after the first kept element of m; -1 when there is none. */
static int64_t pad_source(char mode, int64_t i, int64_t m)
{
    if (m <= 0)
        return -1;
    if (mode == 'e')
        return i < 0 ? 0 : i >= m ? m - 1 : i;
    int64_t period = mode == 'w' ? m : 2 * (m - 1);
    if (period == 0)
        return 0;
    i %= period;
    i = i < 0 ? i + period : i;
    return i < m ? i : period - i;
}

/* The longest stretch of a map whose elements lie side by side. */
static int64_t find_run(const int64_t *map, int64_t n, int64_t *first)
{
    int64_t most = 0;
    for (int64_t k = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && map[end] == map[end - 1] + 1;)
            end++;
        if (end - k > most) {
            most = end - k;
            *first = k;
        }
    }
    return most;
}

/* y[k * step] = x[map[k]] for from <= k < to. */
static void copy_mapped(const uint8_t *x, uint8_t *y, const int64_t *map, int64_t from, int64_t to, int64_t step,
                        size_t size, const uint8_t *table)
{
    for (int64_t k = from; k < to; k++) {
        const uint8_t *source = x + (size_t)map[k] * size;
        uint8_t *target = y + (size_t)(k * step) * size;
        if (table != NULL)
            *target = table[*source];
        else if (size == sizeof(float))
            memcpy(target, source, sizeof(float));
        else
            memcpy(target, source, size);
    }
}

/* A row at a time through the maps of input offsets, along the axis whose elements lie side by side in the output. */
static void pad_mapped(const oct_step *s, int64_t *const map[OCT_MAX_RANK])
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    const pad_state *st = s->state;
    const size_t size = oct_elem_size(x->dtype);
    const int last = x->rank - 1;
    int64_t sy[OCT_MAX_RANK] = { 0 }, rows = 1, first = 0;
    int axis[OCT_MAX_RANK] = { 0 }; /* by stride, the largest first */
    oct_operand_strides(y, sy);
    for (int i = 0; i <= last; i++) {
        int at = i;
        for (; at > 0 && sy[axis[at - 1]] < sy[i]; at--)
            axis[at] = axis[at - 1];
        axis[at] = i;
    }
    const int in_row = axis[last];
    const int64_t n = y->dims[in_row];
    const int64_t run = sy[in_row] == 1 && st->table == NULL ? find_run(map[in_row], n, &first) : 0;
    for (int i = 0; i < last; i++)
        rows *= y->dims[axis[i]];
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, ox = 0, oy = 0;
        for (int i = last - 1; i >= 0; i--) {
            const int64_t at = rest % y->dims[axis[i]];
            rest /= y->dims[axis[i]];
            ox += map[axis[i]][at];
            oy += at * sy[axis[i]];
        }
        const uint8_t *from = (const uint8_t *)x->data + (size_t)ox * size;
        uint8_t *to = (uint8_t *)y->data + (size_t)oy * size;
        copy_mapped(from, to, map[in_row], 0, first, sy[in_row], size, st->table);
        if (run > 0)
            memcpy(to + (size_t)first * size, from + (size_t)map[in_row][first] * size, (size_t)run * size);
        copy_mapped(from, to, map[in_row], first + run, n, sy[in_row], size, st->table);
    }
}

static oct_status pad_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    bool attrs = s->opset < 11;
    int64_t pads[2 * OCT_MAX_RANK], axes[OCT_MAX_RANK], begin[OCT_MAX_RANK], end[OCT_MAX_RANK];
    int n = oct_step_ints(s, attrs ? "pads" : NULL, attrs ? -1 : 1, pads, 2 * OCT_MAX_RANK);
    int na = oct_step_ints(s, NULL, attrs ? -1 : 3, axes, OCT_MAX_RANK);
    OCT_TRY(spread_pads(pads, n, axes, na, x->rank, begin, end, err));
    for (int i = 0; i < x->rank; i++) {
        int64_t sum;
        if (__builtin_add_overflow(x->dims[i], begin[i], &sum) || __builtin_add_overflow(sum, end[i], &sum) ||
            sum != y->dims[i])
            return oct_fail(err, OCT_EMALFORMED, "the pads do not lead to the output's shape");
    }
    if (y->count == 0)
        return OCT_OK;
    const char *mode = oct_node_str(s->node, "mode", "constant");
    if (strcmp(mode, "constant") == 0) {
        pad_constant(s, r, begin, end);
        return OCT_OK;
    }
    if (strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "wrap") != 0)
        return oct_fail(err, OCT_EMALFORMED, "unknown mode '%s'", mode);
    int64_t sx[OCT_MAX_RANK] = { 0 }, *map[OCT_MAX_RANK], *next = r->scratch;
    oct_operand_strides(x, sx);
    for (int i = 0; i < x->rank; i++) {
        map[i] = next;
        next += y->dims[i];
        int64_t cut = cut_by(begin[i], x->dims[i]), m = x->dims[i] - cut - cut_by(end[i], x->dims[i]);
        for (int64_t k = 0; k < y->dims[i]; k++) {
            int64_t from = pad_source(mode[0], k - (begin[i] > 0 ? begin[i] : 0), m);
            if (from < 0)
                return oct_fail(err, OCT_EMALFORMED, "axis %d has nothing to pad from", i);
            map[i][k] = (from + cut) * sx[i];
        }
    }
    if (x->rank > 0)
        pad_mapped(s, map);
    else
        memcpy(y->data, x->data, oct_elem_size(x->dtype));
    return OCT_OK;
}

/* Opset 11: pads and value become inputs. */
static oct_status pad_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 10)
        return OCT_OK;
    OCT_TRY(oct_raise_ints(g, node, "pads", 1, err));
    return oct_raise_float(g, node, "value", 2, err);
}

const oct_op oct_op_pad = {
    OCT_SCHEMA("Pad", "", 2, 1, 4, 1, 1),
    .infer = pad_infer,
    .prepare = pad_prepare,
    .run = pad_run,
    .layout = OCT_RULE_ANY,
    .integer = oct_q8_moves,
    .quant = OCT_QUANT_SAME,
    .raise = pad_raise,
};
