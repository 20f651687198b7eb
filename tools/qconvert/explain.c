/* qconvert explain: prints everything that is known about one node. */
#include "qconvert/qconvert.h"

#include "cli/textfmt.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* The layer with that name, or that computes a value with that name. */
static const oct_layer *find(const session *s, const char *name)
{
    for (size_t i = 0; i < s->of.c.n_layers; i++)
        if (strcmp(s->of.c.layers[i].name, name) == 0)
            return &s->of.c.layers[i];
    for (size_t i = 0; i < s->of.c.n_layers; i++) {
        const oct_layer_decision *d = &s->of.c.layers[i].d;
        int v = oct_graph_find(d->graph, name);
        if (v >= 0 && d->node == d->graph->value[v].producer)
            return &s->of.c.layers[i];
    }
    return NULL;
}

static oct_status no_such_node(const session *s, const char *name, oct_err *err)
{
    oct_nearest near = { .word = name, .most = INT_MAX };
    for (size_t i = 0; i < s->of.c.n_layers; i++)
        oct_nearest_try(&near, s->of.c.layers[i].name);
    oct_fail(err, OCT_EUSAGE, "%s: no node is named '%s' after the model was prepared", s->a->x.model, name);
    for (size_t i = 0; i < s->of.c.n_changes; i++)
        if (strcmp(s->of.c.changes[i].node, name) == 0)
            oct_hint(err, "the pass '%s' changed it: %s", s->of.c.changes[i].pass, s->of.c.changes[i].what);
    oct_nearest_hint(&near, OCT_NEAREST, NULL, err);
    return OCT_EUSAGE;
}

static void put_value(FILE *f, const session *s, const oct_graph *g, const char *what, int slot, int value)
{
    if (value < 0)
        return;
    const oct_value *v = &g->value[value];
    char shape[200];
    oct_print(f, "%s %d   %s: %s %s%s", what, slot, v->name, oct_dtype_name(v->dtype),
              oct_shape_text(&v->shape, shape, sizeof shape),
              v->constant   ? ", constant"
              : v->is_input ? ", input of the model"
                            : "");
    const oct_calib_tensor *t = s->of.c.calib ? oct_calib_find(s->of.c.calib, oct_value_name(g, value)) : NULL;
    if (t && oct_stats_finite(&t->stats))
        oct_print(f, ", %.5g to %.5g in %llu values", (double)t->stats.min, (double)t->stats.max,
                  (unsigned long long)t->stats.n);
    fputc('\n', f);
}

static void put_attributes(FILE *f, const oct_node *n)
{
    for (size_t i = 0; i < n->n_attr; i++) {
        const oct_attr *a = &n->attr[i];
        oct_print(f, "attribute  %s =", a->name);
        if (a->type == OCT_ATTR_INT)
            oct_print(f, " %lld", (long long)a->i);
        else if (a->type == OCT_ATTR_FLOAT)
            oct_print(f, " %g", (double)a->f);
        else if (a->type == OCT_ATTR_STRING && a->s)
            oct_print(f, " '%.100s'", a->s);
        else if (a->type == OCT_ATTR_INTS)
            for (int k = 0; k < a->n && k < 32; k++)
                oct_print(f, " %lld", (long long)a->ints[k]);
        else
            fputs(" (not shown)", f);
        fputc('\n', f);
    }
}

/* " per channel" or " in blocks of 32"; "" for 16-bit floats. */
static const char *layer_grain(const oct_layer_decision *d, char dst[32])
{
    if (!d->block)
        return !d->integer ? "" : d->per_channel ? " per channel" : " per tensor";
    snprintf(dst, 32, " in blocks of %d", d->block);
    return dst;
}

