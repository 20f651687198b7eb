/* Sequences: making, reading and changing them, to and from tensors, and a body over their elements. */
#include "ops/control/control.h"

#include <string.h>

static oct_dtype in_elem(const oct_infer *c, int slot)
{
    const oct_value *v = oct_in_value(c, slot);
    return v ? v->elem : OCT_UNDEFINED;
}

static oct_status check_sequence(const oct_exec *x, int slot, oct_err *err)
{
    if (!x->in[slot] || x->in[slot]->kind != OCT_DATUM_SEQUENCE)
        return oct_fail(err, OCT_EMALFORMED, "input %d is no sequence", slot);
    return OCT_OK;
}

static oct_status check_tensor(const oct_exec *x, int slot, oct_err *err)
{
    if (!x->in[slot] || x->in[slot]->kind != OCT_DATUM_TENSOR)
        return oct_fail(err, OCT_EMALFORMED, "input %d is no tensor", slot);
    return OCT_OK;
}

/* A position from input `slot`, counted from the end when negative; absent: as given. 0 <= *at < n + room. */
static oct_status position(const oct_exec *x, int slot, size_t n, int64_t room, int64_t absent, int64_t *at,
                           oct_err *err)
{
    int64_t p = absent;
    bool given = slot < x->node->n_in && x->in[slot];
    if (given)
        OCT_TRY(oct_datum_int(x->in[slot], "the position", &p, err));
    *at = p < 0 && given ? p + (int64_t)n : p;
    if (*at < 0 || *at >= (int64_t)n + room)
        return oct_fail(err, OCT_EMALFORMED, "position %lld in a sequence of %zu", (long long)p, n);
    return OCT_OK;
}

/* ------------------------------------------------------------------ making */

static oct_status construct_infer(const oct_infer *c, oct_err *err)
{
    oct_out_kind(c, 0, OCT_VALUE_SEQUENCE, oct_in_dtype(c, 0));
    return OCT_OK;
}

static oct_status construct_exec(oct_exec *x, oct_err *err)
{
    for (int i = 0; i < x->node->n_in; i++) {
        OCT_TRY(check_tensor(x, i, err));
        if (x->in[i]->t.dtype != x->in[0]->t.dtype)
            return oct_fail(err, OCT_EMALFORMED, "tensors of %s and %s", oct_dtype_name(x->in[0]->t.dtype),
                            oct_dtype_name(x->in[i]->t.dtype));
    }
    OCT_TRY(oct_datum_sequence(x->in[0]->t.dtype, &x->out[0], err));
    for (int i = 0; i < x->node->n_in; i++)
        OCT_TRY(oct_datum_push(x->out[0], x->in[i], err));
    return OCT_OK;
}

const oct_op oct_op_sequence_construct = {
    OCT_SCHEMA("SequenceConstruct", "", 11, 1, -1, 1, 1),
    .infer = construct_infer,
    .exec = construct_exec,
};

static oct_dtype empty_type(const oct_node *n)
{
    int64_t t = oct_node_int(n, "dtype", OCT_F32);
    return t > 0 && t < OCT_DTYPE_COUNT ? (oct_dtype)t : OCT_UNDEFINED;
}

static oct_status empty_infer(const oct_infer *c, oct_err *err)
{
    oct_out_kind(c, 0, OCT_VALUE_SEQUENCE, empty_type(oct_in_node(c)));
    return OCT_OK;
}

static oct_status empty_exec(oct_exec *x, oct_err *err)
{
    return oct_datum_sequence(empty_type(x->node), &x->out[0], err);
}

const oct_op oct_op_sequence_empty = {
    OCT_SCHEMA("SequenceEmpty", "", 11, 0, 0, 1, 1),
    .infer = empty_infer,
    .exec = empty_exec,
};

/* ------------------------------------------------------------------ reading */

static oct_status at_infer(const oct_infer *c, oct_err *err)
{
    oct_out_dtype(c, 0, in_elem(c, 0));
    return OCT_OK;
}

