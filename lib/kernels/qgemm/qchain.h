/* lib/kernels/qgemm/qchain.h -- panels of 16 columns whose products are added in 16 bits: layout and planning.
 * Internal.
 *
 * vpmaddubsw multiplies u8 by s8 and adds neighbours (a pair) in 16 bits. A 16-bit lane that adds several pairs is
 * exact for every A when its positive weights sum to at most 128 and its negative ones too: 255 * 128 < 2^15. So the
 * packer looks at the weights. A quad is four values of k, that is two pairs in each of 16 columns; quads that may
 * share their 16-bit lanes become a chain of up to four, heavy ones with light ones. natural   four neighbours in k,
 * broadcast as they lie shuffled  any four of 16 neighbours: where a pair of neighbours exceeds 128 its k are paired
 * anew. A k without any partner is paired with a zero weight Chains are joined to units of four quads, whose weights
 * fill 8 registers, and where two are left of two; each unit passes over all rows of a block and adds its products to a
 * tile in memory. So a unit's kind is looked at once a block, and short rows cost no more than long ones.
 *
 * The last panel may have few columns: up to 8 fill a panel twice (it is doubled), and each row of it is multiplied by
 * one half.
 *
 * A panel is an oct_qchain_panel, then either the plain panel (OCT_QGEMM_EVENODD), or segments of up to
 * OCT_QCHAIN_DEPTH values of k: an oct_qchain_segment, an oct_qchain_quad for each quad (rounded up to 32 bytes),
 * weights s8[quads][16][4]; units in the order of their kinds.
 *
 * Rows of A are read where they are, where that is whole chunks near each other; else they are copied: u8[depth /
 * 16][rows][16], the last chunk filled up with zeros. */
#ifndef OCT_KERNELS_QCHAIN_H
#define OCT_KERNELS_QCHAIN_H

#include "kernels/qgemm/qgemm_int.h"

enum {
    OCT_QCHAIN_COLUMNS = 16,
    OCT_QCHAIN_UNIT = 4,   /* quads of a unit, so of the longest chain */
    OCT_QCHAIN_CHUNK = 16, /* values of k a shuffle picks from */
    OCT_QCHAIN_DEPTH = 512,
    OCT_QCHAIN_FORMS = 7,                    /* of a unit: chains of 4; 3, 1; 2, 2; 2, 1, 1; 1, 1, 1, 1 quads; */
    OCT_QCHAIN_HALVES = 5,                   /* from here on half a unit: 2; 1, 1 */
    OCT_QCHAIN_KINDS = 2 * OCT_QCHAIN_FORMS, /* all quads natural, then all shuffled */
    OCT_QCHAIN_QUADS = OCT_QCHAIN_DEPTH / 2  /* at most, each k paired with a zero */
};

typedef struct oct_qchain_panel {
    uint32_t chained;  /* else plain */
    uint32_t doubled;  /* at most 8 columns, twice: for two rows at a time */
    uint64_t bytes;    /* of the panel, its padding not counted */
    uint32_t shuffled; /* some unit is: whole chunks are read, else quads of the depth */
    uint32_t more[3];
} oct_qchain_panel;

typedef struct oct_qchain_segment {
    uint16_t units[OCT_QCHAIN_KINDS];
    uint16_t weights, next; /* bytes from the first quad to its weights, to the next segment */
} oct_qchain_segment;

/* Quads of a unit. */
static inline size_t oct_qchain_quads(size_t kind)
{
    return kind % OCT_QCHAIN_FORMS < OCT_QCHAIN_HALVES ? OCT_QCHAIN_UNIT : OCT_QCHAIN_UNIT / 2;
}

typedef struct oct_qchain_quad {
    uint32_t k;      /* where its 4 values of the row start; shuffled: its 16 */
    uint8_t pick[4]; /* shuffled: which of the 16 */
} oct_qchain_quad;

static inline size_t oct_qchain_table(size_t quads)
{
    return (quads * sizeof(oct_qchain_quad) + 31) / 32 * 32;
}

/* Bytes every panel gets. */
bool oct_qchain_size(size_t depth, size_t *bytes);

/* What is packed: weights k to k + n - 1 of 16 columns, zeros beyond the last one; doubled: of the second 8 as of the
 * first. */
typedef void (*oct_qchain_read)(const void *source, size_t k, size_t n, int8_t w[][OCT_QCHAIN_COLUMNS]);

/* Writes a panel of `size` bytes in chains; false when it has no room (its content is then undefined).
 *   cost  picoseconds it is expected to take for a row (see oct_qchain_plain_cost) */
bool oct_qchain_pack(oct_qchain_read read, const void *source, size_t depth, bool doubled, size_t size, void *panel,
                     uint64_t *cost);

/* The same of a plain panel. */
uint64_t oct_qchain_plain_cost(size_t depth);

enum { OCT_QCHAIN_LOADS = 4 * OCT_QCHAIN_COLUMNS };

/* Looks in a list of quads, from *from to n, for those whose load is in no lane above the room that is left, until
 * there are OCT_QCHAIN_MOST or the list ends. Those before that do not fit are dropped: *from becomes the place of the
 * first one that does. Returns the place of the best; n where nothing fits. A quad should take much of the room, and
 * even out what is left: that is the sum over the lanes of l (room - 32 - l / 2), l / 2 rounded up, which, doubled and
 * but for what is the same for all quads, is 192 l less the square of the load there would be. Of equal ones it is the
 * first. */
typedef size_t (*oct_qchain_best_fn)(const uint8_t loads[][OCT_QCHAIN_LOADS], const uint8_t room[OCT_QCHAIN_LOADS],
                                     uint8_t *list, size_t *from, size_t n);

/* Quads that are compared: the heaviest that fit. A list has the heavy ones first, so the best is mostly among them:
 * with all of them, panels take 0.1 % less time, and planning a third more. */
enum { OCT_QCHAIN_MOST = 16 };

/* The fastest that needs nothing outside `have`. */
oct_qchain_best_fn oct_qchain_best_select(oct_isa have);

#if defined(OCT_KERNELS_X86)
size_t oct_qchain_best__avx2(const uint8_t loads[][OCT_QCHAIN_LOADS], const uint8_t room[OCT_QCHAIN_LOADS],
                             uint8_t *list, size_t *from, size_t n);
#endif

/* Copies rows of A for the chains: row i of tap t is at table[(i / mr * taps + t) * mr + i % mr], n bytes; n is a
 * multiple of OCT_QCHAIN_CHUNK where there are several taps. Each byte is xored with flip. */
void oct_qchain_copy(size_t rows, size_t mr, size_t taps, size_t n, const uint8_t *const *table, uint8_t flip,
                     uint8_t *to);

#endif
