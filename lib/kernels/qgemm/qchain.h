/* lib/kernels/qgemm/qchain.h -- panels of 16 columns whose products are added in 16 bits: layout and planning. Internal.
 *
 * vpmaddubsw multiplies u8 by s8 and adds neighbours (a pair) in 16 bits. A 16-bit lane that adds several pairs is exact for
 * every A when its positive weights sum to at most 128 and its negative ones too: 255 * 128 < 2^15. So the packer looks at
 * the weights. A quad is four values of k, that is two pairs in each of 16 columns; quads that may share their 16-bit lanes
 * become a chain of up to four, heavy ones with light ones.
 *   natural   four neighbours in k, broadcast as they lie
 *   shuffled  any four of 16 neighbours: where a pair of neighbours exceeds 128 its k are paired anew. A k without any
 *             partner is paired with a zero weight
 *
 * A panel is an oct_qchain_panel, then either the plain panel (OCT_QGEMM_EVENODD), or for every tap its segments of up to
 * OCT_QCHAIN_DEPTH values of k: an oct_qchain_segment, an oct_qchain_quad for each quad (rounded up to 32 bytes), weights
 * s8[quads][16][4]; quads stand in order of use: natural chains of 4, 3, 2, 1, then shuffled ones. */
#ifndef OCT_KERNELS_QCHAIN_H
#define OCT_KERNELS_QCHAIN_H

#include "kernels/qgemm/kernels.h"

enum {
    OCT_QCHAIN_COLUMNS = 16,
    OCT_QCHAIN_LONGEST = 4, /* quads of a chain */
    OCT_QCHAIN_WINDOW = 16, /* bytes a shuffle picks from */
    OCT_QCHAIN_DEPTH = 512,
    OCT_QCHAIN_KINDS = 2 * OCT_QCHAIN_LONGEST,
    OCT_QCHAIN_QUADS = OCT_QCHAIN_DEPTH / 2 /* at most, each k paired with a zero */
};

typedef struct oct_qchain_panel {
    uint32_t chained; /* else plain */
    uint32_t unused;
    uint64_t bytes;   /* of the panel, its padding not counted */
    uint32_t more[4];
} oct_qchain_panel;

typedef struct oct_qchain_segment {
    uint16_t chains[OCT_QCHAIN_KINDS]; /* natural of 4, 3, 2, 1 quads, shuffled of 4, 3, 2, 1 */
    uint32_t weights, next;            /* bytes from the first quad to its weights, to the next segment */
    uint32_t unused[2];
} oct_qchain_segment;

typedef struct oct_qchain_quad {
    int32_t offset; /* byte of the row where its 4 bytes start; shuffled: its 16 */
    uint8_t pick[4]; /* shuffled: which of the 16 */
} oct_qchain_quad;

static inline size_t oct_qchain_table(size_t quads)
{
    return (quads * sizeof(oct_qchain_quad) + 31) / 32 * 32;
}

/* Bytes every panel gets. */
bool oct_qchain_size(size_t taps, size_t kc, size_t *bytes);

/* What is packed: weight (tap, k) of 16 columns, zeros beyond the last one. */
typedef void (*oct_qchain_row)(const void *source, size_t tap, size_t k, int8_t w[OCT_QCHAIN_COLUMNS]);

/* Writes a panel of `size` bytes in chains; false when it has no room (its content is then undefined), or kc is below 4.
 *   gain  whether chains are expected to be faster than the plain panel */
bool oct_qchain_pack(oct_qchain_row row, const void *source, size_t taps, size_t kc, size_t size, void *panel, bool *gain);

#endif
