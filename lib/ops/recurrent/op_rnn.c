/* LSTM, GRU and RNN in float (of float64: rnn_f64.c); and with 8-bit weights, X and each step's h quantized as one
 * tensor: where weights are quantized (operand->q), and com.microsoft.DynamicQuantizeLSTM, which has them transposed,
 * and scales and zero points as inputs. A GRU and RNN with 8-bit weights compute what the nodes do that they are
 * written as (forms/write/write_recurrent.c). */
#include "ops/core/packed.h"
#include "ops/recurrent/rnn_f64.h"

#include <string.h>

typedef struct rnn_state {
    oct_rnn g;
    bool dynamic, packed;   /* packed: W and R are constant, packed once */
    bool transposed;        /* weights are [dirs][k][gates * hidden] */
    bool doubles;           /* float64 */
    int threads;            /* ... and how many its scratch is for */
    oct_rnn_mat w[2], r[2]; /* by direction; r of a GRU: gates z and r */
    oct_rnn_mat rh[2];      /* GRU: gate h */
    /* parts of the scratch, in bytes */
    size_t at_pack, at_bias, at_x, at_gates, at_h, at_c, at_rh, at_hr, at_kernel;
} rnn_state;

/* ------------------------------------------------------------------ preparing */

static bool take(size_t *at, int64_t count, size_t size, size_t *here)
{
    size_t bytes;
    *here = *at;
    return oct_mul_size((size_t)count, size, &bytes) && oct_add_size(bytes, 63, &bytes) &&
           oct_add_size(*at, bytes & ~(size_t)63, at);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in ? s->in[slot] : NULL;
}

/* W and R: [dirs][gates * hidden][k], or turned. */
static oct_status check_weights(const oct_step *s, const rnn_state *st, int slot, int64_t k, oct_err *err)
{
    const oct_operand *w = input(s, slot);
    int64_t n = st->g.gates * st->g.hidden, rows = st->transposed ? k : n, cols = st->transposed ? n : k;
    if (!w || w->rank != 3 || w->dims[0] != st->g.dirs || w->dims[1] != rows || w->dims[2] != cols)
        return oct_fail(err, OCT_EMALFORMED, "%c of %s must be [%lld,%lld,%lld]", slot == 1 ? 'W' : 'R', s->op->type,
                        (long long)st->g.dirs, (long long)rows, (long long)cols);
    if (st->dynamic ? w->dtype != OCT_U8 && w->dtype != OCT_S8 : w->dtype != s->in[0]->dtype)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s with weights of %s cannot be run", s->op->type,
                        oct_dtype_name(w->dtype));
    return OCT_OK;
}

/* Scales and zero points, `scales` and `zeros` of them: one a direction, or one a column of each. */
static void set_qparams(int64_t dirs, const float *scale, int64_t scales, const int32_t *zero, int64_t zeros,
                        oct_rnn_mat m[2])
{
    for (int64_t i = 0; i < dirs; i++) {
        m[i].scale_step = scales != dirs;
        m[i].scale = scale + i * (scales / dirs);
        m[i].zero_step = zero && zeros != dirs;
        m[i].zero = zero ? zero + i * (zeros / dirs) : NULL;
    }
}

/* Those of W (slot 8) or R (slot 10), or what the weights carry. */
static oct_status read_qparams(const oct_step *s, const rnn_state *st, const oct_prep *p, int slot, oct_rnn_mat m[2],
                               oct_err *err)
{
    const oct_operand *scale = input(s, slot), *zero = input(s, slot + 1);
    const oct_operand *w = s->in[slot == 8 ? 1 : 2];
    int64_t n = st->g.gates * st->g.hidden, d = st->g.dirs;
    if (w->q) {
        set_qparams(d, w->q->scale, w->q->n, w->q->zp, w->q->n, m);
        return OCT_OK;
    }
    if (!scale || !scale->constant || (zero && !zero->constant))
        return oct_fail(err, OCT_EUNSUPPORTED, "%s with computed scales cannot be run", s->op->type);
    if (scale->dtype != OCT_F32 || (scale->count != d && scale->count != d * n) ||
        (zero && ((zero->count != d && zero->count != d * n) || zero->dtype != w->dtype)))
        return oct_fail(err, OCT_EMALFORMED, "scales and zero points of %s do not fit its weights", s->op->type);
    int32_t *z = oct_arena_calloc(p->arena, zero ? (size_t)zero->count : 1, sizeof *z);
    if (!z)
        return oct_nomem(err);
    for (int64_t i = 0; zero && i < zero->count; i++)
        z[i] = zero->dtype == OCT_S8 ? ((const int8_t *)zero->data)[i] : ((const uint8_t *)zero->data)[i];
    set_qparams(d, scale->data, scale->count, zero ? z : NULL, zero ? zero->count : 0, m);
    return OCT_OK;
}

