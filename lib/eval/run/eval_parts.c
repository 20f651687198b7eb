/* An evaluation in parts. The contributions of samples are written, and later read in the order of the samples.
 *
 * The record of a sample has, for each metric with scores and each model, the score and the number of tokens; then the
 * contributions to the model's sets. The rest of the file has the first sample, sums of errors, ranges of inputs,
 * layers and broken samples. */
#include "eval/run/eval_int.h"
#include "eval/parts/part_sums.h"
#include "ops/op.h"

#include <math.h>
#include <stdlib.h>

/* ---- writing ---- */

static oct_status put_array(oct_buf *b, const oct_array *a, oct_err *err)
{
    if (a->dtype == OCT_STRING)
        return oct_fail(err, OCT_EUNSUPPORTED, "--shard cannot be used with models that have inputs of strings");
    oct_buf_add_u32(b, (uint32_t)a->dtype);
    oct_buf_add_u32(b, (uint32_t)a->rank);
    for (int i = 0; i < a->rank; i++)
        oct_buf_add_u64(b, (uint64_t)a->dims[i]);
    oct_buf_add_u64(b, a->bytes);
    oct_buf_add(b, a->data, a->bytes);
    return OCT_OK;
}

/* If results depend on which samples run together, they would differ in parts. */
static oct_status check_batches(const ev_evaluation *e, oct_err *err)
{
    for (size_t k = 0; k < e->n_subject; k++) {
        if ((e->o->batch <= 1 && e->fixed_batch <= 1) || !oct_op_shares_scales(e->models[k].graph))
            continue;
        oct_fail(
            err, OCT_EUNSUPPORTED,
            "%s quantizes dynamically, with scales that the samples of a batch share: parts have other batches than the whole",
            e->models[k].name);
        oct_hint(err, "with --batch 1 they have none, if the model takes one sample at a time");
        return OCT_EUNSUPPORTED;
    }
    return OCT_OK;
}

oct_status ev_part_begin(ev_evaluation *e, int64_t rows, oct_err *err)
{
    oct_buf *b = &e->first_blob;
    OCT_TRY(check_batches(e, err));
    oct_buf_add_u32(b, e->labels);
    oct_buf_add_u32(b, e->logits);
    oct_buf_add_u64(b, e->width);
    oct_buf_add_u64(b, e->judging.classes);
    oct_buf_add_u64(b, (uint64_t)e->fixed_batch);
    oct_buf_add_u64(b, (uint64_t)(rows > 1 && e->fixed_batch <= 1 ? 1 : rows));
    oct_buf_add_u64(b, e->n_metric);
    for (size_t i = 0; i < e->n_metric; i++)
        oct_buf_add_text(b, e->metric[i]->name);
    oct_buf_add_u64(b, e->n_inputs);
    for (size_t i = 0; i < e->n_inputs; i++)
        OCT_TRY(put_array(b, &e->first[i], err));
    ev_sets_set_apart(e->sets);
    return b->failed ? oct_nomem(err) : OCT_OK;
}

oct_status ev_part_sample(ev_evaluation *e, const oct_batch *b, size_t i, oct_err *err)
{
    oct_buf r = OCT_BUF_INIT;
    for (size_t m = 0; m < e->n_metric; m++)
        for (size_t k = 0; k < e->n_subject && e->metric[m]->score; k++) {
            oct_buf_add_f64(&r, e->score[m * e->n_subject + k]);
            if (e->metric[m]->weight)
                oct_buf_add_f64(&r, e->weight[m * e->n_subject + k]);
        }
    for (size_t k = 0; k < e->n_subject; k++)
        ev_sets_save(e->sets, k, &r);
    const oct_status s = oct_part_add(e->part, b->indices[i], &r, err);
    oct_buf_free(&r);
    return s;
}

static void put_bad(const ev_evaluation *e, oct_buf *b)
{
    size_t n = 0;
    while (oct_source_bad_text(e->src, n))
        n++;
    oct_buf_add_u64(b, (uint64_t)e->bad);
    oct_buf_add_u64(b, n);
    for (size_t i = 0; i < n; i++) {
        oct_buf_add_u64(b, (uint64_t)oct_source_bad_index(e->src, i));
        oct_buf_add_text(b, oct_source_bad_text(e->src, i));
    }
}

