/* lib/quant/calibrate.h -- runs a float graph over samples and gathers statistics of chosen values.
 *
 * Each thread runs its own samples on its own plan and gathers into its own table; the tables are merged at the end,
 * which is exact, so the result does not depend on the number of threads. Memory does not depend on the samples. */
#ifndef OCT_QUANT_CALIBRATE_H
#define OCT_QUANT_CALIBRATE_H

#include "base/progress.h"
#include "data/data.h"
#include "graph/graph.h"
#include "observers/calib.h"
#include "runtime/plan.h"

typedef struct oct_calibrate_opts {
    const char *const *values; /* what to observe */
    const int *axes;           /* [n]: dimension of channels for per-channel moments, -1 the last, 0 none; NULL: none */
    size_t n;
    bool moments_only;         /* of values with an axis; no statistics */
    bool all_positions;        /* moments are of all positions of a sample, where else some 256 are enough */
    bool part;                 /* of a set: that it holds no sample is no error */
    int64_t limit;             /* stop after this many samples; 0: all */
    int64_t before, total;     /* where this is a part of a pass: samples that came before it, and all of the pass; total 0: it is all */
    int threads;
    oct_progress_fn progress;  /* may be NULL */
    void *progress_arg;
    /* For checkpoints; NULL: none. due is asked before each batch, one thread at a time; where it says so the threads finish their batches, and keep is given
     * c with all that they have gathered, while src stands behind these samples and nothing else runs. */
    bool (*due)(void *arg);
    void (*keep)(void *arg, const oct_calib *so_far, const oct_source *src);
    void *keep_arg;
} oct_calibrate_opts;

/* g: float graph; values that it does not compute (unknown names) are OCT_EUSAGE. src: positioned at the start, or behind the
 * samples that c holds already; read to its end. Adds tensors and the number of samples to c. No sample at all is OCT_EUSAGE (but for a part). Where an operator is unknown, the values that depend on
 * it are left out of c; when that leaves none, no sample is read. */
oct_status oct_calibrate(const oct_graph *g, oct_source *src, const oct_calibrate_opts *opts, oct_calib *c, oct_err *err);

#endif