static oct_status make_mat(const rnn_state *st, oct_rnn_mat *m, size_t n, size_t k, size_t rows, oct_dtype type,
                           int threads, oct_err *err)
{
    return st->dynamic ? oct_rnn_mat_dynamic(m, n, k, rows, type, threads, err)
                       : oct_rnn_mat_f32(m, n, k, rows, threads, err);
}

static oct_status make_mats(rnn_state *st, const oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_rnn *g = &st->g;
    size_t h = (size_t)g->hidden, n = (size_t)g->gates * h, in = (size_t)g->inputs,
           rows = (size_t)(g->steps * g->batch);
    for (int64_t d = 0; d < g->dirs; d++) {
        OCT_TRY(make_mat(st, &st->w[d], n, in, rows, s->in[1]->dtype, p->threads, err));
        OCT_TRY(make_mat(st, &st->r[d], g->kind == OCT_RNN_GRU ? 2 * h : n, h, (size_t)g->batch, s->in[2]->dtype,
                         p->threads, err));
        if (g->kind == OCT_RNN_GRU)
            OCT_TRY(make_mat(st, &st->rh[d], h, h, (size_t)g->batch, s->in[2]->dtype, p->threads, err));
    }
    if (!st->dynamic)
        return OCT_OK;
    OCT_TRY(read_qparams(s, st, p, 8, st->w, err));
    OCT_TRY(read_qparams(s, st, p, 10, st->r, err));
    for (int64_t d = 0; d < g->dirs && g->kind == OCT_RNN_GRU; d++) { /* behind those of the gates z and r */
        const oct_rnn_mat *r = &st->r[d];
        st->rh[d].scale = r->scale + 2 * h * r->scale_step;
        st->rh[d].scale_step = r->scale_step;
        st->rh[d].zero = r->zero ? r->zero + 2 * h * r->zero_step : NULL;
        st->rh[d].zero_step = r->zero_step;
    }
    return OCT_OK;
}

static size_t packed_bytes(const rnn_state *st)
{
    return st->w[0].packed_size + st->r[0].packed_size + st->rh[0].packed_size;
}

/* W, then R, then R of the GRU's gate h, of one direction. */
static void pack(const rnn_state *st, const oct_step *s, int64_t d, char *to)
{
    const int64_t n = st->g.gates * st->g.hidden, h = st->g.hidden, in = st->g.inputs;
    const size_t size = st->dynamic ? 1 : sizeof(float);
    const char *w = (const char *)s->in[1]->data + (size_t)(d * n * in) * size;
    const char *r = (const char *)s->in[2]->data + (size_t)(d * n * h) * size;
    oct_rnn_mat_pack(&st->w[d], w, st->transposed ? n : 1, st->transposed ? 1 : in, to);
    to += st->w[d].packed_size;
    oct_rnn_mat_pack(&st->r[d], r, st->transposed ? n : 1, st->transposed ? 1 : h, to);
    to += st->r[d].packed_size;
    if (st->g.kind == OCT_RNN_GRU)
        oct_rnn_mat_pack(&st->rh[d], r + (size_t)(2 * h * h) * size, 1, h, to);
}

static void set_packed(rnn_state *st, int64_t d, char *to)
{
    st->w[d].packed = to;
    st->r[d].packed = to + st->w[d].packed_size;
    st->rh[d].packed = to + st->w[d].packed_size + st->r[d].packed_size;
}

