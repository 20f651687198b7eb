/* qcalib MODEL: runs the samples through the model, and writes the table. */
#include "qcalib/checkpoint.h"
#include "qcalib/qcalib.h"

#include "cli/textfmt.h"
#include "base/io.h"
#include "observers/exercise.h"
#include "quant/inputs/calibrate.h"
#include "quant/quant.h"

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
static void set_name(const tool_data *d, oct_buf *b)
{
    for (size_t i = 0; i < d->specs.n; i++) {
        size_t n = strlen(d->specs.v[i]);
        while (n > 1 && d->specs.v[i][n - 1] == '/')
            n--;
        if (i)
            oct_buf_puts(b, " ");
        oct_buf_add(b, d->specs.v[i], n);
    }
    if (d->samples)
        oct_buf_printf(b, " %s=%lld", d->first ? "first" : "samples", (long long)d->samples);
    if (d->seed)
        oct_buf_printf(b, " seed=%lld", (long long)d->seed);
}

static oct_status describe(const calib_args *a, const oct_model *m, const oct_source *src, oct_calib *c, oct_err *err)
{
    oct_buf set = OCT_BUF_INIT;
    set_name(&a->data, &set);
    oct_status s = set.failed ? oct_nomem(err) : OCT_OK;
    if (s == OCT_OK)
        s = oct_calib_set_model(c, oct_path_base(a->model), oct_model_hash(m), err);
    if (s == OCT_OK)
        s = oct_calib_set_preprocess(c, oct_source_preprocess(src), err);
    if (s == OCT_OK)
        s = oct_calib_add_shard(c, oct_buf_str(&set), (uint32_t)a->data.shard_i,
                                (uint32_t)(a->data.shard_n ? a->data.shard_n : 1), err);
    oct_buf_free(&set);
    return s;
}

static void warn_unexercised(oct_cli *cli, const oct_calib *c)
{
    const oct_exercise x = oct_calib_exercise(c);
    oct_buf b = OCT_BUF_INIT;
    oct_exercise_tell(&x, &b);
    if (b.len)
        oct_cli_warn(cli, "%s", oct_buf_str(&b));
    oct_buf_free(&b);
    qcalib_warn_few(cli, c);
}

/* Everything that determines the table. A run that differs in one of these must not continue from the checkpoint of
 * another. */
static void bind(checkpoint *p, const calib_args *a, const oct_calib *c, const oct_source *src, const wanted *w)
{
    char text[48];
    uint64_t values = OCT_HASH_INIT;
    oct_buf states = OCT_BUF_INIT;
    for (size_t i = 0; i < w->n; i++) {
        values = oct_hash(values, w->names[i], strlen(w->names[i]) + 1);
        values = oct_hash(values, &w->axes[i], sizeof w->axes[i]);
    }
    for (size_t i = 0; i < a->data.states.n; i++)
        oct_buf_printf(&states, "%s%s", i ? " " : "", a->data.states.v[i]);
    checkpoint_bind(p, "version", OCT_VERSION);
    checkpoint_bind_hash(p, "model", c->model_hash);
    checkpoint_bind(p, "preprocess", c->preprocess);
    checkpoint_bind(p, "data", c->shards[0].set);
    snprintf(text, sizeof text, "%lld/%lld", (long long)a->data.shard_i,
             (long long)(a->data.shard_n ? a->data.shard_n : 1));
    checkpoint_bind(p, "shard", text);
    checkpoint_bind(p, "skip-bad", a->data.skip_bad ? "yes" : "no");
    checkpoint_bind(p, "state", oct_buf_str(&states));
    checkpoint_bind_hash(p, "files", oct_source_list_hash(src));
    checkpoint_bind_hash(p, "tensors", values);
    p->run.failed |= states.failed;
    oct_buf_free(&states);
}

static oct_status open_samples(oct_cli *cli, const calib_args *a, const oct_model *m, const oct_graph *g,
                               oct_source **src, oct_calib *c, oct_err *err)
{
    oct_samples samples = { .of = tool_samples(cli, &a->data), .shard_i = a->data.shard_i, .shard_n = a->data.shard_n };
    OCT_TRY(oct_samples_open(g, &samples, 0, src, err));
    if (*oct_source_preprocess_words(*src))
        oct_cli_note(cli, 0, "preprocessing: %s", oct_source_preprocess_words(*src));
    oct_samples_say_chosen(tool_voice(cli), *src);
    return describe(a, m, *src, c, err);
}

static void tell(oct_cli *cli, const calib_args *a, const oct_calib *c, const oct_source *src, size_t asked,
                 double start)
{
    char took[32];
    if (c->samples == 0)
        oct_cli_warn(cli, "shard %lld/%lld holds no samples", (long long)a->data.shard_i, (long long)a->data.shard_n);
    if (c->n_tensors < asked)
        oct_cli_warn(cli,
                     "%zu of %zu tensors could not be calibrated: they depend on an operator that is not known here",
                     asked - c->n_tensors, asked);
    warn_unexercised(cli, c);
    oct_cli_note(cli, 0, "%s: %zu tensors over %llu samples, %s", a->output, c->n_tensors,
                 (unsigned long long)c->samples, oct_fmt_seconds(took, oct_now() - start));
}

