/* lib/kernels/qgemm/qout.c -- the output pipeline of integer products: definition, list, ranges. */
#include "kernels/qgemm/qout_int.h"

#include <assert.h>
#include <math.h>

static int32_t sum_of(const int32_t *acc, const int32_t *add, const int32_t *rowadd, const int32_t *colmul, size_t j)
{
    uint32_t v = (uint32_t)*acc;
    if (add)
        v += (uint32_t)add[j];
    if (rowadd) {
        assert(colmul);
        v += (uint32_t)*rowadd * (uint32_t)colmul[j];
    }
    return (int32_t)v;
}

static float real_of(int32_t acc, const oct_qout *o, size_t j)
{
    float v = (float)acc * o->mult[j];
    if (o->bias)
        v += o->bias[j];
    if (o->clamp) {
        v = o->lo > v ? o->lo : v;
        v = o->hi < v ? o->hi : v;
    }
    return v;
}

static uint8_t qval_of(int32_t acc, const oct_qout *o, size_t j)
{
    float v = (float)acc * o->mult[j];
    v = o->lo > v ? o->lo : v;
    v = o->hi < v ? o->hi : v;
    const uint8_t q = (uint8_t)((int32_t)rintf(v) + o->zp);
    return o->lut ? o->lut[q] : q;
}

void oct_qout__ref(size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add, const int32_t *rowadd,
                   const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            const int32_t v = sum_of(acc + i * lda + j, add, rowadd ? rowadd + i : NULL, colmul, j);
            if (o->kind == OCT_QOUT_S32)
                ((int32_t *)c)[i * ldc + j] = v;
            else if (o->kind == OCT_QOUT_F32)
                ((float *)c)[i * ldc + j] = real_of(v, o, j);
            else
                ((uint8_t *)c)[i * ldc + j] = qval_of(v, o, j);
        }
}

void oct_qout_rest(size_t j, size_t m, size_t n, const int32_t *acc, size_t lda, const int32_t *add,
                   const int32_t *rowadd, const int32_t *colmul, const oct_qout *o, void *c, size_t ldc)
{
    if (j == n)
        return;
    oct_qout rest = *o;
    if (rest.mult)
        rest.mult += j;
    if (rest.bias)
        rest.bias += j;
    oct_qout__ref(m, n - j, acc + j, lda, add ? add + j : NULL, rowadd, colmul ? colmul + j : NULL, &rest,
                  (uint8_t *)c + j * oct_qout_size(o->kind), ldc);
}

#define OCT_QOUT(isa, fn) { #fn, OCT_ISA_##isa, fn },
static const oct_qout_kernel kernels[] = {
#include "kernels/qgemm/qout.inc"
};
#undef OCT_QOUT

const oct_qout_kernel *oct_qout_kernels(size_t *n)
{
    *n = OCT_COUNT(kernels);
    return kernels;
}

const oct_qout_kernel *oct_qout_select(oct_isa have)
{
    const oct_qout_kernel *best = &kernels[0];
    for (size_t i = 1; i < OCT_COUNT(kernels); i++)
        if ((kernels[i].isa & ~have) == 0)
            best = &kernels[i];
    return best;
}

void oct_qout_range(oct_qout *o, oct_qout_kind kind, int32_t zp)
{
    const int32_t least = kind == OCT_QOUT_S8 ? -128 : 0;
    o->kind = kind;
    o->zp = zp;
    o->lo = (float)(least - zp);
    o->hi = (float)(least + 255 - zp);
}

void oct_qout_narrow(oct_qout *o, float scale, float lo, float hi)
{
    /* An interval that is not representable leaves its nearest quantized value, as quantizing the clipped value
     * would. */
    const float a = rintf(lo / scale), b = rintf(hi / scale), least = o->lo, most = o->hi;
    if (a > o->lo)
        o->lo = a < most ? a : most;
    if (b < o->hi)
        o->hi = b > least ? b : least;
}

bool oct_qout_is_plain(const oct_qout *o, size_t n)
{
    if ((o->kind != OCT_QOUT_U8 && o->kind != OCT_QOUT_S8) || o->lut)
        return false;
    bool small = true;
    for (size_t i = 0; i < n; i++)
        small &= fabsf(o->mult[i]) < 1.0f;
    return small;
}

size_t oct_qout_size(oct_qout_kind kind)
{
    return kind == OCT_QOUT_S32 || kind == OCT_QOUT_F32 ? 4 : 1;
}
