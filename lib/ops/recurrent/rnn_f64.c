/* Recurrent operators of float64. */
#include "ops/recurrent/rnn_f64.h"

#include "ops/core/unary_f64.h"

#include <math.h>
#include <string.h>

/* One sequence in one direction. */
typedef struct sequence {
    const oct_rnn *g;
    const oct_rnn_act *act;
    const double *w, *r, *bias, *peephole; /* of the direction; bias and peephole may be NULL */
    double *gates, *h, *c, *next;          /* f64[gates * hidden], f64[hidden] each */
} sequence;

typedef struct job {
    const oct_step *s;
    const oct_rnn *g;
    const int32_t *lens;
    double *scratch;
} job;

int64_t oct_rnn_f64_slot(const oct_rnn *g)
{
    return (g->gates + 3) * g->hidden;
}

static double *data_of(oct_operand *const *list, int n, int slot)
{
    return slot < n && list[slot] ? list[slot]->data : NULL;
}

/* The functions of an activation, on a value that was clipped. */
static double activated(const sequence *q, const oct_rnn_act *act, double x)
{
    const double limit = (double)q->g->clip;
    x = x < -limit ? -limit : x > limit ? limit : x;
    for (int i = 0; i < act->n; i++)
        oct_unary_f64(&act->f[i], x, &x);
    return x;
}

/* a[k] times row j of a matrix with k columns, added to sum in ascending order. */
static double add_row(double sum, const double *a, const double *m, int64_t j, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        sum = fma(a[i], m[j * k + i], sum);
    return sum;
}

/* Gates [from, to) before their function: the bias, x W, and h R where `with_h` is set. */
static void products(const sequence *q, const double *x, int64_t from, int64_t to, bool with_h)
{
    const int64_t n = q->g->gates * q->g->hidden;
    for (int64_t j = from; j < to; j++) {
        double sum = q->bias ? q->bias[j] + (with_h ? q->bias[n + j] : 0.0) : 0.0;
        sum = add_row(sum, x, q->w, j, q->g->inputs);
        q->gates[j] = with_h ? add_row(sum, q->h, q->r, j, q->g->hidden) : sum;
    }
}

static void plain_step(const sequence *q, const double *x)
{
    products(q, x, 0, q->g->hidden, true);
    for (int64_t j = 0; j < q->g->hidden; j++)
        q->next[j] = activated(q, &q->act[0], q->gates[j]);
}

static void gru_step(const sequence *q, const double *x)
{
    const int64_t n = q->g->hidden;
    const double *z = q->gates, *r = z + n, *bias = q->bias ? q->bias + 3 * n : NULL;
    double *reset = q->c; /* r h: a GRU has no other state */
    products(q, x, 0, 2 * n, true);
    products(q, x, 2 * n, 3 * n, false);
    for (int64_t j = 0; j < 2 * n; j++)
        q->gates[j] = activated(q, &q->act[0], q->gates[j]);
    for (int64_t j = 0; j < n; j++)
        reset[j] = r[j] * q->h[j];
    for (int64_t j = 0; j < n; j++) {
        const double b = bias ? bias[2 * n + j] : 0.0;
        const double own = q->g->linear_before_reset ? r[j] * add_row(b, q->h, q->r, 2 * n + j, n)
                                                     : add_row(b, reset, q->r, 2 * n + j, n);
        const double fresh = activated(q, &q->act[1], q->gates[2 * n + j] + own);
        q->next[j] = (1.0 - z[j]) * fresh + z[j] * q->h[j];
    }
}

static void lstm_step(const sequence *q, const double *x)
{
    const int64_t n = q->g->hidden;
    const double *p = q->peephole;
    products(q, x, 0, 4 * n, true);
    for (int64_t j = 0; j < n; j++) {
        double *i = q->gates + j, *o = i + n, *f = o + n, *g = f + n;
        *i = activated(q, &q->act[0], p ? *i + p[j] * q->c[j] : *i);
        *f = q->g->input_forget ? 1.0 - *i : activated(q, &q->act[0], p ? *f + p[2 * n + j] * q->c[j] : *f);
        q->c[j] = *f * q->c[j] + *i * activated(q, &q->act[1], *g);
        *o = activated(q, &q->act[0], p ? *o + p[n + j] * q->c[j] : *o);
        double shown = q->c[j];
        for (int k = 0; k < q->act[2].n; k++)
            oct_unary_f64(&q->act[2].f[k], shown, &shown);
        q->next[j] = *o * shown;
    }
}

