/* lib/ops/tensor/op_gather.c -- elements picked by index: Gather, GatherElements, OneHot. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/q8.h"

#include <assert.h>
#include <string.h>

static oct_status gather_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const uint8_t *table;
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    if (s->in[1]->dtype != OCT_S64 && s->in[1]->dtype != OCT_S32)
        return oct_fail(err, OCT_EMALFORMED, "indices of type %s", oct_dtype_name(s->in[1]->dtype));
    OCT_TRY(oct_q8_move_table(s->in[0], s->out[0], p->arena, &table, err));
    s->state = (void *)(uintptr_t)table;
    return OCT_OK;
}

static void remap(const oct_step *s, const oct_run *r)
{
    if (s->state != NULL)
        oct_lut_8(r->pool, s->state, s->out[0]->data, s->out[0]->data, (size_t)s->out[0]->count);
}

/* ------------------------------------------------------------------ Gather */

static oct_status gather_known(const oct_infer *c, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX], picked[OCT_KNOWN_MAX];
    int64_t index[OCT_KNOWN_MAX];
    int n = oct_in_ints(c, 0, d, OCT_KNOWN_MAX), m = oct_in_consts(c, 1, index, OCT_KNOWN_MAX);
    if (n < 0 || m < 0 || oct_in_shape(c, 0).rank != 1)
        return OCT_OK;
    for (int i = 0; i < m; i++) {
        if (index[i] < -n || index[i] >= n)
            return oct_fail(err, OCT_EMALFORMED, "index %lld is outside of an axis of %d elements", (long long)index[i],
                            n);
        picked[i] = d[index[i] < 0 ? index[i] + n : index[i]];
    }
    return oct_out_known(c, 0, m, picked, err);
}

static oct_status gather_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), i = oct_in_shape(c, 1);
    oct_dim d[2 * OCT_MAX_RANK];
    int axis, rank = 0;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0 || i.rank < 0)
        return OCT_OK;
    if (x.rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "the data is a scalar");
    OCT_TRY(oct_axis(oct_node_int(oct_in_node(c), "axis", 0), x.rank, &axis, err));
    for (int k = 0; k < axis; k++)
        d[rank++] = x.d[k];
    for (int k = 0; k < i.rank; k++)
        d[rank++] = i.d[k];
    for (int k = axis + 1; k < x.rank; k++)
        d[rank++] = x.d[k];
    OCT_TRY(oct_out_shape(c, 0, rank, d, err));
    return oct_known_wanted(c) ? gather_known(c, err) : OCT_OK;
}

static oct_status gather_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *i = s->in[1];
    int axis;
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", 0), x->rank, &axis, err));
    const int64_t outer = oct_product(x->dims, axis), inner = oct_product(x->dims + axis + 1, x->rank - axis - 1),
                  n = x->dims[axis];
    size_t bytes = (size_t)inner * oct_elem_size(x->dtype);
    if (outer * inner * i->count != s->out[0]->count)
        return oct_fail(err, OCT_EMALFORMED, "the output has another number of elements");
    if (s->out[0]->count == 0)
        return OCT_OK;
    const uint8_t *from = x->data;
    uint8_t *to = s->out[0]->data;
    for (int64_t o = 0; o < outer; o++, from += (size_t)n * bytes)
        for (int64_t k = 0; k < i->count; k++, to += bytes) {
            int64_t index = 0;
            OCT_TRY(oct_index_at(i, k, n, &index, err));
            memcpy(to, from + (size_t)index * bytes, bytes);
        }
    remap(s, r);
    return OCT_OK;
}

const oct_op oct_op_gather = {
    OCT_SCHEMA("Gather", "", 1, 2, 2, 1, 1),
    .infer = gather_infer,
    .prepare = gather_prepare,
    .run = gather_run,
    .moves = true,
    .picks = true,
    .chooses = 1u << 1,
    .integer = oct_q8_moves,
    .quant = OCT_QUANT_SAME,
};

/* ------------------------------------------------------------------ GatherElements */

static oct_status elements_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), i = oct_in_shape(c, 1);
    int axis;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank >= 0 && i.rank >= 0 && x.rank != i.rank)
        return oct_fail(err, OCT_EMALFORMED, "the data has %d dimensions, the indices %d", x.rank, i.rank);
    if (x.rank >= 0)
        OCT_TRY(oct_axis(oct_node_int(oct_in_node(c), "axis", 0), x.rank, &axis, err));
    return oct_out_shape(c, 0, i.rank, i.d, err);
}

#define PICK(type)                  \
    for (int64_t k = 0; k < n; k++) \
        ((type *)to)[k] = ((const type *)x)[at[k]];

