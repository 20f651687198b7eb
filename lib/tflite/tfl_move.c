/* Operators that move elements: they compute nothing, so their results have the scale of their inputs. */
#include "tflite/tfl_operators.h"

#include <limits.h>
#include <string.h>

/* OWN where input 0 is quantized as the operator's kernels take it: then all results have its scale, whatever they are
 * to have. */
static oct_tfl_kind kind_of(const oct_tfl_writer *w, const oct_node *n)
{
    return oct_tfl_is_int8(w, n->in[0]) || (w->wide && oct_tfl_is_whole(w, n->in[0])) ? OCT_TFL_OWN : OCT_TFL_REAL;
}

static const oct_quant *scale_of(const oct_tfl_writer *w, const oct_node *n)
{
    return kind_of(w, n) == OCT_TFL_OWN ? w->g->value[n->in[0]].quant : NULL;
}

/* ---- Reshape ---- */

/* Dimensions in which an open one cannot be mistaken for a product of others. */
static void mark_open(int64_t *dims, int open)
{
    enum { UNLIKE = 1000003 };
    if (open >= 0 && dims[open] <= INT32_MAX)
        dims[open] *= UNLIKE;
}

/* Divides the axes of x and of y into groups, of which each has as many elements in y as in x: a Reshape works within
 * groups. An axis of size 1 is a group with another one, or belongs to the group before it. False: there are no such
 * groups. */
static bool find_groups(const int64_t *x, int rank_x, int *group_x, const int64_t *y, int rank_y, int *group_y)
{
    int i = 0, k = 0, n = 0;
    while (i < rank_x || k < rank_y) {
        int64_t a = 1, b = 1;
        if (i < rank_x && k < rank_y && x[i] == 1 && y[k] == 1) {
            group_x[i++] = group_y[k++] = n++;
            continue;
        }
        do {
            const bool takes_x = i < rank_x && (a <= b || k == rank_y);
            if (!takes_x && k == rank_y)
                return false;
            if (takes_x) {
                a *= x[i];
                group_x[i++] = n;
            } else {
                b *= y[k];
                group_y[k++] = n;
            }
            if (!a || !b || a > (int64_t)1 << 50 || b > (int64_t)1 << 50)
                return false;
        } while (a != b || a == 1);
        while (i < rank_x && x[i] == 1 && !(k < rank_y && y[k] == 1))
            group_x[i++] = n;
        while (k < rank_y && y[k] == 1 && !(i < rank_x && x[i] == 1))
            group_y[k++] = n;
        n++;
    }
    return true;
}

/* Adds the axes of a group, in ONNX's order. */
static int put_group(int8_t *order, int n, const int *group, int rank, int which)
{
    for (int i = 0; i < rank; i++)
        if (group[i] == which)
            order[n++] = (int8_t)i;
    return n;
}

/* Groups are moved as a whole, to the places of their first axes, and keep ONNX's order inside. Axes of size 1 have no
 * place of their own, unless they are the whole group. */
static void order_groups(const oct_tfl_order *from, const int64_t *x, const int *group_x, int rank_x,
                         const int *group_y, int rank_y, oct_tfl_order *of_x, oct_tfl_order *of_y)
{
    uint32_t seen = 0, sized = 0;
    int nx = 0, ny = 0;
    for (int i = 0; i < rank_x; i++)
        sized |= (uint32_t)(x[i] != 1) << group_x[i];
    for (int i = 0; i < rank_x; i++) {
        const int which = group_x[from->d[i]];
        if (seen >> which & 1 || (x[from->d[i]] == 1 && sized >> which & 1))
            continue;
        seen |= 1u << which;
        nx = put_group(of_x->d, nx, group_x, rank_x, which);
        ny = put_group(of_y->d, ny, group_y, rank_y, which);
    }
}

