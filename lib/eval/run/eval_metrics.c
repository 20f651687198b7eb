/* What the outputs of an evaluation mean, and which metrics they have: decided from the first batch. */
#include "eval/run/eval_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The shape of an output for one sample, without dimensions of 1: *n is the last one's size. Returns how many there
 * are. */
static int wide_dims(const oct_set_tensor *t, int64_t *n)
{
    int wide = 0;
    *n = 1;
    for (int k = 0; k < t->rank; k++) {
        wide += t->dims[k] > 1;
        *n = t->dims[k] > 1 ? t->dims[k] : *n;
    }
    return wide;
}

/* Checks that a metric of a set has what it needs. */
static oct_status check_set(const ev_evaluation *e, const oct_metric *m, oct_err *err)
{
    OCT_TRY(oct_metric_suits(m, &e->judging, err));
    if (m->set[OCT_SET_VALUES] || e->kase.set != OCT_SET_CLASSES || e->kase.labels)
        return OCT_OK;
    return oct_fail(err, OCT_EUSAGE, "metric '%s' needs labels, and the data has none", m->name);
}

/* Whether the metric is defined for the outputs. A rule that names an output means that one, which its set looks
 * for. */
static oct_status check_shapes(const ev_evaluation *e, const oct_metric *m, oct_err *err)
{
    const oct_set_tensor *t = &e->subject[0].tensor[0];
    const bool of_class = m->kind == OCT_METRIC_SET && m->set[OCT_SET_CLASSES] && e->kase.set == OCT_SET_CLASSES;
    char dims[96], shape[120];
    if (m->kind == OCT_METRIC_SET && e->judging.rule->output.given)
        return OCT_OK;
    oct_dims_text(dims, t->rank, t->dims);
    snprintf(shape, sizeof shape, "%s for a sample", dims);
    if (of_class && (e->kase.names || (!e->kase.list && !e->kase.single))) {
        oct_fail(err, OCT_EUSAGE, "metric '%s' is of one class for each sample, and the first output is %s", m->name,
                 shape);
        oct_hint(err, "a rule may say which output has the scores (--decode)");
        return OCT_EUSAGE;
    }
    return oct_metric_check(m, &e->kase, shape, err);
}

/* Adds a requested metric, if it is not there. */
static oct_status take_metric(ev_evaluation *e, const oct_metric *asked, oct_err *err)
{
    const oct_metric *m = oct_metric_as(asked, &e->kase);
    for (size_t i = 0; i < e->n_metric; i++)
        if (e->metric[i] == m)
            return OCT_OK;
    if (strncmp(m->name, "top", 3) == 0 && !e->kase.labels)
        return oct_fail(err, OCT_EUSAGE, "metric '%s' needs labels, and the data has none", m->name);
    if (m->kind == OCT_METRIC_SET)
        OCT_TRY(check_set(e, m, err));
    if (m->distributions && !e->width)
        return oct_fail(err, OCT_EUSAGE, "metric '%s' is of distributions over classes, and the first output has none",
                        m->name);
    if (m->relative && !e->kase.compared)
        return oct_fail(err, OCT_EUSAGE, "metric '%s' compares two models, and there is one", m->name);
    OCT_TRY(check_shapes(e, asked, err));
    e->metric[e->n_metric++] = m;
    return OCT_OK;
}