static oct_status at_exec(oct_exec *x, oct_err *err)
{
    int64_t at;
    OCT_TRY(check_sequence(x, 0, err));
    OCT_TRY(position(x, 1, x->in[0]->n, 0, 0, &at, err));
    x->out[0] = oct_datum_ref(x->in[0]->at[at]);
    return OCT_OK;
}

const oct_op oct_op_sequence_at = {
    OCT_SCHEMA("SequenceAt", "", 11, 2, 2, 1, 1),
    .infer = at_infer,
    .exec = at_exec,
};

static oct_status length_infer(const oct_infer *c, oct_err *err)
{
    oct_out_dtype(c, 0, OCT_S64);
    return oct_out_shape(c, 0, 0, NULL, err);
}

static oct_status length_exec(oct_exec *x, oct_err *err)
{
    OCT_TRY(check_sequence(x, 0, err));
    OCT_TRY(oct_datum_tensor(OCT_S64, 0, NULL, &x->out[0], err));
    *(int64_t *)oct_datum_data(x->out[0]) = (int64_t)x->in[0]->n;
    return OCT_OK;
}

const oct_op oct_op_sequence_length = {
    OCT_SCHEMA("SequenceLength", "", 11, 1, 1, 1, 1),
    .infer = length_infer,
    .exec = length_exec,
};

/* ------------------------------------------------------------------ changing */

static oct_status same_infer(const oct_infer *c, oct_err *err)
{
    oct_dtype t = in_elem(c, 0);
    oct_out_kind(c, 0, OCT_VALUE_SEQUENCE, t != OCT_UNDEFINED ? t : oct_in_dtype(c, 1));
    return OCT_OK;
}

static oct_status insert_exec(oct_exec *x, oct_err *err)
{
    int64_t at;
    OCT_TRY(check_sequence(x, 0, err));
    OCT_TRY(check_tensor(x, 1, err));
    const oct_datum *s = x->in[0];
    OCT_TRY(position(x, 2, s->n, 1, (int64_t)s->n, &at, err));
    if (s->n && s->at[0]->t.dtype != x->in[1]->t.dtype)
        return oct_fail(err, OCT_EMALFORMED, "a tensor of %s into a sequence of %s", oct_dtype_name(x->in[1]->t.dtype),
                        oct_dtype_name(s->at[0]->t.dtype));
    OCT_TRY(oct_datum_sequence(x->in[1]->t.dtype, &x->out[0], err));
    for (size_t i = 0; i <= s->n; i++) {
        if ((int64_t)i == at)
            OCT_TRY(oct_datum_push(x->out[0], x->in[1], err));
        if (i < s->n)
            OCT_TRY(oct_datum_push(x->out[0], s->at[i], err));
    }
    return OCT_OK;
}

const oct_op oct_op_sequence_insert = {
    OCT_SCHEMA("SequenceInsert", "", 11, 2, 3, 1, 1),
    .infer = same_infer,
    .exec = insert_exec,
};

static oct_status erase_infer(const oct_infer *c, oct_err *err)
{
    oct_out_kind(c, 0, OCT_VALUE_SEQUENCE, in_elem(c, 0));
    return OCT_OK;
}

static oct_status erase_exec(oct_exec *x, oct_err *err)
{
    int64_t at;
    OCT_TRY(check_sequence(x, 0, err));
    const oct_datum *s = x->in[0];
    OCT_TRY(position(x, 1, s->n, 0, (int64_t)s->n - 1, &at, err));
    OCT_TRY(oct_datum_sequence(s->elem, &x->out[0], err));
    for (size_t i = 0; i < s->n; i++)
        if ((int64_t)i != at)
            OCT_TRY(oct_datum_push(x->out[0], s->at[i], err));
    return OCT_OK;
}

const oct_op oct_op_sequence_erase = {
    OCT_SCHEMA("SequenceErase", "", 11, 1, 2, 1, 1),
    .infer = erase_infer,
    .exec = erase_exec,
};

