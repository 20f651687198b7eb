/* lib/quant/job/unroll_products.h -- a product for each matrix of products that have several. */
#ifndef OCT_QUANT_UNROLL_PRODUCTS_H
#define OCT_QUANT_UNROLL_PRODUCTS_H

#include "quant/job/scope.h"

/* Rewrites products with several matrices as one for each matrix, if their weights will be in blocks. The nodes and
 * values added for this have no records in the job. *any: whether a product was rewritten. */
oct_status oct_unroll_products(oct_qjob *j, bool *any, oct_err *err);

#endif
