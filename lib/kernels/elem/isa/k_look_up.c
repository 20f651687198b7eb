/* lib/kernels/elem/isa/k_look_up.c -- bytes by a table of 256, compiled once per instruction set.
 *
 * AVX-512 permutes the words of the table. Elsewhere shuffles find what the low four bits name in each sixteenth of it;
 * the high bits choose among these. */
#include "kernels/elem/isa.h"

#include <string.h>

#if defined(__AVX512BW__)
enum { LINES = 4 };
typedef __m512i bytes;

static inline bytes line_of(const uint8_t *t)
{
    return _mm512_loadu_si512(t);
}

/* Words of the table, by the upper seven bits of a byte. (Permuting words is in AVX-512's common part, bytes are
 * not.) */
static inline __m512i words(const bytes line[LINES], __m512i at)
{
    const __m512i low = _mm512_permutex2var_epi16(line[0], at, line[1]),
                  high = _mm512_permutex2var_epi16(line[2], at, line[3]);
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(at, _mm512_set1_epi16(0x40)), low, high);
}

/* Even bytes, then odd ones; the lowest bit says which half of a word is meant. */
static inline bytes some(const bytes line[LINES], bytes v)
{
    const __m512i one = _mm512_set1_epi16(1), eight = _mm512_set1_epi16(8), byte = _mm512_set1_epi16(0xff);
    const __m512i even = words(line, _mm512_and_si512(_mm512_srli_epi16(v, 1), byte)),
                  odd = words(line, _mm512_srli_epi16(v, 9));
    const __m512i down = _mm512_slli_epi16(_mm512_and_si512(v, one), 3);
    const __m512i up = _mm512_sub_epi16(eight, _mm512_slli_epi16(_mm512_and_si512(_mm512_srli_epi16(v, 8), one), 3));
    return _mm512_or_si512(_mm512_and_si512(_mm512_srlv_epi16(even, down), byte),
                           _mm512_andnot_si512(byte, _mm512_sllv_epi16(odd, up)));
}
#define LOAD(p) _mm512_loadu_si512(p)
#define STORE(p, v) _mm512_storeu_si512(p, v)
#elif defined(__AVX2__)
enum { LINES = 16 };
typedef __m256i bytes;

static inline bytes line_of(const uint8_t *t)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)t));
}

/* Blends look at the top bit of a byte. */
static inline bytes some(const bytes line[LINES], bytes v)
{
    const bytes low = _mm256_and_si256(v, _mm256_set1_epi8(0x0f));
    bytes r[LINES];
    for (size_t i = 0; i < LINES; i++)
        r[i] = _mm256_shuffle_epi8(line[i], low);
    const bytes top[] = { _mm256_slli_epi16(v, 3), _mm256_slli_epi16(v, 2), _mm256_slli_epi16(v, 1), v };
    for (size_t n = LINES / 2, level = 0; n > 0; n /= 2, level++)
        for (size_t i = 0; i < n; i++)
            r[i] = _mm256_blendv_epi8(r[2 * i], r[2 * i + 1], top[level]);
    return r[0];
}
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#elif defined(OCT_KERNELS_ARM)
enum { LINES = 16 };
typedef uint8x16_t bytes;

static inline bytes line_of(const uint8_t *t)
{
    return vld1q_u8(t);
}

/* Four lines in a shuffle, which leaves what is beyond them as it is. */
static inline bytes some(const bytes line[LINES], bytes v)
{
    bytes r = vdupq_n_u8(0);
    for (size_t i = 0; i < LINES; i += 4)
        r = vqtbx4q_u8(r, (uint8x16x4_t){ { line[i], line[i + 1], line[i + 2], line[i + 3] } },
                       vsubq_u8(v, vdupq_n_u8((uint8_t)(16 * i))));
    return r;
}
#define LOAD(p) vld1q_u8(p)
#define STORE(p, v) vst1q_u8(p, v)
#endif

void K(look_up)(const uint8_t table[256], const uint8_t *x, size_t n, uint8_t *y)
{
#if defined(LOAD)
    enum { FEW = 8 }; /* the shuffles' lines are not worth loading */
    if (n > FEW) {
        bytes line[LINES];
        for (size_t k = 0; k < LINES; k++)
            line[k] = line_of(table + 256 / LINES * k);
        for (; n >= sizeof(bytes); n -= sizeof(bytes), x += sizeof(bytes), y += sizeof(bytes))
            STORE(y, some(line, LOAD(x)));
        uint8_t rest[sizeof(bytes)] = { 0 };
        memcpy(rest, x, n);
        STORE(rest, some(line, LOAD(rest)));
        memcpy(y, rest, n);
        return;
    }
#endif
    for (size_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}
