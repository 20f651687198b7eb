/* Runs the samples through the model, and writes the table. */
#include "api/calibration.h"

#include "api/checkpoint.h"
#include "api/samples_int.h"
#include "base/io.h"
#include "base/number_text.h"
#include "observers/exercise.h"
#include "onnx/model.h"
#include "quant/inputs/calibrate.h"
#include "quant/quant.h"

#include <stdio.h>
#include <string.h>

/* The values to observe: everything that any policy could ask of any target, so that the table can be used again when
 * they change. */
typedef struct wanted {
    const char **names;
    int *axes;
    size_t n;
} wanted;

static void add_wanted(wanted *w, const oct_qjob *j)
{
    size_t n;
    const int *axes;
    const char *const *names = oct_qjob_values(j, &axes, &n);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < w->n && strcmp(w->names[k], names[i]) != 0)
            k++;
        if (k == w->n) {
            w->names[w->n] = names[i];
            w->axes[w->n++] = axes[i];
        } else if (!w->axes[k]) {
            w->axes[k] = axes[i];
        }
    }
}

/* The name by which `qcalib merge` recognizes parts of the same samples: the values of --data as given. */
static void set_name(const octet_samples *d, oct_buf *b)
{
    for (size_t i = 0; i < d->data.n; i++) {
        size_t n = strlen(d->data.v[i]);
        while (n > 1 && d->data.v[i][n - 1] == '/')
            n--;
        if (i)
            oct_buf_puts(b, " ");
        oct_buf_add(b, d->data.v[i], n);
    }
    if (d->get)
        oct_buf_puts(b, OCT_GIVEN);
    if (d->samples)
        oct_buf_printf(b, " %s=%lld", d->first ? "first" : "samples", (long long)d->samples);
    if (d->seed > 0)
        oct_buf_printf(b, " seed=%lld", (long long)d->seed);
}

static oct_status describe(const octet_calibrate_options *a, const oct_model *m, const oct_source *src, oct_calib *c,
                           oct_err *err)
{
    oct_buf set = OCT_BUF_INIT;
    set_name(&a->samples, &set);
    oct_status s = set.failed ? oct_nomem(err) : OCT_OK;
    if (s == OCT_OK)
        s = oct_calib_set_model(c, oct_path_base(a->model), oct_model_hash(m), err);
    if (s == OCT_OK)
        s = oct_calib_set_preprocess(c, oct_source_preprocess(src), err);
    if (s == OCT_OK)
        s = oct_calib_add_shard(c, oct_buf_str(&set), (uint32_t)a->shard, (uint32_t)(a->shards ? a->shards : 1), err);
    oct_buf_free(&set);
    return s;
}

static void warn_unexercised(const oct_calibration_host *h, const oct_calib *c)
{
    const oct_exercise x = oct_calib_exercise(c);
    oct_buf b = OCT_BUF_INIT;
    oct_exercise_tell(&x, &b);
    if (b.len)
        oct_say(h->voice, OCT_NOTE_WARNING, "%s", oct_buf_str(&b));
    oct_buf_free(&b);
    oct_calibration_warn_few(h->voice, c);
}

/* Everything that determines the table. A run that differs in one of these must not continue from the checkpoint of
 * another. */
static void bind(oct_checkpoint *p, const octet_calibrate_options *a, const oct_calib *c, const oct_source *src,
                 const wanted *w)
{
    char text[48];
    uint64_t values = OCT_HASH_INIT;
    oct_buf states = OCT_BUF_INIT;
    for (size_t i = 0; i < w->n; i++) {
        values = oct_hash(values, w->names[i], strlen(w->names[i]) + 1);
        values = oct_hash(values, &w->axes[i], sizeof w->axes[i]);
    }
    for (size_t i = 0; i < a->samples.states.n; i++)
        oct_buf_printf(&states, "%s%s", i ? " " : "", a->samples.states.v[i]);
    oct_checkpoint_bind(p, "version", OCT_VERSION);
    oct_checkpoint_bind_hash(p, "model", c->model_hash);
    oct_checkpoint_bind(p, "preprocess", c->preprocess);
    oct_checkpoint_bind(p, "data", c->shards[0].set);
    snprintf(text, sizeof text, "%lld/%lld", (long long)a->shard, (long long)(a->shards ? a->shards : 1));
    oct_checkpoint_bind(p, "shard", text);
    oct_checkpoint_bind(p, "skip-bad", a->samples.skip_bad ? "yes" : "no");
    if (a->samples.generate)
        oct_buf_printf(&states, " --generate %lld", (long long)a->samples.generate);
    oct_checkpoint_bind(p, "state", oct_buf_str(&states));
    oct_checkpoint_bind_hash(p, "files", oct_source_list_hash(src));
    oct_checkpoint_bind_hash(p, "tensors", values);
    p->run.failed |= states.failed;
    oct_buf_free(&states);
}

