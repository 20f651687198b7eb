/* lib/ops/tensor/op_scatter.c -- writing and picking by tuples of indices: ScatterElements, Scatter, ScatterND,
 * GatherND. */
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include <math.h>
#include <string.h>

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MIN, REDUCE_MAX } reduction;

static oct_status read_reduction(const oct_step *s, reduction *r, oct_err *err)
{
    static const char *const names[] = { "none", "add", "mul", "min", "max" };
    const char *name = oct_node_str(s->node, "reduction", "none");
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *r = (reduction)i;
            if (*r != REDUCE_NONE && oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE)
                return oct_fail(err, OCT_EUNSUPPORTED, "a reduction of type %s", oct_dtype_name(s->in[0]->dtype));
            return OCT_OK;
        }
    return oct_fail(err, OCT_EMALFORMED, "attribute 'reduction' is '%s'", name);
}

static oct_status check_types(const oct_step *s, bool scatter, oct_err *err)
{
    reduction r;
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    if (s->in[1]->dtype != OCT_S64 && s->in[1]->dtype != OCT_S32)
        return oct_fail(err, OCT_EMALFORMED, "indices of type %s", oct_dtype_name(s->in[1]->dtype));
    if (!scatter)
        return OCT_OK;
    if (s->in[2]->dtype != s->in[0]->dtype)
        return oct_fail(err, OCT_EMALFORMED, "updates of %s for data of %s", oct_dtype_name(s->in[2]->dtype),
                        oct_dtype_name(s->in[0]->dtype));
    return read_reduction(s, &r, err);
}

static int64_t combine_int(reduction r, int64_t a, int64_t b)
{
    switch (r) {
    case REDUCE_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case REDUCE_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case REDUCE_MIN: return a < b ? a : b;
    case REDUCE_MAX: return a > b ? a : b;
    default: return b;
    }
}

/* NaN wins, as in Min and Max. */
static double combine_real(reduction r, double a, double b)
{
    switch (r) {
    case REDUCE_ADD: return a + b;
    case REDUCE_MUL: return a * b;
    case REDUCE_MIN: return isnan(a) || a < b ? a : b;
    case REDUCE_MAX: return isnan(a) || a > b ? a : b;
    default: return b;
    }
}

/* y[to] = y[to] (r) u[from] */
static void combine(reduction r, const oct_operand *y, int64_t to, const oct_operand *u, int64_t from)
{
    oct_chunk a, b;
    oct_dom dom = oct_dom_of(y->dtype);
    const void *va = oct_elem_load(y->dtype, y->data, to, 1, 1, &a),
               *vb = oct_elem_load(u->dtype, u->data, from, 1, 1, &b);
    oct_chunk *out = &b;
    if (dom == OCT_DOM_F) {
        out->f[0] = (float)combine_real(r, *(const float *)va, *(const float *)vb);
    } else if (dom == OCT_DOM_D) {
        out->d[0] = combine_real(r, *(const double *)va, *(const double *)vb);
    } else if (dom == OCT_DOM_I) {
        out->i[0] = combine_int(r, *(const int64_t *)va, *(const int64_t *)vb);
    } else {
        uint64_t x = *(const uint64_t *)va, z = *(const uint64_t *)vb;
        out->u[0] = r == REDUCE_MIN   ? (x < z ? x : z)
                    : r == REDUCE_MAX ? (x > z ? x : z)
                    : r == REDUCE_ADD ? x + z
                                      : x * z;
    }
    oct_elem_store(y->dtype, y->data, to, 1, 1, dom, out);
}

/* Puts n elements of the updates, or reduces with them. */
static void put(reduction r, const oct_operand *y, int64_t to, const oct_operand *u, int64_t from, int64_t n)
{
    size_t size = oct_elem_size(y->dtype);
    if (r == REDUCE_NONE)
        memcpy((uint8_t *)y->data + (size_t)to * size, (const uint8_t *)u->data + (size_t)from * size,
               (size_t)n * size);
    else
        for (int64_t i = 0; i < n; i++)
            combine(r, y, to + i, u, from + i);
}

