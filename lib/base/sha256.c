/* SHA-256, block by block. */
#include "base/sha256.h"

#include <string.h>

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
        take_block(s->h, s->block);
        p += part;
        n -= part;
    }
    for (; n >= sizeof s->block; p += sizeof s->block, n -= sizeof s->block)
        take_block(s->h, p);
    if (n)
        memcpy(s->block, p, n);
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
