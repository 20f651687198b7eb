/* lib/ops/tensor/op_reshape.c -- the same bytes under other dimensions: Reshape, Flatten, Squeeze, Unsqueeze, Identity,
 * Dropout (inference). */
#include "ops/core/args.h"
#include "ops/core/elem.h"
#include "ops/core/q8.h"

#include <string.h>

/* ------------------------------------------------------------------ shared */

static oct_status bytes_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    size_t bytes;
    if (s->in[0]->count != s->out[0]->count)
        return oct_fail(err, OCT_EMALFORMED, "%lld elements cannot become %lld", (long long)s->in[0]->count,
                        (long long)s->out[0]->count);
    if (!oct_dtype_bytes(s->in[0]->dtype, s->in[0]->count, &bytes))
        return oct_fail(err, OCT_EUNSUPPORTED, "elements of type %s cannot be copied", oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

static oct_status bytes_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    size_t bytes = 0;
    oct_dtype_bytes(s->in[0]->dtype, s->in[0]->count, &bytes);
    if (s->out[0]->data != s->in[0]->data && bytes > 0)
        memmove(s->out[0]->data, s->in[0]->data, bytes);
    return OCT_OK;
}

/* ------------------------------------------------------------------ Reshape */

/* Elements of a shape as far as they can be compared: the product of the known ones, and the rest. */
typedef struct volume {
    int64_t known;
    oct_dim open[OCT_MAX_RANK];
    int n_open;
    bool valid;
} volume;

static volume volume_of(const oct_dim *d, int rank, int skip)
{
    volume v = { .known = 1, .valid = true };
    for (int i = 0; i < rank; i++) {
        if (i == skip)
            continue;
        if (d[i].n < 0)
            v.open[v.n_open++] = d[i];
        else if (__builtin_mul_overflow(v.known, d[i].n, &v.known))
            v.valid = false;
    }
    return v;
}

static void cancel(volume *a, volume *b)
{
    for (int i = 0; i < a->n_open; i++)
        for (int j = 0; j < b->n_open; j++)
            if (oct_dim_same(a->open[i], b->open[j])) {
                a->open[i--] = a->open[--a->n_open];
                b->open[j] = b->open[--b->n_open];
                break;
            }
}

/* The dimension that makes `out` (without element `at`) hold as many elements as `in`. */
static oct_dim missing_dim(const oct_shape *in, const oct_dim *out, int rank, int at)
{
    oct_dim none = { -1, NULL };
    if (in->rank < 0)
        return none;
    volume a = volume_of(in->d, in->rank, -1), b = volume_of(out, rank, at);
    cancel(&a, &b);
    if (!a.valid || !b.valid || b.n_open > 0 || b.known <= 0)
        return none;
    if (a.n_open == 0 && a.known % b.known == 0)
        return oct_dim_of(a.known / b.known);
    if (a.n_open == 1 && a.known == b.known)
        return a.open[0];
    return none;
}

static oct_status check_volume(const oct_shape *in, const oct_dim *out, int rank, oct_err *err)
{
    if (in->rank < 0)
        return OCT_OK;
    volume a = volume_of(in->d, in->rank, -1), b = volume_of(out, rank, -1);
    oct_shape o = { rank, (oct_dim *)(uintptr_t)out };
    char ta[128], tb[128];
    if (a.valid && b.valid && a.n_open == 0 && b.n_open == 0 && a.known != b.known)
        return oct_fail(err, OCT_EMALFORMED, "input of shape %s cannot be reshaped to %s",
                        oct_shape_text(in, ta, sizeof ta), oct_shape_text(&o, tb, sizeof tb));
    return OCT_OK;
}

static oct_status check_fill(const oct_shape *in, const oct_dim *out, int rank, int fill, oct_err *err)
{
    if (in->rank < 0)
        return OCT_OK;
    const volume a = volume_of(in->d, in->rank, -1), b = volume_of(out, rank, fill);
    char text[128];
    if (a.valid && b.valid && a.n_open == 0 && b.n_open == 0 && b.known > 0 && a.known % b.known != 0)
        return oct_fail(err, OCT_EMALFORMED,
                        "input of shape %s cannot be reshaped: its %lld elements are no multiple of the %lld that the "
                        "target shape holds beside its -1",
                        oct_shape_text(in, text, sizeof text), (long long)a.known, (long long)b.known);
    return OCT_OK;
}

