/* Matrices quantized in blocks, by columns and as elements stand. */
#include "ops/core/block_matrix.h"

#include "ops/core/small.h"

#include <string.h>

/* What is added to codes, so that they are told from 0 up. */
static int middle_of(oct_dtype t)
{
    return t == OCT_S8 || t == OCT_S4 || t == OCT_S2 ? 1 << (oct_dtype_bits(t) - 1) : 0;
}

oct_nbits_form oct_blocks_form(const oct_quant *q, const int64_t dims[2])
{
    bool whole = middle_of(q->dtype) == 0;
    for (int i = 0; i < q->n && !whole; i++)
        whole = q->zp[i] != 0;
    return (oct_nbits_form){ .n = (size_t)dims[1 - q->axis], .k = (size_t)dims[q->axis], .bits = oct_dtype_bits(q->dtype),
                             .block = (size_t)q->block, .zero = whole ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE };
}

static int code_of(const oct_tensor *t, size_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    default: return (int)oct_small_get(t->dtype, t->data, (int64_t)i);
    }
}

static void put_code(uint8_t *codes, int bits, size_t i, int code)
{
    const size_t per = 8 / (size_t)bits;
    codes[i / per] |= (uint8_t)((unsigned)code << i % per * (size_t)bits);
}

oct_status oct_blocks_weights(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_nbits_weights *w, oct_err *err)
{
    const size_t blocks = oct_nbits_blocks(f), column = oct_nbits_column_bytes(f), zero_bytes = oct_nbits_zero_bytes(f);
    const bool given = q->codes->rank == 3, turned = given || q->axis == 1; /* codes are by columns; scales and zero points are */
    const int middle = middle_of(q->dtype);
    uint8_t *codes = given ? NULL : oct_arena_calloc(a, f->n, column);
    float *scale = turned ? NULL : oct_arena_calloc(a, f->n * blocks, sizeof *scale);
    uint8_t *zero = f->zero == OCT_NBITS_WHOLE ? oct_arena_calloc(a, f->n, zero_bytes) : NULL;
    if ((!given && !codes) || (!turned && !scale) || (f->zero == OCT_NBITS_WHOLE && !zero))
        return oct_nomem(err);
    for (size_t j = 0; j < f->n; j++) {
        for (size_t i = 0; codes && i < f->k; i++)
            put_code(codes + j * column, f->bits, i, code_of(q->codes, turned ? j * f->k + i : i * f->n + j) + middle);
        for (size_t i = 0; scale && i < blocks; i++)
            scale[j * blocks + i] = q->scale[i * f->n + j];
        for (size_t i = 0; zero && i < blocks; i++)
            put_code(zero + j * zero_bytes, f->bits, i, q->zp[turned ? j * blocks + i : i * f->n + j] + middle);
    }
    *w = (oct_nbits_weights){ .codes = given ? q->codes->data : codes, .scale = turned ? q->scale : scale, .zero = zero };
    return OCT_OK;
}

/* Code i, as it is told. */
static int get_code(const uint8_t *codes, int bits, size_t i)
{
    const size_t per = 8 / (size_t)bits;
    return codes[i / per] >> i % per * (size_t)bits & ((1 << bits) - 1);
}

static oct_status elements_of(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, const oct_tensor **codes, oct_err *err)
{
    const bool turned = q->axis == 1;
    oct_tensor *t;
    OCT_TRY(oct_tensor_new(a, q->dtype, 2, (int64_t[]){ (int64_t)(turned ? f->n : f->k), (int64_t)(turned ? f->k : f->n) }, &t, err));
    uint8_t *to = memset((void *)(uintptr_t)t->data, 0, t->bytes);
    for (size_t j = 0; j < f->n; j++) {
        const uint8_t *column = (const uint8_t *)q->codes->data + j * oct_nbits_column_bytes(f);
        for (size_t i = 0; i < f->k; i++) /* the middle's bit tells signed codes from those told from 0 up */
            put_code(to, f->bits, turned ? j * f->k + i : i * f->n + j, get_code(column, f->bits, i) ^ middle_of(q->dtype));
    }
    *codes = t;
    return OCT_OK;
}

oct_status oct_blocks_elements(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_quant *as, oct_err *err)
{
    const size_t blocks = oct_nbits_blocks(f);
    *as = *q;
    if (q->codes->rank != 3)
        return OCT_OK;
    OCT_TRY(elements_of(q, f, a, &as->codes, err));
    if (q->axis == 1)
        return OCT_OK;
    float *scale = oct_arena_calloc(a, f->n * blocks, sizeof *scale);
    int32_t *zp = oct_arena_calloc(a, f->n * blocks, sizeof *zp);
    if (!scale || !zp)
        return oct_nomem(err);
    for (size_t j = 0; j < f->n; j++)
        for (size_t i = 0; i < blocks; i++) {
            scale[i * f->n + j] = q->scale[j * blocks + i];
            zp[i * f->n + j] = q->zp[j * blocks + i];
        }
    as->scale = scale;
    as->zp = zp;
    return OCT_OK;
}

oct_dtype oct_blocks_dtype(const oct_nbits_form *f)
{
    const bool whole = f->zero == OCT_NBITS_WHOLE;
    return f->bits == 2 ? (whole ? OCT_U2 : OCT_S2) : f->bits == 4 ? (whole ? OCT_U4 : OCT_S4) : whole ? OCT_U8 : OCT_S8;
}

void oct_blocks_zero_points(const oct_nbits_form *f, const uint8_t *packed, int32_t *zp)
{
    const size_t blocks = oct_nbits_blocks(f);
    for (size_t j = 0; j < f->n; j++)
        for (size_t i = 0; i < blocks; i++)
            zp[j * blocks + i] = packed ? get_code(packed + j * oct_nbits_zero_bytes(f), f->bits, i) : 0;
}
