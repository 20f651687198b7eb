/* The weights of an LSTM. Each of its gates' units is an output channel: one scale a row of W and R, [dirs][gates * hidden][k]. */
#include "quant/job.h"

#include <math.h>

/* One of W and R. */
typedef struct matrix {
    const float *w;
    int64_t dirs, rows, k;
    double signal, noise;
} matrix;

static matrix read_matrix(const oct_qjob *j, int node, int slot)
{
    const oct_node *n = &j->g->node[node];
    const oct_tensor *t = j->g->value[n->in[slot]].konst;
    oct_weight_layout l = { 0 };
    oct_weight_layout_of(oct_op_of(j->g, node), n, slot, t->rank, t->dims, &l);
    return (matrix){ .w = t->data, .dirs = l.matrices, .rows = l.outs, .k = l.ins };
}

/* Largest magnitudes by limit. */
static oct_status choose_scales(const matrix *m, int limit, qweights *q, oct_err *err)
{
    const int64_t per = m->dirs * m->rows / q->channels;
    for (int64_t r = 0; r < m->dirs * m->rows; r++) {
        float *top = &q->scale[r / per];
        for (int64_t i = r * m->k; i < (r + 1) * m->k; i++) {
            if (!isfinite(m->w[i]))
                return oct_fail(err, OCT_ENUMERIC, "a weight is not finite (element %lld)", (long long)i);
            *top = fabsf(m->w[i]) > *top ? fabsf(m->w[i]) : *top;
        }
    }
    for (int64_t c = 0; c < q->channels; c++) {
        q->scale[c] /= (float)limit;
        if (!(q->scale[c] >= 0x1p-120f))
            q->scale[c] = 1.0f; /* a channel of zeros */
    }
    return OCT_OK;
}

static void round_codes(matrix *m, int limit, const qweights *q)
{
    const int64_t per = m->dirs * m->rows / q->channels;
    int8_t *codes = (int8_t *)(uintptr_t)q->codes->data;
    for (int64_t r = 0; r < m->dirs * m->rows; r++) {
        const float scale = q->scale[r / per];
        int8_t *to = codes + r * m->k;
        for (int64_t i = 0; i < m->k; i++) {
            const float v = m->w[r * m->k + i], steps = rintf(v / scale), top = (float)limit;
            const float c = steps > top ? top : steps < -top ? -top : steps;
            const double d = (double)v - (double)c * (double)scale;
            to[i] = (int8_t)c;
            m->signal += (double)v * (double)v;
            m->noise += d * d;
        }
    }
}

static oct_status quantize(oct_qjob *j, int node, matrix *m, qweights **out, oct_err *err)
{
    const oct_policy_row *row = &j->node[node].row;
    const int limit = row->weights == OCT_WEIGHT_S7 ? 64 : 127;
    qweights *q = oct_arena_calloc(j->arena, 1, sizeof *q);
    if (!q)
        return oct_nomem(err);
    q->channels = row->per_channel ? m->dirs * m->rows : m->dirs;
    q->axis = row->per_channel ? 2 : 0;
    q->block = row->per_channel ? m->k : 0;
    q->limit = limit;
    if (!(q->scale = oct_arena_calloc(j->arena, (size_t)q->channels, sizeof *q->scale)))
        return oct_nomem(err);
    OCT_TRY(choose_scales(m, limit, q, err));
    OCT_TRY(oct_tensor_new(j->arena, OCT_S8, 3, (int64_t[]){ m->dirs, m->rows, m->k }, &q->codes, err));
    round_codes(m, limit, q);
    *out = q;
    return OCT_OK;
}

/* codes: [dirs][rows][k] */
static bool is_safe(const matrix *m, const qweights *q)
{
    const oct_weight_layout l = { .out_axis = 1, .in_axis = 2, .matrices = m->dirs, .groups = 1, .outs = m->rows, .ins = m->k, .taps = 1,
                                  .group_step = m->rows * m->k, .out_step = m->k, .in_step = 1 };
    for (int64_t i = 0; i < m->dirs; i++)
        if (!oct_pairs_safe(&l, (const int8_t *)q->codes->data + i * m->rows * m->k))
            return false;
    return true;
}

oct_status oct_quantize_recurrent(oct_qjob *j, int node, oct_err *err)
{
    matrix m[2] = { read_matrix(j, node, 1), read_matrix(j, node, 2) };
    qweights *q[2] = { NULL };
    if (j->weights[node] && j->recurrence[node])
        return OCT_OK; /* no statistics change them */
    for (int i = 0; i < 2; i++)
        OCT_TRY(quantize(j, node, &m[i], &q[i], err));
    /* Both have one type. */
    bool safe = oct_target_saturates(j->opts.target) && is_safe(&m[0], q[0]) && is_safe(&m[1], q[1]);
    q[0]->remedy = oct_weights_type(j, j->node[node].row.weights, OCT_U8, safe, &q[0]->dtype);
    q[1]->dtype = q[0]->dtype;
    const double noise = m[0].noise + m[1].noise;
    q[0]->sqnr = noise > 0 ? 10 * log10((m[0].signal + m[1].signal) / noise) : INFINITY;
    j->weights[node] = q[0];
    j->recurrence[node] = q[1];
    return OCT_OK;
}
