/* lib/ops/tensor/op_move.c -- elements put elsewhere or repeated: Transpose, Expand, Tile, DepthToSpace,
 * SpaceToDepth. */
#include "kernels/layout.h"
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"

#include <string.h>

/* state of all: the map of quantized values, or NULL. */
static oct_status move_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const uint8_t *table;
    if (oct_elem_size(s->in[0]->dtype) == 0 || oct_elem_size(s->in[0]->dtype) != oct_elem_size(s->out[0]->dtype))
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    OCT_TRY(oct_q8_move_table(s->in[0], s->out[0], p->arena, &table, err));
    s->state = (void *)(uintptr_t)table;
    return OCT_OK;
}

static oct_status move(const oct_step *s, const oct_run *r, oct_nd *d)
{
    oct_nd_copy(d, r->pool, s->out[0]->data, s->in[0]->data, oct_elem_size(s->in[0]->dtype), s->state);
    return OCT_OK;
}

/* ------------------------------------------------------------------ Transpose */

static oct_status permutation(const oct_node *n, int rank, int perm[OCT_MAX_RANK], oct_err *err)
{
    int count;
    const int64_t *v = oct_node_ints(n, "perm", &count);
    uint32_t mask = 0;
    for (int i = 0; i < rank && v == NULL; i++)
        perm[i] = rank - 1 - i;
    if (v == NULL)
        return OCT_OK;
    if (count != rank)
        return oct_fail(err, OCT_EMALFORMED, "perm has %d elements, the input %d dimensions", count, rank);
    OCT_TRY(oct_axes_mask(v, count, rank, &mask, err));
    for (int i = 0; i < rank; i++)
        perm[i] = (int)(v[i] < 0 ? v[i] + rank : v[i]);
    return OCT_OK;
}

static oct_status transpose_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK];
    int perm[OCT_MAX_RANK] = { 0 };
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    OCT_TRY(permutation(oct_in_node(c), in.rank, perm, err));
    for (int i = 0; i < in.rank; i++)
        d[i] = in.d[perm[i]];
    OCT_TRY(oct_out_shape(c, 0, in.rank, d, err));
    return oct_known_copy(c, 0, err);
}

static oct_status transpose_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    int perm[OCT_MAX_RANK] = { 0 };
    int64_t sx[OCT_MAX_RANK] = { 0 }, to[OCT_MAX_RANK];
    OCT_TRY(permutation(s->node, x->rank, perm, err));
    size_t size = oct_elem_size(x->dtype);
    if (x->layout == OCT_LAYOUT_PLAIN && y->layout == OCT_LAYOUT_PLAIN && s->state == NULL && size <= 8 &&
        y->count > 0) {
        oct_transpose(r->pool, x->data, x->dims, perm, x->rank, size, y->data);
        return OCT_OK;
    }
    oct_operand_strides(x, sx);
    for (int i = 0; i < x->rank; i++)
        to[i] = sx[perm[i]];
    oct_nd d;
    oct_nd_init(&d, y);
    oct_nd_add_strides(&d, to);
    return move(s, r, &d);
}

const oct_op oct_op_transpose = {
    OCT_SCHEMA("Transpose", "", 1, 1, 1, 1, 1),
    .infer = transpose_infer,
    .prepare = move_prepare,
    .run = transpose_run,
    OCT_MOVES_ELEMENTS,
    .permutes = true,
};

/* ------------------------------------------------------------------ Expand */