static oct_status open_samples(const oct_calibration_host *h, const octet_calibrate_options *a, const oct_model *m,
                               const oct_graph *g, oct_samples *samples, oct_source **src, oct_calib *c, oct_err *err)
{
    OCT_TRY(oct_samples_open(g, samples, 0, src, err));
    if (*oct_source_preprocess_words(*src))
        oct_say(h->voice, *oct_source_preprocess(*src) ? 0 : 1, "preprocessing: %s", oct_source_preprocess_words(*src));
    oct_samples_say_beside(h->voice, samples);
    oct_samples_say_chosen(h->voice, *src);
    return describe(a, m, *src, c, err);
}

static void tell(const oct_calibration_host *h, const octet_calibrate_options *a, const oct_calib *c, size_t asked)
{
    if (c->samples == 0)
        oct_say(h->voice, OCT_NOTE_WARNING, "shard %lld/%lld holds no samples", (long long)a->shard,
                (long long)a->shards);
    if (c->n_tensors < asked)
        oct_say(h->voice, OCT_NOTE_WARNING,
                "%zu of %zu tensors could not be calibrated: they depend on an operator that is not known here",
                asked - c->n_tensors, asked);
    warn_unexercised(h, c);
}

/* What tells later whether the parts of a set were made from the same samples. Streams, of which another pass would
 * cost as much as the first one or cannot be, and samples that need those in front of them are not looked into; nor is
 * it an error that a sample of another part is broken. */
static oct_status mark_part(const octet_calibrate_options *a, oct_source *src, oct_calib *c, oct_err *err)
{
    enum { WITNESSES = 16 };
    oct_calib_shard mark = c->shards[0];
    oct_batch b = OCT_BATCH_INIT;
    oct_err why = OCT_ERR_INIT;
    if (a->shards <= 1)
        return OCT_OK;
    mark.files = oct_source_list_hash(src);
    oct_status s = a->samples.states.n || oct_source_is_once(src) || oct_source_runs_commands(src)
                       ? OCT_EUNSUPPORTED
                       : oct_source_pick(src, &(oct_pick){ .most = WITNESSES }, &why);
    if (s == OCT_OK)
        s = oct_source_sum(src, &why);
    /* Where their number is not known, what a pick has is the first ones, and the end is not waited for. */
    for (int i = 0; s == OCT_OK && i < WITNESSES; i++)
        if ((s = oct_source_next(src, 1, &b, &why)) == OCT_OK && b.n == 0)
            break;
    oct_batch_free(&b);
    unsigned char digest[OCT_SHA256_BYTES];
    if (s == OCT_OK && oct_source_digest(src, digest))
        mark.samples = oct_hash(OCT_HASH_INIT, digest, sizeof digest);
    oct_calib_mark_shard(c, &mark);
    return s == OCT_ENOMEM ? oct_nomem(err) : OCT_OK;
}

static oct_status tell_made(const oct_calibration_host *h, const octet_calibrate_options *a, const oct_calib *c,
                            double start, oct_err *err)
{
    oct_document *d = oct_document_create();
    if (d)
        oct_calibration_answer(a, c, oct_now() - start, d);
    const oct_item *answer = oct_item_at(oct_document_root(d), "answer");
    const oct_status s = answer ? h->made(h->arg, c, answer, err) : oct_nomem(err);
    oct_document_destroy(d);
    return s;
}

static oct_status gather(const oct_calibration_host *h, const octet_calibrate_options *a, const oct_graph *g,
                         const wanted *w, oct_source *src, oct_calib *c, oct_err *err)
{
    const double start = oct_now();
    oct_checkpoint p = { 0 };
    oct_calibrate_opts o = { .values = w->names,
                             .axes = w->axes,
                             .n = w->n,
                             .threads = a->threads,
                             .part = a->shards > 1,
                             .progress = h->voice.progress,
                             .progress_arg = h->voice.arg };
    oct_status s = a->resume ? oct_checkpoint_open(&p, h->voice, a->output, err) : OCT_OK;
    if (s == OCT_OK && a->resume) {
        bind(&p, a, c, src, w);
        oct_source_keep_marks(src);
        s = oct_checkpoint_take(&p, src, c, err);
        o.before = (int64_t)c->samples;
        o.due = oct_checkpoint_due;
        o.keep = oct_checkpoint_keep;
        o.keep_arg = &p;
    }
    if (s == OCT_OK && (s = oct_calibrate(g, src, &o, c, err)) == OCT_EUSAGE && o.before)
        oct_hint(err, "remove %s to start over", p.path);
    if (s == OCT_OK) {
        oct_samples_say_taken(h->voice, src);
        s = mark_part(a, src, c, err);
    }
    if (s == OCT_OK)
        s = oct_calib_save(c, a->output, err);
    if (s == OCT_OK && h->made)
        s = tell_made(h, a, c, start, err);
    if (s == OCT_OK)
        oct_checkpoint_done(&p);
    oct_checkpoint_close(&p);
    return s;
}

