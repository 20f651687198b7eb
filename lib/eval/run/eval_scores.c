/* The scores of samples, and what they add up to. */
#include "eval/run/eval_int.h"

#include <math.h>

/* Which places of n values of row i of a batch have a token; NULL: nothing says that some have not. */
static const int64_t *present_of(const ev_evaluation *e, size_t n, size_t i, size_t rows)
{
    const size_t places = e->width ? n / e->width : 0;
    const bool fit = places && (i + 1) * places <= e->tokens.n_present && (e->by_row[0] || rows == 1);
    return fit ? e->tokens.present + i * places : NULL;
}

static oct_sample_view view_of(const ev_evaluation *e, const ev_subject *s, const oct_batch *b, size_t i)
{
    size_t n = (size_t)e->row[0], at = e->by_row[0] ? i * n : 0;
    return (oct_sample_view){
        .out = s->out[0].v + at,
        .ref = e->subject[0].out[0].v + at,
        .n_out = n,
        .in = e->in_f32 ? e->in_f32 + at : NULL,
        .errors = s->sample,
        .match = s->match,
        .codes = e->kase.codes,
        .n_errors = e->n_out,
        .label = b->labels ? b->labels[i] : -1,
        .next = e->of_tokens && e->tokens.length ? e->tokens.next + i * e->tokens.length : NULL,
        .tokens = e->of_tokens ? e->tokens.length : 0,
        .present = present_of(e, n, b->n == 1 ? 0 : i, b->n),
        .threshold = e->judging.rule->threshold,
        .width = e->width,
        .logits = e->logits,
    };
}

static void add_score(ev_tally *t, double reference, double score)
{
    if (isnan(score))
        return;
    t->sum += score;
    t->n++;
    oct_paired_add(&t->pair, reference, score);
}

void ev_take_scores(ev_evaluation *e)
{
    for (size_t m = 0; m < e->n_metric; m++)
        for (size_t k = 0; k < e->n_subject && e->metric[m]->score; k++) {
            const size_t at = m * e->n_subject + k;
            e->subject[k].tally[m].weight += e->weight[at];
            add_score(&e->subject[k].tally[m], e->score[at - k], e->score[at]);
        }
}

/* Adds sample i of the batch to the sets of all models. */
static oct_status add_to_sets(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err)
{
    const int64_t rows = oct_batch_rows(e->src, b);
    for (size_t k = 0; k < e->n_subject; k++) {
        ev_subject *s = &e->subject[k];
        for (size_t o = 0; o < e->n_out; o++)
            s->tensor[o].v = s->out[o].v + (e->by_row[o] ? i * s->tensor[o].n : 0);
        const oct_set_view v = { .name = b->names[i],
                                 .index = b->indices[i],
                                 .label = b->labels ? b->labels[i] : -1,
                                 .out = s->tensor,
                                 .ref = e->subject[0].tensor,
                                 .n_out = e->n_out,
                                 .batch = b,
                                 .row = i,
                                 .rows = rows,
                                 .source = e->src,
                                 .inputs = e->inputs };
        const oct_status st = ev_sets_add(e->sets, k, &v, err);
        if (st != OCT_OK) {
            oct_within(err, "%s", e->models[k].name);
            return st;
        }
    }
    return OCT_OK;
}

/* The score of an output of another length than the float model's. It agrees with nothing: left out, it would make a
 * model better. Of errors there is no largest, and the others are told apart by how many there are. */
static double score_apart(const oct_metric *m)
{
    return oct_metric_in_percent(m) && m->larger_is_better ? 0 : NAN;
}

oct_status ev_score_sample(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err)
{
    int64_t label = b->labels ? b->labels[i] : -1;
    e->unlabelled += label < 0;
    if (e->kase.classes && label >= (int64_t)e->kase.classes) {
        oct_fail(err, OCT_EMALFORMED, "%s: label %lld, but the model has %zu classes (counted from 0)", b->names[i],
                 (long long)label, e->kase.classes);
        oct_hint(err, "labels that count from 1 need 1 subtracted");
        return OCT_EMALFORMED;
    }
    for (size_t k = 0; k < e->n_subject; k++)
        OCT_TRY(ev_outputs_compare(e, &e->subject[k], i, err));
    for (size_t m = 0; m < e->n_metric; m++) {
        if (!e->metric[m]->score)
            continue;
        for (size_t k = 0; k < e->n_subject; k++) {
            oct_sample_view v = view_of(e, &e->subject[k], b, i);
            v.k = e->metric[m]->k;
            double score =
                e->subject[k].apart[0] && !e->metric[m]->of_all ? score_apart(e->metric[m]) : e->metric[m]->score(&v);
            if (k == 0 && e->metric[m]->relative &&
                !isnan(score)) /* what equal outputs have, also where its own are NaN */
                score = e->metric[m]->larger_is_better;
            e->score[m * e->n_subject + k] = score;
            e->weight[m * e->n_subject + k] = e->metric[m]->weight && !isnan(score) ? e->metric[m]->weight(&v) : 0;
        }
    }
    if (ev_sets_wanted(e->sets))
        OCT_TRY(add_to_sets(e, b, i, err));
    if (e->part)
        return ev_part_sample(e, b, i, err);
    ev_take_scores(e);
    return OCT_OK;
}

/* Runs the command for model k, which prints as many numbers as for the first. */
static oct_status numbers_of(ev_evaluation *e, size_t k, double **values, size_t *n, oct_err *err)
{
    size_t count;
    const oct_status s = oct_command_finish(e->subject[k].command, e->o->command, e->arena, values, &count, err);
    if (s != OCT_OK) {
        oct_within(err, "%s", e->models[k].name);
        return s;
    }
    if (k && count != *n)
        return oct_fail(err, OCT_EMALFORMED, "%s: the command printed %zu numbers for %s, %zu for %s",
                        e->o->command->command, *n, e->models[0].name, count, e->models[k].name);
    *n = count;
    return OCT_OK;
}

/* A sample that the command leaves out for one model alone is a loss, whichever that is: else a model would become
 * better by failing. */
static void add_pair(ev_tally *t, double reference, double score, bool proportion)
{
    if (isnan(reference) == isnan(score)) {
        add_score(t, reference, score);
        return;
    }
    t->lost++;
    if (isnan(score) && proportion)
        add_score(t, reference, 0);
    else if (proportion)
        oct_paired_add(&t->pair, 1, 0);
}

/* Runs the command for each model. Its metric is the first one. */
oct_status ev_run_metric_command(ev_evaluation *e, oct_err *err)
{
    size_t n = 0;
    bool proportion = true;
    double **values = oct_arena_calloc(e->arena, e->n_subject, sizeof *values);
    if (!values)
        return oct_nomem(err);
    for (size_t k = 0; k < e->n_subject; k++) {
        OCT_TRY(numbers_of(e, k, &values[k], &n, err));
        for (size_t i = 0; i < n; i++)
            proportion &= values[k][i] == 0 || values[k][i] == 1 || isnan(values[k][i]);
    }
    for (size_t k = 0; k < e->n_subject; k++)
        for (size_t i = 0; i < n; i++)
            add_pair(&e->subject[k].tally[0], values[0][i], values[k][i], proportion);
    e->one_number = n == 1;
    e->metric[0] = oct_command_metric(e->o->command, proportion && !e->one_number);
    return OCT_OK;
}
