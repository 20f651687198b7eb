/* Operators that move elements. */
#include "tflite/read/read_operators.h"

#include <limits.h>
#include <string.h>

/* An axis of operand k as the file numbers it, from the end where it is negative. */
static oct_status check_axis(const oct_tfl_reader *r, int64_t axis, int rank, int *to, oct_err *err)
{
    *to = (int)(axis < 0 ? axis + rank : axis);
    return axis >= -rank && axis < rank ? OCT_OK
                                        : oct_tfl_unread(r, err, NULL, "its axis is %lld of %d", (long long)axis, rank);
}

/* The value in the order that it has already. */
static oct_status take_any(oct_tfl_reader *r, int k, oct_tfl_order *order, int *value, oct_err *err)
{
    OCT_TRY(oct_tfl_need(r, k, 0, err));
    *order = oct_tfl_shown_order(r, k);
    return oct_tfl_take(r, k, order, value, err);
}

oct_status oct_tfl_read_concat(oct_tfl_reader *r, oct_err *err)
{
    const int n = r->op->n_in;
    oct_tfl_order order = oct_tfl_plain();
    int *in = oct_arena_calloc(r->arena, (size_t)n + 1, sizeof *in), axis, node, y;
    if (!in)
        return oct_nomem(err);
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    OCT_TRY(check_axis(r, oct_tfl_option(r->op, OCT_TFL_CONCAT_AXIS, 0), rank, &axis, err));
    for (int k = n; k-- > 0;) { /* the first that is computed */
        OCT_TRY(oct_tfl_need(r, k, 1, err));
        if (oct_tfl_in(r, k)->rank != rank)
            return oct_tfl_unread(r, err, NULL, "its operands have %d and %d axes", rank, oct_tfl_in(r, k)->rank);
        if (!oct_tfl_in(r, k)->data)
            order = oct_tfl_shown_order(r, k);
    }
    for (int k = 0; k < n; k++)
        OCT_TRY(oct_tfl_take(r, k, &order, &in[k], err));
    OCT_TRY(oct_tfl_node(r, 0, "Concat", in, n, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "axis", oct_tfl_axis(&order, rank, axis), err));
    OCT_TRY(oct_tfl_activate(r, OCT_TFL_CONCAT_ACTIVATION, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

/* ---- parts ---- */

/* A Split of operand k into the operator's results, whose sizes they say. */
static oct_status split(oct_tfl_reader *r, int value, int axis, const oct_tfl_order *order, int rank, int *node,
                        int *first, oct_err *err)
{
    const int n = r->op->n_out;
    int in[2] = { value, -1 };
    int64_t *sizes = oct_arena_calloc(r->arena, (size_t)n + 1, sizeof *sizes);
    if (!sizes)
        return oct_nomem(err);
    for (int i = 0; i < n; i++)
        sizes[i] = r->op->code == OCT_TFL_UNPACK    ? 1
                   : axis < oct_tfl_out(r, i)->rank ? oct_tfl_out(r, i)->dims[axis]
                                                    : 0;
    OCT_TRY(oct_tfl_const_ints(r, "sizes", sizes, n, &in[1], err));
    OCT_TRY(oct_tfl_node(r, 0, "Split", in, 2, node, first, err));
    return oct_node_set_int(r->g, *node, "axis", oct_tfl_axis(order, rank, axis), err);
}

oct_status oct_tfl_read_split(oct_tfl_reader *r, oct_err *err)
{
    const bool sized = r->op->code == OCT_TFL_SPLIT_V;
    const int data = sized ? 0 : 1;
    oct_tfl_order order;
    const int64_t *at;
    int n, axis, x, node, y;
    OCT_TRY(take_any(r, data, &order, &x, err));
    OCT_TRY(oct_tfl_take_ints(r, sized ? 2 : 0, &at, &n, err));
    const int rank = oct_tfl_in(r, data)->rank;
    if (n != 1 || r->op->n_out < 1)
        return oct_tfl_unread(r, err, NULL, "it has %d axes", n);
    OCT_TRY(check_axis(r, at[0], rank, &axis, err));
    OCT_TRY(split(r, x, axis, &order, rank, &node, &y, err));
    for (int i = 0; i < r->op->n_out; i++) {
        if (i)
            OCT_TRY(oct_tfl_second(r, i, node, i, &y, err));
        OCT_TRY(oct_tfl_give(r, i, &order, y, err));
    }
    return OCT_OK;
}

/* Slice of a value; everything by axis of the tensor, and axes counted. */
static oct_status slice(oct_tfl_reader *r, int value, const oct_tfl_order *order, int rank, const int64_t *from,
                        const int64_t *to, const int64_t *step, int *y, oct_err *err)
{
    int64_t v[4][OCT_MAX_RANK];
    int in[5] = { value, -1, -1, -1, -1 }, node, n = 0;
    static const char *const names[] = { "starts", "ends", "axes", "steps" };
    for (int i = 0; i < rank; i++) {
        const int axis = order->d[i];
        if (from[axis] == 0 && to[axis] == INT64_MAX && step[axis] == 1)
            continue;
        v[0][n] = from[axis];
        v[1][n] = to[axis];
        v[2][n] = i;
        v[3][n++] = step[axis];
    }
    *y = value;
    if (!n)
        return oct_tfl_node(r, 0, "Identity", in, 1, &node, y, err);
    for (int i = 0; i < 4; i++)
        OCT_TRY(oct_tfl_const_ints(r, names[i], v[i], n, &in[1 + i], err));
    return oct_tfl_node(r, 0, "Slice", in, 5, &node, y, err);
}

oct_status oct_tfl_read_slice(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_order order;
    const int64_t *from, *size;
    int64_t to[OCT_MAX_RANK], step[OCT_MAX_RANK];
    int x, y, n, m;
    OCT_TRY(take_any(r, 0, &order, &x, err));
    OCT_TRY(oct_tfl_take_ints(r, 1, &from, &n, err));
    OCT_TRY(oct_tfl_take_ints(r, 2, &size, &m, err));
    const oct_tfl_tensor *t = oct_tfl_in(r, 0);
    if (n != t->rank || m != t->rank)
        return oct_tfl_unread(r, err, NULL, "it has bounds for %d axes of %d", n, t->rank);
    for (int i = 0; i < n; i++) {
        const bool rest = size[i] < 0 || (t->open != i && from[i] + size[i] == t->dims[i]);
        if (from[i] < 0 || from[i] > INT32_MAX || size[i] > INT32_MAX)
            return oct_tfl_unread(r, err, NULL, "its bounds are out of range");
        to[i] = rest ? INT64_MAX : from[i] + size[i];
        step[i] = 1;
    }
    OCT_TRY(slice(r, x, &order, n, from, to, step, &y, err));
    return oct_tfl_give(r, 0, &order, y, err);
}

typedef struct strides {
    int64_t from[OCT_MAX_RANK], to[OCT_MAX_RANK], step[OCT_MAX_RANK], gone[OCT_MAX_RANK];
    int n_gone;
} strides;

static oct_status read_strides(oct_tfl_reader *r, int rank, strides *s, oct_err *err)
{
    const oct_tfl_operator *op = r->op;
    const int32_t begins = oct_tfl_option(op, OCT_TFL_STRIDED_SLICE_BEGIN_MASK, 0),
                  ends = oct_tfl_option(op, OCT_TFL_STRIDED_SLICE_END_MASK, 0),
                  shrinks = oct_tfl_option(op, OCT_TFL_STRIDED_SLICE_SHRINK_MASK, 0);
    const int64_t *from, *to, *step;
    int n[3];
    if (oct_tfl_option(op, OCT_TFL_STRIDED_SLICE_ELLIPSIS_MASK, 0) ||
        oct_tfl_option(op, OCT_TFL_STRIDED_SLICE_NEW_MASK, 0) || oct_tfl_option(op, OCT_TFL_STRIDED_SLICE_OFFSET, 0))
        return oct_tfl_unread(r, err, NULL, "it adds axes, leaves some out, or counts its ends from its beginnings");
    OCT_TRY(oct_tfl_take_ints(r, 1, &from, &n[0], err));
    OCT_TRY(oct_tfl_take_ints(r, 2, &to, &n[1], err));
    OCT_TRY(oct_tfl_take_ints(r, 3, &step, &n[2], err));
    if (n[0] > rank || n[1] != n[0] || n[2] != n[0])
        return oct_tfl_unread(r, err, NULL, "it has bounds for %d axes of %d", n[0], rank);
    s->n_gone = 0;
    for (int i = 0; i < rank; i++) {
        const bool there = i < n[0], shrink = there && shrinks >> i & 1;
        s->step[i] = there && !shrink ? step[i] : 1;
        s->from[i] = there && (shrink || !(begins >> i & 1)) ? from[i] : s->step[i] < 0 ? INT32_MAX : 0;
        s->to[i] = there && !(ends >> i & 1) ? to[i] : s->step[i] < 0 ? INT64_MIN : INT64_MAX;
        if (shrink) {
            s->to[i] = s->from[i] == -1 ? INT64_MAX : s->from[i] + 1;
            s->gone[s->n_gone++] = i;
        }
        if (!s->step[i])
            return oct_tfl_unread(r, err, NULL, "its step is 0");
    }
    return OCT_OK;
}

oct_status oct_tfl_read_strided_slice(oct_tfl_reader *r, oct_err *err)
{
    oct_tfl_order order = oct_tfl_plain();
    strides s;
    int x, y, node, in[2];
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    OCT_TRY(read_strides(r, rank, &s, err));
    if (!s.n_gone)
        order = oct_tfl_shown_order(r, 0);
    OCT_TRY(oct_tfl_take(r, 0, &order, &x, err));
    OCT_TRY(slice(r, x, &order, rank, s.from, s.to, s.step, &y, err));
    if (s.n_gone) {
        in[0] = y;
        OCT_TRY(oct_tfl_const_ints(r, "axes", s.gone, s.n_gone, &in[1], err));
        OCT_TRY(oct_tfl_node(r, 0, "Squeeze", in, 2, &node, &y, err));
    }
    return oct_tfl_give(r, 0, &order, y, err);
}

oct_status oct_tfl_read_gather(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int in[2], axis, node, y;
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    OCT_TRY(check_axis(r, oct_tfl_option(r->op, OCT_TFL_GATHER_AXIS, 0), oct_tfl_in(r, 0)->rank, &axis, err));
    if (oct_tfl_option(r->op, OCT_TFL_GATHER_BATCHES, 0))
        return oct_tfl_unread(r, err, NULL, "it has batches of indices");
    for (int k = 0; k < 2; k++)
        OCT_TRY(oct_tfl_take(r, k, &plain, &in[k], err));
    OCT_TRY(oct_tfl_node(r, 0, "Gather", in, 2, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "axis", axis, err));
    return oct_tfl_give(r, 0, &plain, y, err);
}

/* ---- pads ---- */

oct_status oct_tfl_read_pad(oct_tfl_reader *r, oct_err *err)
{
    const bool mirrors = r->op->code == OCT_TFL_MIRROR_PAD;
    oct_tfl_order order;
    const int64_t *pad;
    int64_t pads[2 * OCT_MAX_RANK];
    float x = 0;
    int in[3] = { -1, -1, -1 }, n, node, y;
    OCT_TRY(take_any(r, 0, &order, &in[0], err));
    OCT_TRY(oct_tfl_take_ints(r, 1, &pad, &n, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    if (n != 2 * rank)
        return oct_tfl_unread(r, err, NULL, "it has %d pads for %d axes", n, rank);
    if (mirrors && oct_tfl_option(r->op, OCT_TFL_MIRROR_PAD_MODE, 0))
        return oct_tfl_unread(r, err, NULL, "it repeats the edge");
    for (int i = 0; i < rank; i++) {
        pads[i] = pad[2 * order.d[i]];
        pads[rank + i] = pad[2 * order.d[i] + 1];
    }
    OCT_TRY(oct_tfl_const_ints(r, "pads", pads, n, &in[1], err));
    if (r->op->code == OCT_TFL_PADV2) {
        OCT_TRY(oct_tfl_take_real(r, 2, &x, err));
        OCT_TRY(oct_tfl_const_real(r, "with", x, &in[2], err));
    }
    OCT_TRY(oct_tfl_node(r, 0, "Pad", in, in[2] < 0 ? 2 : 3, &node, &y, err));
    if (mirrors)
        OCT_TRY(oct_node_set_str(r->g, node, "mode", "reflect", err));
    return oct_tfl_give(r, 0, &order, y, err);
}

/* ---- shapes ---- */

/* The dimension of the result that is open; -1: none. */
static int open_axis(const oct_tfl_reader *r)
{
    const oct_tfl_tensor *x = oct_tfl_in(r, 0), *y = oct_tfl_out(r, 0), *want = oct_tfl_in(r, 1);
    if (y->open >= 0 || !r->open)
        return y->open;
    if (r->op->code == OCT_TFL_RESHAPE && want && want->data && want->type == OCT_TFL_INT32 &&
        want->bytes == 4 * (size_t)y->rank)
        for (int i = 0; i < y->rank; i++)
            if (((const int32_t *)want->data)[i] == -1)
                return i;
    return x->open == 0 && y->rank && y->dims[0] == x->dims[0] ? 0 : -1;
}

/* Where only axes of one element come or go, the result may have another order of axes than that of the tensor: the one
 * that its readers ask for, or channels first. */
static oct_tfl_order reshaped_order(const oct_tfl_reader *r, int *value, bool *found)
{
    const oct_tfl_tensor *x = oct_tfl_in(r, 0), *y = oct_tfl_out(r, 0);
    const oct_tfl_found *f = &r->tensor[r->op->out[0]];
    const oct_tfl_order orders[] = { f->has_wish ? f->wish : oct_tfl_plain(), oct_tfl_plain(),
                                     oct_tfl_channels_first(y->rank) };
    int axis[OCT_MAX_RANK], sequence[OCT_MAX_RANK];
    *found = false;
    for (size_t i = 0; i < OCT_COUNT(orders) && oct_tfl_same_axes(x, y, axis); i++) {
        int n = 0;
        for (int a = 0; a < y->rank; a++)
            if (axis[orders[i].d[a]] >= 0)
                sequence[n++] = axis[orders[i].d[a]];
        if ((*found = oct_tfl_find_sequence(r, 0, sequence, n, value)))
            return orders[i];
    }
    return oct_tfl_plain();
}

/* Any RESHAPE, SQUEEZE and EXPAND_DIMS of a file is to the shape that it states of the result. */
oct_status oct_tfl_read_reshape(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_tensor *y = oct_tfl_out(r, 0);
    int64_t shape[OCT_MAX_RANK];
    int in[2], node, made;
    bool found;
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    if (y->more_open)
        return oct_tfl_unread(r, err, "export the model with fixed sizes", "its result has several open dimensions");
    const oct_tfl_order order = reshaped_order(r, &in[0], &found);
    if (!found)
        OCT_TRY(oct_tfl_take_elements(r, 0, &in[0], err));
    const int open = open_axis(r);
    for (int i = 0; i < y->rank; i++)
        shape[i] = order.d[i] == open ? -1 : y->dims[order.d[i]];
    OCT_TRY(oct_tfl_const_ints(r, "shape", shape, y->rank, &in[1], err));
    OCT_TRY(oct_tfl_node(r, 0, "Reshape", in, 2, &node, &made, err));
    return oct_tfl_give(r, 0, &order, made, err);
}

oct_status oct_tfl_read_shape(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int x, node, y;
    OCT_TRY(oct_tfl_take(r, 0, &plain, &x, err));
    OCT_TRY(oct_tfl_node(r, 0, "Shape", &x, 1, &node, &y, err));
    if (oct_tfl_out(r, 0)->type == OCT_TFL_INT32) {
        x = y;
        OCT_TRY(oct_tfl_node(r, 0, "Cast", &x, 1, &node, &y, err));
        OCT_TRY(oct_node_set_int(r->g, node, "to", OCT_S32, err));
    }
    return oct_tfl_give(r, 0, &plain, y, err);
}

oct_status oct_tfl_read_pack(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    const int n = r->op->n_in;
    int *in = oct_arena_calloc(r->arena, (size_t)n + 1, sizeof *in), axis, node, y, one[2];
    if (!in)
        return oct_nomem(err);
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    OCT_TRY(check_axis(r, oct_tfl_option(r->op, OCT_TFL_PACK_AXIS, 0), oct_tfl_in(r, 0)->rank + 1, &axis, err));
    OCT_TRY(oct_tfl_const_ints(r, "axes", (int64_t[]){ axis }, 1, &one[1], err));
    for (int k = 0; k < n; k++) {
        OCT_TRY(oct_tfl_take(r, k, &plain, &one[0], err));
        OCT_TRY(oct_tfl_node(r, 0, "Unsqueeze", one, 2, &node, &in[k], err));
    }
    OCT_TRY(oct_tfl_node(r, 0, "Concat", in, n, &node, &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "axis", axis, err));
    return oct_tfl_give(r, 0, &plain, y, err);
}

oct_status oct_tfl_read_unpack(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    int axis, x, axes, node, part, squeeze, y;
    OCT_TRY(oct_tfl_need(r, 0, 1, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    OCT_TRY(check_axis(r, oct_tfl_option(r->op, OCT_TFL_PACK_AXIS, 0), rank, &axis, err));
    if (r->op->n_out < 1)
        return oct_tfl_unread(r, err, NULL, "it has no results");
    OCT_TRY(oct_tfl_take(r, 0, &plain, &x, err));
    OCT_TRY(oct_tfl_const_ints(r, "axes", (int64_t[]){ axis }, 1, &axes, err));
    OCT_TRY(split(r, x, axis, &plain, rank, &node, &part, err));
    for (int i = 0; i < r->op->n_out; i++) {
        if (i)
            OCT_TRY(oct_tfl_second(r, i, node, i, &part, err));
        OCT_TRY(oct_tfl_node(r, i, "Squeeze", (int[]){ part, axes }, 2, &squeeze, &y, err));
        OCT_TRY(oct_tfl_give(r, i, &plain, y, err));
    }
    return OCT_OK;
}

oct_status oct_tfl_read_tile(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order plain = oct_tfl_plain();
    const int64_t *counts;
    int in[2], n, node, y;
    OCT_TRY(oct_tfl_take(r, 0, &plain, &in[0], err));
    OCT_TRY(oct_tfl_take_ints(r, 1, &counts, &n, err));
    OCT_TRY(oct_tfl_const_ints(r, "repeats", counts, n, &in[1], err));
    OCT_TRY(oct_tfl_node(r, 0, "Tile", in, 2, &node, &y, err));
    return oct_tfl_give(r, 0, &plain, y, err);
}

/* The axes get other names, and nothing is moved. */
oct_status oct_tfl_read_transpose(oct_tfl_reader *r, oct_err *err)
{
    const int64_t *order;
    int perm[OCT_MAX_RANK], n;
    bool seen[OCT_MAX_RANK] = { false };
    OCT_TRY(oct_tfl_need(r, 0, 0, err));
    OCT_TRY(oct_tfl_take_ints(r, 1, &order, &n, err));
    const int rank = oct_tfl_in(r, 0)->rank;
    for (int i = 0; i < n && n == rank; i++) {
        OCT_TRY(check_axis(r, order[i], rank, &perm[i], err));
        if (seen[perm[i]])
            return oct_tfl_unread(r, err, NULL, "its order has axis %d twice", perm[i]);
        seen[perm[i]] = true;
    }
    if (n != rank || oct_tfl_out(r, 0)->rank != rank)
        return oct_tfl_unread(r, err, NULL, "its order has %d axes of %d", n, rank);
    return oct_tfl_give_same(r, 0, 0, perm, err);
}

oct_status oct_tfl_read_blocks(oct_tfl_reader *r, oct_err *err)
{
    const oct_tfl_order first = oct_tfl_channels_first(4);
    int x, node, y;
    OCT_TRY(oct_tfl_need(r, 0, 4, err));
    if (oct_tfl_in(r, 0)->rank != 4)
        return oct_tfl_unread(r, err, NULL, "its operand has %d axes", oct_tfl_in(r, 0)->rank);
    OCT_TRY(oct_tfl_take(r, 0, &first, &x, err));
    OCT_TRY(oct_tfl_node(r, 0, r->op->code == OCT_TFL_DEPTH_TO_SPACE ? "DepthToSpace" : "SpaceToDepth", &x, 1, &node,
                         &y, err));
    OCT_TRY(oct_node_set_int(r->g, node, "blocksize", oct_tfl_option(r->op, OCT_TFL_BLOCK_SIZE, 0), err));
    return oct_tfl_give(r, 0, &first, y, err);
}
