/* lib/kernels/elem/columns.c -- columns of a matrix: the table's kernel. */
#include "kernels/columns.h"

#include "kernels/elem/table.h"

void oct_columns_f32(const float *x, size_t rows, size_t stride, oct_columns *c)
{
    oct_elem()->columns(x, rows, stride, c);
}
