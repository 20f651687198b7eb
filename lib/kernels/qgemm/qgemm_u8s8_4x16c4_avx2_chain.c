/* lib/kernels/qgemm/qgemm_u8s8_4x16c4_avx2_chain.c -- 4 rows by 16 columns, vpmaddubsw, up to 8 products in a 16-bit sum.
 *
 * Exact because the packer only chains quads that cannot overflow (qchain.h). Two rows at a time go through a chain: their
 * four 16-bit sums, two broadcast quads of A, weights and one product fill the registers beside the eight 32-bit sums. Written
 * in assembly because compilers reorder this into more registers than there are. */
#include "kernels/qgemm/qchain.h"
#include "kernels/simd.h"

#if !defined(OCT_SIMDE)
typedef struct pair {
    __m256i lo, hi;
} pair;

static const struct {
    int16_t one[16];
    uint8_t flip[32];
} constant __attribute__((aligned(32))) = {
    { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 },
    { 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
      128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128 },
};

/* ymm8, 9: sums of the first 8 columns of two rows; ymm10, 11: of the others; ymm12, 13: A; ymm14: weights. */
#define NATURAL(q, r0, r1, F)                       \
    "movslq " #q "*8(%[at]), %[o]\n"                \
    "vpbroadcastd (%[" #r0 "],%[o]), %%ymm12\n"     \
    "vpbroadcastd (%[" #r1 "],%[o]), %%ymm13\n" F
#define SHUFFLED(q, r0, r1, F)                      \
    "movslq " #q "*8(%[at]), %[o]\n"                \
    "vpbroadcastd " #q "*8+4(%[at]), %%ymm15\n"     \
    "vbroadcasti128 (%[" #r0 "],%[o]), %%ymm12\n"   \
    "vbroadcasti128 (%[" #r1 "],%[o]), %%ymm13\n" F \
    "vpshufb %%ymm15, %%ymm12, %%ymm12\n"           \
    "vpshufb %%ymm15, %%ymm13, %%ymm13\n"
#define FIRST                                       \
    "vmovdqu (%[b]), %%ymm14\n"                     \
    "vpmaddubsw %%ymm14, %%ymm12, %%ymm8\n"         \
    "vpmaddubsw %%ymm14, %%ymm13, %%ymm9\n"         \
    "vmovdqu 32(%[b]), %%ymm14\n"                   \
    "vpmaddubsw %%ymm14, %%ymm12, %%ymm10\n"        \
    "vpmaddubsw %%ymm14, %%ymm13, %%ymm11\n"
#define NEXT(q)                                     \
    "vmovdqu " #q "*64(%[b]), %%ymm14\n"            \
    "vpmaddubsw %%ymm14, %%ymm12, %%ymm15\n"        \
    "vpmaddubsw %%ymm14, %%ymm13, %%ymm14\n"        \
    "vpaddw %%ymm15, %%ymm8, %%ymm8\n"              \
    "vpaddw %%ymm14, %%ymm9, %%ymm9\n"              \
    "vmovdqu " #q "*64+32(%[b]), %%ymm14\n"         \
    "vpmaddubsw %%ymm14, %%ymm12, %%ymm12\n"        \
    "vpmaddubsw %%ymm14, %%ymm13, %%ymm13\n"        \
    "vpaddw %%ymm12, %%ymm10, %%ymm10\n"            \
    "vpaddw %%ymm13, %%ymm11, %%ymm11\n"
#define SUM(v0, v1)                                 \
    "vmovdqa %[one], %%ymm14\n"                     \
    "vpmaddwd %%ymm14, %%ymm8, %%ymm8\n"            \
    "vpmaddwd %%ymm14, %%ymm9, %%ymm9\n"            \
    "vpmaddwd %%ymm14, %%ymm10, %%ymm10\n"          \
    "vpmaddwd %%ymm14, %%ymm11, %%ymm11\n"          \
    "vpaddd %%ymm8, %[" #v0 "l], %[" #v0 "l]\n"     \
    "vpaddd %%ymm9, %[" #v1 "l], %[" #v1 "l]\n"     \
    "vpaddd %%ymm10, %[" #v0 "h], %[" #v0 "h]\n"    \
    "vpaddd %%ymm11, %[" #v1 "h], %[" #v1 "h]\n"
