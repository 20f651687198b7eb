/* Tables of which nodes pick rows, such as embeddings, or matrices, as those of experts. They get 8 bits with a scale
 * for each row, whatever the scheme, because nothing is computed on them. If a product multiplies by the same numbers
 * (tied embeddings), its quantized weights serve as the table, so that they are stored once. */
#include "eval/metrics/summary.h"
#include "kernels/half.h"
#include "kernels/quantize.h"
#include "ops/core/waiting.h"
#include "passes/match.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"
#include "quant/weights/weights.h"

#include <math.h>

/* elements: for smaller tables the saving is not worth the additional nodes */
enum { LEAST = 1 << 14, PART = OCT_COUNT(((oct_chunk *)0)->f) };
#define LEAST_SCALE 0x1p-120f /* the smallest scale of a row; rows with smaller numbers become zeros */

static const oct_tensor *table_of(const oct_qjob *j, int node)
{
    return j->g->value[j->g->node[node].in[0]].constant;
}

bool oct_constant_is_finite(const oct_qjob *j, int value)
{
    const oct_tensor *t = j->g->value[value].constant;
    qfacts *f = &j->facts[value];
    if (f->checked == t)
        return f->finite;
    f->checked = t;
    f->finite = true;
    for (int64_t i = 0, n; i < t->count && f->finite; i += n) {
        oct_chunk part;
        n = t->count - i < PART ? t->count - i : PART;
        const float *x = oct_floats_load(t, i, 1, n, &part);
        for (int64_t k = 0; k < n && f->finite; k++)
            f->finite = isfinite(x[k]);
    }
    return f->finite;
}

const char *oct_no_table(const oct_qjob *j, int node, bool *is_table)
{
    const oct_node *n = &j->g->node[node];
    const int v = oct_input_at(n, 0);
    const oct_tensor *t = oct_graph_constant(j->g, v);
    *is_table = t && oct_has_floats(t) && t->dtype == OCT_F32 && t->rank >= 2 && oct_node_int(n, "axis", 0) == 0 &&
                n->out[0] >= 0 && !j->g->value[v].quant;
    if (!*is_table)
        return NULL;
    if (t->count < LEAST)
        return "the table is small";
    return oct_constant_is_finite(j, v) ? NULL : "its table has values that are not finite";
}

/* ---- products with the same numbers ---- */

static bool same_numbers(const oct_qjob *j, int product, const oct_tensor *t)
{
    const oct_tensor *w = oct_layer_weights(j->g, product);
    oct_weight_layout l;
    if (!w || w->rank != 2 || t->rank != 2 || w->dtype != OCT_F32 || !oct_has_floats(w) ||
        !oct_layer_layout(j->g, product, &l) || l.outs != t->dims[0] || l.ins != t->dims[1])
        return false;
    for (int64_t o = 0; o < l.outs; o++)
        for (int64_t k = 0, n; k < l.ins; k += n) {
            oct_chunk rows, weights;
            n = l.ins - k < PART ? l.ins - k : PART;
            const float *a = oct_floats_load(t, o * l.ins + k, 1, n, &rows),
                        *b = oct_floats_load(w, o * l.out_step + k * l.in_step, l.in_step, n, &weights);
            for (int64_t i = 0; i < n; i++)
                if (a[i] != b[i])
                    return false;
        }
    return true;
}

/* The next node after the first `from` of those that pick rows whose table has the product's numbers, and its place;
 * -1: there is none. */
static int next_tied(const oct_qjob *j, int product, size_t *from)
{
    bool is_table;
    while (*from < j->n_picker) {
        const int id = j->picker[(*from)++];
        if (!oct_no_table(j, id, &is_table) && is_table && same_numbers(j, product, table_of(j, id)))
            return id;
    }
    return -1;
}

bool oct_is_tied(const oct_qjob *j, int product)
{
    return next_tied(j, product, &(size_t){ 0 }) >= 0;
}

