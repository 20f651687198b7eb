/* From decisions to a model on disk: rewritten, written to a temporary file beside the output, read back and
 * checked. */
#include "quant/convert/convert_int.h"

#include "base/utf8.h"
#include "eval/run/scaled.h"
#include "passes/pass.h"
#include "quant/job/annotate.h"

#include <string.h>

enum { LEAST_SIZE = 64 << 10 }; /* bytes; in smaller models, nodes take more bytes than weights */

/* Generated samples belong to the program, and are not recorded. */
static oct_status set_record(const oct_conversion *c, oct_err *err)
{
    oct_record_wait(c->o.record);
    oct_record r = *c->o.record;
    oct_buf b = OCT_BUF_INIT;
    if (c->src && !c->o.synthetic) /* while the size is still being decided, only the length of the record counts */
        r.part[OCT_RECORD_SAMPLES] = c->read.there ? c->read : oct_record_samples(c->src);
    oct_record_put(&r, &b);
    const oct_status st = b.failed ? oct_nomem(err) : oct_model_set_meta(c->m, OCT_RECORD_KEY, oct_buf_str(&b), err);
    oct_buf_free(&b);
    return st;
}

static oct_status set_meta(const oct_conversion *c, const char *command, oct_err *err)
{
    oct_model *m = c->m;
    oct_buf b = OCT_BUF_INIT;
    oct_text_clean(&b, command ? command : "", false); /* paths need not be UTF-8, but strings in a model must be */
    oct_status st = b.failed ? oct_nomem(err) : oct_model_set_meta(m, "octet.version", OCT_VERSION, err);
    if (st == OCT_OK && command)
        st = oct_model_set_meta(m, "octet.command", oct_buf_str(&b), err);
    oct_buf_free(&b);
    if (st == OCT_OK && command && c->o.record)
        st = set_record(c, err);
    const char *steps = c->src ? oct_source_preprocess(c->src) : c->calib ? c->calib->preprocess : "";
    if (st == OCT_OK && *steps)
        st = oct_model_set_meta(m, "octet.preprocess", steps, err);
    if (st == OCT_OK && c->o.synthetic)
        st = oct_model_set_meta(m, "octet.ranges", "from synthetic data", err);
    if (st == OCT_OK && c->scaled.len)
        st = c->scaled.failed ? oct_nomem(err) : oct_model_set_meta(m, OCT_SCALED_KEY, oct_buf_str(&c->scaled), err);
    return st;
}

/* What the trials changed, so that the model tells how it was made. */
static oct_status set_trials(const oct_conversion *c, oct_err *err)
{
    if (c->n_trials < 2 && !c->stopped)
        return OCT_OK;
    size_t at = 0;
    while (!c->trials[at].taken)
        at++;
    oct_buf b = OCT_BUF_INIT;
    oct_buf_printf(&b, "%zu%s, %s: %zu layers left float", c->n_trials - 1, c->stopped ? " until the time limit" : "",
                   c->trials[at].met ? "goal met" : "goal missed", c->trials[at].layers);
    if (c->trials[at].wide)
        oct_buf_printf(&b, ", %zu with activations of 16 bits", c->trials[at].wide);
    const oct_status s = b.failed ? oct_nomem(err) : oct_model_set_meta(c->m, "octet.trials", oct_buf_str(&b), err);
    oct_buf_free(&b);
    return s;
}

/* The size of the file. If nothing in the model became smaller, the file does not tell how it was made, because that
 * would make it larger than the float model; but the record of a model that had one is replaced. */
static oct_status count_bytes(const oct_conversion *c, const char *output, uint64_t *bytes, oct_err *err)
{
    static const char *const tells[] = { "octet.version", "octet.command", OCT_RECORD_KEY };
    OCT_TRY(oct_model_size(c->m, output, NULL, bytes, err));
    if (*bytes <= c->size_before || c->size_before < LEAST_SIZE || c->recorded)
        return OCT_OK;
    for (size_t i = 0; i < sizeof tells / sizeof *tells; i++)
        oct_model_drop_meta(c->m, tells[i]);
    return oct_model_size(c->m, output, NULL, bytes, err);
}

static oct_status count_copy(oct_conversion *c, oct_graph *copy, uint64_t *bytes, oct_err *err)
{
    oct_model *m = c->m;
    oct_graph *own = m->graph;
    const int64_t ir = m->ir_version;
    OCT_TRY(oct_infer_shapes(copy, err));
    m->graph = copy;
    if (oct_graph_opset(copy, "") >= 21 && m->ir_version < 10)
        m->ir_version = 10;
    oct_status s = set_meta(c, c->o.made_by, err);
    if (s == OCT_OK)
        s = count_bytes(c, "", bytes, err);
    m->graph = own;
    m->ir_version = ir;
    return s;
}

oct_status oct_conversion_size(oct_conversion *c, uint64_t *bytes, oct_err *err)
{
    oct_graph *copy;
    OCT_TRY(oct_written_copy(c->job, &copy, err));
    const oct_status s = count_copy(c, copy, bytes, err);
    oct_graph_destroy(copy);
    return s;
}

/* Copies the graph, with what it was decided to be, for a listener that wants to see it. */
static oct_status show_decided(const oct_conversion *c, oct_err *err)
{
    oct_graph *g;
    if (!c->o.listener.graph)
        return OCT_OK;
    OCT_TRY(oct_quantized_copy(c->job, &g, err));
    oct_conversion_show(c, "decided", g);
    oct_graph_destroy(g);
    return OCT_OK;
}

