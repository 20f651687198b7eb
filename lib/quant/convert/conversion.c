/* The state of a conversion, and what its steps and methods ask of it: lines for the listener, the job opened and
 * decided anew. What runs the steps stands in convert.c. */
#include "quant/convert/convert_int.h"

#include "base/mem.h"
#include "passes/pass.h"

#include <stdio.h>
#include <string.h>

void oct_conversion_say(oct_conversion *c, int level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = oct_arena_vprintf(c->arena, fmt, ap);
    va_end(ap);
    if (text && c->o.listener.note)
        c->o.listener.note(c->o.listener.arg, level, text);
    if (level != OCT_NOTE_WARNING)
        return;
    c->out_of_memory |= !text || !OCT_GROW(c->arena, c->warnings, c->n_warnings, c->cap_warnings);
    if (!c->out_of_memory)
        c->warnings[c->n_warnings++] = text;
}

static void log_change(void *arg, const char *pass, const char *what, const char *node)
{
    oct_conversion *c = arg;
    if (!OCT_GROW(c->arena, c->changes, c->n_changes, c->cap_changes)) {
        c->out_of_memory = true;
        return;
    }
    oct_change *x = &c->changes[c->n_changes++];
    x->pass = oct_arena_strdup(c->arena, pass);
    x->what = oct_arena_strdup(c->arena, what);
    x->node = oct_arena_strdup(c->arena, node ? node : "");
    c->out_of_memory |= !x->pass || !x->what || !x->node;
}

/* A float model is expected. In a quantized model little remains to be done. */
size_t oct_quantized_nodes(const oct_graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const char *op = g->node[g->order[i]].op;
        n += strcmp(op, "DequantizeLinear") == 0 || strncmp(op, "QLinear", 7) == 0 ||
             strcmp(op, "MatMulInteger") == 0 || strcmp(op, "MatMulNBits") == 0 ||
             strncmp(op, "DynamicQuantize", 15) == 0;
    }
    return n;
}

static void warn_quantized(oct_conversion *c)
{
    const size_t n = oct_quantized_nodes(c->m->graph);
    c->was_quantized = n > 0;
    if (n)
        oct_conversion_say(c, OCT_NOTE_WARNING,
                           "%s is quantized already (%zu nodes); what is quantized stays as it is: to choose anew, "
                           "convert the float model that it was made from",
                           c->o.name, n);
}

/* Adapters (LoRA) are such inputs. */
static void note_defaults(oct_conversion *c)
{
    const char *first;
    const size_t n = oct_model_defaults(c->m, &first);
    char more[48] = "";
    if (n > 1)
        snprintf(more, sizeof more, " (as %zu more)", n - 1);
    if (n)
        oct_conversion_say(c, 0,
                           "input '%s'%s has a default value: it becomes a constant, and can no longer be given; an "
                           "input without an initializer stays one",
                           first, more);
}

void oct_conversion_take(oct_conversion *c, oct_model *m)
{
    c->m = m;
    c->size_before = oct_model_bytes(m);
    c->recorded = oct_model_meta(m, OCT_RECORD_KEY) != NULL;
    warn_quantized(c);
    note_defaults(c);
    oct_conversion_show(c, "read", m->graph);
}

oct_qjob_opts oct_conversion_job_opts(const oct_conversion *c)
{
    oct_qjob_opts o = c->o.job;
    o.policy = c->policy;
    o.calib = c->calib;
    o.given_weights = c->given_weights;
    o.n_given_weights = c->n_given_weights;
    for (size_t i = 0; i < c->n_known; i++)
        if (c->o.methods.on[i] && c->known[i]->prepare)
            c->known[i]->prepare(&o);
    o.rounds_later &= c->src != NULL;
    return o;
}

oct_status oct_conversion_reopen(oct_conversion *c, oct_err *err)
{
    c->log = (oct_pass_log){ .change = log_change, .arg = c };
    OCT_TRY(oct_conversion_give_weights(c, err));
    oct_qjob_opts o = oct_conversion_job_opts(c);
    o.log = &c->log;
    o.have_data = c->src || c->calib;
    o.seen = c->seen;
    o.n_seen = c->n_seen;
    if (c->end_sim) /* it refers to the job */
        c->end_sim(c);
    if (c->kept)
        oct_kept_forget(c->kept);
    oct_qjob_destroy(c->job);
    oct_arena_destroy(c->lasting);
    c->job = NULL;
    if (!(c->lasting = o.lasting = oct_arena_create()))
        return oct_nomem(err);
    oct_conversion_changed(c);
    OCT_TRY(oct_policy_note(c->policy, c->m->graph, err));
    OCT_TRY(oct_qjob_create(c->m->graph, &o, &c->job, err));
    c->o.job.source = oct_qjob_source(c->job);
    oct_model_forget_all(c->m); /* what passes read, too */
    return c->out_of_memory ? oct_nomem(err) : OCT_OK;
}

oct_status oct_conversion_settle(oct_conversion *c, oct_err *err)
{
    if (!c->decided)
        OCT_TRY(oct_qjob_decide(c->job, c->calib, err));
    c->decided = true;
    return OCT_OK;
}