static oct_status plan_scratch(rnn_state *st, oct_step *s, oct_err *err)
{
    const oct_rnn *g = &st->g;
    const int64_t n = g->gates * g->hidden, state = g->batch * g->hidden;
    const bool gru = g->kind == OCT_RNN_GRU;
    size_t kernel = most(st->w[0].scratch_size, most(st->r[0].scratch_size, st->rh[0].scratch_size)), at = 0;
    bool ok = take(&at, st->packed ? 0 : (int64_t)packed_bytes(st), 1, &st->at_pack);
    ok = ok && take(&at, n + g->hidden, sizeof(float), &st->at_bias);
    ok = ok && take(&at, g->steps * g->batch * n, sizeof(float), &st->at_x);
    ok = ok && take(&at, g->batch * n, sizeof(float), &st->at_gates);
    ok = ok && take(&at, state, sizeof(float), &st->at_h) && take(&at, state, sizeof(float), &st->at_c);
    ok = ok && take(&at, gru ? state : 0, sizeof(float), &st->at_rh) &&
         take(&at, gru ? state : 0, sizeof(float), &st->at_hr);
    ok = ok && take(&at, (int64_t)kernel, 1, &st->at_kernel);
    s->scratch = at;
    return ok ? OCT_OK : oct_nomem(err);
}

static oct_status prepare_doubles(rnn_state *st, oct_step *s, const oct_prep *p, oct_err *err)
{
    size_t bytes;
    st->doubles = true;
    st->threads = p->threads;
    if (!oct_mul_size((size_t)oct_rnn_f64_slot(&st->g), sizeof(double), &bytes) ||
        !oct_mul_size(bytes, (size_t)p->threads, &s->scratch))
        return oct_nomem(err);
    return OCT_OK;
}

static oct_status rnn_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    rnn_state *st = oct_arena_calloc(p->arena, 1, sizeof *st);
    if (!st)
        return oct_nomem(err);
    s->state = st;
    st->transposed = strcmp(s->op->type, "DynamicQuantizeLSTM") == 0;
    st->dynamic = st->transposed || (s->n_in > 2 && s->in[1] && s->in[1]->q);
    OCT_TRY(oct_rnn_read(s, &st->g, err));
    OCT_TRY(check_weights(s, st, 1, st->g.inputs, err));
    OCT_TRY(check_weights(s, st, 2, st->g.hidden, err));
    if (s->in[0]->dtype == OCT_F64)
        return prepare_doubles(st, s, p, err);
    OCT_TRY(make_mats(st, s, p, err));
    st->packed = s->in[1]->constant && s->in[2]->constant;
    for (int d = 0; d < 2; d++)
        st->w[d].q.fast_pack = st->r[d].q.fast_pack = st->rh[d].q.fast_pack = !st->packed;
    for (int64_t d = 0; st->packed && d < st->g.dirs; d++) {
        char *to = oct_packed_new(p, packed_bytes(st));
        if (!to)
            return oct_nomem(err);
        pack(st, s, d, to);
        set_packed(st, d, oct_packed_done(p, to, packed_bytes(st)));
    }
    return plan_scratch(st, s, err);
}

/* ------------------------------------------------------------------ running */

/* What a direction works on. */
typedef struct pass {
    const rnn_state *st;
    const oct_step *s;
    const oct_run *r;
    int64_t d, last; /* steps beyond `last` are padding of every sequence */
    bool down;
    rnn_state mats; /* with the packed matrices of this run */
    const int32_t *lens;
    float *bias, *x, *gates, *h, *c, *rh, *hr;
    char *kernel;
} pass;

static void *data_of(const oct_step *s, int slot)
{
    const oct_operand *t = input(s, slot);
    return t ? t->data : NULL;
}

static float *out_of(const oct_step *s, int slot)
{
    return slot < s->n_out && s->out[slot] ? s->out[slot]->data : NULL;
}

/* Wb + Rb, except that a GRU that resets after the product keeps Rb of gate h apart, behind the others. */
static void sum_bias(const pass *p)
{
    const oct_rnn *g = &p->st->g;
    const int64_t h = g->hidden, n = g->gates * h;
    const float *b = data_of(p->s, 3);
    memset(p->bias, 0, (size_t)(n + h) * sizeof(float));
    if (!b)
        return;
    b += p->d * 2 * n;
    const bool apart = g->kind == OCT_RNN_GRU && g->linear_before_reset;
    for (int64_t j = 0; j < n; j++)
        p->bias[j] = apart && j >= 2 * h ? b[j] : b[j] + b[n + j];
    if (apart)
        memcpy(p->bias + n, b + n + 2 * h, (size_t)h * sizeof(float));
}

/* State of sequence i of this direction in initial_h, initial_c, Y_h, Y_c. */
static size_t state_at(const oct_rnn *g, int64_t d, int64_t i)
{
    return (size_t)((g->batch_first ? i * g->dirs + d : d * g->batch + i) * g->hidden);
}

