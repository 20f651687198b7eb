/* lib/forms/write_int.h -- what the files that write share. */
#ifndef OCT_FORMS_WRITE_INT_H
#define OCT_FORMS_WRITE_INT_H

#include "forms/edit.h"
#include "forms/forms_write.h"

/* How a node is written whose weights are annotated. */
typedef enum oct_spelling { OCT_SPELLED_QDQ, OCT_SPELLED_DYNAMIC, OCT_SPELLED_LSTM, OCT_SPELLED_BLOCKS } oct_spelling;

/* Constants of a grid. */
typedef struct oct_grid_consts {
    const oct_quant *of; /* NULL: no entry */
    int scale, zero;
} oct_grid_consts;

typedef struct oct_writer {
    oct_graph *g;
    const oct_forms_write_opts *o;
    oct_spelling *spelling; /* by node of the graph as it was */
    int *blocks;            /* by value of the graph as it was: constants of the matrix in blocks, written already, or -1 */
    oct_grid_consts *grid;  /* [grids], a power of two: open addressing by address */
    size_t grids;
} oct_writer;

/* What a quantized constant "X_quantized", or "X_quantized_2", stands for: X. NULL: no memory. */
const char *oct_write_base(const oct_writer *w, int value);

/* Whether the name of a value is known outside of its graph, or in one that a node holds. */
bool oct_write_keeps(const oct_graph *g, int v);
/* A constant of codes in the place of annotated constant v, which is removed, but for its uses; under its name where that is of codes. */
oct_status oct_write_codes(oct_writer *w, int v, const oct_tensor *t, int *codes, oct_err *err);
/* The real value that readers of annotated value v, which stands for `base`, have from now on; to be made by a DequantizeLinear. */
oct_status oct_write_real(oct_writer *w, int v, const char *base, int *real, oct_err *err);

/* write_qdq.c. Constants of a grid, made once for all values that have it: rank 0, or 1 per channel. */
oct_status oct_write_grid(oct_writer *w, const oct_quant *q, const char *base, int *scale, int *zero, oct_err *err);
/* Zero points alone, in any rank. */
oct_status oct_write_zeros(oct_graph *g, const oct_quant *q, const char *base, int rank, const int64_t *dims, int *v, oct_err *err);
/* The codes of an annotated constant and a DequantizeLinear in front of node `before`, for all that read it. */
oct_status oct_write_constant(oct_writer *w, int v, int before, oct_err *err);
/* An annotated value on the grid that real numbers are put on: made by an operator, or by the node that is its border. */
oct_status oct_write_activation(oct_writer *w, int v, oct_err *err);

/* Nodes of the other spellings. */
oct_status oct_write_dynamic(oct_writer *w, int id, oct_err *err);
oct_status oct_write_lstm(oct_writer *w, int id, oct_err *err);
oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err);
/* The same as oct_write_constant, of a matrix in blocks. */
oct_status oct_write_block_constant(oct_writer *w, int v, int before, oct_err *err);

#endif
