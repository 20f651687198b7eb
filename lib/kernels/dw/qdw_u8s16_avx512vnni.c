/* lib/kernels/dw/qdw_u8s16_avx512vnni.c -- depthwise convolution on bytes: 4 pixels share the weights of 32 channels
 * and two taps.
 *
 * The bytes of two taps are widened and their words interleaved within quarters of a register, as vpdpwssd wants them.
 * So `lo` holds channels 0-3, 8-11, 16-19, 24-27 and `hi` the others; weights are put into this order, and sums out of
 * it. */
#include "kernels/dw/dw_int.h"
#include "kernels/simd.h"

typedef struct args {
    size_t taps, step;
    const uint8_t *const *x;
    __m512i flip;
    const int16_t *w;
    int32_t *acc;
} args;

/* What a block of channels is: constants once inlined, but for the last, partial block. */
typedef struct shape {
    size_t px;   /* pixels, 1 to 4 */
    bool flip;   /* bytes are signed */
    bool upper;  /* has channels 16 to 31 */
    __mmask32 k; /* channels of the block */
} shape;

OCT_INLINE __m512i load(const uint8_t *x, const shape s, __m512i flip)
{
    const __m256i v =
        s.k == 0xffffffff ? _mm256_loadu_si256((const __m256i *)(const void *)x) : _mm256_maskz_loadu_epi8(s.k, x);
    const __m512i words = _mm512_cvtepu8_epi16(v);
    return s.flip ? _mm512_xor_si512(words, flip) : words;
}

OCT_INLINE void store(int32_t *acc, const shape s, __m512i lo, __m512i hi)
{
    _mm512_storeu_si512(acc, _mm512_permutex2var_epi64(lo, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), hi));
    if (s.upper)
        _mm512_storeu_si512(acc + 16, _mm512_permutex2var_epi64(lo, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), hi));
}

#define PIXELS PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3)

/* Channels from j of the pixels from p. */
OCT_INLINE void block(const shape s, const args *g, size_t p, size_t j)
{
    const size_t taps = g->taps;
    const uint8_t *const *x = g->x + p * taps;
    const __m512i flip = g->flip;
#define PIXEL(i) __m512i lo##i = _mm512_setzero_si512(), hi##i = lo##i;
    PIXELS
#undef PIXEL
    for (size_t t = 0; t < taps; t += 2) {
        const int16_t *w = g->w + (t / 2 * g->step + j) * 2;
        const __m512i w0 = _mm512_loadu_si512(w), w1 = s.upper ? _mm512_loadu_si512(w + 32) : w0;
        const __m512i wl = _mm512_shuffle_i32x4(w0, w1, 0x88), wh = _mm512_shuffle_i32x4(w0, w1, 0xdd);
        /* A missing last tap weighs zero: any bytes do. */
        const size_t next = t + 1 < taps ? t + 1 : t;
#define PIXEL(i)                                                                                         \
    if (s.px > i) {                                                                                      \
        const __m512i a = load(x[i * taps + t] + j, s, flip), b = load(x[i * taps + next] + j, s, flip); \
        lo##i = _mm512_dpwssd_epi32(lo##i, _mm512_unpacklo_epi16(a, b), wl);                             \
        hi##i = _mm512_dpwssd_epi32(hi##i, _mm512_unpackhi_epi16(a, b), wh);                             \
    }
        PIXELS
#undef PIXEL
    }
    int32_t *acc = g->acc + p * g->step + j;
#define PIXEL(i)  \
    if (s.px > i) \
        store(acc + i * g->step, s, lo##i, hi##i);
    PIXELS
#undef PIXEL
}

OCT_INLINE void pixels(const size_t px, const bool flip, const args *g, size_t c, size_t p)
{
    size_t j = 0;
    for (; j + 32 <= c; j += 32)
        block((shape){ px, flip, true, 0xffffffff }, g, p, j);
    if (j < c)
        block((shape){ px, flip, c - j > 16, (__mmask32)((1u << (c - j)) - 1) }, g, p, j);
}

OCT_INLINE void run(size_t px, size_t c, const bool flip, const args *g)
{
    size_t p = 0;
    for (; p + 4 <= px; p += 4)
        pixels(4, flip, g, c, p);
    for (; p < px; p++)
        pixels(1, flip, g, c, p);
}

void oct_qdw_u8s16__avx512vnni(size_t px, size_t c, size_t taps, const uint8_t *const *x, uint8_t flip,
                               const int16_t *w, int32_t *acc)
{
    const args g = { taps, oct_round_up(c, OCT_DW_CHANNELS), x, _mm512_set1_epi16(flip), w, acc };
    if (flip)
        run(px, c, true, &g);
    else
        run(px, c, false, &g);
}