static void load_state(const pass *p, int slot, float *to)
{
    const oct_rnn *g = &p->st->g;
    const float *from = data_of(p->s, slot);
    for (int64_t i = 0; i < g->batch; i++, to += g->hidden)
        if (from)
            memcpy(to, from + state_at(g, p->d, i), (size_t)g->hidden * sizeof *to);
        else
            memset(to, 0, (size_t)g->hidden * sizeof *to);
}

static void store_state(const pass *p, int slot, const float *from)
{
    const oct_rnn *g = &p->st->g;
    float *to = out_of(p->s, slot);
    for (int64_t i = 0; to && i < g->batch; i++)
        memcpy(to + state_at(g, p->d, i), from + i * g->hidden, (size_t)g->hidden * sizeof *to);
}

/* x W of step t, sequence 0; and elements to the next sequence. */
static const float *x_of(const pass *p, int64_t t, size_t *ld)
{
    const oct_rnn *g = &p->st->g;
    const int64_t n = g->gates * g->hidden;
    *ld = (size_t)(g->batch_first ? g->steps * n : n);
    return p->x + (g->batch_first ? t * n : t * g->batch * n);
}

static oct_rnn_cell cell_of(const pass *p, int64_t t)
{
    const oct_rnn *g = &p->st->g;
    const float *peephole = g->kind == OCT_RNN_LSTM ? data_of(p->s, 7) : NULL;
    oct_rnn_cell c = { .g = g,
                       .act = g->act[p->d],
                       .gates = p->gates,
                       .h = p->h,
                       .c = p->c,
                       .rh = p->rh,
                       .hr = p->hr,
                       .by_change = p->st->dynamic,
                       .lens = p->lens,
                       .t = t };
    c.peephole = peephole ? peephole + p->d * 3 * g->hidden : NULL;
    c.y = out_of(p->s, 0);
    if (c.y)
        c.y += (g->batch_first ? t * g->dirs + p->d : (t * g->dirs + p->d) * g->batch) * g->hidden;
    c.ldy = (size_t)((g->batch_first ? g->steps * g->dirs : 1) * g->hidden);
    return c;
}

static void gru_step(const pass *p, oct_rnn_cell *c, const float *x, size_t ldx)
{
    const oct_rnn *g = &p->st->g;
    const size_t h = (size_t)g->hidden, rows = (size_t)g->batch;
    const oct_rnn_mat *zr = &p->mats.r[p->d], *gate = &p->mats.rh[p->d];
    oct_rnn_mat_run(zr, p->r->pool, rows, p->h, zr->packed, NULL, x, ldx, p->gates, 3 * h, p->kernel);
    oct_rnn_cell_gru_reset(c, p->r->pool);
    if (g->linear_before_reset)
        oct_rnn_mat_run(gate, p->r->pool, rows, p->h, gate->packed, p->bias + 3 * h, NULL, 0, p->hr, h, p->kernel);
    else
        oct_rnn_mat_run(gate, p->r->pool, rows, p->rh, gate->packed, NULL, x + 2 * h, ldx, p->gates + 2 * h, 3 * h,
                        p->kernel);
    c->x = x + 2 * h;
    c->ldx = ldx;
    oct_rnn_cell_gru(c, p->r->pool);
}

static void run_steps(const pass *p)
{
    const oct_rnn *g = &p->st->g;
    const size_t n = (size_t)(g->gates * g->hidden), rows = (size_t)g->batch;
    oct_rnn_mat m = p->mats.r[p->d];
    for (int64_t i = 0; i < p->last; i++, m.q.backwards = !m.q.backwards) {
        const int64_t t = p->down ? p->last - 1 - i : i;
        size_t ldx;
        const float *x = x_of(p, t, &ldx);
        oct_rnn_cell c = cell_of(p, t);
        if (g->kind == OCT_RNN_GRU) {
            gru_step(p, &c, x, ldx);
            continue;
        }
        oct_rnn_mat_run(&m, p->r->pool, rows, p->h, m.packed, NULL, x, ldx, p->gates, n, p->kernel);
        if (g->kind == OCT_RNN_LSTM)
            oct_rnn_cell_lstm(&c, p->r->pool);
        else
            oct_rnn_cell_plain(&c, p->r->pool);
    }
}