#define CHAIN_1(A, F, r0, r1, v0, v1) A(0, r0, r1, F) FIRST SUM(v0, v1)
#define CHAIN_2(A, F, r0, r1, v0, v1) A(0, r0, r1, F) FIRST A(1, r0, r1, F) NEXT(1) SUM(v0, v1)
#define CHAIN_3(A, F, r0, r1, v0, v1) A(0, r0, r1, F) FIRST A(1, r0, r1, F) NEXT(1) A(2, r0, r1, F) NEXT(2) SUM(v0, v1)
#define CHAIN_4(A, F, r0, r1, v0, v1) \
    A(0, r0, r1, F) FIRST A(1, r0, r1, F) NEXT(1) A(2, r0, r1, F) NEXT(2) A(3, r0, r1, F) NEXT(3) SUM(v0, v1)

#define AS_IT_IS ""
#define FLIP "vpxor %[flip], %%ymm12, %%ymm12\n vpxor %[flip], %%ymm13, %%ymm13\n"

/* The same for a single row, whose weights are read once. */
#define ONE_NATURAL(q, F) "movslq " #q "*8(%[at]), %[o]\n vpbroadcastd (%[r0],%[o]), %%ymm12\n" F
#define ONE_SHUFFLED(q, F)                                                      \
    "movslq " #q "*8(%[at]), %[o]\n vpbroadcastd " #q "*8+4(%[at]), %%ymm15\n"  \
    "vbroadcasti128 (%[r0],%[o]), %%ymm12\n" F "vpshufb %%ymm15, %%ymm12, %%ymm12\n"
#define ONE_FIRST "vpmaddubsw (%[b]), %%ymm12, %%ymm8\n vpmaddubsw 32(%[b]), %%ymm12, %%ymm10\n"
#define ONE_NEXT(q)                                                                                    \
    "vpmaddubsw " #q "*64(%[b]), %%ymm12, %%ymm14\n vpmaddubsw " #q "*64+32(%[b]), %%ymm12, %%ymm12\n" \
    "vpaddw %%ymm14, %%ymm8, %%ymm8\n vpaddw %%ymm12, %%ymm10, %%ymm10\n"
#define ONE_SUM                                                                         \
    "vpmaddwd %[one], %%ymm8, %%ymm8\n vpmaddwd %[one], %%ymm10, %%ymm10\n"             \
    "vpaddd %%ymm8, %[v0l], %[v0l]\n vpaddd %%ymm10, %[v0h], %[v0h]\n"
#define ONE_CHAIN_1(A, F) ONE_##A(0, F) ONE_FIRST ONE_SUM
#define ONE_CHAIN_2(A, F) ONE_##A(0, F) ONE_FIRST ONE_##A(1, F) ONE_NEXT(1) ONE_SUM
#define ONE_CHAIN_3(A, F) ONE_##A(0, F) ONE_FIRST ONE_##A(1, F) ONE_NEXT(1) ONE_##A(2, F) ONE_NEXT(2) ONE_SUM
#define ONE_CHAIN_4(A, F) \
    ONE_##A(0, F) ONE_FIRST ONE_##A(1, F) ONE_NEXT(1) ONE_##A(2, F) ONE_NEXT(2) ONE_##A(3, F) ONE_NEXT(3) ONE_SUM
#define ONE_FLIP "vpxor %[flip], %%ymm12, %%ymm12\n"

