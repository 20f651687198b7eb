/* SHA-256, block by block. */
#include "base/sha256.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { BLOCK = 64 };

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* One round; names move on instead of values, from right to left. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                       \
    do {                                                                                                       \
        const uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (g ^ (e & (f ^ g))) + K[i] + w[i]; \
        d += one;                                                                                              \
        h = one + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) | (c & (a | b)));                        \
    } while (0)

static void take_block(uint32_t state[8], const unsigned char *p)
{
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    for (int i = 0; i < 16; i++)
        w[i] = big_endian(p + 4 * i);
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t add[8] = { a, b, c, d, e, f, g, h };
    for (int i = 0; i < 8; i++)
        state[i] += add[i];
}

/* ---- x86 has instructions for it ---- */

#if defined(__x86_64__)

/* With them a file is read faster than from a disk. Each of the 16 steps does four rounds; the state lies in two
 * registers, as ABEF and CDGH. */
#define SHA __attribute__((target("sha,sse4.1")))

static bool ask(void)
{
    enum { SSSE3_SSE41 = 1 << 9 | 1 << 19, SHA_NI = 1 << 29 };
    unsigned a, b, c, d, c1;
    return __get_cpuid(1, &a, &b, &c1, &d) && (c1 & SSSE3_SSE41) == SSSE3_SSE41 &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & SHA_NI);
}

/* cpuid is slow, and a trap in virtual machines: asked once. Threads that race store the same value. */
static bool has_instructions(void)
{
    static atomic_int has = -1;
    int known = atomic_load(&has);
    if (known < 0)
        atomic_store(&has, known = ask());
    return known;
}

SHA static inline __m128i load_words(const unsigned char *p)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), big_endian);
}

/* The next four words of the schedule from the last sixteen. */
SHA static inline __m128i next_words(const __m128i w[4])
{
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
    return _mm_sha256msg2_epu32(sum, w[3]);
}

SHA static void take_blocks_x86(uint32_t state[8], const unsigned char *p, size_t blocks)
{
    const __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)state), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(const void *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
    for (; blocks; blocks--, p += BLOCK) {
        const __m128i abef0 = abef, cdgh0 = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++)
            w[i] = load_words(p + 16 * i);
        for (int i = 0; i < 16; i++) {
            const __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i));
            const __m128i now = _mm_add_epi32(w[0], k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, now);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(now, 0x0e));
            const __m128i next = i < 12 ? next_words(w) : w[0];
            w[0] = w[1];
            w[1] = w[2];
            w[2] = w[3];
            w[3] = next;
        }
        abef = _mm_add_epi32(abef, abef0);
        cdgh = _mm_add_epi32(cdgh, cdgh0);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#endif

static void take_blocks(uint32_t state[8], const unsigned char *p, size_t n)
{
#if defined(__x86_64__)
    if (has_instructions()) {
        take_blocks_x86(state, p, n);
        return;
    }
#endif
    for (; n; n--, p += BLOCK)
        take_block(state, p);
}

/* ---- bytes ---- */

void oct_sha256_begin(oct_sha256 *s)
{
    static const uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memcpy(s->h, h, sizeof h);
    s->n = 0;
}

void oct_sha256_add(oct_sha256 *s, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t held = s->n % sizeof s->block;
    s->n += n;
    if (held) {
        const size_t part = n < sizeof s->block - held ? n : sizeof s->block - held;
        memcpy(s->block + held, p, part);
        if (held + part < sizeof s->block)
            return;
        take_blocks(s->h, s->block, 1);
        p += part;
        n -= part;
    }
    const size_t whole = n / sizeof s->block;
    take_blocks(s->h, p, whole);
    if (n % sizeof s->block)
        memcpy(s->block, p + whole * sizeof s->block, n % sizeof s->block);
}

void oct_sha256_end(oct_sha256 *s, unsigned char digest[OCT_SHA256_BYTES])
{
    static const unsigned char fill[64] = { 0x80 };
    unsigned char bits[8];
    for (int i = 0; i < 8; i++)
        bits[i] = (unsigned char)(s->n * 8 >> (56 - 8 * i));
    oct_sha256_add(s, fill, 1 + (119 - s->n % 64) % 64);
    oct_sha256_add(s, bits, sizeof bits);
    for (int i = 0; i < OCT_SHA256_BYTES; i++)
        digest[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

char *oct_sha256_text(const unsigned char digest[OCT_SHA256_BYTES], char text[OCT_SHA256_TEXT])
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < OCT_SHA256_BYTES; i++) {
        text[2 * i] = hex[digest[i] >> 4];
        text[2 * i + 1] = hex[digest[i] & 15];
    }
    text[2 * OCT_SHA256_BYTES] = '\0';
    return text;
}