bool oct_tied_stays_real(const oct_qjob *j, int product)
{
    size_t from = 0;
    for (int id; (id = next_tied(j, product, &from)) >= 0;) {
        const oct_scheme asked = oct_row_of(j, id)->scheme;
        if (oct_kept_float(&j->constraints, id) || asked == OCT_SCHEME_FLOAT || oct_scheme_is_half(asked))
            return true;
    }
    return false;
}

/* Whether rows can be picked from a product's quantized weights with the indices of a node. */
static bool serves(const oct_qjob *j, int product, int node)
{
    const oct_scheme scheme = oct_scheme_of(j, product);
    oct_qconstant c;
    oct_weight_layout l;
    if (!oct_constant_of(j, product, 1, &c) || !oct_layer_layout(j->g, product, &l))
        return false;
    const oct_quant *q = c.quant;
    if (scheme == OCT_SCHEME_WEIGHT_ONLY)
        return q->block && l.ins % q->block == 0 && !j->opts.blocks_qdq;
    return (scheme == OCT_SCHEME_STATIC || scheme == OCT_SCHEME_DYNAMIC || scheme == OCT_SCHEME_STORED) && !q->block &&
           (l.out_axis == 0 || j->g->value[j->g->node[node].in[1]].shape.rank >= 0);
}

static int tied_product(const oct_qjob *j, int node)
{
    const qtable *before = j->constants[node].table;
    if (before && before->tied >= 0 && serves(j, before->tied, node) &&
        before->with == oct_layer_weights(j->g, before->tied))
        return before->tied;
    for (size_t i = 0; i < j->n_layer; i++)
        if (oct_op_is_layer(oct_op_of(j->g, j->layer[i])) && serves(j, j->layer[i], node) &&
            same_numbers(j, j->layer[i], table_of(j, node)))
            return j->layer[i];
    return -1;
}

/* ---- tables of their own ---- */

/* Whether GatherBlockQuantized picks and converts: where a decoder of 16-bit floats gets its products as MatMulNBits, a
 * Cast would be the only one between its layers. */
static bool in_one_node(const oct_qjob *j, int node)
{
    const oct_dtype own = j->g->value[j->g->node[node].out[0]].own_type;
    return (own == OCT_F16 || own == OCT_BF16) && table_of(j, node)->rank == 2 &&
           j->opts.scheme == OCT_SCHEME_WEIGHT_ONLY && !j->opts.blocks_qdq;
}

typedef struct rows_job {
    const oct_tensor *t;
    int64_t columns;
    oct_dtype dtype;
    uint8_t *qvals;
    float *scale, *wide; /* wide: f32[threads][columns] for 16-bit floats, or NULL */
    double *sums;        /* [rows][2]: signal, noise */
} rows_job;

/* The largest magnitude becomes 127 steps. */
static void quantize_row(const rows_job *w, int64_t r, float *wide)
{
    const oct_tensor *t = w->t;
    const int32_t zero = w->dtype == OCT_U8 ? 128 : 0;
    const int64_t n = w->columns;
    const float *row = wide ? wide : (const float *)t->data + r * n;
    uint8_t *q = w->qvals + r * n;
    float largest = 0;
    double signal = 0, noise = 0;
    if (wide)
        oct_widen(NULL, t->narrow_type, (const uint16_t *)t->narrow + r * n, (size_t)n, wide);
    for (int64_t k = 0; k < n; k++)
        largest = fabsf(row[k]) > largest ? fabsf(row[k]) : largest;
    w->scale[r] = largest / 127.0f >= LEAST_SCALE ? largest / 127.0f : 1.0f;
    oct_quantize_f32(NULL, w->dtype, row, (size_t)n, w->scale[r], zero, q);
    for (int64_t k = 0; k < n; k++) {
        const double d = (double)row[k] - (double)w->scale[r] * (zero ? q[k] - zero : (int8_t)q[k]);
        signal += (double)row[k] * (double)row[k];
        noise += d * d;
    }
    w->sums[2 * r] = signal;
    w->sums[2 * r + 1] = noise;
}

static void quantize_some_rows(void *arg, size_t begin, size_t end, size_t thread)
{
    const rows_job *w = arg;
    for (size_t r = begin; r < end; r++)
        quantize_row(w, (int64_t)r, w->wide ? w->wide + thread * (size_t)w->columns : NULL);
}

