/* lib/quant/inputs/calibrate.h -- runs a float graph over samples and gathers statistics of chosen values.
 *
 * Each thread runs its own samples on its own plan and gathers into its own table, or, if there are thousands of
 * tensors, into one that threads share. The tables are merged at the end. Merging is exact, so the result does not
 * depend on the number of threads. Memory does not depend on the number of samples. */
#ifndef OCT_QUANT_CALIBRATE_H
#define OCT_QUANT_CALIBRATE_H

#include "base/progress.h"
#include "data/data.h"
#include "graph/graph.h"
#include "observers/calib.h"
#include "runtime/plan.h"

typedef struct oct_calibrate_opts {
    const char *const *values; /* what to observe, each name once */
    const int *axes; /* [n]: for per-channel moments, the dimension that holds the channels; -1: the last; 0: no
                        moments. NULL: none at all */
    size_t n;
    bool moments_only;     /* for values with an axis, gather only moments and no other statistics */
    bool all_positions;    /* moments are taken of all positions of a sample; otherwise of about 256 */
    bool part;             /* the samples are a part of a set: it is no error if there are none */
    int64_t limit;         /* stop after this many samples; 0: all */
    int64_t before, total; /* for a part of a pass: the number of samples before it, and the number in the whole pass;
                              total 0: this is the whole pass */
    int threads;
    oct_progress_fn progress; /* may be NULL */
    void *progress_arg;
    /* For checkpoints; NULL: there are none. `due` is called before each batch, by one thread at a time. If it returns
     * true, the threads finish their batches. Then `keep` is called with the table c, which has all that was gathered,
     * while src is positioned after these samples and nothing else runs. */
    bool (*due)(void *arg);
    void (*keep)(void *arg, const oct_calib *so_far, const oct_source *src);
    void *keep_arg;
} oct_calibrate_opts;

/* Adds statistics and the number of samples to c. g: the float graph; OCT_EUSAGE if it does not compute a value that is
 * asked for. src: positioned at the start, or after the samples that c already contains; it is read to its end.
 * OCT_EUSAGE if there is no sample, except for a part. If an operator is unknown, values that depend on it are left out
 * of c; if none remain, no sample is read. */
oct_status oct_calibrate(const oct_graph *g, oct_source *src, const oct_calibrate_opts *opts, oct_calib *c,
                         oct_err *err);

#endif
