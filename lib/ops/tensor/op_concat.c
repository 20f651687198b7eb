/* lib/ops/tensor/op_concat.c -- Concat and Split: copies of boxes along one axis. */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/nd.h"
#include "ops/core/q8.h"

/* Per part (input of Concat, output of Split): the map of its quantized values, or NULL. */
typedef struct parts {
    int axis;
    const uint8_t **table;
} parts;

static oct_status parts_new(oct_step *s, int n, int rank, const oct_prep *p, parts **out, oct_err *err)
{
    if (rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "a scalar has no axis");
    parts *x = oct_arena_calloc(p->arena, 1, sizeof *x);
    if (x == NULL || (x->table = oct_arena_calloc(p->arena, (size_t)n + 1, sizeof *x->table)) == NULL)
        return oct_nomem(err);
    s->state = *out = x;
    return oct_axis(oct_node_int(s->node, "axis", 0), rank, &x->axis, err);
}

/* Whether every dimension but `axis` agrees and elements have whole bytes. */
static oct_status check_part(const oct_operand *part, const oct_operand *whole, int axis, oct_err *err)
{
    bool ok = part->rank == whole->rank && oct_elem_size(part->dtype) == oct_elem_size(whole->dtype);
    for (int i = 0; ok && i < part->rank; i++)
        ok = i == axis || part->dims[i] == whole->dims[i];
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED, "shapes or types do not fit along axis %d", axis);
    if (oct_elem_size(part->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(part->dtype));
    return OCT_OK;
}

/* ------------------------------------------------------------------ Concat */

static oct_status concat_known(const oct_infer *c, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX];
    int n = 0;
    for (int i = 0; i < oct_in_node(c)->n_in; i++) {
        int m = oct_in_ints(c, i, d + n, OCT_KNOWN_MAX - n);
        if (m < 0)
            return OCT_OK;
        n += m;
    }
    return oct_out_known(c, 0, n, d, err);
}

static oct_status concat_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *node = oct_in_node(c);
    const oct_attr *a = oct_node_attr(node, "axis");
    oct_dim d[OCT_MAX_RANK];
    int rank = -1, axis = 0;
    if (a == NULL)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'axis' is missing");
    bool all = true;
    for (int i = 0; i < node->n_in; i++) {
        oct_shape s = oct_in_shape(c, i);
        oct_out_dtype(c, 0, oct_in_dtype(c, i));
        if (s.rank < 0) {
            all = false;
            continue;
        }
        if (rank < 0) {
            rank = s.rank;
            if (rank == 0)
                return oct_fail(err, OCT_EMALFORMED, "input %d is a scalar", i);
            OCT_TRY(oct_axis(a->i, rank, &axis, err));
            for (int k = 0; k < rank; k++)
                d[k] = k == axis ? oct_dim_of(0) : s.d[k];
        }
        if (s.rank != rank)
            return oct_fail(err, OCT_EMALFORMED, "input %d has %d dimensions, the first has %d", i, s.rank, rank);
        for (int k = 0; k < rank; k++) {
            if (k == axis)
                d[k] = oct_dim_add(d[k], s.d[k]);
            else if (d[k].n >= 0 && s.d[k].n >= 0 && d[k].n != s.d[k].n)
                return oct_fail(err, OCT_EMALFORMED, "input %d has %lld elements along axis %d, others %lld", i,
                                (long long)s.d[k].n, k, (long long)d[k].n);
            else if (d[k].n < 0 && (s.d[k].n >= 0 || d[k].sym == NULL))
                d[k] = s.d[k];
        }
    }
    if (rank < 0)
        return OCT_OK;
    if (!all)
        d[axis] = (oct_dim){ -1, NULL };
    OCT_TRY(oct_out_shape(c, 0, rank, d, err));
    return oct_known_wanted(c) ? concat_known(c, err) : OCT_OK;
}

static oct_status concat_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    parts *x = NULL;
    OCT_TRY(parts_new(s, s->n_in, s->out[0]->rank, p, &x, err));
    for (int i = 0; i < s->n_in; i++) {
        if (s->in[i] == NULL)
            return oct_fail(err, OCT_EMALFORMED, "input %d is missing", i);
        OCT_TRY(check_part(s->in[i], s->out[0], x->axis, err));
        OCT_TRY(oct_q8_move_table(s->in[i], s->out[0], p->arena, &x->table[i], err));
    }
    return OCT_OK;
}

