/* lib/ops/tensor/op_select.c -- what is kept depends on the data: NonZero, Compress, Unique. Each is measured before it
 * is run. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <string.h>

static void set_dims(oct_operand *t, int rank, const int64_t *dims)
{
    if (t == NULL)
        return;
    t->rank = rank;
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
}

static oct_operand *output(const oct_step *s, int slot)
{
    return slot < s->n_out ? s->out[slot] : NULL;
}

/* ------------------------------------------------------------------ NonZero */

static oct_status nonzero_infer(const oct_infer *c, oct_err *err)
{
    oct_shape in = oct_in_shape(c, 0);
    oct_dim d[2] = { { in.rank > 0 ? in.rank : in.rank == 0 ? 1 : -1, NULL }, { -1, NULL } };
    oct_out_dtype(c, 0, OCT_S64);
    return oct_out_shape(c, 0, 2, d, err);
}

/* Marks elements [first, first + n) that are not zero; their number. NaN is not zero. */
static int64_t mark(const oct_operand *x, int64_t first, int64_t n, bool marks[1024])
{
    oct_chunk c;
    const void *v = oct_elem_load(x->dtype, x->data, first, 1, n, &c);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        switch (oct_dom_of(x->dtype)) {
        case OCT_DOM_F: marks[i] = ((const float *)v)[i] != 0.0f; break;
        case OCT_DOM_D: marks[i] = ((const double *)v)[i] != 0.0; break;
        default: marks[i] = ((const int64_t *)v)[i] != 0; break;
        }
        count += marks[i];
    }
    return count;
}

static oct_status nonzero_measure(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    bool marks[1024];
    int64_t count = 0;
    for (int64_t first = 0; first < x->count; first += 1024)
        count += mark(x, first, x->count - first < 1024 ? x->count - first : 1024, marks);
    set_dims(s->out[0], 2, (const int64_t[]){ x->rank > 0 ? x->rank : 1, count });
    return OCT_OK;
}

static oct_status nonzero_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    const int64_t count = s->out[0]->dims[1];
    int64_t *y = s->out[0]->data, found = 0;
    bool marks[1024];
    for (int64_t first = 0; first < x->count; first += 1024) {
        const int64_t n = x->count - first < 1024 ? x->count - first : 1024;
        mark(x, first, n, marks);
        for (int64_t i = 0; i < n; i++) {
            if (!marks[i])
                continue;
            int64_t rest = first + i;
            for (int k = x->rank - 1; k >= 0; k--) {
                y[k * count + found] = rest % x->dims[k];
                rest /= x->dims[k];
            }
            if (x->rank == 0)
                y[found] = 0;
            found++;
        }
    }
    return OCT_OK;
}

const oct_op oct_op_nonzero = {
    OCT_SCHEMA("NonZero", "", 9, 1, 1, 1, 1),
    .infer = nonzero_infer,
    .prepare = oct_elem_prepare,
    .measure = nonzero_measure,
    .run = nonzero_run,
    .decision = OCT_LISTS,
};

/* ------------------------------------------------------------------ Compress */

static oct_status compress_axis(const oct_node *n, int rank, int *axis, oct_err *err)
{
    *axis = -1;
    return oct_node_attr(n, "axis") != NULL ? oct_axis(oct_node_int(n, "axis", 0), rank, axis, err) : OCT_OK;
}

static oct_status compress_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0), k = oct_in_shape(c, 1);
    const oct_dim open = { -1, NULL };
    oct_dim d[OCT_MAX_RANK];
    int axis;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    if (k.rank >= 0 && k.rank != 1)
        return oct_fail(err, OCT_EMALFORMED, "the condition has %d dimensions, expected 1", k.rank);
    if (x.rank < 0 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    OCT_TRY(compress_axis(oct_in_node(c), x.rank, &axis, err));
    if (axis < 0)
        return oct_out_shape(c, 0, 1, &open, err);
    for (int i = 0; i < x.rank; i++)
        d[i] = i == axis ? open : x.d[i];
    return oct_out_shape(c, 0, x.rank, d, err);
}

static oct_status compress_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_elem_size(s->in[0]->dtype) == 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    if (s->in[1]->dtype != OCT_BOOL || s->in[1]->rank != 1)
        return oct_fail(err, OCT_EMALFORMED, "the condition is no row of bool");
    return OCT_OK;
}

/* Slices that the condition decides on. A longer condition may not ask for more. */
static oct_status compress_slices(const oct_step *s, int *axis, int64_t *n, oct_err *err)
{
    const oct_operand *x = s->in[0], *k = s->in[1];
    OCT_TRY(compress_axis(s->node, x->rank, axis, err));
    const int64_t have = *axis < 0 ? x->count : x->dims[*axis];
    *n = k->count < have ? k->count : have;
    for (int64_t i = *n; i < k->count; i++)
        if (((const uint8_t *)k->data)[i] != 0)
            return oct_fail(err, OCT_EMALFORMED, "the condition asks for slice %lld of %lld", (long long)i,
                            (long long)have);
    return OCT_OK;
}