static void put_subject(const ev_evaluation *e, const ev_subject *s, oct_buf *b)
{
    for (size_t i = 0; i < e->n_out; i++) {
        const ev_output_tally *t = &s->compared[i];
        ev_put_sum(b, &s->sum[i]);
        oct_buf_add_u64(b, t->match.found);
        oct_buf_add_u64(b, t->match.of);
        oct_buf_add_u64(b, t->compared);
        oct_buf_add_u64(b, t->apart);
        oct_buf_add_u64(b, t->values);
        oct_buf_add_u64(b, t->ref_values);
    }
    oct_buf_add_u64(b, s->n_fit);
    for (size_t i = 0; i < s->n_fit; i++) {
        oct_buf_add_f64(b, s->fit[i].min);
        oct_buf_add_f64(b, s->fit[i].max);
        oct_buf_add_u64(b, s->fit[i].n);
        oct_buf_add_u64(b, s->fit[i].outside);
    }
}

static oct_status put_rest(const ev_evaluation *e, oct_buf *b, oct_err *err)
{
    oct_buf_add_text(b, oct_source_preprocess(e->src));
    put_bad(e, b);
    oct_buf_add_u64(b, (uint64_t)e->most_rows);
    oct_buf_add_u64(b, e->first_blob.len);
    oct_buf_add(b, oct_buf_str(&e->first_blob), e->first_blob.len);
    oct_buf_add_u64(b, e->n_subject);
    oct_buf_add_u64(b, e->n_out);
    for (size_t k = 0; k < e->n_subject; k++)
        put_subject(e, &e->subject[k], b);
    oct_buf_add_u64(b, (uint64_t)e->layer_samples);
    return e->layer_samples ? ev_layers_save(e->layers, b, err) : OCT_OK;
}

oct_status ev_part_end(ev_evaluation *e, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_status s = put_rest(e, &b, err);
    if (s == OCT_OK)
        s = oct_part_commit(e->part, &b, err);
    else
        oct_part_abort(e->part);
    oct_buf_free(&b);
    return s;
}

/* ---- the first sample ---- */

static oct_status take_array(oct_bytes *r, oct_array *a, oct_err *err)
{
    int64_t dims[OCT_ARRAY_RANK] = { 0 };
    const oct_dtype t = (oct_dtype)oct_bytes_u32(r);
    const uint32_t rank = oct_bytes_u32(r);
    r->bad |= t <= OCT_UNDEFINED || t >= OCT_DTYPE_COUNT || t == OCT_STRING || rank > OCT_ARRAY_RANK;
    for (uint32_t i = 0; i < rank && !r->bad; i++) {
        dims[i] = (int64_t)oct_bytes_u64(r);
        r->bad |= dims[i] < 0;
    }
    int64_t count = 0;
    size_t bytes = 0;
    const oct_bytes data = oct_bytes_part(r, oct_bytes_u64(r));
    r->bad |= !oct_count(dims, (int)rank, &count) || !oct_dtype_bytes(t, count, &bytes) || bytes != data.n;
    if (r->bad)
        return OCT_OK;
    OCT_TRY(oct_array_create(a, t, (int)rank, dims, err));
    memcpy(a->data, data.p, bytes);
    return OCT_OK;
}

typedef struct first_sample {
    bool labels, logits;
    size_t width, classes;
    int64_t fixed_batch, rows;
    oct_bytes after; /* the data that follow: names of metrics, arrays */
} first_sample;

static first_sample open_first(oct_bytes r)
{
    first_sample f;
    f.labels = oct_bytes_u32(&r) != 0;
    f.logits = oct_bytes_u32(&r) != 0;
    f.width = (size_t)oct_bytes_u64(&r);
    f.classes = (size_t)oct_bytes_u64(&r);
    f.fixed_batch = (int64_t)oct_bytes_u64(&r);
    f.rows = (int64_t)oct_bytes_u64(&r);
    f.after = r;
    return f;
}

/* Whether the part has the metrics that are measured here. */
static oct_status check_metrics(const ev_evaluation *e, const oct_part *p, first_sample *f, oct_err *err)
{
    const size_t n = oct_bytes_count(&f->after, 8);
    bool same = n == e->n_metric;
    for (size_t i = 0; i < n && !f->after.bad; i++) {
        const char *name = oct_bytes_text(&f->after);
        same &= name && i < e->n_metric && strcmp(name, e->metric[i]->name) == 0;
    }
    if (same && f->logits == e->logits && f->width == e->width && f->classes == e->judging.classes)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "%s: %s", p->path,
             same ? "its first output had another meaning than in the other parts"
                  : "it has other metrics than those that are asked for");
    oct_hint(
        err, "%s",
        same
            ? "say with --decode what the outputs mean, and make the parts again"
            : "give the metrics of the gates also to the commands that make the parts: by --metric, or by the gates themselves");
    return OCT_EUSAGE;
}