/* Why a node that is no layer stayed float; NULL: it did not, or it is a layer, whose reason stands elsewhere. */
static const char *why_float(const oct_conversion *c, const char *node)
{
    for (size_t i = 0; node && i < c->n_layers; i++) {
        const oct_layer *l = &c->layers[i];
        if (strcmp(l->name, node) != 0)
            continue;
        if (l->product || l->d.scheme != OCT_SCHEME_FLOAT || !*l->d.why)
            return NULL;
        const bool rule = l->d.row && l->d.why == l->d.row->rule;
        return rule ? oct_arena_printf(c->arena, "by the rule %s", l->d.why) : l->d.why;
    }
    return NULL;
}

oct_status oct_conversion_make(oct_conversion *c, const char *output, const char *command, bool judged, oct_err *err)
{
    oct_model *m = c->m;
    OCT_TRY(show_decided(c, err));
    if (judged && c->src)
        OCT_TRY(oct_graph_clone(m->graph, &c->fl, err));
    OCT_TRY_WITHIN(oct_qjob_rewrite(c->job, err), err, "%s", c->o.name);
    OCT_TRY(oct_infer_shapes(m->graph, err));
    oct_conversion_show(c, "written", m->graph);
    if (oct_graph_opset(m->graph, "") >= 21 && m->ir_version < 10)
        m->ir_version = 10; /* the first version with 4-bit types */
    OCT_TRY(set_meta(c, command, err));
    OCT_TRY(set_trials(c, err));
    OCT_TRY(oct_conversion_find_faults(c, err));
    OCT_TRY(oct_conversion_estimate(c, err));
    OCT_TRY(count_bytes(c, output, &c->size_after, err));
    if (c->o.job.scheme == OCT_SCHEME_FLOAT)
        return OCT_OK;
    const bool halves = !oct_scheme_is_half(c->o.job.scheme); /* else they are what was asked for */
    OCT_TRY(oct_float_bytes_find(m->graph, c->size_after, halves, c->arena, &c->floats, &c->n_floats, err));
    for (size_t i = 0; i < c->n_floats; i++)
        c->floats[i].why = why_float(c, c->floats[i].reader);
    return OCT_OK;
}

/* ---- what is gained ---- */

#define SMALLER 0.995

const char *oct_conversion_no_gain(const oct_conversion *c)
{
    const oct_layer_count n = oct_layers_count(c->layers, c->n_layers);
    const oct_speed_verdict speed = c->verdict ? oct_eval_speed_judge(&c->verdict->models[1].speed) : OCT_SPEED_UNKNOWN;
    if (c->o.job.scheme == OCT_SCHEME_FLOAT || c->size_before < LEAST_SIZE ||
        (double)c->size_after < SMALLER * (double)c->size_before || speed == OCT_SPEED_FASTER)
        return NULL;
    if (speed != OCT_SPEED_UNKNOWN || n.integer_nodes + n.half == 0)
        return "it is neither smaller nor faster than the model it was made from";
    return "it is not smaller than the model it was made from, and whether it is faster was not measured";
}

/* Reads back what was written, before it replaces anything. It is an error (OCT_ENUMERIC) if the model does not load,
 * or if operators do not support the types of their operands. A stream cannot be read back. */
static oct_status check(const oct_conversion *c, const char *output, const oct_model_draft *d, oct_err *err)
{
    oct_model *q;
    oct_status st = oct_model_draft_load(d, &q, err);
    if (st == OCT_OK && q)
        st = oct_infer_shapes(q->graph, err);
    if (st == OCT_OK)
        st = oct_check_types(q ? q->graph : c->m->graph, err);
    oct_model_free(q);
    if (st == OCT_OK)
        return OCT_OK;
    oct_within(err, "%s: the written model does not pass the check", output);
    return st == OCT_EMALFORMED ? OCT_ENUMERIC : st == OCT_ENOMEM || st == OCT_EIO ? st : OCT_EINTERNAL;
}

oct_status oct_conversion_close_graph(oct_conversion *c, const char *output, oct_err *err)
{
    OCT_TRY(oct_conversion_close_ends(c, err));
    if (c->n_end)
        OCT_TRY(oct_model_size(c->m, output, NULL, &c->size_after, err));
    if (oct_conversion_no_gain(c))
        oct_conversion_say(c, OCT_NOTE_WARNING, "%s: %s", output, oct_conversion_no_gain(c));
    return OCT_OK;
}

oct_status oct_conversion_draft(oct_conversion *c, const char *output, oct_model_draft **d, oct_err *err)
{
    *d = NULL;
    OCT_TRY(oct_conversion_close_graph(c, output, err));
    OCT_TRY(oct_model_write(c->m, output, NULL, d, err));
    const oct_status st = check(c, output, *d, err);
    if (st == OCT_OK)
        return OCT_OK;
    oct_model_draft_abort(*d);
    *d = NULL;
    return st;
}

oct_status oct_conversion_write(oct_conversion *c, const char *output, oct_err *err)
{
    oct_model_draft *d;
    OCT_TRY(oct_conversion_draft(c, output, &d, err));
    return oct_model_draft_commit(d, err);
}
