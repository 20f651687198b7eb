/* Matrices quantized in blocks, by columns. */
#include "ops/core/block_matrix.h"

#include "ops/core/small.h"

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
