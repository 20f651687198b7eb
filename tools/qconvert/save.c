/* Writes the model and checks what was written. */
#include "qconvert/qconvert.h"

#include "quant/runnable.h"
#include "runtime/plan.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(oct_buf *b, const char *option, const char *value)
{
    oct_buf_puts(b, " ");
    if (option) {
        oct_buf_puts(b, option);
        oct_buf_puts(b, " ");
    }
    tool_quote(b, value);
}

void session_command(const session *s, oct_buf *b)
{
    const convert_args *a = s->a;
    oct_buf_puts(b, s->cli->name);
    add(b, NULL, a->model);
    for (size_t i = 0; i < a->data.specs.n; i++)
        add(b, "--data", a->data.specs.v[i]);
    for (size_t i = 0; i < a->data.preprocess.n; i++)
        add(b, "--preprocess", a->data.preprocess.v[i]);
    if (a->data.samples)
        oct_buf_printf(b, " --samples %lld", (long long)a->data.samples);
    if (a->data.skip_bad)
        oct_buf_puts(b, " --skip-bad");
    if (a->calib)
        add(b, "--calib", a->calib);
    if (a->policy)
        add(b, "--policy", a->policy);
    if (oct_cli_given(s->cli, "target"))
        add(b, "--target", a->target);
    if (oct_cli_given(s->cli, "scheme"))
        add(b, "--scheme", a->scheme);
    if (oct_cli_given(s->cli, "format"))
        add(b, "--format", a->format);
    if (a->observer)
        add(b, "--observer", a->observer);
    for (size_t i = 0; i < a->disabled.n; i++)
        add(b, "--disable-pass", a->disabled.v[i]);
    if (!a->recover)
        oct_buf_puts(b, " --no-recover");
    if (!a->bias_correction)
        oct_buf_puts(b, " --no-bias-correction");
}

static oct_status set_meta(session *s, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    session_command(s, &b);
    oct_status st = b.failed ? oct_nomem(err) : oct_model_set_meta(s->m, "octet.version", OCT_VERSION, err);
    if (st == OCT_OK)
        st = oct_model_set_meta(s->m, "octet.command", oct_buf_str(&b), err);
    oct_buf_free(&b);
    return st;
}

/* ---- the check ---- */

/* Runs both graphs on a batch and adds up signal and noise of their float32 outputs. */
static oct_status compare(const oct_graph *fl, const oct_graph *q, const oct_batch *batch, double *sqnr, bool *ours, oct_err *err)
{
    oct_plan *a = NULL, *b = NULL;
    oct_input_shape *shape = oct_calloc(batch->n_tensors + 1, sizeof *shape);
    const void **in = oct_calloc(batch->n_tensors + 1, sizeof *in);
    oct_status s = shape && in ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && i < batch->n_tensors; i++) {
        const oct_array *t = &batch->tensors[i];
        shape[i] = (oct_input_shape){ .name = fl->value[fl->input[i]].name, .rank = t->rank };
        memcpy(shape[i].dims, t->dims, (size_t)t->rank * sizeof *t->dims);
        in[i] = t->data;
    }
    oct_plan_opts plain = { .no_passes = true }, full = { 0 };
    if (s == OCT_OK)
        s = oct_plan_create(fl, shape, batch->n_tensors, &plain, &a, err);
    if (s == OCT_OK)
        s = oct_plan_run(a, in, err);
    *ours = s == OCT_OK; /* from here on it is the written model that fails */
    if (s == OCT_OK)
        s = oct_plan_create(q, shape, batch->n_tensors, &full, &b, err);
    if (s == OCT_OK)
        s = oct_plan_run(b, in, err);
    double signal = 0, noise = 0;
    for (size_t i = 0; s == OCT_OK && i < oct_plan_n_outputs(a) && i < oct_plan_n_outputs(b); i++) {
        const oct_operand *x = oct_plan_output(a, i), *y = oct_plan_output(b, i);
        if (x->dtype != OCT_F32 || y->dtype != OCT_F32 || x->count != y->count)
            continue;
        for (int64_t k = 0; k < x->count; k++) {
            double v = ((const float *)x->data)[k], d = v - (double)((const float *)y->data)[k];
            signal += v * v;
            noise += d * d;
        }
    }
    if (s == OCT_OK && signal > 0)
        *sqnr = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
    oct_plan_destroy(a);
    oct_plan_destroy(b);
    oct_free(shape);
    oct_free(in);
    return s;
}