static oct_status quantize_rows(oct_qjob *j, const oct_tensor *t, oct_dtype dtype, oct_pool *pool, oct_quant *quant,
                                double *signal, double *noise, oct_err *err)
{
    enum { AT_ONCE = 16 };
    const int64_t columns = t->dims[t->rank - 1], rows = columns ? t->count / columns : 0;
    oct_tensor *qvals;
    rows_job w = { .t = t, .columns = columns, .dtype = dtype };
    *quant = (oct_quant){ .n = (int)rows, .dtype = dtype };
    OCT_TRY(oct_new_scales(j, quant, dtype == OCT_U8 ? 128 : 0, &w.scale, err));
    OCT_TRY(oct_tensor_new(j->lasting, dtype, t->rank, t->dims, &qvals, err));
    quant->qvals = qvals;
    w.qvals = (uint8_t *)(uintptr_t)qvals->data;
    w.sums = oct_calloc((size_t)rows + 1, 2 * sizeof *w.sums);
    w.wide = t->data ? NULL : oct_calloc((size_t)oct_pool_threads(pool), (size_t)columns * sizeof *w.wide);
    const oct_status s = w.sums && (t->data || w.wide) ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK)
        oct_pool_for(pool, (size_t)rows, AT_ONCE, quantize_some_rows, &w);
    for (int64_t r = 0; s == OCT_OK && r < rows; r++) {
        *signal += w.sums[2 * r];
        *noise += w.sums[2 * r + 1];
    }
    oct_free(w.sums);
    oct_free(w.wide);
    return s;
}

oct_status oct_quantize_rows(oct_qjob *j, const oct_tensor *t, oct_pool *pool, oct_quant *quant, double *signal,
                             double *noise, oct_err *err)
{
    return quantize_rows(j, t, OCT_S8, pool, quant, signal, noise, err);
}

static oct_status quantize_table(oct_qjob *j, int node, qtable *x, oct_pool *pool, oct_err *err)
{
    double signal = 0, noise = 0;
    x->at_once = in_one_node(j, node);
    OCT_TRY(quantize_rows(j, table_of(j, node), x->at_once ? OCT_U8 : OCT_S8, pool, &x->quant, &signal, &noise, err));
    x->sqnr = oct_decibels(signal, noise);
    return OCT_OK;
}

/* The quantized table of another node that picks from the same table, or NULL. */
static qtable *made_before(const oct_qjob *j, int node)
{
    for (size_t i = 0; i < j->n_layer && j->layer[i] != node; i++) {
        qtable *x = j->constants[j->layer[i]].table;
        if (x && x->quant.qvals && table_of(j, j->layer[i]) == table_of(j, node))
            return x;
    }
    return NULL;
}

static oct_status decide(oct_qjob *j, int node, oct_pool *pool, oct_err *err)
{
    const int tied = tied_product(j, node);
    qtable *x = j->constants[node].table;
    oct_weight_layout l;
    if (!x && !(x = made_before(j, node)) && !(x = oct_arena_calloc(j->arena, 1, sizeof *x)))
        return oct_nomem(err);
    j->constants[node].table = x;
    x->tied = tied;
    x->with = tied >= 0 ? oct_layer_weights(j->g, tied) : NULL;
    x->by_rows = tied < 0 || (oct_layer_layout(j->g, tied, &l) && l.out_axis == 0);
    return tied >= 0 || x->quant.qvals ? OCT_OK : quantize_table(j, node, x, pool, err);
}

static bool has_table(const oct_qjob *j, int node)
{
    const oct_op *op = oct_op_of(j->g, node);
    return op && op->picks && oct_scheme_of(j, node) == OCT_SCHEME_WEIGHT_ONLY;
}

oct_status oct_decide_tables(oct_qjob *j, oct_pool *pool, oct_err *err)
{
    for (size_t i = 0; i < j->n_layer; i++)
        if (has_table(j, j->layer[i]))
            OCT_TRY(oct_within_node(j->g, j->layer[i], decide(j, j->layer[i], pool, err), err));
    return OCT_OK;
}
