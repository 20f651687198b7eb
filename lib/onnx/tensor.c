/* Decoding TensorProto (raw, typed and external data) and encoding new ones. */
#include "onnx/tensor.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ONNX data are little-endian, and are used as they are"
#endif

static const char *name_of(const Onnx__TensorProto *t)
{
    return t->name ? t->name : "";
}

/* The typed field that ONNX prescribes for an element type: its elements, their width and how many there are. */
typedef struct typed {
    const void *data;
    size_t n, width;
    const char *field;
} typed;

static typed typed_field(const Onnx__TensorProto *t, oct_dtype type)
{
    switch (type) {
    case OCT_F32:
    case OCT_C64: return (typed){ t->float_data, t->n_float_data, 4, "float_data" };
    case OCT_F64:
    case OCT_C128: return (typed){ t->double_data, t->n_double_data, 8, "double_data" };
    case OCT_S64: return (typed){ t->int64_data, t->n_int64_data, 8, "int64_data" };
    case OCT_U32:
    case OCT_U64: return (typed){ t->uint64_data, t->n_uint64_data, 8, "uint64_data" };
    default: return (typed){ t->int32_data, t->n_int32_data, 4, "int32_data" };
    }
}

/* The low `width` bytes of each element, packed. */
static void narrow(uint8_t *dst, const typed *f, size_t width)
{
    const uint8_t *src = f->data;
    for (size_t i = 0; i < f->n; i++)
        memcpy(dst + i * width, src + i * f->width, width);
}

static oct_status take_bytes(oct_arena *a, oct_tensor *x, const void *data, bool copy, oct_err *err)
{
    if (!copy && (uintptr_t)data % oct_dtype_align(x->dtype) == 0) {
        x->data = data;
        return OCT_OK;
    }
    void *p = oct_arena_aligned(a, x->bytes ? x->bytes : 1, 64);
    if (!p)
        return oct_nomem(err);
    if (x->bytes)
        memcpy(p, data, x->bytes);
    x->data = p;
    return OCT_OK;
}

static oct_status take_typed(oct_arena *a, const Onnx__TensorProto *t, oct_tensor *x, bool copy, oct_err *err)
{
    typed f = typed_field(t, x->dtype);
    /* Elements of the field: the two parts of a complex number apart, packed types byte by byte. */
    size_t unit = x->dtype == OCT_C64 || x->dtype == OCT_C128 ? f.width
                  : oct_dtype_bits(x->dtype) < 8              ? 1
                                                              : (size_t)oct_dtype_bits(x->dtype) / 8;
    if (f.n != x->bytes / unit)
        return oct_fail(err, OCT_EMALFORMED, "tensor '%s': %s holds %zu numbers, its shape needs %zu", name_of(t),
                        f.field, f.n, x->bytes / unit);
    if (f.n == 0)
        return take_bytes(a, x, "", true, err);
    if (unit == f.width)
        return take_bytes(a, x, f.data, copy, err);
    uint8_t *p = oct_arena_aligned(a, x->bytes, 64);
    if (!p)
        return oct_nomem(err);
    narrow(p, &f, unit);
    x->data = p;
    return OCT_OK;
}

/* Bytes of a mapped file: where they must be copied, their pages need not stay. */
static oct_status take_mapped(oct_arena *a, oct_tensor *x, const void *data, bool copy, oct_err *err)
{
    OCT_TRY(take_bytes(a, x, data, copy, err));
    if (x->data != data)
        oct_map_forget(data, x->bytes);
    return OCT_OK;
}

static oct_status take_data(oct_model *m, oct_arena *a, const Onnx__TensorProto *t, oct_tensor *x, bool copy,
                            oct_err *err)
{
    if (oct_tensor_is_external(t)) {
        const uint8_t *data;
        size_t size;
        if (!m)
            return oct_fail(err, OCT_EUNSUPPORTED, "tensor '%s': external data are not read here", name_of(t));
        OCT_TRY(oct_external_bytes(m, t, x->bytes, &data, &size, err));
        return take_mapped(a, x, data, copy, err);
    }
    if (!t->has_raw_data)
        return take_typed(a, t, x, copy, err);
    if (t->raw_data.len != x->bytes)
        return oct_fail(err, OCT_EMALFORMED, "tensor '%s': raw_data holds %zu bytes, its shape and type need %zu",
                        name_of(t), t->raw_data.len, x->bytes);
    return take_mapped(a, x, x->bytes ? (const void *)t->raw_data.data : "", copy, err);
}

