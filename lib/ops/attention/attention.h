/* lib/ops/attention/attention.h -- softmax(Q K' + bias) V of many heads, for every operator that computes attention.
 *
 * Each (batch, head) is a product of Q and K, a row function, and a product with V. Heads of queries share a head of
 * keys and values in groups of heads / kv_heads. float32 runs over the GEMM kernels, a block of rows at a time, so
 * scores of all rows never exist at once; float64 over plain loops. Results do not depend on threads. */
#ifndef OCT_OPS_ATTENTION_H
#define OCT_OPS_ATTENTION_H

#include "kernels/sgemm/sgemm.h"
#include "ops/op.h"

enum { OCT_ATTN_MASKS = 2 };

/* The content of the optional output of scores. */
typedef enum oct_attn_stage {
    OCT_ATTN_SCALED = 0,  /* scale * Q K'                */
    OCT_ATTN_CAPPED = 1,  /* behind softcap              */
    OCT_ATTN_BIASED = 2,  /* masks and bias added        */
    OCT_ATTN_WEIGHTS = 3, /* behind softmax              */
} oct_attn_stage;

typedef struct oct_attn {
    oct_dtype type; /* OCT_F32 or OCT_F64, of Q, K, V and all outputs */
    int64_t batch, heads, kv_heads;
    int64_t rows, keys;     /* of Q; of K and V */
    int64_t depth, depth_v; /* of Q and K; of V */
    bool sink;              /* each row has an additional score without a key */
    /* set by prepare */
    int64_t block, ld; /* rows computed at once, elements between rows of scores */
    int threads;
    bool by_head; /* threads work on different heads; else all share each product */
    oct_sgemm qk, pv;
    size_t packed_k, packed_v, kernel, scores, bias, slot; /* bytes */
} oct_attn;

/* Element (b, h, i, c) of a tensor at data[b * batch + h * head + i * row + c], in elements. */
typedef struct oct_attn_part {
    void *data;
    int64_t batch, head, row;
} oct_attn_part;

typedef struct oct_attn_io {
    oct_attn_part q, k, v, y;
    oct_attn_part scores;  /* [batch][heads][rows][keys]; data NULL: not wanted */
    oct_attn_stage stage;  /* which scores */
    double scale, softcap; /* softcap 0: none */
    /* Each broadcasts from the right to [batch][heads][rows][keys]; where it has fewer keys, the rest is masked. Bool:
     * false is masked; other types are added. NULL: absent. */
    const oct_operand *mask[OCT_ATTN_MASKS];
    double masked;         /* what masks of bool add where they are false: -INFINITY, or a large negative number */
    int64_t left, right;   /* row i sees keys offset + i - left to offset + i + right; -1: open */
    const int64_t *offset; /* s64[batch]: the key at row 0; NULL: 0 */
    const int64_t *first, *valid; /* s64[batch]: keys from first on, below valid; NULL: all. The others get `masked` */
    const float *sinks;           /* f32[heads]: the score without a key; NULL: 0 */
} oct_attn_io;

/* A tensor of heads: [batch][heads][length][depth], or [batch][length][heads * depth]. */
typedef struct oct_heads {
    int64_t batch, heads, length, depth;
    oct_attn_part part;
} oct_heads;

/* Reads a 3-D or 4-D operand; heads: of a 3-D one. OCT_EMALFORMED when it is neither or does not divide. */
oct_status oct_heads_read(const oct_operand *t, int64_t heads, oct_heads *h, oct_err *err);

/* Writes `past` (NULL: nothing) and then `fresh` to [batch][heads][past + fresh][depth] at `to`. The other sizes are
 * fresh's. */
void oct_heads_join(oct_pool *pool, oct_dtype type, const oct_heads *past, const oct_heads *fresh, void *to);

/* Checks nothing but sizes (OCT_ENOMEM when they overflow); *scratch: bytes that a run needs. */
oct_status oct_attn_prepare(oct_attn *a, int threads, size_t *scratch, oct_err *err);

/* Takes rows * cols elements of `elem` bytes from the end of a scratch of *scratch bytes: *at is where. False on
 * overflow. */
bool oct_attn_scratch(size_t *scratch, int64_t rows, int64_t cols, size_t elem, size_t *at);

/* A row all of whose keys are masked by -INFINITY gives zeros. y and scores must overlap no input. */
void oct_attn_run(const oct_attn *a, oct_pool *pool, const oct_attn_io *io, void *scratch);

#endif