/* The orders in which a Reshape needs no TRANSPOSE, or a smaller one, than in ONNX's. */
static oct_status reshape_orders(const oct_tfl_writer *w, const oct_node *n, oct_tfl_order *of_x, oct_tfl_order *of_y,
                                 oct_err *err)
{
    const oct_tfl_order from = oct_tfl_order_of(w, n->in[0]);
    int64_t x[OCT_MAX_RANK], y[OCT_MAX_RANK];
    int rank_x, rank_y, group_x[OCT_MAX_RANK], group_y[OCT_MAX_RANK];
    *of_x = *of_y = oct_tfl_plain();
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank_x, x, err));
    OCT_TRY(oct_tfl_dims(w, n->out[0], &rank_y, y, err));
    mark_open(x, w->value[n->in[0]].open);
    mark_open(y, w->value[n->out[0]].open);
    if (find_groups(x, rank_x, group_x, y, rank_y, group_y))
        order_groups(&from, x, group_x, rank_x, group_y, rank_y, of_x, of_y);
    const oct_tfl_state *out = &w->value[n->out[0]];
    if (out->has_wish && oct_tfl_moves_nothing(w, n->out[0], of_y, &out->wish, rank_y, y))
        *of_y = out->wish;
    return OCT_OK;
}

oct_status oct_tfl_write_reshape(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    oct_tfl_order of_x, of_y;
    int in, out;
    OCT_TRY(reshape_orders(w, n, &of_x, &of_y, err));
    OCT_TRY(oct_tfl_read_elements(w, n->in[0], &of_x, kind_of(w, n), &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &of_y, kind_of(w, n), scale_of(w, n), &out, err));
    return oct_tfl_reshape(w, in, out, err);
}

/* A copy in the same order, where the result cannot be its input's tensor. */
static oct_status copy(oct_tfl_writer *w, const oct_node *n, const int64_t *perm, oct_err *err)
{
    const int rank = w->g->value[n->in[0]].shape.rank;
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    oct_tfl_order o = oct_tfl_plain();
    int in, out;
    for (int k = 0; k < rank; k++)
        for (int d = 0; d < rank; d++)
            if (perm[d] == order.d[k])
                o.d[k] = (int8_t)d;
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind_of(w, n), &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &o, kind_of(w, n), scale_of(w, n), &out, err));
    return oct_tfl_reshape(w, in, out, err);
}

oct_status oct_tfl_write_transpose(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_quant *a = w->g->value[n->in[0]].quant, *b = w->g->value[w->out].quant;
    const oct_tfl_order plain = oct_tfl_plain();
    int64_t perm[OCT_MAX_RANK], dims[OCT_MAX_RANK];
    int rank, count = 0, tensor;
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    const bool turns = strcmp(n->op, "Transpose") == 0;
    const int64_t *given = turns ? oct_node_ints(n, "perm", &count) : NULL;
    if (n->n_out > 1 && n->out[1] >= 0)
        return oct_tfl_cannot(w, err, "remove the second output", "it has a second output, a mask");
    for (int i = 0; i < rank; i++) {
        perm[i] = given && count == rank ? given[i] : turns ? rank - 1 - i : i;
        if (perm[i] < 0 || perm[i] >= rank)
            return oct_tfl_cannot(w, err, NULL, "its perm is no order of axes");
    }
    if (oct_value_is_constant(&w->g->value[n->in[0]]))
        OCT_TRY(oct_tfl_read(w, n->in[0], &plain, OCT_TFL_OWN, &tensor, err));
    if (a == b || (a && b && oct_quant_same(a, b)))
        return oct_tfl_rename(w, w->out, n->in[0], perm, err);
    return copy(w, n, perm, err);
}