static oct_status run_first(ev_evaluation *e, const oct_part *p, const first_sample *first, oct_err *err)
{
    first_sample f = *first;
    oct_array *arrays = oct_arena_calloc(e->arena, e->n_inputs + 1, sizeof *arrays);
    oct_status s = arrays ? OCT_OK : oct_nomem(err);
    for (size_t n = oct_bytes_count(&f.after, 8); n > 0 && !f.after.bad; n--)
        (void)oct_bytes_text(&f.after);
    oct_bytes_need(&f.after, oct_bytes_u64(&f.after) == e->n_inputs);
    for (size_t i = 0; i < e->n_inputs && !f.after.bad && s == OCT_OK; i++)
        if ((s = take_array(&f.after, &arrays[i], err)) == OCT_OK)
            f.after.bad |= arrays[i].dtype != e->inputs[i].dtype;
    if (s == OCT_OK && (f.after.bad || f.rows < 0 || f.fixed_batch < 0))
        s = oct_part_broken(p, "its first sample is none of these models'", err);
    const oct_batch b = { .n = 1, .tensors = arrays, .n_tensors = e->n_inputs };
    e->labels = f.labels;
    e->fixed_batch = f.fixed_batch;
    if (s == OCT_OK)
        s = ev_run_models(e, &b, f.rows, err);
    for (size_t i = 0; arrays && i < e->n_inputs; i++)
        oct_array_free(&arrays[i]);
    for (size_t k = 0; k < e->n_subject; k++) /* the first sample is among the samples of the parts */
        for (size_t i = 0; i < e->subject[k].n_fit; i++) {
            oct_input_fit *fit = &e->subject[k].fit[i];
            fit->min = INFINITY;
            fit->max = -INFINITY;
            fit->n = fit->outside = 0;
        }
    return s;
}

/* ---- the rest ---- */

typedef struct bad_sample {
    uint64_t index;
    const char *text;
} bad_sample;

typedef struct gathered {
    bad_sample *bad;
    size_t n_bad, cap_bad;
} gathered;

static oct_status take_bad(ev_evaluation *e, oct_bytes *r, gathered *g, oct_err *err)
{
    const uint64_t all = oct_bytes_u64(r);
    const size_t n = oct_bytes_count(r, 16);
    r->bad |= all > INT64_MAX / 2 || n > all || e->bad > INT64_MAX / 2;
    for (size_t i = 0; i < n && !r->bad; i++) {
        const uint64_t index = oct_bytes_u64(r);
        const char *text = oct_bytes_text(r);
        oct_bytes_need(r, text != NULL);
        if (!OCT_GROW(e->arena, g->bad, g->n_bad, g->cap_bad))
            return oct_nomem(err);
        g->bad[g->n_bad++] = (bad_sample){ index, text };
    }
    e->bad += r->bad ? 0 : (int64_t)all;
    return OCT_OK;
}

static void take_subject(const ev_evaluation *e, ev_subject *s, oct_bytes *r)
{
    for (size_t i = 0; i < e->n_out; i++) {
        ev_output_tally *t = &s->compared[i];
        ev_take_sum(r, &s->sum[i]);
        t->match.found += oct_bytes_u64(r);
        t->match.of += oct_bytes_u64(r);
        t->compared += oct_bytes_u64(r);
        t->apart += oct_bytes_u64(r);
        t->values += oct_bytes_u64(r);
        t->ref_values += oct_bytes_u64(r);
    }
    oct_bytes_need(r, oct_bytes_u64(r) == s->n_fit);
    for (size_t i = 0; i < s->n_fit && !r->bad; i++) {
        oct_input_fit *f = &s->fit[i];
        f->min = fmin(f->min, oct_bytes_f64(r));
        f->max = fmax(f->max, oct_bytes_f64(r));
        f->n += oct_bytes_u64(r);
        f->outside += oct_bytes_u64(r);
    }
}