static oct_status expand_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0), to = { -1, NULL };
    oct_dim target[OCT_MAX_RANK], d[OCT_MAX_RANK];
    int rank;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    to.rank = oct_in_ints(c, 1, target, OCT_MAX_RANK);
    to.d = target;
    for (int i = 0; i < to.rank; i++)
        if (target[i].sym == oct_minus_one || target[i].n < -1)
            return oct_fail(err, OCT_EMALFORMED, "element %d of the shape is negative", i);
    OCT_TRY(oct_broadcast_dims(&in, &to, &rank, d, err));
    OCT_TRY(oct_out_shape(c, 0, rank, d, err));
    oct_dim known[OCT_KNOWN_MAX];
    if (!oct_known_wanted(c) || (rank == 1 && (d[0].n < 0 || d[0].n > OCT_KNOWN_MAX)))
        return OCT_OK;
    int n = oct_in_ints(c, 0, known, OCT_KNOWN_MAX), count = rank == 1 ? (int)d[0].n : 1;
    if (n == count)
        return oct_out_known(c, 0, n, known, err);
    if (n != 1)
        return OCT_OK;
    for (int i = 1; i < count; i++)
        known[i] = known[0];
    return oct_out_known(c, 0, count, known, err);
}

static oct_status expand_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    for (int i = 0; i < x->rank; i++) {
        int at = y->rank - x->rank + i;
        if (at < 0 || (x->dims[i] != 1 && x->dims[i] != y->dims[at]))
            return oct_fail(err, OCT_EMALFORMED, "the input does not broadcast to the output's shape");
    }
    return move_prepare(s, p, err);
}

static oct_status expand_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    oct_nd d;
    oct_nd_init(&d, s->out[0]);
    oct_nd_add(&d, s->in[0]);
    return move(s, r, &d);
}

const oct_op oct_op_expand = {
    OCT_SCHEMA("Expand", "", 8, 2, 2, 1, 1),
    .infer = expand_infer,
    .prepare = expand_prepare,
    .run = expand_run,
    OCT_MOVES_ELEMENTS,
};

/* ------------------------------------------------------------------ Tile */

static oct_status tile_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_dim times[OCT_MAX_RANK], d[OCT_MAX_RANK];
    int n = oct_in_ints(c, 1, times, OCT_MAX_RANK);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    if (n >= 0 && n != in.rank)
        return oct_fail(err, OCT_EMALFORMED, "%d repeats for %d dimensions", n, in.rank);
    for (int i = 0; i < in.rank; i++) {
        if (n >= 0 && (times[i].sym == oct_minus_one || times[i].n < -1))
            return oct_fail(err, OCT_EMALFORMED, "repeat %d is negative", i);
        d[i] = n >= 0 ? oct_dim_mul(in.d[i], times[i]) : (oct_dim){ -1, NULL };
    }
    OCT_TRY(oct_out_shape(c, 0, in.rank, d, err));
    return oct_known_wanted(c) && n == 1 && times[0].n == 1 ? oct_known_copy(c, 0, err) : OCT_OK;
}

/* Each dimension is walked as [repeats][elements]. */
static oct_status tile_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *y = s->out[0];
    int64_t sx[OCT_MAX_RANK] = { 0 }, sy[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(x, sx);
    oct_operand_strides(y, sy);
    oct_nd d = { .rank = 2 * x->rank, .arrays = 2 };
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 0)
            return OCT_OK;
        if (y->dims[i] % x->dims[i] != 0)
            return oct_fail(err, OCT_EMALFORMED, "the repeats do not lead to the output's shape");
        d.dims[2 * i] = y->dims[i] / x->dims[i];
        d.stride[0][2 * i] = sy[i] * x->dims[i];
        d.dims[2 * i + 1] = x->dims[i];
        d.stride[0][2 * i + 1] = sy[i];
        d.stride[1][2 * i + 1] = sx[i];
    }
    return move(s, r, &d);
}

const oct_op oct_op_tile = {
    OCT_SCHEMA("Tile", "", 6, 2, 2, 1, 1),
    .infer = tile_infer,
    .prepare = move_prepare,
    .run = tile_run,
    OCT_MOVES_ELEMENTS,
};

/* ------------------------------------------------------------------ DepthToSpace, SpaceToDepth */