static oct_status reshape_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_dim t[OCT_MAX_RANK];
    int n = oct_in_ints(c, 1, t, OCT_MAX_RANK), fill = -1, open = -1, n_open = 0;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (n < 0)
        return OCT_OK;
    bool allow_zero = oct_node_int(oct_in_node(c), "allowzero", 0) != 0;
    for (int i = 0; i < n; i++) {
        if (t[i].n == 0 && !allow_zero) {
            if (in.rank >= 0 && i >= in.rank)
                return oct_fail(err, OCT_EMALFORMED,
                                "element %d of the target shape is 0, but the input has %d dimensions", i, in.rank);
            t[i] = in.rank >= 0 ? in.d[i] : (oct_dim){ -1, NULL };
        } else if (t[i].sym == oct_minus_one) {
            if (fill >= 0)
                return oct_fail(err, OCT_EMALFORMED, "the target shape holds -1 twice");
            fill = i;
        } else if (t[i].n < -1) {
            return oct_fail(err, OCT_EMALFORMED, "the target shape holds %lld", (long long)t[i].n);
        }
        if (i != fill && t[i].n < 0 && t[i].sym == NULL) {
            open = i;
            n_open++;
        }
    }
    if (fill >= 0)
        OCT_TRY(check_fill(&in, t, n, fill, err));
    if (fill >= 0)
        t[fill] = missing_dim(&in, t, n, fill);
    else if (n_open == 1)
        t[open] = missing_dim(&in, t, n, open);
    OCT_TRY(check_volume(&in, t, n, err));
    OCT_TRY(oct_out_shape(c, 0, n, t, err));
    return oct_known_copy(c, 0, err);
}

const oct_op oct_op_reshape = {
    OCT_SCHEMA("Reshape", "", 5, 2, 2, 1, 1),
    .infer = reshape_infer,
    .prepare = bytes_prepare,
    .run = bytes_run,
    .moves = true,
    OCT_ALIASES_ELEMENTS,
};

/* ------------------------------------------------------------------ Flatten */

static oct_status flatten_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    int64_t axis = oct_node_int(oct_in_node(c), "axis", 1);
    if (in.rank < 0) {
        oct_dim two[2] = { { -1, NULL }, { -1, NULL } };
        return oct_out_shape(c, 0, 2, two, err);
    }
    if (axis < -in.rank || axis > in.rank)
        return oct_fail(err, OCT_EMALFORMED, "axis %lld is outside of a tensor with %d dimensions", (long long)axis,
                        in.rank);
    if (axis < 0)
        axis += in.rank;
    oct_dim d[2] = { oct_dim_of(1), oct_dim_of(1) };
    for (int i = 0; i < in.rank; i++)
        d[i >= axis] = oct_dim_mul(d[i >= axis], in.d[i]);
    return oct_out_shape(c, 0, 2, d, err);
}

const oct_op oct_op_flatten = {
    OCT_SCHEMA("Flatten", "", 1, 1, 1, 1, 1),
    .infer = flatten_infer,
    .prepare = bytes_prepare,
    .run = bytes_run,
    .moves = true,
    OCT_ALIASES_ELEMENTS,
};

/* ------------------------------------------------------------------ Squeeze, Unsqueeze */

static oct_status squeeze_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    int64_t axes[OCT_MAX_RANK];
    int n = oct_arg_ints(c, "axes", 1, axes, OCT_MAX_RANK);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (in.rank < 0 || n == OCT_ARG_UNKNOWN)
        return OCT_OK;
    uint32_t mask = 0;
    if (n >= 0)
        OCT_TRY(oct_axes_mask(axes, n, in.rank, &mask, err));
    oct_dim d[OCT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < in.rank; i++) {
        if (n == OCT_ARG_ABSENT) {
            if (in.d[i].n < 0)
                return OCT_OK; /* whether it goes depends on the run */
            if (in.d[i].n == 1)
                continue;
        } else if (mask >> i & 1) {
            if (in.d[i].n >= 0 && in.d[i].n != 1)
                return oct_fail(err, OCT_EMALFORMED, "dimension %d has %lld elements and cannot be removed", i,
                                (long long)in.d[i].n);
            continue;
        }
        d[rank++] = in.d[i];
    }
    OCT_TRY(oct_out_shape(c, 0, rank, d, err));
    return oct_known_copy(c, 0, err);
}