#define SET(type)                   \
    for (int64_t k = 0; k < n; k++) \
        ((type *)y->data)[at[k]] = ((const type *)u->data)[from + k];

/* The same for n elements of the updates that go to at[n]. */
static void put_each(reduction r, const oct_operand *y, const int64_t *at, const oct_operand *u, int64_t from,
                     int64_t n)
{
    switch (r == REDUCE_NONE ? oct_elem_size(y->dtype) : 0) {
    case 1: SET(uint8_t) break;
    case 2: SET(uint16_t) break;
    case 4: SET(uint32_t) break;
    case 8: SET(uint64_t) break;
    default:
        for (int64_t k = 0; k < n; k++)
            put(r, y, at[k], u, from + k, 1);
    }
}

static void copy_data(const oct_step *s)
{
    if (s->out[0]->count > 0)
        memcpy(s->out[0]->data, s->in[0]->data, (size_t)s->in[0]->count * oct_elem_size(s->in[0]->dtype));
}

static oct_status scatter_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    return check_types(s, true, err);
}

/* ------------------------------------------------------------------ ScatterElements */

static oct_status elements_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *i = s->in[1], *u = s->in[2], *y = s->out[0];
    int64_t at[1024];
    reduction how;
    int axis;
    OCT_TRY(read_reduction(s, &how, err));
    OCT_TRY(oct_axis(oct_node_int(s->node, "axis", 0), y->rank, &axis, err));
    if (i->rank != y->rank || u->count != i->count)
        return oct_fail(err, OCT_EMALFORMED, "data, indices and updates do not fit");
    for (int k = 0; k < y->rank; k++)
        if (k != axis && i->dims[k] > y->dims[k])
            return oct_fail(err, OCT_EMALFORMED, "axis %d of the indices is longer than the data's", k);
    copy_data(s);
    for (int64_t e = 0, n; e < i->count; e += n) {
        n = i->count - e < 1024 ? i->count - e : 1024;
        OCT_TRY(oct_index_places(i, y, axis, e, n, at, err));
        put_each(how, y, at, u, e, n);
    }
    return OCT_OK;
}

const oct_op oct_op_scatter_elements = {
    OCT_SCHEMA("ScatterElements", "", 11, 3, 3, 1, 1),
    .infer = oct_infer_like,
    .prepare = scatter_prepare,
    .run = elements_run,
    .moves = true,
    .decision = OCT_RETURNS,
};

/* Opset 11 renamed it. */
static oct_status scatter_raise(oct_graph *g, int node, int64_t from, oct_err *err)
{
    if (from + 1 == 11) {
        g->node[node].op = "ScatterElements";
        g->node[node].changed = g->changed = true;
    }
    return OCT_OK;
}

const oct_op oct_op_scatter = {
    OCT_SCHEMA("Scatter", "", 9, 3, 3, 1, 1),
    .until = 10,
    .infer = oct_infer_like,
    .prepare = scatter_prepare,
    .run = elements_run,
    .raise = scatter_raise,
    .moves = true,
    .bf16 = -1,
    .decision = OCT_RETURNS,
};

/* ------------------------------------------------------------------ tuples of indices */

/* Offset in elements of the slice that the tuple starting at indices[at] names; dims and strides from axis `first`. */
static oct_status tuple_at(const oct_operand *i, int64_t at, int64_t n, const oct_operand *x, int first,
                           const int64_t *stride, int64_t *offset, oct_err *err)
{
    *offset = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t index = 0;
        OCT_TRY(oct_index_at(i, at + k, x->dims[first + k], &index, err));
        *offset += index * stride[first + k];
    }
    return OCT_OK;
}

/* Elements of the slice behind `depth` leading dimensions. */
static int64_t slice_of(const oct_operand *x, int64_t depth)
{
    int64_t n = 1;
    for (int k = (int)depth; k < x->rank; k++)
        n *= x->dims[k];
    return n;
}