oct_status oct_tfl_write_concat(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const bool whole = oct_tfl_runs_whole(w, 0, n->n_in);
    const oct_tfl_kind kind = whole ? OCT_TFL_OWN : OCT_TFL_REAL;
    const int rank = w->g->value[n->out[0]].shape.rank;
    oct_tfl_order order = oct_tfl_plain();
    oct_tfl_operator *op;
    int out, *in = oct_arena_calloc(w->arena, (size_t)n->n_in + 1, sizeof *in);
    if (!in)
        return oct_nomem(err);
    for (int i = n->n_in; i-- > 0;)
        if (!oct_value_is_constant(&w->g->value[n->in[i]]))
            order = oct_tfl_order_of(w, n->in[i]);
    for (int i = 0; i < n->n_in; i++) {
        OCT_TRY(oct_tfl_read(w, n->in[i], &order, kind, &in[i], err));
        const oct_tfl_tensor t = w->m->tensor[in[i]];
        if (!whole || oct_quant_same(t.quant, w->g->value[w->out].quant))
            continue;
        int64_t dims[OCT_MAX_RANK];
        int scaled;
        for (int k = 0; k < t.rank; k++)
            dims[k] = t.dims[k];
        OCT_TRY(oct_tfl_between(w, oct_arena_printf(w->arena, "%s_scaled", t.name), in[i], t.rank, dims, t.open,
                                &scaled, err));
        w->m->tensor[scaled].quant = w->g->value[w->out].quant;
        OCT_TRY(oct_tfl_add(w, OCT_TFL_QUANTIZE, &in[i], 1, &scaled, 1, NULL, err));
        in[i] = scaled;
    }
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind, NULL, &out, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_CONCATENATION, in, n->n_in, &out, 1, &op, err));
    oct_tfl_set(op, OCT_TFL_CONCAT_AXIS, oct_tfl_axis(&order, rank, oct_node_int(n, "axis", 0)));
    return OCT_OK;
}

oct_status oct_tfl_write_split(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const oct_tfl_kind kind = kind_of(w, n);
    const int rank = w->g->value[n->in[0]].shape.rank;
    const int64_t axis = oct_tfl_axis(&order, rank, oct_node_int(n, "axis", 0)), given = oct_node_int(n, "axis", 0);
    int in, numbers[2], *out = oct_arena_calloc(w->arena, (size_t)n->n_out + 1, sizeof *out);
    int64_t *sizes = oct_arena_calloc(w->arena, (size_t)n->n_out + 1, sizeof *sizes), dims[OCT_MAX_RANK];
    oct_tfl_operator *op;
    bool even = true;
    if (!out || !sizes)
        return oct_nomem(err);
    if (given < -rank || given >= rank)
        return oct_tfl_cannot(w, err, NULL, "it has no axis %lld", (long long)given);
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind, &in, err));
    for (int i = 0; i < n->n_out; i++) {
        int r;
        if (n->out[i] < 0)
            return oct_tfl_cannot(w, err, "give all outputs names", "an output is absent");
        OCT_TRY(oct_tfl_dims(w, n->out[i], &r, dims, err));
        OCT_TRY(oct_tfl_result(w, n->out[i], &order, kind, scale_of(w, n), &out[i], err));
        sizes[i] = dims[given < 0 ? given + rank : given];
        even = even && sizes[i] == sizes[0];
    }
    OCT_TRY(oct_tfl_numbers(w, "axis", 0, NULL, &axis, &numbers[0], err));
    if (!even)
        OCT_TRY(oct_tfl_numbers(w, "sizes", 1, (int64_t[]){ n->n_out }, sizes, &numbers[1], err));
    if (even)
        OCT_TRY(oct_tfl_add(w, OCT_TFL_SPLIT, (int[]){ numbers[0], in }, 2, out, n->n_out, &op, err));
    else
        OCT_TRY(oct_tfl_add(w, OCT_TFL_SPLIT_V, (int[]){ in, numbers[1], numbers[0] }, 3, out, n->n_out, &op, err));
    oct_tfl_set(op, OCT_TFL_SPLIT_PARTS, n->n_out);
    return OCT_OK;
}