/* The first sample once more, when the source can be read twice. */
static oct_status run_sample(session *s, const oct_graph *q, bool *ours, oct_err *err)
{
    oct_batch batch = OCT_BATCH_INIT;
    oct_err again = OCT_ERR_INIT;
    if (oct_source_reset(s->src, &again) != OCT_OK)
        return OCT_OK;
    oct_status st = oct_source_next(s->src, 1, &batch, err);
    if (st == OCT_OK && batch.n)
        st = compare(s->fl, q, &batch, &s->sqnr, ours, err);
    oct_batch_free(&batch);
    return st;
}

/* Whether the float model runs here whole; where it does not, the quantized one cannot be compared with it. */
static bool comparable(const session *s)
{
    oct_graph *part = NULL;
    oct_err err = OCT_ERR_INIT;
    bool whole = s->src && s->fl && oct_runnable_part(s->fl, &part, &err) == OCT_OK && !part;
    oct_graph_destroy(part);
    for (size_t i = 0; whole && i < s->fl->n_value; i++)
        whole = s->fl->value[i].dead || s->fl->value[i].dtype != OCT_F16; /* half floats are passed through, not computed */
    return whole;
}

static oct_status check(session *s, oct_err *err)
{
    oct_model *q = NULL;
    bool ours = true;
    oct_status st = oct_model_load(s->output, &q, err);
    if (st == OCT_OK) {
        s->size_after = tool_model_bytes(q);
        st = oct_infer_shapes(q->graph, err);
    }
    if (st == OCT_OK && comparable(s)) {
        ours = false;
        st = run_sample(s, q->graph, &ours, err);
    }
    oct_model_free(q);
    if (st == OCT_OK)
        return OCT_OK;
    unlink(s->output);
    oct_within(err, ours ? "%s: the written model does not pass the check" : "%s", ours ? s->output : s->a->model);
    return st == OCT_ENOMEM || !ours ? st : OCT_EINTERNAL;
}

oct_status session_save(session *s, oct_err *err)
{
    if (s->src)
        OCT_TRY(oct_graph_clone(s->m->graph, &s->fl, err));
    OCT_TRY(oct_qjob_rewrite(s->job, err));
    if (strcmp(s->a->format, "qoperator") == 0)
        OCT_TRY(oct_qoperator_rewrite(s->m->graph, NULL, err));
    OCT_TRY(set_meta(s, err));
    OCT_TRY(oct_model_save(s->m, s->output, NULL, err));
    s->size_after = s->size_before - saved_bytes(s);
    struct stat st; /* a device or pipe cannot be read back */
    return strcmp(s->output, "-") == 0 || stat(s->output, &st) != 0 || !S_ISREG(st.st_mode) ? OCT_OK : check(s, err);
}

/* ---- the decisions as a table ---- */

static const char *weight_text(oct_weight_type t)
{
    return t == OCT_WEIGHT_S7 ? "s7" : t == OCT_WEIGHT_U8 ? "u8" : "s8";
}

static void dump_name(oct_buf *b, const char *name)
{
    oct_buf_puts(b, "name:");
    for (; *name; name++) {
        if (strchr(" \t\r\\&*?[", *name))
            oct_buf_puts(b, "\\");
        oct_buf_add(b, name, 1);
    }
}

static void dump_layer(oct_buf *b, const session *s, const layer *l)
{
    oct_policy_row row;
    char param[32];
    if (!*l->name || strchr(l->name, '\n'))
        return;
    oct_policy_match(s->policy, s->m->graph, l->d.node, &row);
    oct_observer_spec o = row.observer.observer ? row.observer : oct_qjob_observer(s->job);
    dump_name(b, l->name);
    if (!l->d.integer) {
        oct_buf_printf(b, "  float  -  -  -  # %s: %s\n", l->d.op, l->d.why);
        return;
    }
    oct_buf_printf(b, "  %s  %s/%s/sym  %s/tensor/%s  %s", oct_scheme_name(l->d.scheme), weight_text(row.weights),
                   row.per_channel ? "channel" : "tensor", row.activations == OCT_S8 ? "s8" : "u8",
                   row.symmetric ? "sym" : "asym", o.observer->name);
    if (o.observer->has_param)
        oct_buf_printf(b, "=%s", oct_f64_text(param, o.param));
    oct_buf_printf(b, "  # %s\n", l->d.op);
}

oct_status session_dump_policy(const session *s, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_buf_puts(&b, "# octet policy 1 -- the decisions of: ");
    session_command(s, &b);
    oct_buf_puts(&b, "\n# match  scheme  weights  activations  observer\n");
    for (size_t i = 0; i < s->n_layers; i++)
        dump_layer(&b, s, &s->layers[i]);
    oct_status st = tool_write_text(s->a->dump_policy, &b, err);
    oct_buf_free(&b);
    return st;
}