/* All chains of one kind. */
#define LOOP(count, len, body)                                                                                         \
    if ((left = (count)) != 0)                                                                                         \
        __asm__ volatile("1:\n" body "add $" #len "*8, %[at]\n add $" #len "*64, %[b]\n dec %k[left]\n jnz 1b\n"        \
                         : [at] "+r"(at), [b] "+r"(b), [left] "+r"(left), [o] "=&r"(o), V(0) MORE_SUMS                  \
                         : [r0] "r"(a[0]) MORE_ROWS, [one] "m"(constant.one), [flip] "m"(constant.flip) \
                         : "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
#define V(i) [v##i##l] "+x"(v##i.lo), [v##i##h] "+x"(v##i.hi)

#define SEGMENT(F)                                                                                          \
    LOOP(s->chains[0], 4, ROWS(CHAIN_4, NATURAL, F)) LOOP(s->chains[1], 3, ROWS(CHAIN_3, NATURAL, F))       \
    LOOP(s->chains[2], 2, ROWS(CHAIN_2, NATURAL, F)) LOOP(s->chains[3], 1, ROWS(CHAIN_1, NATURAL, F))       \
    LOOP(s->chains[4], 4, ROWS(CHAIN_4, SHUFFLED, F)) LOOP(s->chains[5], 3, ROWS(CHAIN_3, SHUFFLED, F))     \
    LOOP(s->chains[6], 2, ROWS(CHAIN_2, SHUFFLED, F)) LOOP(s->chains[7], 1, ROWS(CHAIN_1, SHUFFLED, F))

OCT_INLINE void store(int32_t *c, pair v)
{
    _mm256_storeu_si256((__m256i *)(void *)c, v.lo);
    _mm256_storeu_si256((__m256i *)(void *)(c + 8), v.hi);
}

#define TILE(name, F)                                                                                \
    static void name(size_t taps, size_t kc, const uint8_t *const *a, const int8_t *b, int32_t *c)   \
    {                                                                                                \
        const pair zero = { _mm256_setzero_si256(), _mm256_setzero_si256() };                        \
        ZERO                                                                                         \
        for (size_t t = 0; t < taps; t++, a += 4)                                                    \
            for (size_t k = 0; k < kc; k += OCT_QCHAIN_DEPTH) {                                      \
                const oct_qchain_segment *s = (const oct_qchain_segment *)(const void *)b;           \
                const oct_qchain_quad *at = (const oct_qchain_quad *)(const void *)(s + 1);          \
                uint32_t left;                                                                       \
                size_t o;                                                                            \
                const int8_t *next = (const int8_t *)at + s->next;                                   \
                b = (const int8_t *)at + s->weights;                                                 \
                SEGMENT(F)                                                                           \
                b = next;                                                                            \
            }                                                                                        \
        STORE                                                                                        \
    }

#define ROWS(chain, A, F) chain(A, F, r0, r1, v0, v1) chain(A, F, r2, r3, v2, v3)
#define MORE_SUMS , V(1), V(2), V(3)
#define MORE_ROWS , [r1] "r"(a[1]), [r2] "r"(a[2]), [r3] "r"(a[3])
#define ZERO pair v0 = zero, v1 = zero, v2 = zero, v3 = zero;
#define STORE store(c, v0), store(c + 16, v1), store(c + 32, v2), store(c + 48, v3);
TILE(four, AS_IT_IS)
TILE(four_flipped, FLIP)
#undef ROWS
#undef MORE_SUMS
#undef MORE_ROWS
#undef ZERO
#undef STORE

#define ROWS(chain, A, F) chain(A, F, r0, r1, v0, v1)
#define MORE_SUMS , V(1)
#define MORE_ROWS , [r1] "r"(a[1])
#define ZERO pair v0 = zero, v1 = zero;
#define STORE store(c, v0), store(c + 16, v1);
TILE(two, AS_IT_IS)
TILE(two_flipped, FLIP)
#undef ROWS
#undef MORE_SUMS
#undef MORE_ROWS
#undef ZERO
#undef STORE

#define ROWS(chain, A, F) ONE_##chain(A, F)
#define MORE_SUMS
#define MORE_ROWS
#define ZERO pair v0 = zero;
#define STORE store(c, v0);
TILE(one, AS_IT_IS)
TILE(one_flipped, ONE_FLIP)

/* Height 3 runs as 4: the walk gives valid rows up to mr. */
void oct_qgemm_u8s8_4x16c4__avx2_chain(size_t m, size_t n, size_t taps, size_t kc, const uint8_t *const *a, uint8_t flip,
                                       const int8_t *b, int32_t *c)
{
    const oct_qchain_panel *p = (const oct_qchain_panel *)(const void *)b;
    b = (const int8_t *)(p + 1);
    if (!p->chained)
        oct_qgemm_u8s8_4x16c4__avx2(m, n, taps, kc, a, flip, b, c);
    else if (m > 2)
        (flip ? four_flipped : four)(taps, kc, a, b, c);
    else if (m == 2)
        (flip ? two_flipped : two)(taps, kc, a, b, c);
    else
        (flip ? one_flipped : one)(taps, kc, a, b, c);
}

static bool is_plain(const int8_t *panel)
{
    return !((const oct_qchain_panel *)(const void *)panel)->chained;
}

void oct_qgemm_u8s8_1x16c4__avx2_chain(size_t panels, size_t kc, const uint8_t *a, uint8_t flip, const int8_t *b, size_t panel, int32_t *c)
{
    const uint8_t *const rows[4] = { a, a, a, a };
    for (size_t p = 0; p < panels;) {
        const size_t first = p;
        while (p < panels && is_plain(b + p * panel))
            p++;
        if (p > first)
            oct_qgemm_u8s8_1x16c4__avx2(p - first, kc, a, flip, b + first * panel + sizeof(oct_qchain_panel), panel,
                                        c + first * OCT_QCHAIN_COLUMNS);
        for (; p < panels && !is_plain(b + p * panel); p++)
            (flip ? one_flipped : one)(1, kc, rows, b + p * panel + sizeof(oct_qchain_panel), c + p * OCT_QCHAIN_COLUMNS);
    }
}
#endif