oct_status ev_decide_metrics(ev_evaluation *e, oct_err *err)
{
    const oct_eval_options *o = e->o;
    size_t room = 0;
    while (oct_metric_at(room))
        room++;
    e->metric = oct_arena_calloc(e->arena, room + o->n_metrics + o->n_needed + 2, sizeof *e->metric);
    if (!e->metric)
        return oct_nomem(err);
    if (o->command)
        e->metric[e->n_metric++] = oct_command_metric(o->command, false);
    for (size_t i = 0; o->metrics && i < o->n_metrics; i++)
        OCT_TRY(take_metric(e, o->metrics[i], err));
    for (size_t i = 0; !o->metrics && i < room; i++)
        if (oct_metric_at(i)->applies(&e->kase))
            e->metric[e->n_metric++] = oct_metric_as(oct_metric_at(i), &e->kase);
    for (size_t i = 0; i < o->n_needed; i++)
        OCT_TRY(take_metric(e, o->needed[i], err));
    if (o->main_limit && e->n_metric &&
        e->metric[0]->kind == OCT_METRIC_PROPORTION) /* others may have no drop; then the limit is of a later one */
        OCT_TRY(oct_drop_limit_check(o->main_limit, e->metric[0], err));
    for (size_t i = 0; i < e->n_metric; i++) {
        e->need_tokens |= e->metric[i]->kind == OCT_METRIC_TOKENS;
        e->of_tokens |= e->need_tokens || e->metric[i]->distributions;
    }
    OCT_TRY(ev_sets_create(&e->judging, e->metric, e->n_metric, o->per_class, e->n_subject, &e->sets, err));
    e->score = oct_arena_calloc(e->arena, e->n_metric + 1, e->n_subject * sizeof *e->score);
    e->weight = oct_arena_calloc(e->arena, e->n_metric + 1, e->n_subject * sizeof *e->weight);
    if (!e->score || !e->weight)
        return oct_nomem(err);
    for (size_t k = 0; k < e->n_subject; k++)
        if (!(e->subject[k].tally = oct_arena_calloc(e->arena, e->n_metric + 1, sizeof(ev_tally))))
            return oct_nomem(err);
    return OCT_OK;
}

/* Whether rows of v[n] are logits: they are not probabilities with sum 1. */
static bool are_logits(const float *v, size_t n, size_t width)
{
    for (size_t at = 0; width && at + width <= n; at += width) {
        double sum = 0;
        for (size_t i = 0; i < width; i++) {
            if (!(v[at + i] >= 0 && v[at + i] <= 1.001f))
                return true;
            sum += v[at + i];
        }
        if (width > 1 && fabs(sum - 1) > 1e-3)
            return true;
    }
    return false;
}

/* Which distributions the first output has: over its classes, over those of each token, or over two classes given by
 * one number. */
static void decide_distributions(ev_evaluation *e)
{
    const oct_set_tensor *t = &e->subject[0].tensor[0];
    const oct_decode_scores as = e->judging.rule->scores;
    int64_t last;
    (void)wide_dims(t, &last);
    e->width = e->kase.single ? 1 : e->kase.list || e->kase.positions ? (size_t)last : 0;
    e->logits = as == OCT_SCORES_AUTO ? are_logits(e->subject[0].out[0].v, (size_t)e->row[0], e->width)
                                      : as == OCT_SCORES_LOGITS;
}

/* Whether the first output is a Softmax or the like over its last dimension. */
static bool ends_in_competition(const oct_graph *g)
{
    const oct_value *v = &g->value[g->output[0]];
    const oct_op *op = v->producer >= 0 ? oct_op_of(g, v->producer) : NULL;
    const int64_t axis = op && op->competes ? oct_node_int(&g->node[v->producer], "axis", -1) : 0;
    return op && op->competes && (axis == -1 || axis == v->shape.rank - 1);
}

/* The value that is shifted or scaled by a constant; -1: there are none, or several. */
static int shifted(const oct_graph *g, const oct_node *n, const oct_op *op)
{
    int found = -1;
    for (int i = 0; i < n->n_in && op && op->quant == OCT_QUANT_ARITH; i++)
        if (n->in[i] >= 0 && !g->value[n->in[i]].constant) {
            if (found >= 0)
                return -1;
            found = n->in[i];
        }
    return found;
}

/* Whether the first output is a product with weights, moved, scaled and with a bias at most: no norm, no Sigmoid, and
 * nothing that was joined. */