static oct_status take_rest(ev_evaluation *e, const oct_part *p, gathered *g, oct_err *err)
{
    oct_bytes r = p->rest;
    const char *preprocess = oct_bytes_text(&r);
    e->joined->preprocess = e->joined->preprocess ? e->joined->preprocess : preprocess;
    OCT_TRY(take_bad(e, &r, g, err));
    const int64_t rows = (int64_t)oct_bytes_u64(&r);
    e->most_rows = rows > e->most_rows ? rows : e->most_rows;
    const oct_bytes first = oct_bytes_part(&r, oct_bytes_u64(&r));
    first_sample f = open_first(first);
    if (p->samples)
        OCT_TRY(check_metrics(e, p, &f, err));
    oct_bytes_need(&r, oct_bytes_u64(&r) == e->n_subject && oct_bytes_u64(&r) == e->n_out);
    for (size_t k = 0; k < e->n_subject && !r.bad; k++)
        take_subject(e, &e->subject[k], &r);
    const uint64_t layers = oct_bytes_u64(&r);
    r.bad |= layers > p->samples || (layers && !e->layers) || (p->samples && f.after.bad);
    if (!r.bad && layers)
        OCT_TRY(ev_layers_load(e->layers, &r, p->path, err));
    e->layer_samples += r.bad ? 0 : (int64_t)layers;
    return r.bad || r.n ? oct_part_broken(p, "what it holds is not of these models", err) : OCT_OK;
}

static int by_place(const void *a, const void *b)
{
    const bad_sample *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

/* Lists the first broken samples in the order of the data. If a file cannot be read to its end, every part finds the
 * same fault, which counts once. */
static oct_status list_bad(ev_evaluation *e, gathered *g, oct_err *err)
{
    enum { MOST = 100 };
    oct_joined *j = e->joined;
    if (!(j->bad = oct_arena_calloc(e->kept, MOST, sizeof *j->bad)))
        return oct_nomem(err);
    if (g->n_bad)
        qsort(g->bad, g->n_bad, sizeof *g->bad, by_place);
    for (size_t i = 0; i < g->n_bad; i++) {
        if (i && g->bad[i].index == g->bad[i - 1].index)
            e->bad--;
        else if (j->n_bad < MOST)
            j->bad[j->n_bad++] = g->bad[i].text;
    }
    j->bad_samples = e->bad;
    return OCT_OK;
}

/* ---- the samples ---- */

static oct_status take_sample(ev_evaluation *e, const oct_part *p, oct_bytes *r, oct_err *err)
{
    for (size_t m = 0; m < e->n_metric; m++)
        for (size_t k = 0; k < e->n_subject && e->metric[m]->score; k++) {
            e->score[m * e->n_subject + k] = oct_bytes_f64(r);
            e->weight[m * e->n_subject + k] = e->metric[m]->weight ? oct_bytes_f64(r) : 0;
        }
    for (size_t k = 0; k < e->n_subject && !r->bad; k++)
        OCT_TRY(ev_sets_load(e->sets, k, r, err));
    if (r->bad || r->n)
        return oct_part_broken(p, "a sample's record is not of these models and metrics", err);
    ev_take_scores(e);
    e->given++;
    return OCT_OK;
}

static oct_status no_samples(const oct_parts *parts, oct_err *err)
{
    oct_fail(err, OCT_EMALFORMED, "%s: no part holds a sample", parts->v[0].path);
    oct_hint(err, "make the parts again, of data that is there");
    return OCT_EMALFORMED;
}

oct_status ev_join_parts(ev_evaluation *e, oct_parts *parts, oct_err *err)
{
    gathered g = { 0 };
    const oct_part *p;
    oct_bytes record;
    int64_t index;
    OCT_TRY(oct_parts_next(parts, &index, &record, &p, err));
    if (!p)
        return no_samples(parts, err);
    /* Finds the part that has the first of all samples. */
    oct_bytes r = p->rest;
    (void)oct_bytes_text(&r);
    OCT_TRY(take_bad(e, &r, &g, err));
    e->bad = 0;
    g.n_bad = 0;
    (void)oct_bytes_u64(&r);
    const first_sample f = open_first(oct_bytes_part(&r, oct_bytes_u64(&r)));
    if (r.bad || f.after.bad)
        return oct_part_broken(p, "its first sample is cut short", err);
    OCT_TRY(run_first(e, p, &f, err));
    for (size_t i = 0; i < parts->n; i++)
        OCT_TRY(take_rest(e, &parts->v[i], &g, err));
    OCT_TRY(list_bad(e, &g, err));
    while (p) {
        OCT_TRY(take_sample(e, p, &record, err));
        if (e->o->progress)
            e->o->progress(e->o->progress_arg, "joining", e->given, (int64_t)oct_parts_samples(parts));
        OCT_TRY(oct_parts_next(parts, &index, &record, &p, err));
    }
    return OCT_OK;
}
