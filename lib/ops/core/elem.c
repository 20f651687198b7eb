/* lib/ops/core/elem.c -- loading, storing and converting elements. */
#include "ops/core/elem.h"

#include "kernels/half.h"

#include <math.h>
#include <string.h>

oct_dom oct_dom_of(oct_dtype t)
{
    switch (t) {
    case OCT_F32:
    case OCT_F16:
    case OCT_BF16: return OCT_DOM_F;
    case OCT_F64: return OCT_DOM_D;
    case OCT_U8:
    case OCT_S8:
    case OCT_U16:
    case OCT_S16:
    case OCT_S32:
    case OCT_S64:
    case OCT_U32:
    case OCT_BOOL: return OCT_DOM_I;
    case OCT_U64: return OCT_DOM_U;
    default: return OCT_DOM_NONE;
    }
}

oct_status oct_elem_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    if (oct_dom_of(s->in[0]->dtype) == OCT_DOM_NONE)
        return oct_fail(err, OCT_EUNSUPPORTED, "type %s", oct_dtype_name(s->in[0]->dtype));
    return OCT_OK;
}

size_t oct_elem_size(oct_dtype t)
{
    int bits = oct_dtype_bits(t);
    return bits % 8 == 0 ? (size_t)bits / 8 : 0;
}

static bool is_own_domain(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F64 || t == OCT_S64 || t == OCT_U64;
}

#define LOAD(type, member, expr)                     \
    do {                                             \
        const type *p = (const type *)base + offset; \
        for (int64_t k = 0; k < n; k++) {            \
            type x = p[k * stride];                  \
            buf->member[k] = (expr);                 \
        }                                            \
    } while (0)

/* Repeats the first element. */
static void fill(oct_dom dom, int64_t n, oct_chunk *buf)
{
    if (dom == OCT_DOM_F)
        for (int64_t k = 1; k < n; k++)
            buf->f[k] = buf->f[0];
    else
        for (int64_t k = 1; k < n; k++)
            buf->u[k] = buf->u[0]; /* of 64 bits, as doubles and signed integers are */
}

const void *oct_elem_load(oct_dtype t, const void *base, int64_t offset, int64_t stride, int64_t n, oct_chunk *buf)
{
    if (stride == 1 && is_own_domain(t))
        return (const uint8_t *)base + offset * (int64_t)oct_elem_size(t);
    if (stride == 1 && oct_is_half(t)) {
        oct_widen(NULL, t, (const uint16_t *)base + offset, (size_t)n, buf->f);
        return buf;
    }
    if (stride == 0 && n > 1) { /* one element many times: converted once */
        oct_elem_load(t, base, offset, 0, 1, buf);
        fill(oct_dom_of(t), n, buf);
        return buf;
    }
    switch (t) {
    case OCT_F32: LOAD(float, f, x); break;
    case OCT_F16: LOAD(uint16_t, f, oct_f16_to_f32(x)); break;
    case OCT_BF16: LOAD(uint16_t, f, oct_bf16_to_f32(x)); break;
    case OCT_F64: LOAD(double, d, x); break;
    case OCT_U8: LOAD(uint8_t, i, x); break;
    case OCT_BOOL: LOAD(uint8_t, i, x != 0); break;
    case OCT_S8: LOAD(int8_t, i, x); break;
    case OCT_U16: LOAD(uint16_t, i, x); break;
    case OCT_S16: LOAD(int16_t, i, x); break;
    case OCT_S32: LOAD(int32_t, i, x); break;
    case OCT_U32: LOAD(uint32_t, i, x); break;
    case OCT_S64: LOAD(int64_t, i, x); break;
    case OCT_U64: LOAD(uint64_t, u, x); break;
    default: memset(buf, 0, sizeof *buf); break;
    }
    return buf;
}

void *oct_elem_buffer(oct_dtype t, void *base, int64_t offset, int64_t stride, oct_chunk *buf)
{
    if (stride == 1 && is_own_domain(t))
        return (uint8_t *)base + offset * (int64_t)oct_elem_size(t);
    return buf;
}

int64_t oct_int_of_double(double x)
{
    if (!(x == x))
        return 0;
    if (x >= 9223372036854775808.0)
        return INT64_MAX;
    if (x < -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)x;
}

static uint64_t uint_of_double(double x)
{
    if (x >= 18446744073709551616.0)
        return UINT64_MAX;
    return x >= 9223372036854775808.0 ? (uint64_t)x : (uint64_t)oct_int_of_double(x);
}

#define STORE(type, stype, expr)          \
    do {                                  \
        type *p = (type *)base + offset;  \
        const stype *v = values;          \
        for (int64_t k = 0; k < n; k++) { \
            stype x = v[k];               \
            p[k * stride] = (type)(expr); \
        }                                 \
    } while (0)

