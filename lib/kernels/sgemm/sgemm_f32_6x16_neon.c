/* lib/kernels/sgemm/sgemm_f32_6x16_neon.c -- 6 rows by 16 columns in 24 accumulators. */
#include "kernels/neon.h"
#include "kernels/sgemm/sgemm_int.h"

/* Sixteen columns of a row. */
typedef struct row {
    float32x4_t c0, c1, c2, c3;
} row;

OCT_INLINE row load(const float *p)
{
    return (row){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}

OCT_INLINE void store(row r, float *c)
{
    vst1q_f32(c, r.c0);
    vst1q_f32(c + 4, r.c1);
    vst1q_f32(c + 8, r.c2);
    vst1q_f32(c + 12, r.c3);
}

/* oct_sout_apply on 16 columns of row i. */
OCT_INLINE row finish(row r, const oct_sout *o, size_t i)
{
    if (o->residual) {
        const row s = load(o->residual + i * o->ldr);
        r = (row){ vaddq_f32(r.c0, s.c0), vaddq_f32(r.c1, s.c1), vaddq_f32(r.c2, s.c2), vaddq_f32(r.c3, s.c3) };
    }
    if (o->clamp)
        r = (row){ oct_neon_clamp(r.c0, o->lo, o->hi), oct_neon_clamp(r.c1, o->lo, o->hi),
                   oct_neon_clamp(r.c2, o->lo, o->hi), oct_neon_clamp(r.c3, o->lo, o->hi) };
    return (row){ oct_neon_one_nan(r.c0), oct_neon_one_nan(r.c1), oct_neon_one_nan(r.c2), oct_neon_one_nan(r.c3) };
}

/* ROW(i) expands to the statement for row i where the tile has it; m is a constant once inlined. */
#define ROWS ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5)

/* Lane p of the four k in x0, x1, ...; four columns q. */
#define COLUMNS(p, q)                                     \
    {                                                     \
        const float32x4_t w = vld1q_f32(b);               \
        b += 4;                                           \
        r0.c##q = vfmaq_laneq_f32(r0.c##q, w, x0, p);     \
        if (m > 1)                                        \
            r1.c##q = vfmaq_laneq_f32(r1.c##q, w, x1, p); \
        if (m > 2)                                        \
            r2.c##q = vfmaq_laneq_f32(r2.c##q, w, x2, p); \
        if (m > 3)                                        \
            r3.c##q = vfmaq_laneq_f32(r3.c##q, w, x3, p); \
        if (m > 4)                                        \
            r4.c##q = vfmaq_laneq_f32(r4.c##q, w, x4, p); \
        if (m > 5)                                        \
            r5.c##q = vfmaq_laneq_f32(r5.c##q, w, x5, p); \
    }
#define STEP(p) { COLUMNS(p, 0) COLUMNS(p, 1) COLUMNS(p, 2) COLUMNS(p, 3) }

OCT_INLINE void tile(const size_t m, size_t taps, size_t kc, const float *const *a, const float *b, float *c,
                     size_t ldc, bool first, bool last, const oct_sout *out)
{
    const float32x4_t z = vdupq_n_f32(0);
    const row start = first && out->bias ? load(out->bias) : (row){ z, z, z, z };
    row r0 = start, r1 = start, r2 = start, r3 = start, r4 = start, r5 = start;
    if (!first) {
#define ROW(i) \
    if (m > i) \
        r##i = load(c + i * ldc);
        ROWS
#undef ROW
    }
    for (size_t t = 0; t < taps; t++, a += 6) {
#define ROW(i) const float *a##i = a[m > i ? i : 0];
        ROWS
#undef ROW
            size_t k = 0;
        for (; k + 4 <= kc; k += 4) {
#define ROW(i) const float32x4_t x##i = vld1q_f32(a##i + k);
            ROWS
#undef ROW
                STEP(0) STEP(1) STEP(2) STEP(3)
        }
        for (; k < kc; k++) {
#define ROW(i) const float32x4_t x##i = vld1q_dup_f32(a##i + k);
            ROWS
#undef ROW
                STEP(0)
        }
    }
#define ROW(i) \
    if (m > i) \
        store(last ? finish(r##i, out, i) : r##i, c + i * ldc);
    ROWS
#undef ROW
}

void oct_sgemm_f32_6x16__neon(size_t m, size_t n, size_t taps, size_t kc, const float *const *a, const float *b,
                              float *c, size_t ldc, bool first, bool last, const oct_sout *out)
{
    switch (m) {
    case 1: tile(1, taps, kc, a, b, c, ldc, first, last, out); break;
    case 2: tile(2, taps, kc, a, b, c, ldc, first, last, out); break;
    case 3: tile(3, taps, kc, a, b, c, ldc, first, last, out); break;
    case 4: tile(4, taps, kc, a, b, c, ldc, first, last, out); break;
    case 5: tile(5, taps, kc, a, b, c, ldc, first, last, out); break;
    default: tile(6, taps, kc, a, b, c, ldc, first, last, out); break;
    }
}