/* ------------------------------------------------------------------ from and to tensors */

static oct_status concat_exec(oct_exec *x, oct_err *err)
{
    OCT_TRY(check_sequence(x, 0, err));
    const oct_attr *axis = oct_node_attr(x->node, "axis");
    if (!axis || axis->type != OCT_ATTR_INT)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'axis' is missing");
    if (!oct_node_int(x->node, "new_axis", 0))
        return oct_datum_concat(x->in[0], axis->i, &x->out[0], err);
    if (!x->in[0]->n)
        return oct_fail(err, OCT_EMALFORMED, "an empty sequence cannot be joined");
    return oct_datum_stack(x->in[0], axis->i, false, NULL, &x->out[0], err);
}

const oct_op oct_op_concat_from_sequence = {
    OCT_SCHEMA("ConcatFromSequence", "", 11, 1, 1, 1, 1),
    .infer = at_infer,
    .exec = concat_exec,
};

/* The sizes of the parts: one size for all but a smaller last one, a list, or 1. */
typedef struct split_sizes {
    int64_t each; /* 0: a list */
    const oct_datum *list;
    size_t n;
} split_sizes;

static int64_t list_at(const oct_datum *l, size_t i)
{
    return l->t.dtype == OCT_S32 ? ((const int32_t *)l->t.data)[i] : ((const int64_t *)l->t.data)[i];
}

static oct_status split_sizes_of(const oct_exec *x, int64_t total, split_sizes *s, oct_err *err)
{
    *s = (split_sizes){ .each = 1, .n = (size_t)total };
    if (x->node->n_in < 2 || !x->in[1])
        return OCT_OK;
    OCT_TRY(check_tensor(x, 1, err));
    const oct_datum *l = x->in[1];
    if ((l->t.dtype != OCT_S32 && l->t.dtype != OCT_S64) || l->t.rank > 1)
        return oct_fail(err, OCT_EMALFORMED, "the sizes of its parts are no int64 list");
    if (l->t.rank == 0) {
        s->each = list_at(l, 0);
        if (s->each < 1)
            return oct_fail(err, OCT_EMALFORMED, "parts of size %lld", (long long)s->each);
        s->n = (size_t)(total / s->each + (total % s->each != 0));
        return OCT_OK;
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < l->t.count; i++)
        if (list_at(l, (size_t)i) < 0 || __builtin_add_overflow(sum, list_at(l, (size_t)i), &sum))
            return oct_fail(err, OCT_EMALFORMED, "a part of size %lld", (long long)list_at(l, (size_t)i));
    if (sum != total)
        return oct_fail(err, OCT_EMALFORMED, "the sizes of its parts sum to %lld, not %lld", (long long)sum,
                        (long long)total);
    *s = (split_sizes){ .list = l, .n = (size_t)l->t.count };
    return OCT_OK;
}

static oct_status split_exec(oct_exec *x, oct_err *err)
{
    int axis;
    split_sizes s;
    OCT_TRY(check_tensor(x, 0, err));
    const oct_datum *t = x->in[0];
    OCT_TRY(oct_axis(oct_node_int(x->node, "axis", 0), t->t.rank, &axis, err));
    if (t->t.rank < 1)
        return oct_fail(err, OCT_EMALFORMED, "a single number has no parts");
    OCT_TRY(split_sizes_of(x, t->dims[axis], &s, err));
    bool keep = (x->node->n_in > 1 && x->in[1]) || oct_node_int(x->node, "keepdims", 1);
    OCT_TRY(oct_datum_sequence(t->t.dtype, &x->out[0], err));
    int64_t at = 0;
    for (size_t i = 0; i < s.n; i++) {
        int64_t n = s.list ? list_at(s.list, i) : s.each < t->dims[axis] - at ? s.each : t->dims[axis] - at;
        oct_datum *part;
        OCT_TRY(oct_datum_range(t, axis, at, n, keep, &part, err));
        oct_status st = oct_datum_push(x->out[0], part, err);
        oct_datum_unref(part);
        OCT_TRY(st);
        at += n;
    }
    return OCT_OK;
}