static oct_status concat_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const parts *x = s->state;
    const oct_operand *y = s->out[0];
    size_t size = oct_elem_size(y->dtype);
    int64_t at = 0, strides[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(y, strides);
    for (int i = 0; i < s->n_in; at += s->in[i++]->dims[x->axis]) {
        if (s->in[i]->pitch)
            continue;
        oct_nd d;
        oct_nd_init(&d, y);
        d.dims[x->axis] = s->in[i]->dims[x->axis];
        int64_t from[OCT_MAX_RANK] = { 0 };
        oct_operand_strides(s->in[i], from);
        oct_nd_add_strides(&d, from);
        oct_nd_copy(&d, r->pool, (uint8_t *)y->data + (size_t)(at * strides[x->axis]) * size, s->in[i]->data, size,
                    x->table[i]);
    }
    return OCT_OK;
}

static bool concat_integer(const oct_step *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (!oct_q8(s->in[i]))
            return false;
    return oct_q8(s->out[0]);
}

const oct_op oct_op_concat = {
    OCT_SCHEMA("Concat", "", 4, 1, -1, 1, 1),
    .infer = concat_infer,
    .prepare = concat_prepare,
    .run = concat_run,
    .moves = true,
    .joins = true,
    .pitched = true,
    .layout = OCT_RULE_ANY,
    .integer = concat_integer,
    .quant = OCT_QUANT_JOIN,
};

/* ------------------------------------------------------------------ Split */

enum { MAX_PARTS = 4096 };

/* Length of part i of n when `total` elements are split evenly, the last one smaller. */
static int64_t even_part(int64_t total, int n, int i)
{
    int64_t step = total / n + (total % n != 0), left = total - step * i;
    return left < 0 ? 0 : left < step ? left : step;
}

static oct_status split_sizes(const oct_infer *c, oct_dim total, int n_out, oct_dim *size, oct_err *err)
{
    int64_t v[MAX_PARTS], sum = 0;
    int n = oct_arg_ints(c, c->opset < 13 ? "split" : NULL, c->opset < 13 ? -1 : 1, v, MAX_PARTS);
    int64_t num = oct_node_int(oct_in_node(c), "num_outputs", n_out);
    if (n >= 0 && n != n_out)
        return oct_fail(err, OCT_EMALFORMED, "%d lengths for %d outputs", n, n_out);
    if (n < 0 && num != n_out)
        return oct_fail(err, OCT_EMALFORMED, "num_outputs is %lld, but there are %d", (long long)num, n_out);
    for (int i = 0; i < n_out; i++) {
        size[i] = (oct_dim){ -1, NULL };
        if (n >= 0) {
            if (v[i] < 0 || __builtin_add_overflow(sum, v[i], &sum))
                return oct_fail(err, OCT_EMALFORMED, "length %d is %lld", i, (long long)v[i]);
            size[i] = oct_dim_of(v[i]);
        } else if (n == OCT_ARG_ABSENT && total.n >= 0) {
            size[i] = oct_dim_of(even_part(total.n, n_out, i));
        }
    }
    if (n >= 0 && total.n >= 0 && sum != total.n)
        return oct_fail(err, OCT_EMALFORMED, "the lengths add up to %lld of %lld elements", (long long)sum,
                        (long long)total.n);
    if (n == OCT_ARG_ABSENT && c->opset < 18 && total.n >= 0 && total.n % n_out != 0)
        return oct_fail(err, OCT_EMALFORMED, "%lld elements cannot be split evenly into %d", (long long)total.n, n_out);
    return OCT_OK;
}

static oct_status split_known(const oct_infer *c, int n_out, const oct_dim *size, oct_err *err)
{
    oct_dim d[OCT_KNOWN_MAX];
    int n = oct_in_ints(c, 0, d, OCT_KNOWN_MAX), at = 0;
    oct_dtype t = oct_in_dtype(c, 0);
    if (n < 0 || oct_in_shape(c, 0).rank != 1 || (t != OCT_S64 && t != OCT_S32))
        return OCT_OK;
    for (int i = 0; i < n_out; i++) {
        if (size[i].n < 0 || size[i].n > n - at)
            return OCT_OK;
        OCT_TRY(oct_out_known(c, i, (int)size[i].n, d + at, err));
        at += (int)size[i].n;
    }
    return OCT_OK;
}