static oct_status compress_measure(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    int64_t n, kept = 0, dims[OCT_MAX_RANK] = { 0 };
    int axis;
    OCT_TRY(compress_slices(s, &axis, &n, err));
    for (int64_t i = 0; i < n; i++)
        kept += ((const uint8_t *)s->in[1]->data)[i] != 0;
    memcpy(dims, x->dims, sizeof dims);
    dims[axis < 0 ? 0 : axis] = kept;
    set_dims(s->out[0], axis < 0 ? 1 : x->rank, dims);
    return OCT_OK;
}

static oct_status compress_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const oct_operand *x = s->in[0];
    int64_t n;
    int axis;
    OCT_TRY(compress_slices(s, &axis, &n, err));
    if (s->out[0]->count == 0)
        return OCT_OK;
    const int64_t outer = oct_product(x->dims, axis),
                  inner = axis < 0 ? 1 : oct_product(x->dims + axis + 1, x->rank - axis - 1);
    const size_t bytes = (size_t)inner * oct_elem_size(x->dtype),
                 step = (size_t)(axis < 0 ? x->count : x->dims[axis]) * bytes;
    uint8_t *to = s->out[0]->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++)
            if (((const uint8_t *)s->in[1]->data)[i] != 0) {
                memcpy(to, (const uint8_t *)x->data + (size_t)o * step + (size_t)i * bytes, bytes);
                to += bytes;
            }
    return OCT_OK;
}

const oct_op oct_op_compress = {
    OCT_SCHEMA("Compress", "", 9, 2, 2, 1, 1),
    .infer = compress_infer,
    .prepare = compress_prepare,
    .measure = compress_measure,
    .run = compress_run,
    .moves = true,
    .bf16 = 28,
    .chooses = 1u << 1,
};

/* ------------------------------------------------------------------ Unique */

static oct_status unique_infer(const oct_infer *c, oct_err *err)
{
    oct_shape x = oct_in_shape(c, 0);
    const oct_dim open = { -1, NULL };
    oct_dim d[OCT_MAX_RANK], all = oct_dim_of(1);
    int axis;
    oct_out_dtype(c, 0, oct_in_dtype(c, 0));
    for (int i = 1; i < 4; i++)
        oct_out_dtype(c, i, OCT_S64);
    OCT_TRY(oct_out_shape(c, 1, 1, &open, err));
    OCT_TRY(oct_out_shape(c, 3, 1, &open, err));
    if (x.rank < 0 || x.rank > OCT_MAX_RANK)
        return OCT_OK;
    OCT_TRY(compress_axis(oct_in_node(c), x.rank, &axis, err));
    for (int i = 0; i < x.rank; i++) {
        d[i] = i == axis ? open : x.d[i];
        all = oct_dim_mul(all, x.d[i]);
    }
    OCT_TRY(axis < 0 ? oct_out_shape(c, 0, 1, &open, err) : oct_out_shape(c, 0, x.rank, d, err));
    return oct_out_shape(c, 2, 1, axis < 0 ? &all : &x.d[axis], err);
}

/* The input as n slices of outer x inner elements, and what is found of them: groups of equal ones. */
typedef struct unique {
    const oct_operand *x;
    int axis;
    int64_t n, outer, inner;
    uint64_t *key;          /* of each element */
    int64_t *order, *spare; /* slices, sorted */
    int64_t *group;         /* of each slice */
    int64_t *first, *count; /* of each group: its first slice, slices in it */
} unique;

static oct_status unique_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *x = s->in[0];
    unique *u = oct_arena_calloc(p->arena, 1, sizeof *u);
    if (u == NULL)
        return oct_nomem(err);
    s->state = u;
    if (oct_dom_of(x->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(x->dtype));
    OCT_TRY(compress_axis(s->node, x->rank, &u->axis, err));
    u->n = u->axis < 0 ? x->count : x->dims[u->axis];
    u->outer = oct_product(x->dims, u->axis);
    u->inner = u->axis < 0 ? 1 : oct_product(x->dims + u->axis + 1, x->rank - u->axis - 1);
    if (x->count == 0 && u->n > 0)
        return oct_fail(err, OCT_EUNSUPPORTED, "slices without elements");
    size_t keys;
    if (!oct_mul_size((size_t)u->n, 5 * sizeof(int64_t), &s->scratch) ||
        !oct_mul_size((size_t)x->count, sizeof *u->key, &keys) || !oct_add_size(s->scratch, keys, &s->scratch))
        return oct_nomem(err);
    return OCT_OK;
}