#define STORE_FROM_FLOAT(stype, to_f32)                                    \
    switch (t) {                                                           \
    case OCT_F32: STORE(float, stype, x); break;                           \
    case OCT_F16: STORE(uint16_t, stype, oct_f32_to_f16(to_f32)); break;   \
    case OCT_BF16: STORE(uint16_t, stype, oct_f32_to_bf16(to_f32)); break; \
    case OCT_F64: STORE(double, stype, x); break;                          \
    case OCT_BOOL: STORE(uint8_t, stype, x != 0); break;                   \
    case OCT_U8: STORE(uint8_t, stype, oct_int_of_double(x)); break;       \
    case OCT_S8: STORE(int8_t, stype, oct_int_of_double(x)); break;        \
    case OCT_U16: STORE(uint16_t, stype, oct_int_of_double(x)); break;     \
    case OCT_S16: STORE(int16_t, stype, oct_int_of_double(x)); break;      \
    case OCT_S32: STORE(int32_t, stype, oct_int_of_double(x)); break;      \
    case OCT_U32: STORE(uint32_t, stype, oct_int_of_double(x)); break;     \
    case OCT_S64: STORE(int64_t, stype, oct_int_of_double(x)); break;      \
    case OCT_U64: STORE(uint64_t, stype, uint_of_double(x)); break;        \
    default: break;                                                        \
    }

#define STORE_FROM_INT(stype)                                                \
    switch (t) {                                                             \
    case OCT_F32: STORE(float, stype, x); break;                             \
    case OCT_F16: STORE(uint16_t, stype, oct_f32_to_f16((float)x)); break;   \
    case OCT_BF16: STORE(uint16_t, stype, oct_f32_to_bf16((float)x)); break; \
    case OCT_F64: STORE(double, stype, x); break;                            \
    case OCT_BOOL: STORE(uint8_t, stype, x != 0); break;                     \
    case OCT_U8: STORE(uint8_t, stype, x); break;                            \
    case OCT_S8: STORE(int8_t, stype, x); break;                             \
    case OCT_U16: STORE(uint16_t, stype, x); break;                          \
    case OCT_S16: STORE(int16_t, stype, x); break;                           \
    case OCT_S32: STORE(int32_t, stype, x); break;                           \
    case OCT_U32: STORE(uint32_t, stype, x); break;                          \
    case OCT_S64: STORE(int64_t, stype, x); break;                           \
    case OCT_U64: STORE(uint64_t, stype, x); break;                          \
    default: break;                                                          \
    }

void oct_elem_store(oct_dtype t, void *base, int64_t offset, int64_t stride, int64_t n, oct_dom from,
                    const void *values)
{
    if (stride == 1 && is_own_domain(t) && oct_dom_of(t) == from) {
        void *dst = (uint8_t *)base + offset * (int64_t)oct_elem_size(t);
        if (dst != values)
            memmove(dst, values, (size_t)n * oct_elem_size(t));
        return;
    }
    if (stride == 1 && oct_is_half(t) && from == OCT_DOM_F) {
        oct_narrow(NULL, t, values, (size_t)n, (uint16_t *)base + offset);
        return;
    }
    switch (from) {
    case OCT_DOM_F: STORE_FROM_FLOAT(float, x) break;
    case OCT_DOM_D: STORE_FROM_FLOAT(double, (float)x) break;
    case OCT_DOM_I: STORE_FROM_INT(int64_t) break;
    case OCT_DOM_U: STORE_FROM_INT(uint64_t) break;
    default: break;
    }
}

int64_t oct_elem_int(const oct_operand *t, int64_t i)
{
    oct_chunk c;
    const void *v = oct_elem_load(t->dtype, t->data, i, 0, 1, &c);
    int64_t out = 0;
    oct_elem_store(OCT_S64, &out, 0, 1, 1, oct_dom_of(t->dtype), v);
    return out;
}

double oct_elem_double(const oct_operand *t, int64_t i)
{
    oct_chunk c;
    const void *v = oct_elem_load(t->dtype, t->data, i, 0, 1, &c);
    double out = 0;
    oct_elem_store(OCT_F64, &out, 0, 1, 1, oct_dom_of(t->dtype), v);
    return out;
}

#define REAL_KEYS(type)                                  \
    for (int64_t i = 0; i < n; i++) {                    \
        const double x = (double)((const type *)v)[i];   \
        const union {                                    \
            double d;                                    \
            uint64_t u;                                  \
        } bits = { x == 0 ? 0 : x };                     \
        keys[i] = bits.u & top ? ~bits.u : bits.u | top; \
    }

void oct_elem_keys(const oct_operand *t, int64_t first, int64_t stride, int64_t n, uint64_t *keys)
{
    oct_chunk c;
    const void *v = oct_elem_load(t->dtype, t->data, first, stride, n, &c);
    const uint64_t top = 1ull << 63;
    switch (oct_dom_of(t->dtype)) {
    case OCT_DOM_F: REAL_KEYS(float) break;
    case OCT_DOM_D: REAL_KEYS(double) break;
    case OCT_DOM_U: memcpy(keys, v, (size_t)n * sizeof *keys); break;
    default:
        for (int64_t i = 0; i < n; i++)
            keys[i] = ((const uint64_t *)v)[i] ^ top;
    }
}

uint32_t oct_elem_overwrites(const oct_step *s, int n)
{
    const oct_operand *y = s->out[0];
    uint32_t bits = 0;
    for (int i = 0; i < n && i < s->n_in; i++) {
        const oct_operand *x = s->in[i];
        if (x && x->dtype == y->dtype && x->count == y->count && x->layout == y->layout &&
            (x->rank == y->rank || x->layout == OCT_LAYOUT_PLAIN))
            bits |= 1u << i;
    }
    return bits;
}

bool oct_elem_by_rows(const oct_step *s)
{
    return s->op != NULL;
}