const oct_op oct_op_split_to_sequence = {
    OCT_SCHEMA("SplitToSequence", "", 11, 1, 2, 1, 1),
    .infer = construct_infer,
    .exec = split_exec,
};

/* ------------------------------------------------------------------ SequenceMap */

static oct_status map_body(const oct_node *n, oct_graph **body, oct_err *err)
{
    *body = oct_node_graph(n, "body");
    if (!*body)
        return oct_fail(err, OCT_EMALFORMED, "SequenceMap has no graph 'body'");
    if ((int)(*body)->n_input != n->n_in || (int)(*body)->n_output < n->n_out)
        return oct_fail(err, OCT_EMALFORMED, "its body has %zu inputs and %zu outputs; %d and %d are wanted",
                        (*body)->n_input, (*body)->n_output, n->n_in, n->n_out);
    return OCT_OK;
}

static oct_status map_infer(const oct_infer *c, oct_err *err)
{
    const oct_node *n = oct_in_node(c);
    oct_graph *body;
    bool fits;
    OCT_TRY(map_body(n, &body, err));
    for (int i = 0; i < n->n_in; i++) {
        bool sequence = oct_in_value(c, i) && oct_in_value(c, i)->kind == OCT_VALUE_SEQUENCE;
        oct_shape s = sequence ? (oct_shape){ -1, NULL } : oct_in_shape(c, i);
        OCT_TRY(oct_body_input(body, (size_t)i, sequence ? in_elem(c, i) : oct_in_dtype(c, i), &s, err));
    }
    if (c->body)
        OCT_TRY(c->body(body, true, &fits, err));
    for (int k = 0; k < n->n_out; k++)
        oct_out_kind(c, k, OCT_VALUE_SEQUENCE, oct_body_output(body, (size_t)k)->dtype);
    return OCT_OK;
}

static oct_status map_all(oct_exec *x, const oct_graph *body, oct_datum **in, oct_datum **out, oct_err *err)
{
    OCT_TRY(check_sequence(x, 0, err));
    size_t n = x->in[0]->n;
    for (int k = 0; k < x->node->n_out; k++)
        if (x->node->out[k] >= 0)
            OCT_TRY(oct_datum_sequence(oct_body_output(body, (size_t)k)->dtype, &x->out[k], err));
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < x->node->n_in; k++) {
            if (!x->in[k] || (x->in[k]->kind == OCT_DATUM_SEQUENCE && x->in[k]->n != n))
                return oct_fail(err, OCT_EMALFORMED, "input %d is missing, or not as long as the first", k);
            in[k] = x->in[k]->kind == OCT_DATUM_SEQUENCE ? x->in[k]->at[i] : x->in[k];
        }
        OCT_TRY(x->body(x->arg, "body", in, (size_t)x->node->n_in, out, body->n_output, err));
        oct_status s = OCT_OK;
        for (size_t k = 0; k < body->n_output; k++) {
            if (s == OCT_OK && (int)k < x->node->n_out && x->out[k])
                s = oct_datum_push(x->out[k], out[k], err);
            oct_datum_unref(out[k]);
            out[k] = NULL;
        }
        OCT_TRY(s);
    }
    return OCT_OK;
}

static oct_status map_exec(oct_exec *x, oct_err *err)
{
    oct_graph *body;
    OCT_TRY(map_body(x->node, &body, err));
    oct_datum **in = oct_calloc((size_t)x->node->n_in + 1, sizeof *in),
              **out = oct_calloc(body->n_output + 1, sizeof *out);
    oct_status s = in && out ? map_all(x, body, in, out, err) : oct_nomem(err);
    oct_free(in);
    oct_release(out, body->n_output);
    return s;
}

const oct_op oct_op_sequence_map = {
    OCT_SCHEMA("SequenceMap", "", 17, 1, -1, 1, -1),
    .infer = map_infer,
    .exec = map_exec,
};
