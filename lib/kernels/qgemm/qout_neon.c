/* lib/kernels/qgemm/qout_neon.c -- output pipeline, 8 columns of bytes or 4 of words of all rows at a time. */
#include "kernels/neon.h"
#include "kernels/qgemm/qout_int.h"

/* Four columns: what is the same for every row. */
typedef struct columns {
    int32x4_t add, colmul;
    float32x4_t mult, bias;
} columns;

OCT_INLINE columns columns_at(size_t j, const int32_t *add, const int32_t *colmul, const oct_qout *o)
{
    return (columns){ add ? vld1q_s32(add + j) : vdupq_n_s32(0), colmul ? vld1q_s32(colmul + j) : vdupq_n_s32(0),
                      o->mult ? vld1q_f32(o->mult + j) : vdupq_n_f32(0),
                      o->bias ? vld1q_f32(o->bias + j) : vdupq_n_f32(0) };
}

OCT_INLINE int32x4_t sum_of(const int32_t *acc, const columns *k, const int32_t *rowadd, size_t i)
{
    const int32x4_t v = vaddq_s32(vld1q_s32(acc), k->add);
    return rowadd ? vmlaq_n_s32(v, k->colmul, rowadd[i]) : v;
}

static void block_s32(size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd, int32_t *c,
                      size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        vst1q_s32(c + i * ldc, sum_of(acc + i * lda, k, rowadd, i));
}

static void block_f32(size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd,
                      const oct_qout *o, float *c, size_t ldc)
{
    for (size_t i = 0; i < m; i++) {
        float32x4_t v = vmulq_f32(vcvtq_f32_s32(sum_of(acc + i * lda, k, rowadd, i)), k->mult);
        if (o->bias)
            v = vaddq_f32(v, k->bias);
        vst1q_f32(c + i * ldc, o->clamp ? oct_neon_clamp(v, o->lo, o->hi) : v);
    }
}

/* Clamped float steps (numbers, never NaN), rounded half to even, plus the zero point: the low 16 bits. */
OCT_INLINE int16x4_t qval_of(int32x4_t acc, const columns *k, float32x4_t lo, float32x4_t hi, int32x4_t zp)
{
    const float32x4_t v = vminq_f32(hi, vmaxq_f32(lo, vmulq_f32(vcvtq_f32_s32(acc), k->mult)));
    return vmovn_s32(vaddq_s32(vcvtnq_s32_f32(v), zp));
}

static void block_qvals(size_t m, const int32_t *acc, size_t lda, const columns *k, const int32_t *rowadd,
                        const oct_qout *o, uint8_t *c, size_t ldc)
{
    const float32x4_t lo = vdupq_n_f32(o->lo), hi = vdupq_n_f32(o->hi);
    const int32x4_t zp = vdupq_n_s32(o->zp);
    for (size_t i = 0; i < m; i++, acc += lda, c += ldc) {
        const int16x4_t l = qval_of(sum_of(acc, &k[0], rowadd, i), &k[0], lo, hi, zp);
        const int16x4_t h = qval_of(sum_of(acc + 4, &k[1], rowadd, i), &k[1], lo, hi, zp);
        vst1_u8(c, vreinterpret_u8_s8(vmovn_s16(vcombine_s16(l, h))));
        for (size_t j = 0; o->lut && j < 8; j++)
            c[j] = o->lut[c[j]];
    }
}

static size_t qvals(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, uint8_t *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 8 <= n; j += 8) {
        const columns k[] = { columns_at(j, add, colmul, o), columns_at(j + 4, add, colmul, o) };
        block_qvals(m, acc + j, lda, k, rowadd, o, c + j, ldc);
    }
    return j;
}

static size_t words(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    size_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const columns k = columns_at(j, add, colmul, o);
        if (o->kind == OCT_QOUT_S32)
            block_s32(m, acc + j, lda, &k, rowadd, (int32_t *)c + j, ldc);
        else
            block_f32(m, acc + j, lda, &k, rowadd, o, (float *)c + j, ldc);
    }
    return j;
}

void oct_qout__neon(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                    const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    const size_t j = oct_qout_size(o->kind) == 4 ? words(m, n, acc, lda, add, rowadd, colmul, o, c, ldc)
                                                 : qvals(m, n, acc, lda, add, rowadd, colmul, o, c, ldc);
    oct_qout_rest(j, m, n, acc, lda, add, rowadd, colmul, o, c, ldc);
}
