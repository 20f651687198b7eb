/* Matrices quantized in blocks, by columns and as elements stand. */
#include "ops/core/block_matrix.h"

#include "ops/core/small.h"

#include <string.h>

/* The offset that makes quantized values unsigned. */
static int middle_of(oct_dtype t)
{
    return t == OCT_S8 || t == OCT_S4 || t == OCT_S2 ? 1 << (oct_dtype_bits(t) - 1) : 0;
}

oct_nbits_form oct_blocks_form(const oct_quant *q, const int64_t dims[2])
{
    bool whole = middle_of(q->dtype) == 0;
    for (int i = 0; i < q->n && !whole; i++)
        whole = q->zp[i] != 0;
    return (oct_nbits_form){ .n = (size_t)dims[1 - q->axis],
                             .k = (size_t)dims[q->axis],
                             .bits = oct_dtype_bits(q->dtype),
                             .block = (size_t)q->block,
                             .zero = whole ? OCT_NBITS_WHOLE : OCT_NBITS_MIDDLE,
                             .bytes = q->bytes };
}

static int qval_of(const oct_tensor *t, size_t i)
{
    switch (t->dtype) {
    case OCT_U8: return ((const uint8_t *)t->data)[i];
    case OCT_S8: return ((const int8_t *)t->data)[i];
    default: return (int)oct_small_get(t->dtype, t->data, (int64_t)i);
    }
}

static void put_qval(uint8_t *qvals, int bits, size_t i, int qval)
{
    const size_t per = 8 / (size_t)bits;
    qvals[i / per] |= (uint8_t)((unsigned)qval << i % per * (size_t)bits);
}

oct_status oct_blocks_weights(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_nbits_weights *w,
                              oct_err *err)
{
    const size_t blocks = oct_nbits_blocks(f), column = oct_nbits_column_bytes(f), zero_bytes = oct_nbits_zero_bytes(f);
    const bool given = q->qvals->rank == 3,
               transposed = given || q->axis == 1; /* quantized values are by columns; scales and zero points are */
    const int middle = middle_of(q->dtype);
    uint8_t *qvals = given ? NULL : oct_arena_calloc(a, f->n, column);
    float *scale = transposed ? NULL : oct_arena_calloc(a, f->n * blocks, sizeof *scale);
    uint8_t *zero = f->zero == OCT_NBITS_WHOLE ? oct_arena_calloc(a, f->n, zero_bytes) : NULL;
    if ((!given && !qvals) || (!transposed && !scale) || (f->zero == OCT_NBITS_WHOLE && !zero))
        return oct_nomem(err);
    for (size_t j = 0; j < f->n; j++) {
        for (size_t i = 0; qvals && i < f->k; i++)
            put_qval(qvals + j * column, f->bits, i,
                     qval_of(q->qvals, transposed ? j * f->k + i : i * f->n + j) + middle);
        for (size_t i = 0; scale && i < blocks; i++)
            scale[j * blocks + i] = q->scale[i * f->n + j];
        for (size_t i = 0; zero && i < blocks; i++)
            put_qval(zero + j * zero_bytes, f->bits, i, q->zp[transposed ? j * blocks + i : i * f->n + j] + middle);
    }
    *w = (oct_nbits_weights){ .qvals = given ? q->qvals->data : qvals,
                              .scale = transposed ? q->scale : scale,
                              .zero = zero };
    return OCT_OK;
}

/* Code i, as it is told. */
static int get_qval(const uint8_t *qvals, int bits, size_t i)
{
    const size_t per = 8 / (size_t)bits;
    return qvals[i / per] >> i % per * (size_t)bits & ((1 << bits) - 1);
}

/* A packed tensor of the type of quantized values, all 0. */
static oct_status new_packed(const oct_quant *q, const int64_t dims[2], oct_arena *a, const oct_tensor **t,
                             uint8_t **bytes, oct_err *err)
{
    oct_tensor *made;
    OCT_TRY(oct_tensor_new(a, q->dtype, 2, dims, &made, err));
    *bytes = memset((void *)(uintptr_t)made->data, 0, made->bytes);
    *t = made;
    return OCT_OK;
}

static oct_status qvals_as_elements(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, const oct_tensor **qvals,
                                    oct_err *err)
{
    const bool rows = q->axis == 1;
    uint8_t *to;
    OCT_TRY(
        new_packed(q, (int64_t[]){ (int64_t)(rows ? f->n : f->k), (int64_t)(rows ? f->k : f->n) }, a, qvals, &to, err));
    for (size_t j = 0; j < f->n; j++) {
        const uint8_t *column = (const uint8_t *)q->qvals->data + j * oct_nbits_column_bytes(f);
        for (size_t i = 0; i < f->k; i++) /* flipping the highest bit makes signed values unsigned */
            put_qval(to, f->bits, rows ? j * f->k + i : i * f->n + j,
                     get_qval(column, f->bits, i) ^ middle_of(q->dtype));
    }
    return OCT_OK;
}

oct_status oct_blocks_elements(const oct_quant *q, const oct_nbits_form *f, oct_arena *a, oct_block_elements *e,
                               oct_err *err)
{
    const size_t n = f->n, blocks = oct_nbits_blocks(f);
    const bool rows = q->axis == 1, given = q->qvals->rank == 2, moves = !given && !rows;
    float *scale = moves ? oct_arena_calloc(a, n * blocks, sizeof *scale) : NULL;
    uint8_t *zero = NULL;
    *e = (oct_block_elements){
        q->qvals, moves ? scale : q->scale, NULL, { (int64_t)(rows ? n : blocks), (int64_t)(rows ? blocks : n) }
    };
    if (moves && !scale)
        return oct_nomem(err);
    if (!given)
        OCT_TRY(qvals_as_elements(q, f, a, &e->qvals, err));
    if (f->zero == OCT_NBITS_WHOLE)
        OCT_TRY(new_packed(q, e->dims, a, &e->zero, &zero, err));
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < blocks; i++) {
            const size_t to = rows ? j * blocks + i : i * n + j, from = moves ? j * blocks + i : to;
            if (moves)
                scale[to] = q->scale[from];
            if (zero)
                put_qval(zero, f->bits, to, q->zp[from] & ((1 << f->bits) - 1));
        }
    return OCT_OK;
}

oct_dtype oct_blocks_dtype(const oct_nbits_form *f)
{
    const bool whole = f->zero == OCT_NBITS_WHOLE;
    return f->bits == 2   ? (whole ? OCT_U2 : OCT_S2)
           : f->bits == 4 ? (whole ? OCT_U4 : OCT_S4)
           : whole        ? OCT_U8
                          : OCT_S8;
}

void oct_blocks_zero_points(const oct_nbits_form *f, const uint8_t *packed, int32_t *zp)
{
    const size_t blocks = oct_nbits_blocks(f);
    for (size_t j = 0; j < f->n; j++)
        for (size_t i = 0; i < blocks; i++)
            zp[j * blocks + i] = packed ? get_qval(packed + j * oct_nbits_zero_bytes(f), f->bits, i) : 0;
}