static void run_direction(const oct_step *s, const oct_run *r, int64_t d, const int32_t *lens, int64_t last)
{
    const rnn_state *st = s->state;
    const oct_rnn *g = &st->g;
    char *at = r->scratch;
    pass p = { .st = st,
               .s = s,
               .r = r,
               .d = d,
               .last = last,
               .down = d == 1 || g->backwards,
               .mats = *st,
               .lens = lens,
               .bias = (float *)(at + st->at_bias),
               .x = (float *)(at + st->at_x),
               .gates = (float *)(at + st->at_gates),
               .h = (float *)(at + st->at_h),
               .c = (float *)(at + st->at_c),
               .rh = (float *)(at + st->at_rh),
               .hr = (float *)(at + st->at_hr),
               .kernel = at + st->at_kernel };
    if (!st->packed) {
        set_packed(&p.mats, d, at + st->at_pack);
        pack(st, s, d, at + st->at_pack);
    }
    sum_bias(&p);
    load_state(&p, 5, p.h);
    if (g->kind == OCT_RNN_LSTM)
        load_state(&p, 6, p.c);
    const oct_rnn_mat *w = &p.mats.w[d];
    const bool whole =
        g->batch_first || (st->dynamic && g->kind != OCT_RNN_LSTM); /* one scale for all steps, padding too */
    const int64_t rows = g->batch * (whole ? g->steps : last);
    oct_rnn_mat_run(w, r->pool, (size_t)rows, s->in[0]->data, w->packed, p.bias, NULL, 0, p.x, w->n, p.kernel);
    run_steps(&p);
    store_state(&p, 1, p.h);
    if (g->kind == OCT_RNN_LSTM)
        store_state(&p, 2, p.c);
}

static oct_status rnn_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const rnn_state *st = s->state;
    const int32_t *lens = data_of(s, 4);
    int64_t last = lens ? 0 : st->g.steps;
    for (int64_t i = 0; lens && i < st->g.batch; i++) {
        if (lens[i] < 0 || lens[i] > st->g.steps)
            return oct_fail(err, OCT_EMALFORMED, "sequence_lens holds %d for %lld steps", lens[i],
                            (long long)st->g.steps);
        last = lens[i] > last ? lens[i] : last;
    }
    if (lens && out_of(s, 0)) /* steps that are padding stay zero */
        memset(out_of(s, 0), 0, (size_t)s->out[0]->count * (st->doubles ? sizeof(double) : sizeof(float)));
    if (st->doubles) {
        oct_rnn_f64(s, &st->g, lens, oct_pool_threads(r->pool) > st->threads ? NULL : r->pool, r->scratch);
        return OCT_OK;
    }
    for (int64_t d = 0; d < st->g.dirs; d++)
        run_direction(s, r, d, lens, last);
    return OCT_OK;
}

/* ------------------------------------------------------------------ records */

static const char *lstm_no_integer(const oct_node *n)
{
    return oct_node_int(n, "layout", 0) ? "the dynamic form has no batch in front" : NULL;
}

/* W and R, [directions, gates * hidden, input or hidden], or the last two exchanged. */
#define RECURRENT(name, onnx, where, first, least, ins, outs, from, to, ...)                                     \
    const oct_op oct_op_##name = { OCT_SCHEMA(onnx, where, first, least, ins, 0, outs),                          \
                                   .work = OCT_WORK_INPUTS,                                                      \
                                   .weights = { .slots = 1u << 1 | 1u << 2, .out = to, .in = from, .data = -1 }, \
                                   .batch = 1,                                                                   \
                                   .batch_first = "layout",                                                      \
                                   .infer = oct_rnn_infer,                                                       \
                                   .prepare = rnn_prepare,                                                       \
                                   .run = rnn_run,                                                               \
                                   .widens = true,                                                               \
                                   __VA_ARGS__ }

RECURRENT(rnn, "RNN", "", 7, 3, 6, 2, -1, -2, .quant = OCT_QUANT_RECURRENT, .dynamic = true, .body = true);
RECURRENT(gru, "GRU", "", 7, 3, 6, 2, -1, -2, .quant = OCT_QUANT_RECURRENT, .dynamic = true, .body = true);
RECURRENT(lstm, "LSTM", "", 7, 3, 8, 3, -1, -2, .quant = OCT_QUANT_RECURRENT, .dynamic = true,
          .no_integer = lstm_no_integer);
RECURRENT(dynamic_quantize_lstm, "DynamicQuantizeLSTM", "com.microsoft", 1, 3, 12, 3, -2, -1, .scheme = "int8",
          .shared_scale = true);