static int64_t clamp(int64_t x, int64_t lo, int64_t hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

oct_status oct_tfl_write_slice(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const int64_t *given[4]; /* starts, ends, axes, steps */
    int64_t dims[OCT_MAX_RANK], begin[OCT_MAX_RANK], end[OCT_MAX_RANK], step[OCT_MAX_RANK], made[OCT_MAX_RANK];
    int count[4], rank, in[4], out, begin_mask = 0, end_mask = 0;
    bool steps = false;
    oct_tfl_operator *op;
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    OCT_TRY(oct_tfl_dims(w, n->out[0], &rank, made, err));
    for (int i = 0; i < 4; i++)
        OCT_TRY(oct_tfl_ints(w, i + 1 < n->n_in ? n->in[i + 1] : -1, &given[i], &count[i], err));
    for (int i = 0; i < rank; i++) {
        begin[i] = 0;
        end[i] = -1;
        step[i] = 1;
    }
    for (int i = 0; i < count[0] && i < count[1]; i++) {
        const int64_t named = given[2] && i < count[2] ? given[2][i] : i, axis = named < 0 ? named + rank : named;
        if (axis < 0 || axis >= rank)
            return oct_tfl_cannot(w, err, NULL, "it has no axis %lld", (long long)named);
        const int at = oct_tfl_axis(&order, rank, axis);
        const int64_t size = dims[axis], from = given[0][i] < 0 ? given[0][i] + size : given[0][i];
        step[at] = given[3] && i < count[3] ? given[3][i] : 1;
        if (made[axis] <= 1) /* there is no next element, and the step may be any number */
            step[at] = step[at] < 0 ? -1 : 1;
        begin[at] = step[at] > 0 ? clamp(from, 0, size) : clamp(from, 0, size - 1);
        if (begin[at] != 0 || made[axis] != size)
            end[at] = made[axis];
        steps = steps || step[at] != 1;
    }
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind_of(w, n), &in[0], err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind_of(w, n), scale_of(w, n), &out, err));
    for (int i = 0; i < rank && steps; i++) { /* ends instead of sizes, right behind the last one that is taken */
        const int64_t last = end[i] < 0    ? -1
                             : end[i] == 0 ? begin[i]
                                           : begin[i] + (end[i] - 1) * step[i] + (step[i] < 0 ? -1 : 1);
        begin_mask |= (end[i] < 0 && step[i] > 0) << i;
        end_mask |= last < 0 || (end[i] < 0) ? 1 << i : 0;
        end[i] = last;
    }
    OCT_TRY(oct_tfl_numbers(w, "begin", 1, (int64_t[]){ rank }, begin, &in[1], err));
    OCT_TRY(oct_tfl_numbers(w, steps ? "end" : "size", 1, (int64_t[]){ rank }, end, &in[2], err));
    OCT_TRY(oct_tfl_numbers(w, "steps", 1, (int64_t[]){ rank }, step, &in[3], err));
    OCT_TRY(oct_tfl_add(w, steps ? OCT_TFL_STRIDED_SLICE : OCT_TFL_SLICE, in, steps ? 4 : 3, &out, 1, &op, err));
    if (rank > 4)
        op->version = steps ? 4 : 5;
    if (steps) {
        oct_tfl_set(op, OCT_TFL_STRIDED_SLICE_BEGIN_MASK, begin_mask);
        oct_tfl_set(op, OCT_TFL_STRIDED_SLICE_END_MASK, end_mask);
    }
    return OCT_OK;
}