static oct_status block_of(const oct_node *n, int64_t *b, oct_err *err)
{
    *b = oct_node_int(n, "blocksize", 0);
    if (*b < 1 || *b > 65536)
        return oct_fail(err, OCT_EMALFORMED, "blocksize is %lld", (long long)*b);
    return OCT_OK;
}

static oct_dim divided(oct_dim a, int64_t by)
{
    return a.n >= 0 ? oct_dim_of(a.n / by) : by == 1 ? a : (oct_dim){ -1, NULL };
}

static oct_status block_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    bool deep = oct_in_node(c)->op[0] == 'D';
    int64_t b;
    OCT_TRY(block_of(oct_in_node(c), &b, err));
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    if (in.rank != 4)
        return oct_fail(err, OCT_EMALFORMED, "the input has %d dimensions, expected 4", in.rank);
    for (int i = 1; i < 4; i++)
        if ((i == 1) == deep && in.d[i].n >= 0 && in.d[i].n % (deep ? b * b : b) != 0)
            return oct_fail(err, OCT_EMALFORMED, "dimension %d has %lld elements, not a multiple for blocksize %lld", i,
                            (long long)in.d[i].n, (long long)b);
    oct_dim d[4] = { in.d[0] }, by = oct_dim_of(b);
    d[1] = deep ? divided(in.d[1], b * b) : oct_dim_mul(in.d[1], oct_dim_of(b * b));
    for (int i = 2; i < 4; i++)
        d[i] = deep ? oct_dim_mul(in.d[i], by) : divided(in.d[i], b);
    return oct_out_shape(c, 0, 4, d, err);
}

/* Both are walks over [N, C, H, b, W, b] of the side with small depth (`wide`) and the deep side. */
static oct_status block_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    bool to_space = s->op->type[0] == 'D';
    const oct_operand *wide = to_space ? s->out[0] : s->in[0], *deep = to_space ? s->in[0] : s->out[0];
    int64_t b, sw[OCT_MAX_RANK] = { 0 }, sd[OCT_MAX_RANK] = { 0 };
    OCT_TRY(block_of(s->node, &b, err));
    if (wide->rank != 4 || deep->rank != 4 || deep->dims[1] != wide->dims[1] * b * b ||
        wide->dims[2] != deep->dims[2] * b || wide->dims[3] != deep->dims[3] * b)
        return oct_fail(err, OCT_EMALFORMED, "the shapes do not fit blocksize %lld", (long long)b);
    oct_operand_strides(wide, sw);
    oct_operand_strides(deep, sd);
    bool crd = strcmp(oct_node_str(s->node, "mode", "DCR"), "CRD") == 0;
    int64_t c = wide->dims[1], step = crd ? 1 : c; /* channels between neighbours of a block */
    const int64_t dims[6] = { deep->dims[0], c, deep->dims[2], b, deep->dims[3], b };
    const int64_t on_wide[6] = { sw[0], sw[1], sw[2] * b, sw[2], sw[3] * b, sw[3] };
    const int64_t on_deep[6] = { sd[0], crd ? sd[1] * b * b : sd[1], sd[2], sd[1] * step * b, sd[3], sd[1] * step };
    oct_nd d = { .rank = 6, .arrays = 2 };
    memcpy(d.dims, dims, sizeof dims);
    memcpy(d.stride[0], to_space ? on_wide : on_deep, sizeof on_wide);
    memcpy(d.stride[1], to_space ? on_deep : on_wide, sizeof on_wide);
    return move(s, r, &d);
}

const oct_op oct_op_depth_to_space = {
    OCT_SCHEMA("DepthToSpace", "", 1, 1, 1, 1, 1),
    .infer = block_infer,
    .prepare = move_prepare,
    .run = block_run,
    OCT_MOVES_ELEMENTS,
};

const oct_op oct_op_space_to_depth = {
    OCT_SCHEMA("SpaceToDepth", "", 1, 1, 1, 1, 1),
    .infer = block_infer,
    .prepare = move_prepare,
    .run = block_run,
    OCT_MOVES_ELEMENTS,
};
