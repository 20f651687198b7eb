/* lib/quant/writer.h -- writing decisions into a graph: what the files of the rewrite share. */
#ifndef OCT_QUANT_WRITER_H
#define OCT_QUANT_WRITER_H

#include "quant/job.h"

typedef struct oct_writer {
    oct_qjob *j;
    oct_graph *g;
    int *scale, *zero; /* constants by grid root; -1 not made yet */
} oct_writer;

/* "<name><suffix>" in the graph's arena; NULL: no memory. */
const char *oct_writer_name(oct_writer *w, const char *name, const char *suffix);
/* The node that stands behind `node` in the order, or the first for -1; -1: none. */
int oct_writer_after(const oct_writer *w, int node);
/* A value or constant named after `base`; the value has the shape of value `like` (-1: none yet). */
oct_status oct_writer_value(oct_writer *w, const char *base, const char *suffix, oct_dtype t, int like, int *v, oct_err *err);
oct_status oct_writer_const(oct_writer *w, const char *base, const char *suffix, oct_dtype t, int rank, const int64_t *dims,
                            const void *data, int *v, oct_err *err);
/* A node of the default domain, named by what it makes, since names of values differ. node may be NULL. */
oct_status oct_writer_node(oct_writer *w, const char *op, const int *in, int n_in, int out, int before, int *node, oct_err *err);

/* The constant of a product's codes, in the type they are written in. */
oct_status oct_writer_codes(oct_writer *w, qweights *q, const char *base, int *v, oct_err *err);

/* write_lstm.c: an LSTM whose weights are quantized, as com.microsoft.DynamicQuantizeLSTM. */
oct_status oct_write_lstm(oct_writer *w, int id, oct_err *err);
/* write_blocks.c: weights in blocks, as MatMulNBits or behind DequantizeLinear. */
oct_status oct_write_blocks(oct_writer *w, int id, oct_err *err);

#endif