static oct_status scatter_nd_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *i = s->in[1], *u = s->in[2], *y = s->out[0];
    int64_t stride[OCT_MAX_RANK] = { 0 }, depth = i->rank ? i->dims[i->rank - 1] : 0;
    reduction how;
    OCT_TRY(read_reduction(s, &how, err));
    if (i->rank < 1 || depth < 1 || depth > y->rank)
        return oct_fail(err, OCT_EMALFORMED, "tuples of %lld indices for data of %d dimensions", (long long)depth,
                        y->rank);
    int64_t slice = slice_of(y, depth), tuples = i->count / depth;
    if (u->count != tuples * slice)
        return oct_fail(err, OCT_EMALFORMED, "%lld updates for %lld slices of %lld elements", (long long)u->count,
                        (long long)tuples, (long long)slice);
    oct_operand_strides(y, stride);
    copy_data(s);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t at;
        OCT_TRY(tuple_at(i, t * depth, depth, y, 0, stride, &at, err));
        put(how, y, at, u, t * slice, slice);
    }
    return OCT_OK;
}

const oct_op oct_op_scatter_nd = {
    OCT_SCHEMA("ScatterND", "", 11, 3, 3, 1, 1),
    .infer = oct_infer_like,
    .prepare = scatter_prepare,
    .run = scatter_nd_run,
    .moves = true,
    .decision = OCT_RETURNS,
};

static oct_status gather_nd_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), i = oct_in_shape(c, 1);
    oct_dim d[2 * OCT_MAX_RANK];
    int64_t batch = oct_node_int(oct_in_node(c), "batch_dims", 0);
    int rank = 0;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (x.rank < 0 || i.rank < 0)
        return OCT_OK;
    if (i.rank < 1 || batch < 0 || batch >= i.rank || batch >= x.rank)
        return oct_fail(err, OCT_EMALFORMED, "batch_dims %lld with data of %d and indices of %d dimensions",
                        (long long)batch, x.rank, i.rank);
    int64_t depth = i.d[i.rank - 1].n;
    if (depth < 0)
        return OCT_OK;
    if (depth < 1 || depth > x.rank - batch)
        return oct_fail(err, OCT_EMALFORMED, "tuples of %lld indices for data of %d dimensions", (long long)depth,
                        x.rank);
    for (int k = 0; k < i.rank - 1; k++)
        d[rank++] = i.d[k];
    for (int k = (int)(batch + depth); k < x.rank; k++)
        d[rank++] = x.d[k];
    return oct_out_shape(c, 0, rank, d, err);
}

static oct_status gather_nd_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    return check_types(s, false, err);
}

static oct_status gather_nd_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0], *i = s->in[1], *y = s->out[0];
    int64_t stride[OCT_MAX_RANK] = { 0 }, depth = i->dims[i->rank - 1], batches = 1;
    int batch = (int)oct_node_int(s->node, "batch_dims", 0);
    size_t size = oct_elem_size(x->dtype);
    for (int k = 0; k < batch; k++) {
        if (x->dims[k] != i->dims[k])
            return oct_fail(err, OCT_EMALFORMED, "axis %d of data and indices differ", k);
        batches *= x->dims[k];
    }
    int64_t slice = slice_of(x, batch + depth), tuples = i->count / depth;
    if (y->count != tuples * slice)
        return oct_fail(err, OCT_EMALFORMED, "the output has another number of elements");
    if (y->count == 0)
        return OCT_OK;
    oct_operand_strides(x, stride);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t at, image = t / (tuples / batches) * (x->count / batches);
        OCT_TRY(tuple_at(i, t * depth, depth, x, batch, stride, &at, err));
        memcpy((uint8_t *)y->data + (size_t)(t * slice) * size, (const uint8_t *)x->data + (size_t)(image + at) * size,
               (size_t)slice * size);
    }
    return OCT_OK;
}

const oct_op oct_op_gather_nd = {
    OCT_SCHEMA("GatherND", "", 11, 2, 2, 1, 1),
    .infer = gather_nd_infer,
    .prepare = gather_nd_prepare,
    .run = gather_nd_run,
    .moves = true,
    .chooses = 1u << 1,
};