static int compare(const unique *u, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < u->outer; o++)
        for (int64_t i = 0; i < u->inner; i++) {
            const uint64_t x = u->key[(o * u->n + a) * u->inner + i], y = u->key[(o * u->n + b) * u->inner + i];
            if (x != y)
                return x < y ? -1 : 1;
        }
    return 0;
}

/* Sorts v[n] by merging; slices that are equal keep their order. */
static void sort_slices(const unique *u, int64_t *v, int64_t *spare, int64_t n)
{
    if (n < 2)
        return;
    const int64_t half = n / 2;
    sort_slices(u, v, spare, half);
    sort_slices(u, v + half, spare, n - half);
    memcpy(spare, v, (size_t)half * sizeof *v);
    int64_t a = 0, b = half, to = 0;
    while (a < half)
        v[to++] = b < n && compare(u, v[b], spare[a]) < 0 ? v[b++] : spare[a++];
}

static unique unique_state(const oct_step *s, const oct_run *r)
{
    unique u = *(const unique *)s->state;
    u.x = s->in[0];
    u.order = r->scratch;
    u.spare = u.order + u.n;
    u.group = u.spare + u.n;
    u.first = u.group + u.n;
    u.count = u.first + u.n;
    u.key = (uint64_t *)(u.count + u.n);
    return u;
}

/* Groups in sorted order; with `by_place`, renumbered in the order of their first slices. */
static int64_t find_groups(const unique *u, bool by_place)
{
    int64_t groups = 0;
    for (int64_t first = 0; first < u->x->count; first += 1024)
        oct_elem_keys(u->x, first, 1, u->x->count - first < 1024 ? u->x->count - first : 1024, u->key + first);
    for (int64_t i = 0; i < u->n; i++)
        u->order[i] = i;
    sort_slices(u, u->order, u->spare, u->n);
    for (int64_t i = 0; i < u->n; i++) {
        if (i == 0 || compare(u, u->order[i - 1], u->order[i]) != 0) {
            u->first[groups] = u->order[i];
            u->count[groups++] = 0;
        }
        u->group[u->order[i]] = groups - 1;
        u->count[groups - 1]++;
    }
    if (!by_place)
        return groups;
    int64_t *number = u->spare, found = 0; /* old group to new */
    for (int64_t i = 0; i < groups; i++)
        number[i] = -1;
    for (int64_t i = 0; i < u->n; i++) {
        if (number[u->group[i]] < 0) {
            u->order[found] = u->count[u->group[i]];
            u->first[found] = i; /* `first` of sorted groups is no longer needed */
            number[u->group[i]] = found++;
        }
        u->group[i] = number[u->group[i]];
    }
    memcpy(u->count, u->order, (size_t)groups * sizeof *u->count);
    return groups;
}

static oct_status unique_measure(const oct_step *s, const oct_run *r, oct_err *err)
{
    const unique u = unique_state(s, r);
    int64_t dims[OCT_MAX_RANK] = { 0 };
    const int64_t groups = find_groups(&u, oct_node_int(s->node, "sorted", 1) == 0);
    memcpy(dims, u.x->dims, sizeof dims);
    dims[u.axis < 0 ? 0 : u.axis] = groups;
    set_dims(s->out[0], u.axis < 0 ? 1 : u.x->rank, dims);
    set_dims(output(s, 1), 1, &groups);
    set_dims(output(s, 2), 1, &u.n);
    set_dims(output(s, 3), 1, &groups);
    return OCT_OK;
}

static oct_status unique_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const unique u = unique_state(s, r);
    const oct_operand *y = s->out[0];
    const int64_t groups = y->dims[u.axis < 0 ? 0 : u.axis];
    const size_t bytes = (size_t)u.inner * oct_elem_size(u.x->dtype);
    for (int64_t o = 0; o < u.outer && y->count > 0; o++)
        for (int64_t g = 0; g < groups; g++)
            memcpy((uint8_t *)y->data + (size_t)(o * groups + g) * bytes,
                   (const uint8_t *)u.x->data + (size_t)(o * u.n + u.first[g]) * bytes, bytes);
    if (output(s, 1) != NULL && groups > 0)
        memcpy(s->out[1]->data, u.first, (size_t)groups * sizeof(int64_t));
    if (output(s, 2) != NULL && u.n > 0)
        memcpy(s->out[2]->data, u.group, (size_t)u.n * sizeof(int64_t));
    if (output(s, 3) != NULL && groups > 0)
        memcpy(s->out[3]->data, u.count, (size_t)groups * sizeof(int64_t));
    return OCT_OK;
}

const oct_op oct_op_unique = {
    OCT_SCHEMA("Unique", "", 11, 1, 1, 1, 4),
    .infer = unique_infer,
    .prepare = unique_prepare,
    .measure = unique_measure,
    .run = unique_run,
    .bf16 = 28,
    .decision = OCT_LISTS,
};
