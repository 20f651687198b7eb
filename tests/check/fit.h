/* tests/check/fit.h -- costs of kernel records (kernels/cost.h) from times that were measured. */
#ifndef OCT_CHECK_FIT_H
#define OCT_CHECK_FIT_H

#include "kernels/cost.h"

#include <stdint.h>

enum { FIT_RECORDS = 32, FIT_SAMPLES = 8192 };
#define FIT_NEAR 1.08 /* a record may take this much longer than the fastest; --order allows 1.1 */

/* What a record took for a product. Samples of one product follow each other. */
typedef struct fit_sample {
    size_t product, record;
    double terms[OCT_COST_TERMS], seconds, weight;
} fit_sample;

typedef struct fit_record_cost {
    const char *name;
    double cost[OCT_COST_TERMS]; /* seconds */
} fit_record_cost;

typedef struct fit {
    fit_record_cost records[FIT_RECORDS];
    fit_sample samples[FIT_SAMPLES];
    size_t n_records, n;
} fit;

/* False: there is no room. */
bool fit_add(fit *f, size_t product, const char *name, const double terms[OCT_COST_TERMS], double seconds);
/* Sets the costs by least squares of the relative errors. Where they choose a slow record for a product its samples
 * count for more, again and again; the costs that choose best stay. Returns how many products they choose a slow one
 * for. */
size_t fit_solve(fit *f);

#endif
