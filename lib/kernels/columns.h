/* lib/kernels/columns.h -- extremes and exact sums of the columns of a matrix. */
#ifndef OCT_KERNELS_COLUMNS_H
#define OCT_KERNELS_COLUMNS_H

#include "base/status.h"

/* Number of columns per call, and maximum number of rows for exact sums. */
enum { OCT_COLUMNS = 8, OCT_COLUMN_ROWS = 8192 };

typedef struct oct_columns {
    float min[OCT_COLUMNS], max[OCT_COLUMNS];
    double sum[2][OCT_COLUMNS]; /* their sum is the exact sum of the column, unless `inexact` */
    bool inexact;               /* a value is NaN or infinite, or below 2^-54 of the largest */
} oct_columns;

/* x f32[rows][stride], its first OCT_COLUMNS columns; 1 <= rows <= OCT_COLUMN_ROWS.
 *
 * Values are cut into two parts, multiples of 2^(t-39) and of 2^(t-78) where no value reaches 2^t, by adding and
 * subtracting a large number; 2^13 multiples of 39 bits fit into a double's 53, so sums of parts are exact in any
 * order. */
void oct_columns_f32(const float *x, size_t rows, size_t stride, oct_columns *c);

#endif