/* What restricted the decision beyond policy and target. */
static void put_constraints(FILE *f, const session *s, const oct_layer_decision *d)
{
    oct_constraint_words w;
    size_t i = 0, n = oct_qjob_n_layers(s->of.c.job);
    while (i < n &&
           (oct_qjob_layer(s->of.c.job, i)->graph != d->graph || oct_qjob_layer(s->of.c.job, i)->node != d->node))
        i++;
    for (size_t k = 0; i < n && oct_qjob_constraint(s->of.c.job, i, k, &w); k++)
        oct_print(f, "constraint %s, by %s: %s\n", w.what, w.from, w.why);
}

static void put_decision(FILE *f, const session *s, const oct_layer *l)
{
    const oct_layer_decision *d = &l->d;
    oct_policy_row row;
    char text[32], grain[32];
    const oct_policy_facts facts = { l->name, s->of.c.calib, oct_graph_macs(s->of.c.m->graph) };
    oct_policy_match(s->of.c.policy, d->graph, d->node, &facts, &row);
    oct_print(f, "decision   %s%s\n", oct_scheme_name(d->scheme), d->integer ? ", runs on integers" : "");
    oct_print(f, "why        %s\n", d->why);
    oct_print(f, "policy     %s, set by %s\n", oct_scheme_name(row.scheme), row.rule ? row.rule : "no rule");
    put_constraints(f, s, d);
    if (d->weights)
        oct_print(f, "weights    %s%s, SQNR %s%s%s\n", oct_dtype_name(d->weights), layer_grain(d, grain),
                  oct_fmt_db(text, d->sqnr_weights), d->remedy ? "; " : "", d->remedy ? d->remedy : "");
    if (d->scale != 0)
        oct_print(f, "output     scale %.9g, zero point %d, observer %s\n", (double)d->scale, (int)d->zero_point,
                  d->observer ? d->observer : "-");
    if (!isnan(d->sqnr_output))
        oct_print(f, "           expected SQNR %s\n", oct_fmt_db(text, d->sqnr_output));
    if (l->product && !l->macs)
        fputs("work       unknown: its size depends on dimensions that the model leaves open, or on values\n", f);
    if (l->macs)
        oct_print(f, "work       %s multiplications in a run, of one sample where the batch is free\n",
                  oct_fmt_count(text, l->macs));
}

static void put(const session *s, const oct_layer *l)
{
    FILE *f = oct_cli_result(s->cli);
    const oct_node *n = &l->d.graph->node[l->d.node];
    oct_print(f, "node       %s\n", l->name);
    oct_print(f, "operator   %s%s%s\n", n->domain, *n->domain ? "." : "", n->op);
    for (int i = 0; i < n->n_in; i++)
        put_value(f, s, l->d.graph, "input", i, n->in[i]);
    for (int i = 0; i < n->n_out; i++)
        put_value(f, s, l->d.graph, "output", i, n->out[i]);
    put_attributes(f, n);
    put_decision(f, s, l);
    for (size_t i = 0; i < s->of.c.n_changes; i++)
        if (*s->of.c.changes[i].node && strcmp(s->of.c.changes[i].node, l->own) == 0)
            oct_print(f, "changed    %s: %s\n", s->of.c.changes[i].pass, s->of.c.changes[i].what);
    if (!s->of.c.calib)
        fputs("           without samples; add --data or --calib for scales\n", f);
}

oct_status qconvert_explain(oct_cli *cli, const convert_args *a, oct_err *err)
{
    session s;
    if (cli->json) {
        oct_fail(err, OCT_EUSAGE, "explain prints text; it writes no JSON");
        oct_hint(err, "'qconvert lint' and a conversion write the decision for every node as JSON");
        return OCT_EUSAGE;
    }
    oct_status st = session_open(&s, cli, a, true, err);
    if (st == OCT_OK)
        st = oct_session_decide(&s.of, err);
    if (st == OCT_OK) {
        const oct_layer *l = find(&s, a->node);
        if (l)
            put(&s, l);
        else
            st = no_such_node(&s, a->node, err);
    }
    session_close(&s);
    return st;
}
