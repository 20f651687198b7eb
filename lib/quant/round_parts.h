/* lib/quant/round_parts.h -- rounding in parts: what some processes have rounded, for one that converts.
 *
 * Where layers are rounded on inputs of the float model, none depends on another one. A part's file (eval/part.h) has a record for each of its layers, by
 * node: what its weights become. Behind the records stand the method, a key of all that rounding depends on, and how many layers there are in all. */
#ifndef OCT_QUANT_ROUND_PARTS_H
#define OCT_QUANT_ROUND_PARTS_H

#include "eval/part.h"

/* Which layers a process rounds, for another one that converts, and where it writes what they become. */
typedef struct oct_rounding_share {
    uint32_t part, parts;
    const char *path;
} oct_rounding_share;

extern const oct_part_form oct_part_of_rounding;

/* What a layer is rounded to; room of the caller's. */
typedef struct oct_rounded {
    int node;
    size_t weights, scales; /* how many */
    int limit;              /* quantized values lie within -limit..limit */
    bool bound;             /* whether safe pairs were tried, too */
    int8_t *qvals;          /* [weights] */
    int8_t *safe_qvals;     /* [weights], and */
    float *widened;         /* [scales], where it is bound */
    double noise[2];        /* of both */
} oct_rounded;

typedef struct oct_round_parts oct_round_parts;

/* Opens the files, which may be of several methods; path[n]: borrowed. *out NULL: n is 0. OCT_EUSAGE where parts do not belong together or lack one;
 * OCT_EMALFORMED. */
oct_status oct_round_parts_open(const char *const *path, size_t n, oct_round_parts **out, oct_err *err);
void oct_round_parts_close(oct_round_parts *p); /* NULL allowed */
/* Whether they have what the method gave. p NULL: they have not. */
bool oct_round_parts_has(const oct_round_parts *p, const char *method);
/* The same; *from: how many files. From then on they count as used. OCT_EUSAGE where it was another key. */
oct_status oct_round_parts_use(oct_round_parts *p, const char *method, uint64_t key, size_t layers, size_t *from, oct_err *err);
bool oct_round_parts_used(const oct_round_parts *p, const char *method);
/* What it gave a layer. OCT_EMALFORMED: not of its size, or a weight beyond its limit. */
oct_status oct_round_parts_take(const oct_round_parts *p, const char *method, oct_rounded *to, oct_err *err);
/* OCT_EUSAGE, with the file, where some are of a method that was not asked for. */
oct_status oct_round_parts_end(const oct_round_parts *p, oct_err *err);
/* OCT_EUSAGE: they have nothing of the method. */
oct_status oct_round_parts_lack(const oct_round_parts *p, const char *method, oct_err *err);

/* Writes a part: of so many layers n are its own, by node. asked: of the file. */
oct_status oct_round_part_write(const oct_rounding_share *share, const char *asked, const char *method, uint64_t key, size_t layers, const oct_rounded *const *own,
                                size_t n, oct_err *err);

#endif