/* Places of a state, and of step t, of a sequence: with layout 1 the batch comes first. */
static int64_t state_at(const oct_rnn *g, int64_t d, int64_t b)
{
    return (g->batch_first ? b * g->dirs + d : d * g->batch + b) * g->hidden;
}

static int64_t step_at(const oct_rnn *g, int64_t t, int64_t b)
{
    return g->batch_first ? b * g->steps + t : t * g->batch + b;
}

static void load_state(const job *j, int slot, int64_t at, double *to)
{
    const double *from = data_of(j->s->in, j->s->n_in, slot);
    if (from)
        memcpy(to, from + at, (size_t)j->g->hidden * sizeof *to);
    else
        memset(to, 0, (size_t)j->g->hidden * sizeof *to);
}

static void store(double *to, int64_t at, const double *from, int64_t n)
{
    if (to)
        memcpy(to + at, from, (size_t)n * sizeof *to);
}

static void run_sequence(const job *j, int64_t d, int64_t b, double *slot)
{
    const oct_rnn *g = j->g;
    const int64_t n = g->gates * g->hidden, length = j->lens ? j->lens[b] : g->steps;
    const double *x = data_of(j->s->in, j->s->n_in, 0), *bias = data_of(j->s->in, j->s->n_in, 3);
    const double *peephole = g->kind == OCT_RNN_LSTM ? data_of(j->s->in, j->s->n_in, 7) : NULL;
    double *y = data_of(j->s->out, j->s->n_out, 0);
    sequence q = { .g = g,
                   .act = g->act[d],
                   .gates = slot,
                   .h = slot + n,
                   .c = slot + n + g->hidden,
                   .next = slot + n + 2 * g->hidden };
    q.w = data_of(j->s->in, j->s->n_in, 1) + d * n * g->inputs;
    q.r = data_of(j->s->in, j->s->n_in, 2) + d * n * g->hidden;
    q.bias = bias ? bias + d * 2 * n : NULL;
    q.peephole = peephole ? peephole + d * 3 * g->hidden : NULL;
    load_state(j, 5, state_at(g, d, b), q.h);
    if (g->kind == OCT_RNN_LSTM)
        load_state(j, 6, state_at(g, d, b), q.c);
    for (int64_t i = 0; i < length; i++) {
        const int64_t t = d == 1 || g->backwards ? length - 1 - i : i;
        const double *now = x + step_at(g, t, b) * g->inputs;
        if (g->kind == OCT_RNN_LSTM)
            lstm_step(&q, now);
        else if (g->kind == OCT_RNN_GRU)
            gru_step(&q, now);
        else
            plain_step(&q, now);
        memcpy(q.h, q.next, (size_t)g->hidden * sizeof *q.h);
        store(y, ((g->batch_first ? step_at(g, t, b) * g->dirs + d : (t * g->dirs + d) * g->batch + b)) * g->hidden,
              q.h, g->hidden);
    }
    store(data_of(j->s->out, j->s->n_out, 1), state_at(g, d, b), q.h, g->hidden);
    if (g->kind == OCT_RNN_LSTM)
        store(data_of(j->s->out, j->s->n_out, 2), state_at(g, d, b), q.c, g->hidden);
}

static void sequences(void *arg, size_t begin, size_t end, size_t thread)
{
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        run_sequence(j, (int64_t)i / j->g->batch, (int64_t)i % j->g->batch,
                     j->scratch + (int64_t)thread * oct_rnn_f64_slot(j->g));
}

void oct_rnn_f64(const oct_step *s, const oct_rnn *g, const int32_t *lens, oct_pool *pool, double *scratch)
{
    job j = { s, g, lens, scratch };
    oct_pool_for(pool, (size_t)(g->dirs * g->batch), 1, sequences, &j);
}
