/* tests/check/check_tiles.c -- tiles in C (kernels/tiles_portable.h) against sums written out, and, on a CPU that has
 * AMX, against its instructions: what is checked in C elsewhere is then what the CPU computes. Prints TAP. */
#include "kernels/cpu.h"
#include "kernels/tiles.h"
#include "kernels/tiles_portable.h"

#include <stdbool.h>
#include <stdio.h>

enum { ROUNDS = 2000 };

static uint32_t state = 20240229;

static uint32_t next(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

/* Any shape whose tiles agree: c is m x n, a m x k, b k x n (k in groups of four bytes). */
static oct_tiles_shape shape_of(size_t m, size_t n, size_t k)
{
    return (oct_tiles_shape){ .palette = 1,
                              .rows = { (uint8_t)m, (uint8_t)m, (uint8_t)k },
                              .bytes = { (uint16_t)(4 * n), (uint16_t)(4 * k), (uint16_t)(4 * n) } };
}

typedef struct operands {
    uint8_t c[1024], a[1024], b[1024];
} operands;

/* Bytes with many extremes. */
static void fill_bytes(uint8_t *p)
{
    static const uint8_t extremes[] = { 0, 127, 128, 255 };
    const bool some = next() & 1;
    for (size_t i = 0; i < 1024; i++)
        p[i] = some && next() & 1 ? extremes[next() % 4] : (uint8_t)(next() >> 8);
}

/* Pairs of bf16, exponents in a narrow band somewhere, so that sums round; denormal numbers among them. No infinity or
 * NaN. */
static void fill_bf16(uint8_t *p)
{
    const uint32_t low = next() % 3 ? 100 + next() % 40 : 0, band = 1 + next() % 12;
    for (size_t i = 0; i < 1024; i += 2) {
        const uint16_t v = (uint16_t)((next() & 0x807f) | (low + next() % band) << 7);
        memcpy(p + i, &v, 2);
    }
}

static void fill_f32(uint8_t *p)
{
    const uint32_t low = next() % 3 ? 80 + next() % 60 : 0;
    for (size_t i = 0; i < 1024; i += 4) {
        const uint32_t v = (next() & 0x807fffff) | (low + next() % 12) << 23;
        memcpy(p + i, &v, 4);
    }
}

typedef void dot(int, int, int);

static void portable(const operands *o, const oct_tiles_shape *shape, dot *fn, uint8_t *out)
{
    oct_portable_tiles(shape);
    oct_portable_load(0, o->c, 64);
    oct_portable_load(1, o->a, 64);
    oct_portable_load(2, o->b, 64);
    fn(0, 1, 2);
    memset(out, 0, 1024);
    oct_portable_store(0, out, 64);
    oct_portable_tiles(NULL);
}

/* 32 bits of bytes, in 64 bits. */
static bool bytes_hold(const operands *o, size_t m, size_t n, size_t k, bool is_signed, const uint8_t *got)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            int32_t begin, sum;
            memcpy(&begin, o->c + 64 * i + 4 * j, 4);
            memcpy(&sum, got + 64 * i + 4 * j, 4);
            int64_t want = begin;
            for (size_t p = 0; p < 4 * k; p++) {
                const int x = o->a[64 * i + p];
                want += (int64_t)(is_signed && x > 127 ? x - 256 : x) * (int8_t)o->b[64 * (p / 4) + 4 * j + p % 4];
            }
            if ((uint32_t)want != (uint32_t)sum)
                return false;
        }
    return true;
}

#if defined(OCT_TILES_NATIVE)
static void native(const operands *o, const oct_tiles_shape *shape, int which, uint8_t *out)
{
    memset(out, 0, 1024);
    oct_tiles_begin_shape(shape);
    oct_tile_load(0, o->c, 64);
    oct_tile_load(1, o->a, 64);
    oct_tile_load(2, o->b, 64);
    if (which == 0)
        oct_tile_dot_us(0, 1, 2);
    else if (which == 1)
        oct_tile_dot_ss(0, 1, 2);
    else
        oct_tile_dot_bf16(0, 1, 2);
    oct_tile_store(0, out, 64);
    OCT_TILES_SETTLE();
    oct_tiles_end();
}
#endif

static const struct {
    const char *name;
    dot *fn;
} products[] = { { "u8 s8", oct_portable_dot_us },
                 { "s8 s8", oct_portable_dot_ss },
                 { "bf16", oct_portable_dot_bf16 } };

