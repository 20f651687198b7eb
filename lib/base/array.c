/* lib/base/array.c -- arrays: creation, conversion between element types, search for NaN. */
#include "base/array.h"

#include "base/buf.h"
#include "base/mem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool oct_array_bytes(oct_dtype t, int64_t n, size_t *bytes)
{
    return t == OCT_STRING ? n >= 0 && oct_mul_size((size_t)n, sizeof(oct_str), bytes) : oct_dtype_bytes(t, n, bytes);
}

oct_status oct_array_create(oct_array *a, oct_dtype dtype, int rank, const int64_t *dims, oct_err *err)
{
    *a = (oct_array){ .dtype = dtype, .rank = rank, .owned = true };
    char text[96];
    if (rank < 0 || rank > OCT_ARRAY_RANK) {
        a->rank = 0;
        return oct_fail(err, OCT_EUNSUPPORTED, "rank %d, at most %d is supported for sample data", rank,
                        OCT_ARRAY_RANK);
    }
    if (rank)
        memcpy(a->dims, dims, (size_t)rank * sizeof *dims);
    int64_t n;
    if (oct_dtype_bits(dtype) == 0 && dtype != OCT_STRING)
        return oct_fail(err, OCT_EUNSUPPORTED, "element type %s is not supported for sample data",
                        oct_dtype_name(dtype));
    if (!oct_count(dims, rank, &n) || !oct_array_bytes(dtype, n, &a->bytes))
        return oct_fail(err, OCT_EMALFORMED, "shape %s has no valid size", oct_dims_text(text, rank, dims));
    if (!(a->data = oct_alloc(a->bytes)))
        return oct_nomem(err);
    return OCT_OK;
}

void oct_array_free(oct_array *a)
{
    if (!a)
        return;
    if (a->owned)
        oct_free(a->data);
    *a = (oct_array){ 0 };
}

int64_t oct_array_count(const oct_array *a)
{
    int64_t n;
    return oct_count(a->dims, a->rank, &n) ? n : 0;
}

char *oct_dims_text(char dst[96], int rank, const int64_t *dims)
{
    size_t at = 0;
    dst[at++] = '[';
    for (int i = 0; i < rank; i++) {
        char one[24];
        int n = dims[i] < 0 ? snprintf(one, sizeof one, "?") : snprintf(one, sizeof one, "%lld", (long long)dims[i]);
        if (at + (size_t)n + 6 >= 96) {
            memcpy(dst + at, "...", 3);
            at += 3;
            break;
        }
        if (i)
            dst[at++] = ',';
        memcpy(dst + at, one, (size_t)n);
        at += (size_t)n;
    }
    dst[at++] = ']';
    dst[at] = 0;
    return dst;
}

static bool is_float(oct_dtype t)
{
    return t == OCT_F32 || t == OCT_F64 || t == OCT_F16 || t == OCT_BF16;
}

static bool is_int(oct_dtype t)
{
    return t == OCT_BOOL || t == OCT_U64 || t == OCT_U32 || (t >= OCT_U8 && t <= OCT_S64);
}

#define LOAD(type, p, i) \
    type v;              \
    memcpy(&v, (const char *)(p) + (i) * sizeof v, sizeof v)

/* One integer as a sign and a magnitude class: *big is set for a u64 above INT64_MAX. */
static int64_t load_int(oct_dtype t, const void *p, size_t i, bool *big)
{
    *big = false;
    switch (t) {
    case OCT_BOOL: return ((const uint8_t *)p)[i] != 0;
    case OCT_U8: return ((const uint8_t *)p)[i];
    case OCT_S8: return ((const int8_t *)p)[i];
    case OCT_U16: {
        LOAD(uint16_t, p, i);
        return v;
    }
    case OCT_S16: {
        LOAD(int16_t, p, i);
        return v;
    }
    case OCT_U32: {
        LOAD(uint32_t, p, i);
        return v;
    }
    case OCT_S32: {
        LOAD(int32_t, p, i);
        return v;
    }
    case OCT_U64: {
        LOAD(uint64_t, p, i);
        *big = v > (uint64_t)INT64_MAX;
        return (int64_t)v;
    }
    default: {
        LOAD(int64_t, p, i);
        return v;
    }
    }
}

static double load_float(oct_dtype t, const void *p, size_t i)
{
    switch (t) {
    case OCT_F64: {
        LOAD(double, p, i);
        return v;
    }
    case OCT_F16: {
        LOAD(uint16_t, p, i);
        return (double)oct_f16_to_f32(v);
    }
    case OCT_BF16: {
        LOAD(uint16_t, p, i);
        return (double)oct_bf16_to_f32(v);
    }
    default: {
        LOAD(float, p, i);
        return (double)v;
    }
    }
}

/* Whether type t represents the integer exactly: floats represent integers up to 2^digits, and larger ones if they end
 * in enough zero bits. */
static bool is_exact(oct_dtype t, uint64_t magnitude)
{
    const int digits = t == OCT_F64 ? 53 : t == OCT_F32 ? 24 : t == OCT_F16 ? 11 : 8;
    if (magnitude == 0)
        return true;
    const int length = 64 - __builtin_clzll(magnitude), zeros = __builtin_ctzll(magnitude);
    return length - zeros <= digits && (t != OCT_F16 || length <= 16);
}