static oct_status split_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    const oct_node *node = oct_in_node(c);
    const int n_out = node->n_out;
    int axis;
    for (int i = 0; i < n_out; i++)
        oct_out_dtype(c, i, oct_in_dtype(c, 0));
    if (in.rank < 0)
        return OCT_OK;
    if (n_out > MAX_PARTS)
        return oct_fail(err, OCT_EUNSUPPORTED, "%d outputs", n_out);
    OCT_TRY(oct_axis(oct_node_int(node, "axis", 0), in.rank, &axis, err));
    if (in.rank == 0)
        return oct_fail(err, OCT_EMALFORMED, "a scalar cannot be split");
    oct_dim size[MAX_PARTS], d[OCT_MAX_RANK];
    OCT_TRY(split_sizes(c, in.d[axis], n_out, size, err));
    for (int i = 0; i < n_out; i++) {
        for (int k = 0; k < in.rank; k++)
            d[k] = k == axis ? size[i] : in.d[k];
        OCT_TRY(oct_out_shape(c, i, in.rank, d, err));
    }
    return split_known(c, n_out, size, err);
}

static oct_status split_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    parts *x = NULL;
    OCT_TRY(parts_new(s, s->n_out, s->in[0]->rank, p, &x, err));
    int64_t sum = 0;
    bool all = true;
    for (int i = 0; i < s->n_out; i++) {
        if (s->out[i] == NULL) {
            all = false;
            continue;
        }
        OCT_TRY(check_part(s->out[i], s->in[0], x->axis, err));
        OCT_TRY(oct_q8_move_table(s->in[0], s->out[i], p->arena, &x->table[i], err));
        sum += s->out[i]->dims[x->axis];
    }
    if (sum > s->in[0]->dims[x->axis] || (all && sum != s->in[0]->dims[x->axis]))
        return oct_fail(err, OCT_EMALFORMED, "the outputs hold %lld of %lld elements", (long long)sum,
                        (long long)s->in[0]->dims[x->axis]);
    return OCT_OK;
}

/* Where output i begins: an absent output before it is as long as the node says. */
static int64_t part_length(const oct_step *s, int i, int axis)
{
    if (s->out[i] != NULL)
        return s->out[i]->dims[axis];
    int64_t v[MAX_PARTS];
    int n = oct_step_ints(s, s->opset < 13 ? "split" : NULL, s->opset < 13 ? -1 : 1, v, MAX_PARTS);
    return n > i ? v[i] : even_part(s->in[0]->dims[axis], s->n_out, i);
}

static oct_status split_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const parts *x = s->state;
    const oct_operand *in = s->in[0];
    size_t size = oct_elem_size(in->dtype);
    int64_t at = 0, strides[OCT_MAX_RANK] = { 0 };
    oct_operand_strides(in, strides);
    for (int i = 0; i < s->n_out; i++) {
        int64_t length = part_length(s, i, x->axis);
        if (length < 0 || length > in->dims[x->axis] - at)
            return oct_fail(err, OCT_EMALFORMED, "the lengths pass the end of the input");
        if (s->out[i] != NULL) {
            oct_nd d;
            oct_nd_init(&d, s->out[i]);
            oct_nd_add_strides(&d, strides);
            oct_nd_copy(&d, r->pool, s->out[i]->data,
                        (const uint8_t *)in->data + (size_t)(at * strides[x->axis]) * size, size, x->table[i]);
        }
        at += length;
    }
    return OCT_OK;
}

/* Opset 13: lengths become an input. Opset 18: without them the number of outputs is stated. */
static oct_status split_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from == 12)
        return oct_raise_ints(g, node, "split", 1, err);
    if (from == 17 && (g->node[node].n_in < 2 || g->node[node].in[1] < 0))
        return oct_node_set_int(g, node, "num_outputs", g->node[node].n_out, err);
    return OCT_OK;
}

const oct_op oct_op_split = {
    OCT_SCHEMA("Split", "", 2, 1, 2, 1, -1),
    .infer = split_infer,
    .prepare = split_prepare,
    .run = split_run,
    OCT_MOVES_ELEMENTS,
    .raise = split_raise,
};
