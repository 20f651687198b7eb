/* lib/kernels/elem/qelem.c -- 8-bit tables and softmax over whole tensors. */
#include "kernels/qelem.h"

#include "kernels/elem/table.h"
#include "kernels/math.h"

#define TILE 16384

typedef struct lut_job {
    const uint8_t *table, *x;
    uint8_t *y;
} lut_job;

static void lut_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const lut_job *j = arg;
    oct_elem()->look_up(j->table, j->x + begin, end - begin, j->y + begin);
}

void oct_lut_8(oct_pool *pool, const uint8_t table[256], const void *x, void *y, size_t n)
{
    lut_job j = { table, x, y };
    oct_pool_for(pool, n, TILE, lut_tile, &j);
}

void oct_lut_build(const oct_unary *f, bool in_signed, oct_qparam in, bool out_signed, oct_qparam out, int32_t lo,
                   int32_t hi, uint8_t table[256])
{
    for (int i = 0; i < 256; i++) {
        const int32_t q = in_signed ? (int8_t)(uint8_t)i : i;
        const float v = (float)(q - in.zp) * in.scale;
        int32_t qval = oct_quantize_value(f ? oct_unary_value(f, v) : v, out.scale, out.zp, out_signed ? -128 : 0,
                                          out_signed ? 127 : 255);
        qval = qval < lo ? lo : qval > hi ? hi : qval;
        table[i] = (uint8_t)qval;
    }
}

typedef struct qsoftmax_job {
    const oct_elem_table *k;
    float table[256];
    bool is_signed;
    const uint8_t *x;
    uint8_t *y;
    size_t n;
    float m;
    int32_t zp;
} qsoftmax_job;

static void qsoftmax_tile(void *arg, size_t begin, size_t end, size_t thread)
{
    const qsoftmax_job *j = arg;
    for (size_t i = begin; i < end; i++)
        j->k->qsoftmax_row(j->is_signed, j->table, j->x + i * j->n, j->n, j->m, j->zp, j->y + i * j->n);
}

void oct_qsoftmax_8(oct_pool *pool, bool is_signed, const void *x, size_t rows, size_t n, oct_qparam in, oct_qparam out,
                    void *y)
{
    qsoftmax_job j = { oct_elem(), { 0 }, is_signed, x, y, n, floorf(1.0f / out.scale), out.zp };
    for (int i = 0; i < 256; i++)
        j.table[i] = oct_expf((float)(i - 255) * in.scale);
    oct_pool_for(pool, rows, n >= TILE ? 1 : n ? TILE / n : 1, qsoftmax_tile, &j);
}
