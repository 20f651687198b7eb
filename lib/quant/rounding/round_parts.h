/* lib/quant/rounding/round_parts.h -- rounding in parts: several processes round some layers each, and one process uses
 * the results in its conversion.
 *
 * This is possible when layers are rounded with inputs of the float model, because then no layer depends on another.
 * The file of a part (eval/parts/part.h) has a record for each of its layers, by node: the rounded weights. After the
 * records it has the method, a key of everything that rounding depends on, and the total number of layers. */
#ifndef OCT_QUANT_ROUND_PARTS_H
#define OCT_QUANT_ROUND_PARTS_H

#include "eval/parts/part.h"

/* Which layers a process rounds for another process, and where it writes the result. */
typedef struct oct_rounding_share {
    uint32_t part, parts;
    const char *path;
} oct_rounding_share;

extern const oct_part_form oct_part_of_rounding;

/* The result of rounding a layer, in memory of the caller. */
typedef struct oct_rounded {
    int node;
    size_t weights, scales; /* how many weights, and how many scales */
    int limit;              /* quantized values lie within -limit..limit */
    bool bound;             /* safe pairs were tried as well */
    int8_t *qvals;          /* [weights]: the result */
    int8_t *safe_qvals;     /* [weights]: the result with safe pairs, if `bound` */
    float *widened;         /* [scales]: the factors on the scales with safe pairs, if `bound` */
    double noise[2];        /* the noise of both results */
} oct_rounded;

typedef struct oct_round_parts oct_round_parts;

/* Opens the files, which may be of several methods. path[n]: borrowed. *out is NULL if n is 0. OCT_EUSAGE: parts do not
 * belong together, or one is missing. OCT_EMALFORMED. */
oct_status oct_round_parts_open(const char *const *path, size_t n, oct_round_parts **out, oct_err *err);
void oct_round_parts_close(oct_round_parts *p); /* p may be NULL */
/* Whether the files have results of this method. p may be NULL: false. */
bool oct_round_parts_has(const oct_round_parts *p, const char *method);
/* Uses the results of a method; *from: how many files have them. OCT_EUSAGE: the key is another one. */
oct_status oct_round_parts_use(oct_round_parts *p, const char *method, uint64_t key, size_t layers, size_t *from,
                               oct_err *err);
bool oct_round_parts_used(const oct_round_parts *p, const char *method);
/* The result for a layer. OCT_EMALFORMED: it has another size, or a weight exceeds the limit. */
oct_status oct_round_parts_take(const oct_round_parts *p, const char *method, oct_rounded *to, oct_err *err);
/* OCT_EUSAGE if some of the files are of a method that was not used; the message names the file. */
oct_status oct_round_parts_end(const oct_round_parts *p, oct_err *err);
/* Fails with OCT_EUSAGE: the files have no results of this method. */
oct_status oct_round_parts_lack(const oct_round_parts *p, const char *method, oct_err *err);

/* Writes a part that has n of all layers, by node. asked: a description of the work in JSON, which
 * the file begins with. */
oct_status oct_round_part_write(const oct_rounding_share *share, const char *asked, const char *method, uint64_t key,
                                size_t layers, const oct_rounded *const *own, size_t n, oct_err *err);

#endif
