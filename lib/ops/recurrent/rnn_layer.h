/* lib/ops/recurrent/rnn_layer.h -- what LSTM, GRU, RNN and DynamicQuantizeLSTM share: geometry, activations, products,
 * the cells.
 *
 * X is [steps][batch][inputs] (layout 0) or [batch][steps][inputs] (layout 1). Gates follow each other in rows of gates
 * * hidden values in ONNX's order: LSTM i o f c, GRU z r h. X W of all steps is one product; each step adds h R. A
 * reversed direction walks t downwards; a sequence that is shorter keeps its state where t is at or beyond its
 * length. */
#ifndef OCT_OPS_RNN_H
#define OCT_OPS_RNN_H

#include "kernels/qgemm/qgemm.h"
#include "kernels/sgemm/sgemm.h"
#include "kernels/unary.h"
#include "ops/core/infer.h"

typedef enum oct_rnn_kind { OCT_RNN_PLAIN, OCT_RNN_GRU, OCT_RNN_LSTM } oct_rnn_kind;

typedef struct oct_rnn_act {
    int n; /* functions applied one after the other */
    oct_unary f[3];
} oct_rnn_act;

typedef struct oct_rnn {
    oct_rnn_kind kind;
    int64_t gates, steps, batch, inputs, hidden, dirs;
    bool backwards;   /* direction 0 walks down (direction 1 always does) */
    bool batch_first; /* layout 1 */
    bool input_forget, linear_before_reset;
    float clip; /* INFINITY: none */
    oct_rnn_act act[2][3];
} oct_rnn;

/* Types and shapes of Y, Y_h, Y_c. */
oct_status oct_rnn_infer(const oct_infer *c, oct_err *err);

/* Reads attributes, and checks all inputs but W and R (1 and 2): OCT_EUNSUPPORTED for types other than f32
 * and, but for DynamicQuantizeLSTM, f64, or a mixture; OCT_EMALFORMED for shapes that do not fit and activations that
 * do not exist. */
oct_status oct_rnn_read(const oct_step *s, oct_rnn *g, oct_err *err);

/* ------------------------------------------------------------------ products */

/* A matrix k x n: f32, or 8-bit with the left side quantized at each run as DynamicQuantizeLinear does. */
typedef struct oct_rnn_mat {
    size_t n, k;
    bool dynamic;
    oct_sgemm s;
    oct_qgemm q;
    const float *scale; /* dynamic: of the columns ... */
    size_t scale_step;  /* ... 1, or 0 for one scale */
    const int32_t *zero;
    size_t zero_step;
    size_t packed_size, scratch_size; /* bytes, multiples of 64 */
    void *packed;
} oct_rnn_mat;

/* rows: the most rows of a run. */
oct_status oct_rnn_mat_f32(oct_rnn_mat *m, size_t n, size_t k, size_t rows, int threads, oct_err *err);
oct_status oct_rnn_mat_dynamic(oct_rnn_mat *m, size_t n, size_t k, size_t rows, oct_dtype type, int threads,
                               oct_err *err);
/* Element (i, j) at b[i * rs + j * cs], in elements. */
void oct_rnn_mat_pack(const oct_rnn_mat *m, const void *b, ptrdiff_t rs, ptrdiff_t cs, void *packed);

/* c = a * B + bias + add, a f32[rows][k] without gaps; bias f32[n] and add f32[rows][n] (with lda) may be NULL. f32:
 * the chain starts at the bias; dynamic: (float)acc * (s_a * s_b), then bias or add, of which it takes one. */
void oct_rnn_mat_run(const oct_rnn_mat *m, oct_pool *pool, size_t rows, const float *a, const void *packed,
                     const float *bias, const float *add, size_t lda, float *c, size_t ldc, void *scratch);

/* ------------------------------------------------------------------ cells */

/* One step of one direction, all rows. */
typedef struct oct_rnn_cell {
    const oct_rnn *g;
    const oct_rnn_act *act; /* three of them */
    float *gates;           /* f32[batch][gates * hidden]: in h R + x W + bias, overwritten */
    const float *peephole;  /* LSTM: f32[3][hidden] of i, o, f; or NULL */
    const float *x, *hr;    /* GRU with linear_before_reset: x W of gate h (with ldx), h R of it f32[batch][hidden] */
    size_t ldx;
    float *h, *c;        /* state f32[batch][hidden] */
    float *rh;           /* GRU: r * h, f32[batch][hidden] */
    bool by_change;      /* GRU: the new state is g + z (h - g), rounded as that, not (1 - z) g + z h */
    const int32_t *lens; /* i32[batch] or NULL */
    int64_t t;
    float *y;   /* row 0 of the output of this step, or NULL ... */
    size_t ldy; /* ... and elements between rows */
} oct_rnn_cell;

void oct_rnn_cell_plain(const oct_rnn_cell *c, oct_pool *pool);
void oct_rnn_cell_lstm(const oct_rnn_cell *c, oct_pool *pool);
/* GRU in two parts: z, r and r * h; then the new state. */
void oct_rnn_cell_gru_reset(const oct_rnn_cell *c, oct_pool *pool);
void oct_rnn_cell_gru(const oct_rnn_cell *c, oct_pool *pool);

#endif