static void pick(const void *x, const int64_t *at, int64_t n, size_t size, void *to)
{
    switch (size) {
    case 1: PICK(uint8_t) break;
    case 2: PICK(uint16_t) break;
    case 4: PICK(uint32_t) break;
    case 8: PICK(uint64_t) break;
    default:
        for (int64_t k = 0; k < n; k++)
            memcpy((uint8_t *)to + (size_t)k * size, (const uint8_t *)x + (size_t)at[k] * size, size);
    }
}

static oct_status elements_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *index = s->in[1], *y = s->out[0];
    const size_t size = oct_elem_size(x->dtype);
    int64_t at[1024];
    int axis;
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", 0), x->rank, &axis, err));
    if (x->rank != index->rank || y->count != index->count)
        return oct_fail(err, OCT_EMALFORMED, "data, indices and output do not fit");
    for (int k = 0; k < x->rank; k++)
        if (k != axis && index->dims[k] > x->dims[k])
            return oct_fail(err, OCT_EMALFORMED, "axis %d of the indices is longer than the data's", k);
    for (int64_t e = 0, n; e < y->count; e += n) {
        n = y->count - e < 1024 ? y->count - e : 1024;
        OCT_TRY(oct_index_places(index, x, axis, e, n, at, err));
        pick(x->data, at, n, size, (uint8_t *)y->data + (size_t)e * size);
    }
    remap(s, r);
    return OCT_OK;
}

const oct_op oct_op_gather_elements = {
    OCT_SCHEMA("GatherElements", "", 11, 2, 2, 1, 1),
    .infer = elements_infer,
    .prepare = gather_prepare,
    .run = elements_run,
    .moves = true,
    .chooses = 1u << 1,
    .integer = oct_q8_moves,
    .quant = OCT_QUANT_SAME,
};

/* ------------------------------------------------------------------ OneHot */

static oct_status onehot_axis(const oct_node *n, int rank, int *axis, oct_err *err)
{
    return oct_axis(oct_node_int(n, "axis", -1), rank + 1, axis, err);
}

static oct_status onehot_infer(const oct_infer *c, oct_err *err)
{
    oct_shape i = oct_in_shape(c, 0);
    oct_dim d[OCT_MAX_RANK + 1], depth = { -1, NULL };
    int64_t n;
    int axis;
    oct_out_dtype(c, 0, oct_in_dtype(c, 2));
    if (i.rank < 0)
        return OCT_OK;
    const oct_value *v = oct_in_value(c, 1);
    if (v != NULL && v->constant != NULL && v->constant->data != NULL && v->constant->count == 1) {
        oct_operand t = { .dtype = v->constant->dtype, .count = 1, .data = (void *)(uintptr_t)v->constant->data };
        depth.n = oct_elem_int(&t, 0);
    } else if (oct_in_consts(c, 1, &n, 1) == 1) {
        depth.n = n;
    }
    if (depth.n < -1)
        return oct_fail(err, OCT_EMALFORMED, "the depth is %lld", (long long)depth.n);
    OCT_TRY(onehot_axis(oct_in_node(c), i.rank, &axis, err));
    for (int k = 0; k <= i.rank; k++)
        d[k] = k < axis ? i.d[k] : k == axis ? depth : i.d[k - 1];
    return oct_out_shape(c, 0, i.rank + 1, d, err);
}

static oct_status onehot_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    for (int i = 0; i < 3; i++)
        if (i < 2 ? oct_dom_of(s->in[i]->dtype) == OCT_DOM_NONE : oct_elem_size(s->in[i]->dtype) == 0)
            return oct_fail(err, OCT_EUNSUPPORTED, "input %d is %s", i, oct_dtype_name(s->in[i]->dtype));
    return OCT_OK;
}

static oct_status onehot_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *i = s->in[0], *values = s->in[2], *y = s->out[0];
    size_t size = oct_elem_size(y->dtype);
    int axis;
    OCT_TRY(onehot_axis(s->node, i->rank, &axis, err));
    if (values->count != 2)
        return oct_fail(err, OCT_EMALFORMED, "there are %lld values, expected 2", (long long)values->count);
    const int64_t depth = y->dims[axis], inner = oct_product(y->dims + axis + 1, y->rank - axis - 1);
    const uint8_t *off = values->data, *on = off + size;
    assert(inner > 0 || i->count == 0);
    for (int64_t e = 0; e < y->count; e++)
        memcpy((uint8_t *)y->data + (size_t)e * size, off, size);
    for (int64_t e = 0; e < i->count && depth > 0; e++) {
        int64_t at = oct_elem_int(i, e);
        if (at < -depth || at >= depth)
            continue;
        at = at < 0 ? at + depth : at;
        memcpy((uint8_t *)y->data + (size_t)((e / inner * depth + at) * inner + e % inner) * size, on, size);
    }
    return OCT_OK;
}

const oct_op oct_op_onehot = {
    OCT_SCHEMA("OneHot", "", 9, 3, 3, 1, 1),
    .infer = onehot_infer,
    .prepare = onehot_prepare,
    .run = onehot_run,
    .bf16 = -1,
};
