/* lib/kernels/qgemm/qpack.c -- packing of 8-bit weights: panels, sums of columns, zero points. */
#include "kernels/qgemm/kernels.h"

#include "base/mem.h"

#include <string.h>

static size_t padded_depth(const oct_qgemm_kernel *k, size_t taps, size_t kc)
{
    return taps * oct_round_up(kc, k->kr);
}

static size_t columns_bytes(size_t columns)
{
    return oct_round_up(columns * sizeof(int32_t), 64);
}

bool oct_qpack_size(const oct_qgemm_kernel *k, size_t taps, size_t kc, size_t n, size_t groups, size_t *bytes)
{
    size_t depth, panels, all, columns;
    if (kc > SIZE_MAX / 8 || n > SIZE_MAX / 64 || !oct_mul_size(taps, oct_round_up(kc, k->kr), &depth) ||
        !oct_mul_size(depth, oct_round_up(n, k->nr), &panels) || !oct_mul_size(panels, groups, &all) ||
        !oct_mul_size(n, groups, &columns) || columns > SIZE_MAX / 64 || all > SIZE_MAX / 2)
        return false;
    return oct_add_size(sizeof(oct_qpacked) + 2 * columns_bytes(columns), all, bytes);
}

/* Where value k (0 to kr - 1) of column j stands in its group. */
static size_t place(const oct_qgemm_kernel *kn, size_t k, size_t j)
{
    return kn->order == OCT_QGEMM_EVENODD ? (k & 1) * kn->nr * 2 + j * 2 + (k >> 1) : j * kn->kr + k;
}

static int8_t weight(const oct_qsource *s, size_t t, size_t k, size_t j)
{
    const uint8_t v = s->b[(ptrdiff_t)t * s->ts + (ptrdiff_t)k * s->ks + (ptrdiff_t)j * s->ns];
    return (int8_t)(s->is_signed ? v : v ^ 0x80);
}

static int8_t *pack_panel(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t j0, size_t nj, int32_t *sums, int8_t *to)
{
    size_t at = 0; /* position in k of what is written, padding included */
    for (size_t t = 0; t < s->taps; t++) {
        for (size_t k = 0; k < s->kc; k++, at++) {
            int8_t *group = to + at / kn->kr * kn->kr * kn->nr;
            for (size_t j = 0; j < nj; j++) {
                const int8_t v = weight(s, t, k, j0 + j);
                group[place(kn, at % kn->kr, j)] = v;
                sums[j0 + j] += v;
            }
        }
        if (!s->dense)
            at = oct_round_up(at, kn->kr);
    }
    return to + oct_round_up(at, kn->kr) * kn->nr;
}

void oct_qpack(const oct_qgemm_kernel *kn, const oct_qsource *s, size_t n, size_t g, size_t groups, void *packed)
{
    oct_qpacked *head = packed;
    int32_t *sums = (int32_t *)(void *)((uint8_t *)packed + sizeof *head);
    int32_t *colmul = sums + columns_bytes(n * groups) / sizeof *sums;
    if (g == 0)
        memset(head, 0, sizeof *head);
    for (size_t j = 0; j < n; j++) {
        const int32_t zb = s->zb ? s->zb[(g * n + j) * s->zb_step] - (s->is_signed ? 0 : 128) : s->is_signed ? 0 : -128;
        colmul[g * n + j] = -zb;
        sums[g * n + j] = 0;
        head->has_zb |= zb != 0;
    }
    const size_t depth = s->dense ? oct_round_up(s->taps * s->kc, kn->kr) : padded_depth(kn, s->taps, s->kc);
    const size_t bytes = depth * oct_round_up(n, kn->nr);
    int8_t *to = (int8_t *)(colmul + columns_bytes(n * groups) / sizeof *colmul) + g * bytes;
    memset(to, 0, bytes);
    for (size_t j = 0; j < n; j += kn->nr)
        to = pack_panel(kn, s, j, n - j < kn->nr ? n - j : kn->nr, sums + g * n, to);
}

void oct_qfold(size_t n, const int32_t *bias, const int32_t *sums, const int32_t *colmul, int32_t za, size_t depth,
               int32_t *add)
{
    for (size_t j = 0; j < n; j++)
        add[j] = (int32_t)((bias ? (uint32_t)bias[j] : 0) - (uint32_t)za * (uint32_t)sums[j] -
                           (uint32_t)depth * (uint32_t)za * (uint32_t)colmul[j]);
}