static oct_status take_dims(oct_arena *a, const Onnx__TensorProto *t, oct_tensor *x, oct_err *err)
{
    if (t->n_dims > OCT_MAX_RANK)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor '%s' has %zu dimensions, more than %d", name_of(t), t->n_dims,
                        OCT_MAX_RANK);
    x->rank = (int)t->n_dims;
    x->dims = oct_arena_memdup(a, t->dims, t->n_dims * sizeof *t->dims);
    if (!x->dims)
        return oct_nomem(err);
    if (!oct_count(x->dims, x->rank, &x->count))
        return oct_fail(err, OCT_EMALFORMED, "tensor '%s': its shape has a negative dimension or is too large",
                        name_of(t));
    return OCT_OK;
}

static oct_status take_strings(oct_arena *a, const Onnx__TensorProto *t, oct_tensor *x, oct_err *err)
{
    if (oct_tensor_is_external(t))
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor '%s': strings in another file are not read", name_of(t));
    if ((uint64_t)x->count != t->n_string_data)
        return oct_fail(err, OCT_EMALFORMED, "tensor '%s': string_data holds %zu strings, its shape needs %lld",
                        name_of(t), t->n_string_data, (long long)x->count);
    oct_str *s = oct_arena_calloc(a, t->n_string_data + 1, sizeof *s);
    if (!s)
        return oct_nomem(err);
    for (size_t i = 0; i < t->n_string_data; i++) {
        const ProtobufCBinaryData *b = &t->string_data[i];
        s[i] = (oct_str){ b->len ? oct_arena_memdup(a, b->data, b->len) : "", b->len };
        if (!s[i].s)
            return oct_nomem(err);
    }
    x->data = s;
    x->bytes = t->n_string_data * sizeof *s;
    return OCT_OK;
}

oct_status oct_tensor_decode(oct_model *m, oct_arena *a, const Onnx__TensorProto *t, bool copy, oct_tensor **out,
                             oct_tensor_kind *kind, oct_err *err)
{
    *out = NULL;
    *kind = OCT_TENSOR_OPAQUE;
    if (t->data_type <= OCT_UNDEFINED)
        return oct_fail(err, OCT_EMALFORMED, "tensor '%s' has no element type", name_of(t));
    if (t->segment)
        return oct_fail(err, OCT_EUNSUPPORTED, "tensor '%s' is stored in segments", name_of(t));
    oct_tensor *x = oct_arena_calloc(a, 1, sizeof *x);
    if (!x)
        return oct_nomem(err);
    OCT_TRY(take_dims(a, t, x, err));
    if (t->data_type >= OCT_DTYPE_COUNT)
        return OCT_OK;
    x->dtype = (oct_dtype)t->data_type;
    if (x->dtype == OCT_STRING) {
        OCT_TRY(take_strings(a, t, x, err));
    } else {
        if (!oct_dtype_bytes(x->dtype, x->count, &x->bytes))
            return oct_fail(err, OCT_EMALFORMED, "tensor '%s' is larger than memory can be", name_of(t));
        OCT_TRY(take_data(m, a, t, x, copy, err));
    }
    *out = x;
    *kind = OCT_TENSOR_DECODED;
    return OCT_OK;
}

static oct_status encode_strings(oct_arena *a, const oct_tensor *t, Onnx__TensorProto *p, oct_err *err)
{
    const oct_str *s = t->data;
    p->n_string_data = (size_t)t->count;
    p->string_data = oct_arena_calloc(a, p->n_string_data + 1, sizeof *p->string_data);
    if (!p->string_data)
        return oct_nomem(err);
    for (size_t i = 0; i < p->n_string_data; i++)
        p->string_data[i] = (ProtobufCBinaryData){ s[i].n, (uint8_t *)(uintptr_t)s[i].s };
    return OCT_OK;
}

oct_status oct_tensor_encode(oct_arena *a, const char *name, const oct_tensor *t, Onnx__TensorProto **out, oct_err *err)
{
    Onnx__TensorProto *p = oct_arena_alloc(a, sizeof *p);
    if (!p)
        return oct_nomem(err);
    onnx__tensor_proto__init(p);
    if (!t->data && t->count)
        return oct_fail(err, OCT_EINTERNAL, "tensor '%s' has no data to write", name);
    p->n_dims = (size_t)t->rank;
    p->dims = oct_arena_memdup(a, t->dims, p->n_dims * sizeof *p->dims);
    p->name = oct_arena_strdup(a, name);
    if (!p->dims || !p->name)
        return oct_nomem(err);
    p->has_data_type = true;
    p->data_type = (int32_t)t->dtype;
    *out = p;
    if (t->dtype == OCT_STRING)
        return encode_strings(a, t, p, err);
    p->has_raw_data = true;
    p->raw_data = (ProtobufCBinaryData){ t->bytes, (uint8_t *)(uintptr_t)t->data };
    return OCT_OK;
}