static oct_status unsqueeze_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    int64_t axes[OCT_MAX_RANK];
    int n = oct_arg_ints(c, "axes", 1, axes, OCT_MAX_RANK);
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (n == OCT_ARG_ABSENT)
        return oct_fail(err, OCT_EMALFORMED, "'axes' is missing");
    if (in.rank < 0 || n < 0)
        return OCT_OK;
    if (in.rank + n > OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "%d dimensions; at most %d are supported", in.rank + n, OCT_MAX_RANK);
    uint32_t mask;
    OCT_TRY(oct_axes_mask(axes, n, in.rank + n, &mask, err));
    oct_dim d[OCT_MAX_RANK];
    for (int i = 0, from = 0; i < in.rank + n; i++)
        d[i] = mask >> i & 1 ? oct_dim_of(1) : in.d[from++];
    OCT_TRY(oct_out_shape(c, 0, in.rank + n, d, err));
    return oct_known_copy(c, 0, err);
}

static oct_status axes_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    return from == 12 ? oct_raise_ints(g, node, "axes", 1, err) : OCT_OK;
}

const oct_op oct_op_squeeze = {
    OCT_SCHEMA("Squeeze", "", 1, 1, 2, 1, 1),
    .infer = squeeze_infer,
    .prepare = bytes_prepare,
    .run = bytes_run,
    .moves = true,
    OCT_ALIASES_ELEMENTS,
    .raise = axes_raise,
};

const oct_op oct_op_unsqueeze = {
    OCT_SCHEMA("Unsqueeze", "", 1, 1, 2, 1, 1),
    .infer = unsqueeze_infer,
    .prepare = bytes_prepare,
    .run = bytes_run,
    .moves = true,
    OCT_ALIASES_ELEMENTS,
    .raise = axes_raise,
};

/* ------------------------------------------------------------------ Identity, Dropout */

static oct_status identity_infer(const oct_infer *c, oct_err *err)
{
    OCT_TRY(oct_out_like(c, 0, 0, err));
    return oct_known_copy(c, 0, err);
}

static oct_status identity_exec(oct_exec *x, oct_err *err)
{
    x->out[0] = oct_datum_ref(x->in[0]);
    return OCT_OK;
}

const oct_op oct_op_identity = {
    OCT_SCHEMA("Identity", "", 1, 1, 1, 1, 1),
    .infer = identity_infer,
    .prepare = bytes_prepare,
    .run = bytes_run,
    OCT_ALIASES_ELEMENTS,
    .exec = identity_exec,
};

static oct_status dropout_infer(const oct_infer *c, oct_err *err)
{
    OCT_TRY(oct_out_like(c, 0, 0, err));
    OCT_TRY(oct_out_like(c, 1, 0, err));
    if (c->opset >= 10)
        oct_out_dtype(c, 1, OCT_BOOL);
    return OCT_OK;
}

/* Training with a ratio above zero is random; everything else keeps its input. */
static oct_status dropout_check(const oct_step *s, oct_err *err)
{
    double training, ratio;
    if (oct_step_scalar(s, NULL, 2, 0.0, &training) && training != 0.0 && oct_step_scalar(s, NULL, 1, 0.5, &ratio) &&
        ratio != 0.0)
        return oct_fail(err, OCT_EUNSUPPORTED, "Dropout in training mode");
    return OCT_OK;
}

static oct_status dropout_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    OCT_TRY(dropout_check(s, err));
    return bytes_prepare(s, p, err);
}

static oct_status dropout_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    OCT_TRY(dropout_check(s, err));
    OCT_TRY(bytes_run(s, r, err));
    int64_t kept = s->opset >= 12; /* the mask; ONNX Runtime fills the old operators' with zeros */
    if (s->n_out > 1 && s->out[1] != NULL)
        for (int64_t i = 0; i < s->out[1]->count; i++)
            oct_elem_store(s->out[1]->dtype, s->out[1]->data, i, 1, 1, OCT_DOM_I, &kept);
    return OCT_OK;
}

/* Opset 12 made the ratio an input. */
static oct_status dropout_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from != 11)
        return OCT_OK;
    return oct_raise_float(g, node, "ratio", 1, err);
}

const oct_op oct_op_dropout = {
    OCT_SCHEMA("Dropout", "", 7, 1, 3, 1, 2),
    .infer = dropout_infer,
    .prepare = dropout_prepare,
    .run = dropout_run,
    OCT_ALIASES_ELEMENTS,
    .raise = dropout_raise,
};
