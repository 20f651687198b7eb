/* ai.onnx.ml.LabelEncoder: a table from strings or numbers to strings or numbers. */
#include "ops/core/elem.h"
#include "ops/core/infer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Keys, values and what stands for a missing key: of one element. */
typedef struct table {
    oct_tensor keys, values, other;
    union {
        int64_t i;
        float f;
        oct_str s;
    } spare; /* the element of `other` where no attribute holds it */
} table;

/* ------------------------------------------------------------------ reading the attributes */

static oct_status strings_of(const oct_attr *a, oct_arena *arena, oct_tensor *t, oct_err *err)
{
    oct_str *s = oct_arena_calloc(arena, (size_t)a->n + 1, sizeof *s);
    for (int i = 0; s && i < a->n; i++)
        s[i] = (oct_str){ a->strings[i], strlen(a->strings[i]) };
    *t = (oct_tensor){ .dtype = OCT_STRING, .count = a->n, .data = s };
    return s ? OCT_OK : oct_nomem(err);
}

/* The list `kind` of the four attributes that may hold it. */
static oct_status read_list(const oct_node *n, const char *const names[4], oct_arena *arena, oct_tensor *t,
                            oct_err *err)
{
    const oct_attr *a;
    for (int i = 0; i < 4; i++) {
        if (!(a = oct_node_attr(n, names[i])))
            continue;
        if (a->type == OCT_ATTR_STRINGS)
            return strings_of(a, arena, t, err);
        if (a->type == OCT_ATTR_INTS)
            *t = (oct_tensor){ .dtype = OCT_S64, .count = a->n, .data = a->ints };
        else if (a->type == OCT_ATTR_FLOATS)
            *t = (oct_tensor){ .dtype = OCT_F32, .count = a->n, .data = a->floats };
        else if (a->type == OCT_ATTR_TENSOR && a->t && a->t->data)
            *t = *a->t;
        else
            return oct_fail(err, OCT_EMALFORMED, "attribute '%s' is no list", names[i]);
        return OCT_OK;
    }
    return oct_fail(err, OCT_EMALFORMED, "none of the attributes '%s', '%s', '%s' and '%s' is there", names[0],
                    names[1], names[2], names[3]);
}

static oct_status read_other(const oct_node *n, table *t, oct_err *err)
{
    const oct_attr *a = oct_node_attr(n, "default_tensor");
    const oct_dtype want = t->values.dtype;
    t->other = (oct_tensor){ .dtype = want, .count = 1, .data = &t->spare };
    if (a && (a->type != OCT_ATTR_TENSOR || !a->t || a->t->dtype != want || a->t->count != 1 || !a->t->data))
        return oct_fail(err, OCT_EMALFORMED, "'default_tensor' is no single element of %s", oct_dtype_name(want));
    if (a) {
        t->other = *a->t;
    } else if (want == OCT_STRING) {
        const char *s = oct_node_str(n, "default_string", "_Unused");
        t->spare.s = (oct_str){ s, strlen(s) };
    } else {
        const oct_dom dom = oct_dom_of(want);
        const int64_t i = oct_node_int(n, "default_int64", -1);
        const float f = oct_node_float(n, "default_float", -0.0f);
        const bool real = dom == OCT_DOM_F || dom == OCT_DOM_D;
        oct_elem_store(want, &t->spare, 0, 1, 1, real ? OCT_DOM_F : OCT_DOM_I,
                       real ? (const void *)&f : (const void *)&i);
    }
    return OCT_OK;
}

/* Opset 1: strings and their places, either way. */
static oct_status read_classes(const oct_node *n, bool to_strings, oct_arena *arena, table *t, oct_err *err)
{
    const oct_attr *a = oct_node_attr(n, "classes_strings");
    if (!a || a->type != OCT_ATTR_STRINGS)
        return oct_fail(err, OCT_EMALFORMED, "there is no list 'classes_strings'");
    int64_t *place = oct_arena_calloc(arena, (size_t)a->n + 1, sizeof *place);
    if (!place)
        return oct_nomem(err);
    for (int i = 0; i < a->n; i++)
        place[i] = i;
    OCT_TRY(strings_of(a, arena, to_strings ? &t->values : &t->keys, err));
    *(to_strings ? &t->keys : &t->values) = (oct_tensor){ .dtype = OCT_S64, .count = a->n, .data = place };
    return OCT_OK;
}

static oct_status read_table(const oct_node *n, int64_t opset, oct_dtype in, oct_arena *arena, table *t, oct_err *err)
{
    static const char *const keys[4] = { "keys_tensor", "keys_strings", "keys_int64s", "keys_floats" };
    static const char *const values[4] = { "values_tensor", "values_strings", "values_int64s", "values_floats" };
    if (opset < 2) {
        OCT_TRY(read_classes(n, in != OCT_STRING, arena, t, err));
    } else {
        OCT_TRY(read_list(n, keys, arena, &t->keys, err));
        OCT_TRY(read_list(n, values, arena, &t->values, err));
    }
    if (t->keys.count != t->values.count)
        return oct_fail(err, OCT_EMALFORMED, "%lld keys and %lld values", (long long)t->keys.count,
                        (long long)t->values.count);
    for (int i = 0; i < 2; i++) {
        const oct_dtype type = i ? t->values.dtype : t->keys.dtype;
        if (type != OCT_STRING && oct_dom_of(type) == OCT_DOM_NONE)
            return oct_fail(err, OCT_EUNSUPPORTED, "%s of %s", i ? "values" : "keys", oct_dtype_name(type));
    }
    return read_other(n, t, err);
}