static oct_status observe(const oct_calibration_host *h, const octet_calibrate_options *a, oct_model *m,
                          const oct_graph *g, const wanted *w, oct_err *err)
{
    oct_source *src = NULL;
    oct_samples samples = {
        .of = a->samples, .shard_i = a->shard, .shard_n = a->shards, .given = h->given, .model = a->model
    };
    oct_calib *c = oct_calib_create();
    oct_status s = c ? open_samples(h, a, m, g, &samples, &src, c, err) : oct_nomem(err);
    if (s == OCT_OK)
        oct_say(h->voice, 1, "observing %zu tensors", w->n);
    if (s == OCT_OK)
        s = gather(h, a, g, w, src, c, err);
    if (s == OCT_OK)
        tell(h, a, c, w->n);
    oct_source_close(src);
    oct_calib_destroy(c);
    return s;
}

/* Two jobs ask for values: the default one, and one for our own runtime with every node on integers. */
static oct_status with_graphs(const oct_calibration_host *h, const octet_calibrate_options *a, oct_model *m,
                              oct_graph *other, oct_err *err)
{
    oct_policy *policy = NULL, *all = NULL;
    oct_target *usual = NULL, *ours = NULL;
    oct_qjob *job = NULL, *most = NULL;
    wanted w = { 0 };
    oct_status s = oct_policy_create(NULL, &policy, err);
    if (s == OCT_OK)
        s = oct_policy_create(NULL, &all, err);
    if (s == OCT_OK)
        s = oct_policy_add(all, "any static", "calibration", err);
    if (s == OCT_OK)
        s = oct_target_open(oct_target_builtin(0, NULL), &usual, err);
    if (s == OCT_OK)
        s = oct_target_open("octet", &ours, err);
    oct_qjob_opts o = { .policy = policy, .target = usual, .have_data = true };
    oct_qjob_opts p = { .policy = all, .target = ours, .have_data = true };
    if (s == OCT_OK)
        s = oct_qjob_create(m->graph, &o, &job, err);
    if (s == OCT_OK)
        s = oct_qjob_create(other, &p, &most, err);
    if (s == OCT_OK) {
        w.names = oct_calloc(m->graph->n_value + other->n_value + 1, sizeof *w.names);
        w.axes = oct_calloc(m->graph->n_value + other->n_value + 1, sizeof *w.axes);
        s = w.names && w.axes ? OCT_OK : oct_nomem(err);
    }
    if (s == OCT_OK) {
        add_wanted(&w, job);
        add_wanted(&w, most);
        if (w.n == 0) {
            s = oct_fail(err, OCT_EUNSUPPORTED, "nothing in the model can be quantized with calibrated ranges");
            oct_hint(err, "'qconvert MODEL --dry-run' gives the reason for every layer");
        }
    }
    if (s == OCT_OK)
        s = observe(h, a, m, m->graph, &w, err);
    oct_free(w.names);
    oct_free(w.axes);
    oct_qjob_destroy(job);
    oct_qjob_destroy(most);
    oct_target_close(usual);
    oct_target_close(ours);
    oct_policy_destroy(policy);
    oct_policy_destroy(all);
    return s;
}

static oct_status check_options(const octet_calibrate_options *x, oct_err *err)
{
    if (!x->model || !x->output)
        return oct_fail(err, OCT_EUSAGE, "there is no %s: its name is NULL", x->model ? "table to write" : "model");
    if (x->threads < 0 || x->threads > 1024)
        return oct_fail(err, OCT_EUSAGE, "%d threads: not between 0 and 1024", x->threads);
    if (x->shards < 0 || x->shards > INT32_MAX || (x->shards ? x->shard < 0 || x->shard >= x->shards : x->shard != 0))
        return oct_fail(err, OCT_EUSAGE, "part %lld of %lld does not exist: the first is 0", (long long)x->shard,
                        (long long)x->shards);
    OCT_TRY(oct_samples_check(&x->samples, err));
    if (!x->resume || !oct_path_is_stream(x->output))
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "--resume keeps a checkpoint beside the table, and '%s' is not a file", x->output);
    oct_hint(err, "give a file to -o");
    return OCT_EUSAGE;
}

oct_status oct_calibration_run(const octet_calibrate_options *x, const oct_calibration_host *h, oct_err *err)
{
    const octet_texts data = x->samples.data;
    oct_model *m = NULL;
    oct_graph *other = NULL;
    OCT_TRY(check_options(x, err));
    OCT_TRY(oct_check_output(x->output, data.v, data.n, err));
    OCT_TRY(oct_check_output(h->written, data.v, data.n, err));
    OCT_TRY(oct_load(h->voice, x->model, x->model_data, x->model_size, &m, err));
    oct_status s = oct_check_model_output(x->output, m, err);
    if (s == OCT_OK)
        s = oct_check_model_output(h->written, m, err);
    if (s == OCT_OK)
        s = oct_graph_clone(m->graph, &other, err);
    oct_samples_warn_pixels(h->voice, m->graph, x->samples.preprocess);
    if (s == OCT_OK) {
        s = with_graphs(h, x, m, other, err);
        if (s != OCT_OK && s != OCT_ENOMEM && s != OCT_EUSAGE && s != OCT_EIO)
            oct_within(err, "%s", x->model);
    }
    oct_graph_destroy(other);
    oct_model_free(m);
    return s;
}