static bool ends_in_product(const oct_graph *g)
{
    enum { MOST = 16 };
    int v = g->output[0];
    for (int i = 0; i < MOST && v >= 0 && g->value[v].producer >= 0; i++) {
        const oct_node *n = &g->node[g->value[v].producer];
        const oct_op *op = oct_op_of(g, g->value[v].producer);
        if (op && op->quant == OCT_QUANT_WEIGHTED)
            return n->n_in > 1 && n->in[1] >= 0 && g->value[n->in[1]].constant;
        v = op && (op->quant == OCT_QUANT_SAME || op->converts) ? n->in[0] : shifted(g, n, op);
    }
    return false;
}

/* Whether rows of v[n] look like logits that were trained: in every fourth at least one is more probable than all
 * others together, and it is not always the same. Features do not have that. */
static bool one_wins(const float *v, size_t n, size_t width)
{
    enum { LEAST = 8 }; /* coordinates of boxes and points are fewer */
    size_t rows = 0, wins = 0, first = 0;
    bool differ = false;
    for (size_t at = 0; width >= LEAST && at + width <= n; at += width, rows++) {
        size_t top = 0;
        double others = -1;
        for (size_t i = 1; i < width; i++)
            top = v[at + i] > v[at + top] ? i : top;
        for (size_t i = 0; i < width; i++)
            others += exp(v[at + i] - v[at + top]);
        if (!(others < 1))
            continue;
        differ |= wins && top != first;
        first = wins++ ? first : top;
    }
    return differ && 4 * wins >= rows;
}

/* Infers from the first batch of the reference what the outputs mean. */
void ev_decide_case(ev_evaluation *e, const oct_operand *out, int64_t rows)
{
    const oct_set_tensor *t = &e->subject[0].tensor[0];
    const bool scores = e->form[0] == OCT_HOLDS_NUMBERS ||
                        (e->form[0] == OCT_HOLDS_CODES && oct_dtype_is_real(out->dtype)); /* float codes: Hardmax */
    int64_t last;
    const int wide = wide_dims(t, &last);
    oct_metric_case *c = &e->kase;
    *c = (oct_metric_case){ .labels = e->labels,
                            .names = out->dtype == OCT_STRING,
                            .single = e->row[0] == 1 && (e->by_row[0] || rows == 0),
                            .reconstruction = e->in_f32 != NULL,
                            .compared = e->n_subject > 1 || e->o->only_float,
                            .set = oct_judging_kind(&e->judging),
                            .truth = e->judging.truth != NULL,
                            .masks = e->judging.rule->box.prototypes.given,
                            .keypoints = e->judging.rule->box.keypoints.given };
    const oct_truth_sequence *first =
        c->truth && c->set == OCT_SET_SEQUENCES ? oct_truth_sequence_of(e->judging.truth, 0) : NULL;
    c->texts = first && first->text;
    c->tags = e->judging.rule->n_tags > 0;
    c->list = scores && wide == 1 && (e->by_row[0] || rows == 0);
    c->classes = c->list && out->rank >= 2 ? (size_t)last : 0;
    c->positions =
        e->form[0] == OCT_HOLDS_NUMBERS && wide == 2 && t->dims[t->rank - 1] > 1 && (e->by_row[0] || rows == 0)
            ? t->n / (size_t)last
            : 0;
    c->competes =
        ends_in_competition(e->models[0].graph) || (c->positions && ends_in_product(e->models[0].graph) &&
                                                    one_wins(e->subject[0].out[0].v, (size_t)e->row[0], (size_t)last));
    c->codes = e->form[0] == OCT_HOLDS_CODES && !scores;
    c->numbers = oct_output_is_numbers(e->form[0]);
    for (size_t i = 0; i < e->n_out; i++)
        *(oct_output_is_numbers(e->form[i]) ? &c->any_numbers : &c->any_codes) = true;
    e->judging.classes = c->classes;
    e->judging.labels = e->labels;
    e->judging.compared = c->compared;
    decide_distributions(e);
}
