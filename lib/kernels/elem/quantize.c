/* lib/kernels/elem/quantize.c -- quantizing and dequantizing whole tensors: tiles over threads. */
#include "kernels/quantize.h"

#include "kernels/elem/table.h"

#include <math.h>

#define TILE 8192

static size_t size_of(oct_dtype t)
{
    return (size_t)oct_dtype_bits(t) / 8;
}

void oct_quant_limits(oct_dtype t, int32_t *lo, int32_t *hi)
{
    const bool is_signed = t == OCT_S8 || t == OCT_S16 || t == OCT_S4;
    const int bits = oct_dtype_bits(t);
    *lo = is_signed ? -(1 << (bits - 1)) : 0;
    *hi = *lo + ((1 << bits) - 1);
}

int32_t oct_quantize_value(float x, float scale, int32_t zp, int32_t lo, int32_t hi)
{
    float v = x / scale;
    v = v > (float)(lo - zp) ? v : (float)(lo - zp);
    v = v < (float)(hi - zp) ? v : (float)(hi - zp);
    return (int32_t)rintf(v) + zp;
}

/* An item is an element (per tensor), a row of channels (inner 1), or one channel's run. */
typedef struct quantize_job {
    const oct_elem_table *k;
    oct_dtype t;
    const float *scale;
    const int32_t *zp; /* NULL: zeros */
    float *x;          /* quantizing only reads it */
    char *q;           /* dequantizing only reads it */
    size_t channels, inner;
} quantize_job;

static int32_t zp_at(const quantize_job *j, size_t c)
{
    return j->zp ? j->zp[c] : 0;
}

static void quantize_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const quantize_job *j = arg;
    const size_t size = size_of(j->t);
    if (j->channels == 1) {
        j->k->quantize(j->t, j->x + begin, end - begin, j->scale[0], zp_at(j, 0), j->q + begin * size);
        return;
    }
    for (size_t i = begin; i < end; i++)
        if (j->inner == 1) {
            const size_t at = i * j->channels;
            j->k->quantize_each(j->t, j->x + at, j->channels, j->scale, j->zp, j->q + at * size);
        } else {
            const size_t at = i * j->inner, c = i % j->channels;
            j->k->quantize(j->t, j->x + at, j->inner, j->scale[c], zp_at(j, c), j->q + at * size);
        }
}

static void dequantize_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const quantize_job *j = arg;
    const size_t size = size_of(j->t);
    if (j->channels == 1) {
        j->k->dequantize(j->t, j->q + begin * size, end - begin, j->scale[0], zp_at(j, 0), j->x + begin);
        return;
    }
    for (size_t i = begin; i < end; i++)
        if (j->inner == 1) {
            const size_t at = i * j->channels;
            j->k->dequantize_each(j->t, j->q + at * size, j->channels, j->scale, j->zp, j->x + at);
        } else {
            const size_t at = i * j->inner, c = i % j->channels;
            j->k->dequantize(j->t, j->q + at * size, j->inner, j->scale[c], zp_at(j, c), j->x + at);
        }
}

static void run(oct_pool *pool, quantize_job *j, size_t outer, void (*tile)(void *, size_t, size_t, size_t))
{
    const size_t item = j->inner == 1 ? j->channels : j->inner;
    const size_t per_tile = item >= TILE ? 1 : item ? TILE / item : 1;
    if (j->channels == 1)
        oct_pool_for(pool, outer * j->inner, TILE, tile, j);
    else
        oct_pool_for(pool, j->inner == 1 ? outer : outer * j->channels, per_tile, tile, j);
}

void oct_quantize_f32_axis(oct_pool *pool, oct_dtype t, const float *x, size_t outer, size_t channels, size_t inner,
                           const float *scale, const int32_t *zp, void *q)
{
    quantize_job j = { oct_elem(), t, scale, zp, (float *)(uintptr_t)x, q, channels, inner };
    run(pool, &j, outer, quantize_tile);
}

void oct_quantize_f32(oct_pool *pool, oct_dtype t, const float *x, size_t n, float scale, int32_t zp, void *q)
{
    oct_quantize_f32_axis(pool, t, x, 1, 1, n, &scale, &zp, q);
}

void oct_dequantize_f32_axis(oct_pool *pool, oct_dtype t, const void *q, size_t outer, size_t channels, size_t inner,
                             const float *scale, const int32_t *zp, float *x)
{
    quantize_job j = { oct_elem(), t, scale, zp, x, (char *)(uintptr_t)q, channels, inner };
    run(pool, &j, outer, dequantize_tile);
}

void oct_dequantize_f32(oct_pool *pool, oct_dtype t, const void *q, size_t n, float scale, int32_t zp, float *x)
{
    oct_dequantize_f32_axis(pool, t, q, 1, 1, n, &scale, &zp, x);
}

void oct_fake_quantize_f32(oct_dtype t, const float *x, size_t n, float scale, int32_t zp, float *y)
{
    int32_t lo, hi;
    oct_quant_limits(t, &lo, &hi);
    oct_elem()->fake_quantize(x, n, scale, (float)(lo - zp), (float)(hi - zp), y);
}

static void dynamic_params(float lo, float hi, float *scale, int32_t *zp)
{
    lo = lo < 0.0f ? lo : 0.0f;
    hi = hi > 0.0f ? hi : 0.0f;
    const float s = hi == lo ? 1.0f : (hi - lo) / 255.0f;
    float z = 0.0f - lo / s;
    z = z > 0.0f ? z : 0.0f;
    z = z < 255.0f ? z : 255.0f;
    *scale = s;
    *zp = (int32_t)rintf(z);
}

void oct_dynamic_quantize_u8(oct_pool *pool, const float *x, size_t n, uint8_t *q, float *scale, uint8_t *zp)
{
    float lo, hi;
    int32_t z;
    oct_min_max_f32(x, n, &lo, &hi);
    dynamic_params(lo, hi, scale, &z);
    *zp = (uint8_t)z;
    oct_quantize_f32(pool, OCT_U8, x, n, *scale, z, q);
}

void oct_fake_dynamic_quantize_f32(const float *x, size_t n, float *y)
{
    float lo, hi, scale;
    int32_t z;
    oct_min_max_f32(x, n, &lo, &hi);
    dynamic_params(lo, hi, &scale, &z);
    oct_fake_quantize_f32(OCT_U8, x, n, scale, z, y);
}

void oct_choose_columns_f32(const float *x, size_t n, int top, bool symmetric, oct_column_qparams *g)
{
    oct_elem()->choose_columns(x, n, top, symmetric, g);
}

void oct_quantize_blocks_s8(const float *x, size_t n, size_t block, int8_t *q, float *scale, int32_t *sum)
{
    oct_elem()->quantize_blocks(x, n, block, q, scale, sum);
}

void oct_quantize_columns_f32(const float *x, size_t n, int top, const oct_column_qparams *g, uint8_t *q)
{
    oct_elem()->quantize_columns(x, n, top, g, q);
}

void oct_pack_columns(const uint8_t *q, size_t n, int bits, size_t columns, uint8_t *to, size_t stride)
{
    oct_elem()->pack_columns(q, n, bits, columns, to, stride);
}