/* The value of a constant Pad, as a constant of the input's type: 0 needs none. */
static oct_status pad_value(oct_tfl_writer *w, const oct_node *n, int tensor, int *number, oct_err *err)
{
    const oct_tfl_tensor t = w->m->tensor[tensor];
    float x = 0;
    *number = -1;
    if (n->n_in < 3 || n->in[2] < 0)
        return OCT_OK;
    const oct_value *v = &w->g->value[n->in[2]];
    const oct_quant *of = v->quant;
    if (of && of->qvals && of->n == 1 && (of->dtype == OCT_S8 || of->dtype == OCT_S16)) {
        const void *q = of->qvals->data;
        const int32_t whole = of->dtype == OCT_S16 ? *(const int16_t *)q : *(const int8_t *)q;
        x = (float)(whole - of->zp[0]) * of->scale[0];
    } else if (!oct_tfl_one_real(w, n->in[2], &x))
        return oct_tfl_cannot(w, err, NULL, "its value is computed at run time, or is no real number");
    if (x == 0)
        return OCT_OK;
    void *data = oct_arena_alloc(w->m->arena, sizeof x);
    if (!data)
        return oct_nomem(err);
    if (t.quant) {
        const int32_t lo = t.type == OCT_TFL_INT16 ? INT16_MIN : INT8_MIN, hi = -(lo + 1);
        const float q = x / t.quant->scale[0] + (float)t.quant->zp[0];
        const int32_t whole = q > (float)hi ? hi : q > (float)lo ? (int32_t)(q + (q < 0 ? -0.5f : 0.5f)) : lo;
        if (t.type == OCT_TFL_INT16)
            *(int16_t *)data = (int16_t)whole;
        else
            *(int8_t *)data = (int8_t)whole;
    } else {
        memcpy(data, &x, sizeof x);
    }
    return oct_tfl_constant(w, "value", t.type, 0, NULL, t.quant, 0, data, number, err);
}

oct_status oct_tfl_write_pad(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order order = oct_tfl_order_of(w, n->in[0]);
    const char *mode = oct_node_str(n, "mode", "constant");
    const bool reflects = strcmp(mode, "reflect") == 0;
    const int64_t *pads, *axes;
    int64_t dims[OCT_MAX_RANK], v[2 * OCT_MAX_RANK] = { 0 };
    int rank, n_pads, n_axes, in[3], out;
    oct_tfl_operator *op;
    OCT_TRY(oct_tfl_dims(w, n->in[0], &rank, dims, err));
    OCT_TRY(oct_tfl_ints(w, oct_input_at(n, 1), &pads, &n_pads, err));
    OCT_TRY(oct_tfl_ints(w, oct_input_at(n, 3), &axes, &n_axes, err));
    const int count = axes ? n_axes : rank;
    if (n_pads != 2 * count || (strcmp(mode, "constant") != 0 && !reflects))
        return oct_tfl_cannot(w, err, NULL, "its mode is %s", mode);
    for (int i = 0; i < count; i++) {
        const int at = oct_tfl_axis(&order, rank, axes ? axes[i] : i);
        v[2 * at] = pads[i];
        v[2 * at + 1] = pads[count + i];
        if (pads[i] < 0 || pads[count + i] < 0)
            return oct_tfl_cannot(w, err, "write it as Slice", "it has negative pads");
    }
    OCT_TRY(oct_tfl_read(w, n->in[0], &order, kind_of(w, n), &in[0], err));
    OCT_TRY(oct_tfl_numbers(w, "pads", 2, (int64_t[]){ rank, 2 }, v, &in[1], err));
    in[2] = -1;
    if (!reflects)
        OCT_TRY(pad_value(w, n, in[0], &in[2], err));
    OCT_TRY(oct_tfl_result(w, w->out, &order, kind_of(w, n), scale_of(w, n), &out, err));
    OCT_TRY(oct_tfl_add(w,
                        reflects    ? OCT_TFL_MIRROR_PAD
                        : in[2] < 0 ? OCT_TFL_PAD
                                    : OCT_TFL_PADV2,
                        in, in[2] < 0 ? 2 : 3, &out, 1, &op, err));
    if (rank > 4 && !reflects)
        op->version = 4;
    return OCT_OK;
}

