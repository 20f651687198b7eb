/* What lint finds in the result of a conversion, as warnings: values for which few numbers are left, sums that saturate
 * or wrap, layers that the runtime rounds when it loads the file, and nodes that it does not load. Lint of the written
 * file says the same, since both ask oct_lint_judge. */
#include "quant/convert/convert_int.h"

#include "data/readers/shell.h"
#include "quant/lint/examine.h"

#include <string.h>

enum { MOST_SAID = 3 }; /* findings of a kind that are said one by one */

typedef struct teller {
    oct_conversion *c;
    size_t n[OCT_FINDING_KINDS];
} teller;

static void say(teller *t, oct_finding_kind kind, const char *name, const char *op, const char *text)
{
    t->c->lossy = true;
    if (t->n[kind]++ < MOST_SAID)
        oct_conversion_say(t->c, OCT_NOTE_WARNING, "%s: '%s' (%s): %s", oct_finding_name(kind), name, op, text);
}

static bool is_outermost(const oct_graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_order; i++)
        if (strcmp(oct_node_label(g, g->order[i]), name) == 0)
            return true;
    return false;
}

/* The option that makes weights that came quantized safe (given_weights.c); "": there is none. NULL: no memory. */
static const char *cure_of(const oct_conversion *c, const oct_finding *f)
{
    if (f->kind != OCT_FINDING_SATURATES || !c->was_quantized || !f->weights || !is_outermost(c->m->graph, f->name))
        return "";
    oct_buf rule = OCT_BUF_INIT, word = OCT_BUF_INIT;
    oct_policy_put_name(&rule, "name:", f->name);
    oct_buf_puts(&rule, oct_target_takes(c->o.job.target, OCT_U8, OCT_U8) ? "=- u8/channel/sym" : "=- s7/channel/sym");
    oct_shell_word(&word, oct_buf_str(&rule));
    const char *text =
        rule.failed || word.failed
            ? NULL
            : oct_arena_printf(c->arena, "; --set%s writes its weights so that it cannot", oct_buf_str(&word));
    oct_buf_free(&rule);
    oct_buf_free(&word);
    return text;
}

static void say_finding(teller *t, const oct_finding *f)
{
    const char *cure = cure_of(t->c, f), *text = cure ? oct_arena_printf(t->c->arena, "%s%s", f->text, cure) : NULL;
    if (text)
        say(t, f->kind, f->name, f->op, text);
    else
        t->c->out_of_memory = true;
}

static oct_status say_all(teller *t, oct_lint *l, oct_err *err)
{
    const oct_target *target = t->c->o.job.target;
    oct_lint_verdict v;
    OCT_TRY(oct_lint_judge(l, target, &v, err));
    for (size_t i = 0; i < v.n_trap; i++)
        say_finding(t, &v.trap[i]);
    for (size_t i = 0; i < l->n_finding; i++)
        if (oct_finding_concerns(&l->finding[i], target) && !l->finding[i].session) /* it is said as a note */
            say_finding(t, &l->finding[i]);
    return OCT_OK;
}

/* What a target lacks is all that can be found where no activations are quantized. Then nothing has to be read but the
 * nodes. */
static void say_lacking(teller *t, const oct_graph *g)
{
    const oct_graph *nested;
    for (size_t i = 0; i < g->n_order; i++) {
        const int id = g->order[i];
        const char *why = oct_target_lacks(t->c->o.job.target, g, id);
        if (why)
            say(t, OCT_FINDING_TRAP, oct_node_label(g, id), g->node[id].op, why);
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[id], k)); k++)
            say_lacking(t, nested);
    }
}

oct_status oct_conversion_find_faults(oct_conversion *c, oct_err *err)
{
    teller t = { .c = c };
    oct_lint *l;
    c->first_fault = c->n_warnings;
    if (oct_qjob_has_qparams(c->job) || c->was_quantized) {
        OCT_TRY(oct_lint_open(c->m->graph, NULL, &l, err));
        const oct_status s = say_all(&t, l, err);
        oct_lint_close(l);
        OCT_TRY(s);
    } else {
        say_lacking(&t, c->m->graph);
    }
    c->n_found = 0;
    c->n_not_loaded = t.n[OCT_FINDING_TRAP];
    for (int k = 0; k < OCT_FINDING_KINDS; k++) {
        c->n_found += t.n[k];
        if (t.n[k] > MOST_SAID)
            oct_conversion_say(c, OCT_NOTE_WARNING, "%s: %zu more, which 'qconvert lint' of the result lists",
                               oct_finding_name((oct_finding_kind)k), t.n[k] - MOST_SAID);
    }
    c->n_faults = c->n_warnings - c->first_fault;
    return OCT_OK;
}