/* What tells later whether the parts of a set were made from the same samples. Streams, of which another pass would
 * cost as much as the first one or cannot be, and samples that need those in front of them are not looked into; nor is
 * it an error that a sample of another part is broken. */
static oct_status mark_part(const calib_args *a, oct_source *src, oct_calib *c, oct_err *err)
{
    enum { WITNESSES = 16 };
    oct_calib_shard mark = c->shards[0];
    oct_batch b = OCT_BATCH_INIT;
    oct_err why = OCT_ERR_INIT;
    if (a->data.shard_n <= 1)
        return OCT_OK;
    mark.files = oct_source_list_hash(src);
    oct_status s = a->data.states.n || oct_source_is_once(src) || oct_source_runs_commands(src)
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

static oct_status gather(oct_cli *cli, const calib_args *a, const oct_graph *g, const wanted *w, oct_source *src,
                         oct_calib *c, oct_err *err)
{
    checkpoint p = { 0 };
    oct_calibrate_opts o = { .values = w->names,
                             .axes = w->axes,
                             .n = w->n,
                             .threads = (int)cli->threads,
                             .part = a->data.shard_n > 1,
                             .progress = oct_progress_report,
                             .progress_arg = &cli->progress };
    oct_status s = a->resume ? checkpoint_open(&p, cli, a->output, err) : OCT_OK;
    if (s == OCT_OK && a->resume) {
        bind(&p, a, c, src, w);
        oct_source_keep_marks(src);
        s = checkpoint_take(&p, src, c, err);
        o.before = (int64_t)c->samples;
        o.due = checkpoint_due;
        o.keep = checkpoint_keep;
        o.keep_arg = &p;
    }
    if (s == OCT_OK && (s = oct_calibrate(g, src, &o, c, err)) == OCT_EUSAGE && o.before)
        oct_hint(err, "remove %s to start over", p.path);
    if (s == OCT_OK) {
        oct_samples_say_bad(tool_voice(cli), src);
        s = mark_part(a, src, c, err);
    }
    if (s == OCT_OK)
        s = oct_calib_save(c, a->output, err);
    if (s == OCT_OK)
        s = qcalib_json(cli->json, c, err);
    if (s == OCT_OK)
        checkpoint_done(&p);
    checkpoint_close(&p);
    return s;
}

static oct_status observe(oct_cli *cli, const calib_args *a, oct_model *m, const oct_graph *g, const wanted *w,
                          oct_err *err)
{
    oct_source *src = NULL;
    oct_calib *c = oct_calib_create();
    oct_status s = c ? open_samples(cli, a, m, g, &src, c, err) : oct_nomem(err);
    if (s == OCT_OK)
        oct_cli_note(cli, 1, "observing %zu tensors", w->n);
    const double start = oct_now();
    if (s == OCT_OK)
        s = gather(cli, a, g, w, src, c, err);
    if (s == OCT_OK)
        tell(cli, a, c, src, w->n, start);
    oct_source_close(src);
    oct_calib_destroy(c);
    return s;
}

/* Two jobs ask for values: the default one, and one for our own runtime with every node on integers. */
static oct_status with_graphs(oct_cli *cli, const calib_args *a, oct_model *m, oct_graph *other, oct_err *err)
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
        s = observe(cli, a, m, m->graph, &w, err);
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

oct_status qcalib_run(oct_cli *cli, calib_args *a, oct_err *err)
{
    oct_model *m = NULL;
    oct_graph *other = NULL;
    OCT_TRY(tool_read_shard(&a->data, err));
    if (a->resume && oct_path_is_stream(a->output)) {
        oct_fail(err, OCT_EUSAGE, "--resume keeps a checkpoint beside the table, and '%s' is not a file", a->output);
        oct_hint(err, "give a file to -o");
        return OCT_EUSAGE;
    }
    OCT_TRY(oct_check_output(a->output, a->data.specs.v, a->data.specs.n, err));
    OCT_TRY(oct_check_output(cli->json, a->data.specs.v, a->data.specs.n, err));
    OCT_TRY(tool_load(cli, a->model, &m, err));
    oct_status s = oct_check_model_output(a->output, m, err);
    if (s == OCT_OK)
        s = oct_check_model_output(cli->json, m, err);
    if (s == OCT_OK)
        s = oct_graph_clone(m->graph, &other, err);
    oct_samples_warn_pixels(tool_voice(cli), m->graph, tool_texts(a->data.preprocess));
    if (s == OCT_OK) {
        s = with_graphs(cli, a, m, other, err);
        if (s != OCT_OK && s != OCT_ENOMEM && s != OCT_EUSAGE && s != OCT_EIO)
            oct_within(err, "%s", a->model);
    }
    oct_graph_destroy(other);
    oct_model_free(m);
    return s;
}