oct_status oct_tfl_write_gather(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    const int rank = w->g->value[n->in[0]].shape.rank;
    const oct_value *index = &w->g->value[n->in[1]];
    const int64_t *rows;
    int64_t dims[OCT_MAX_RANK], wanted[OCT_MAX_RANK], axis = oct_node_int(n, "axis", 0);
    int in[2], out, r, count;
    oct_tfl_operator *op;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        return oct_tfl_cannot(w, err, NULL, "it has no axis %lld", (long long)axis);
    OCT_TRY(oct_tfl_dims(w, n->in[0], &r, dims, err));
    OCT_TRY(oct_tfl_read(w, n->in[0], &plain, kind_of(w, n), &in[0], err));
    if (index->constant) {
        OCT_TRY(oct_tfl_ints(w, n->in[1], &rows, &count, err));
        int64_t *v = oct_arena_calloc(w->arena, (size_t)count + 1, sizeof *v);
        if (!v)
            return oct_nomem(err);
        for (int i = 0; i < count; i++)
            v[i] = rows[i] < 0 ? rows[i] + dims[axis] : rows[i];
        OCT_TRY(oct_tfl_dims(w, n->in[1], &r, wanted, err));
        OCT_TRY(oct_tfl_numbers(w, index->name, r, wanted, v, &in[1], err));
    } else {
        OCT_TRY(oct_tfl_read(w, n->in[1], &plain, OCT_TFL_OWN, &in[1], err));
    }
    OCT_TRY(oct_tfl_result(w, w->out, &plain, kind_of(w, n), scale_of(w, n), &out, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_GATHER, in, 2, &out, 1, &op, err));
    oct_tfl_set(op, OCT_TFL_GATHER_AXIS, (int32_t)axis);
    return OCT_OK;
}

/* Channels in the order of CRD, where those of a block are side by side, become those of DCR. */
static oct_status regroup(oct_tfl_writer *w, int64_t size, int *tensor, oct_err *err)
{
    const oct_tfl_tensor t = w->m->tensor[*tensor];
    const int64_t block = size * size, deep = t.dims[3] / block, n = deep * block;
    int64_t *from = oct_arena_calloc(w->arena, (size_t)n + 1, sizeof *from), dims[4];
    int in[2] = { *tensor, -1 };
    oct_tfl_operator *op;
    if (!from)
        return oct_nomem(err);
    for (int64_t i = 0; i < n; i++)
        from[i] = i % deep * block + i / deep;
    for (int k = 0; k < 4; k++)
        dims[k] = t.dims[k];
    OCT_TRY(oct_tfl_numbers(w, "channels", 1, &n, from, &in[1], err));
    OCT_TRY(
        oct_tfl_between(w, oct_arena_printf(w->arena, "%s_regrouped", t.name), *tensor, 4, dims, t.open, tensor, err));
    OCT_TRY(oct_tfl_add(w, OCT_TFL_GATHER, in, 2, tensor, 1, &op, err));
    oct_tfl_set(op, OCT_TFL_GATHER_AXIS, 3);
    return OCT_OK;
}

oct_status oct_tfl_write_blocks(oct_tfl_writer *w, const oct_node *n, oct_err *err)
{
    const bool spreads = strcmp(n->op, "DepthToSpace") == 0;
    const oct_tfl_order last = oct_tfl_channels_last(4);
    int in, out;
    oct_tfl_operator *op;
    if (w->g->value[n->in[0]].shape.rank != 4)
        return oct_tfl_cannot(w, err, NULL, "its input has not four axes");
    const int64_t size = oct_node_int(n, "blocksize", 1);
    OCT_TRY(oct_tfl_read(w, n->in[0], &last, kind_of(w, n), &in, err));
    if (spreads && size > 1 && strcmp(oct_node_str(n, "mode", "DCR"), "CRD") == 0)
        OCT_TRY(regroup(w, size, &in, err));
    OCT_TRY(oct_tfl_result(w, w->out, &last, kind_of(w, n), scale_of(w, n), &out, err));
    OCT_TRY(oct_tfl_add(w, spreads ? OCT_TFL_DEPTH_TO_SPACE : OCT_TFL_SPACE_TO_DEPTH, &in, 1, &out, 1, &op, err));
    oct_tfl_set(op, OCT_TFL_BLOCK_SIZE, (int32_t)size);
    return OCT_OK;
}