/* Rounds in which C and the sums written out differ, or C and the CPU. */
static void run(int which, size_t *wrong, size_t *other)
{
    static operands o;
    static uint8_t got[1024];
    for (int r = 0; r < ROUNDS; r++) {
        const size_t m = 1 + next() % 16, n = 1 + next() % 16, k = 1 + next() % 16;
        const oct_tiles_shape shape = shape_of(m, n, k);
        (which < 2 ? fill_bytes : fill_f32)(o.c);
        (which < 2 ? fill_bytes : fill_bf16)(o.a);
        (which < 2 ? fill_bytes : fill_bf16)(o.b);
        portable(&o, &shape, products[which].fn, got);
        *wrong += which < 2 && !bytes_hold(&o, m, n, k, which == 1, got);
#if defined(OCT_TILES_NATIVE)
        static uint8_t cpu[1024];
        if (oct_isa_detect() & OCT_ISA_AMX) {
            native(&o, &shape, which, cpu);
            *other += memcmp(got, cpu, sizeof cpu) != 0;
        }
#endif
    }
}

/* bf16 by values worked out by hand: k of 4, two chains. */
static bool bf16_by_hand(void)
{
    static operands o;
    static uint8_t got[1024];
    /* Even k: 2^-8 + 1. Odd k: 2^24 + 1, which is halfway, to even 2^24. Together 2^24 + 1.0039, nearest 2^24 + 2. One
     * chain over all k would end at 2^24. */
    static const uint16_t a[] = { 0x3b80, 0x4b80, 0x3f80, 0x3f80 };
    for (size_t i = 0; i < 4; i++) {
        const uint16_t one = 0x3f80;
        memcpy(o.a + 2 * i, &a[i], 2);
        memcpy(o.b + 64 * (i / 2) + 2 * (i % 2), &one, 2);
    }
    const oct_tiles_shape shape = shape_of(1, 1, 2);
    portable(&o, &shape, oct_portable_dot_bf16, got);
    float sum;
    memcpy(&sum, got, sizeof sum);
    return sum == 16777218.0f;
}

/* 2^-126 - 1.5 * 2^-151, of two even k, is below 2^-126 once rounded to 24 bits, and so is zero; as a denormal number
 * it would round up to 2^-126. With 2^-151 it is halfway, to even 2^-126. */
static bool bf16_is_flushed(void)
{
    static const uint16_t a[2][4] = { { 0x2000, 0, 0x99c0, 0 }, { 0x2000, 0, 0x9980, 0 } },
                          b[4] = { 0x2000, 0, 0x1a00, 0 }; /* 2^-63; 2^-76, 2^-75 */
    static operands o;
    static uint8_t got[1024];
    memcpy(o.a, a[0], sizeof a[0]);
    memcpy(o.a + 64, a[1], sizeof a[1]);
    memcpy(o.b, b, 4);
    memcpy(o.b + 64, b + 2, 4);
    const oct_tiles_shape shape = shape_of(2, 1, 2);
    portable(&o, &shape, oct_portable_dot_bf16, got);
    float sum[2];
    memcpy(&sum[0], got, sizeof sum[0]);
    memcpy(&sum[1], got + 64, sizeof sum[1]);
    return sum[0] == 0 && sum[1] == 0x1p-126f;
}

int main(void)
{
    printf("1..7\n");
    int number = 0, failed = 0;
    for (int which = 0; which < 3; which++) {
        size_t wrong = 0, other = 0;
        run(which, &wrong, &other);
        failed += wrong || other;
        if (which < 2)
            printf("%sok %d - tiles in C, %s: the sums\n", wrong ? "not " : "", ++number, products[which].name);
        if (oct_isa_no_amx())
            printf("ok %d - tiles in C, %s: the CPU's # SKIP %s\n", ++number, products[which].name, oct_isa_no_amx());
        else
            printf("%sok %d - tiles in C, %s: the CPU's, %zu of %d differ\n", other ? "not " : "", ++number,
                   products[which].name, other, ROUNDS);
    }
    const bool holds = bf16_by_hand(), flushed = bf16_is_flushed();
    failed += !holds + !flushed;
    printf("%sok %d - tiles in C, bf16: two chains, then their sum\n", holds ? "" : "not ", ++number);
    printf("%sok %d - tiles in C, bf16: what rounds below the least normal number is zero\n", flushed ? "" : "not ",
           ++number);
    return failed != 0;
}