/* ------------------------------------------------------------------ finding keys */

typedef struct entry {
    oct_str s;    /* of strings */
    uint64_t key; /* of numbers: an image that orders as they do; one for all NaN */
    int64_t at;
} entry;

static entry entry_of(const oct_tensor *t, int64_t i)
{
    const oct_operand o = { .dtype = t->dtype, .count = t->count, .data = (void *)(uintptr_t)t->data };
    if (t->dtype == OCT_STRING)
        return (entry){ .s = ((const oct_str *)t->data)[i], .at = i };
    entry e = { .key = UINT64_MAX, .at = i };
    if (!isnan(oct_elem_double(&o, i)))
        oct_elem_keys(&o, i, 1, 1, &e.key);
    return e;
}

/* By key alone. */
static int compare_keys(const entry *x, const entry *y)
{
    const size_t n = x->s.n < y->s.n ? x->s.n : y->s.n;
    const int d = n ? memcmp(x->s.s, y->s.s, n) : 0;
    if (d)
        return d;
    if (x->s.n != y->s.n)
        return x->s.n < y->s.n ? -1 : 1;
    return x->key == y->key ? 0 : x->key < y->key ? -1 : 1;
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int d = compare_keys(x, y);
    return d ? d : x->at < y->at ? -1 : x->at > y->at;
}

/* The place of a key, the last one where it is there twice; -1: it is not. */
static int64_t place_of(const entry *sorted, int64_t n, const entry *x)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (compare_keys(&sorted[mid], x) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && compare_keys(&sorted[lo - 1], x) == 0 ? sorted[lo - 1].at : -1;
}

/* ------------------------------------------------------------------ the operator */

static oct_status label_infer(const oct_infer *c, oct_err *err)
{
    const oct_dtype in = oct_in_dtype(c, 0);
    oct_arena *a = oct_arena_create();
    table t = { .values.dtype = OCT_UNDEFINED };
    oct_status s = OCT_OK;
    if (!a)
        return oct_nomem(err);
    if (c->opset >= 2 || in != OCT_UNDEFINED)
        s = read_table(oct_in_node(c), c->opset, in, a, &t, err);
    oct_arena_destroy(a);
    OCT_TRY(s);
    oct_shape x = oct_in_shape(c, 0);
    oct_out_dtype(c, 0, t.values.dtype);
    return oct_out_shape(c, 0, x.rank, x.d, err);
}

/* Elements of the result, in order. */
static oct_status encode(const oct_datum *x, const table *t, const entry *sorted, oct_arena *a, oct_datum **out,
                         oct_err *err)
{
    const bool strings = t->values.dtype == OCT_STRING;
    const size_t size = strings ? sizeof(oct_str) : oct_elem_size(t->values.dtype);
    uint8_t *to;
    if (strings) {
        if (!(to = oct_arena_calloc(a, (size_t)x->t.count + 1, size)))
            return oct_nomem(err);
    } else {
        OCT_TRY(oct_datum_tensor(t->values.dtype, x->t.rank, x->dims, out, err));
        to = oct_datum_data(*out);
    }
    for (int64_t i = 0; i < x->t.count; i++) {
        const entry e = entry_of(&x->t, i);
        const int64_t at = place_of(sorted, t->keys.count, &e);
        memcpy(to + (size_t)i * size, at < 0 ? t->other.data : (const uint8_t *)t->values.data + (size_t)at * size,
               size);
    }
    return strings ? oct_datum_strings(x->t.rank, x->dims, (const oct_str *)(const void *)to, out, err) : OCT_OK;
}

static oct_status look_up(oct_exec *x, oct_arena *a, oct_err *err)
{
    const oct_datum *in = x->in[0];
    table t;
    if (!in || in->kind != OCT_DATUM_TENSOR)
        return oct_fail(err, OCT_EMALFORMED, "the input is no tensor");
    OCT_TRY(read_table(x->node, x->opset, in->t.dtype, a, &t, err));
    if (t.keys.dtype != in->t.dtype)
        return oct_fail(err, OCT_EMALFORMED, "an input of %s and keys of %s", oct_dtype_name(in->t.dtype),
                        oct_dtype_name(t.keys.dtype));
    entry *sorted = oct_arena_calloc(a, (size_t)t.keys.count + 1, sizeof *sorted);
    if (!sorted)
        return oct_nomem(err);
    for (int64_t i = 0; i < t.keys.count; i++)
        sorted[i] = entry_of(&t.keys, i);
    qsort(sorted, (size_t)t.keys.count, sizeof *sorted, compare_entries);
    return encode(in, &t, sorted, a, &x->out[0], err);
}

static oct_status label_exec(oct_exec *x, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_status s = a ? look_up(x, a, err) : oct_nomem(err);
    oct_arena_destroy(a);
    return s;
}

const oct_op oct_op_label_encoder = {
    OCT_SCHEMA("LabelEncoder", "ai.onnx.ml", 1, 1, 1, 1, 1),
    .infer = label_infer,
    .exec = label_exec,
};