/* Whether a finite number stays finite as type t, rounded to the nearest. */
static bool stays_finite(oct_dtype t, double x)
{
    const double largest = t == OCT_F16    ? 65519.99
                           : t == OCT_BF16 ? 0x1.feffffp127
                           : t == OCT_F32  ? 0x1.fffffefffffffp127
                                           : DBL_MAX;
    return !isfinite(x) || fabs(x) <= largest;
}

static void store_float(oct_dtype t, void *dst, size_t i, double x)
{
    float f = (float)x;
    uint16_t h;
    switch (t) {
    case OCT_F64: memcpy((char *)dst + i * 8, &x, 8); break;
    case OCT_F16:
        h = oct_f32_to_f16(f);
        memcpy((char *)dst + i * 2, &h, 2);
        break;
    case OCT_BF16:
        h = oct_f32_to_bf16(f);
        memcpy((char *)dst + i * 2, &h, 2);
        break;
    default: memcpy((char *)dst + i * 4, &f, 4); break;
    }
}

static bool int_fits(oct_dtype t, int64_t v, bool big)
{
    switch (t) {
    case OCT_BOOL: return !big && (v == 0 || v == 1);
    case OCT_U8: return !big && v >= 0 && v <= UINT8_MAX;
    case OCT_S8: return !big && v >= INT8_MIN && v <= INT8_MAX;
    case OCT_U16: return !big && v >= 0 && v <= UINT16_MAX;
    case OCT_S16: return !big && v >= INT16_MIN && v <= INT16_MAX;
    case OCT_U32: return !big && v >= 0 && v <= UINT32_MAX;
    case OCT_S32: return !big && v >= INT32_MIN && v <= INT32_MAX;
    case OCT_U64: return big || v >= 0;
    default: return !big;
    }
}

static oct_status convert_ints(oct_dtype from, const void *src, oct_dtype to, void *dst, size_t n, oct_err *err)
{
    const size_t size = (size_t)oct_dtype_bits(to) / 8;
    for (size_t i = 0; i < n; i++) {
        bool big;
        int64_t v = load_int(from, src, i, &big);
        if (!int_fits(to, v, big))
            return oct_fail(err, OCT_ENUMERIC, "value %lld at index %zu does not fit %s", (long long)v, i,
                            oct_dtype_name(to));
        uint64_t u = (uint64_t)v; /* the low bytes are the narrow value: every host we build for is little-endian */
        memcpy((char *)dst + i * size, &u, size);
    }
    return OCT_OK;
}

static oct_status convert_floats(oct_dtype from, const void *src, oct_dtype to, void *dst, size_t n, oct_err *err)
{
    char text[32];
    for (size_t i = 0; i < n; i++) {
        const double x = load_float(from, src, i);
        if (!stays_finite(to, x))
            return oct_fail(err, OCT_ENUMERIC, "value %s at index %zu is too large for %s", oct_f64_text(text, x), i,
                            oct_dtype_name(to));
        store_float(to, dst, i, x);
    }
    return OCT_OK;
}

static oct_status convert_ints_to_floats(oct_dtype from, const void *src, oct_dtype to, void *dst, size_t n,
                                         oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        bool big;
        const int64_t v = load_int(from, src, i, &big);
        const bool negative = v < 0 && !big;
        if (!is_exact(to, negative ? 0 - (uint64_t)v : (uint64_t)v))
            return oct_fail(err, OCT_ENUMERIC,
                            big ? "value %llu at index %zu is not a number of %s"
                                : "value %lld at index %zu is not a number of %s",
                            (long long)v, i, oct_dtype_name(to));
        store_float(to, dst, i, big ? (double)(uint64_t)v : (double)v);
    }
    return OCT_OK;
}

oct_status oct_array_convert(oct_dtype from, const void *src, oct_dtype to, void *dst, size_t n, oct_err *err)
{
    size_t bytes;
    if (from == to && oct_array_bytes(to, (int64_t)n, &bytes)) {
        if (bytes)
            memcpy(dst, src, bytes);
        return OCT_OK;
    }
    if (is_int(from) && is_int(to))
        return convert_ints(from, src, to, dst, n, err);
    if (!is_float(to) || !(is_int(from) || is_float(from)))
        return oct_fail(err, OCT_EUNSUPPORTED, "values are %s, the model's input is %s", oct_dtype_name(from),
                        oct_dtype_name(to));
    if (from == OCT_U8 && to == OCT_F32) {
        for (size_t i = 0; i < n; i++) {
            float f = (float)((const uint8_t *)src)[i];
            memcpy((char *)dst + i * 4, &f, 4);
        }
        return OCT_OK;
    }
    return is_float(from) ? convert_floats(from, src, to, dst, n, err)
                          : convert_ints_to_floats(from, src, to, dst, n, err);
}

/* Whether NaN is among f32[n]; without a branch, so that the compiler takes many at a time. */
static bool any_nan(const void *p, size_t from, size_t n)
{
    uint32_t any = 0;
    for (size_t i = from; i < n; i++) {
        LOAD(uint32_t, p, i);
        any |= 0x7f800000u - (v & 0x7fffffffu); /* wraps for NaN */
    }
    return any >> 31;
}

int64_t oct_array_find_nan(const oct_array *a)
{
    enum { BLOCK = 1024 };
    if (!is_float(a->dtype))
        return -1;
    const size_t n = (size_t)oct_array_count(a);
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t end = n - at < BLOCK ? n : at + BLOCK;
        if (a->dtype == OCT_F32 && !any_nan(a->data, at, end))
            continue;
        for (size_t i = at; i < end; i++)
            if (isnan(load_float(a->dtype, a->data, i)))
                return (int64_t)i;
    }
    return -1;
}
