/* All that is known of one node, of schema "octet-explain-1". */
#include "api/inspect.h"

#include "api/convert/session_int.h"

#include <limits.h>
#include <string.h>

/* The layer with that name, or that computes a value with that name. */
static const oct_layer *find(const oct_conversion *c, const char *name)
{
    for (size_t i = 0; i < c->n_layers; i++)
        if (strcmp(c->layers[i].name, name) == 0)
            return &c->layers[i];
    for (size_t i = 0; i < c->n_layers; i++) {
        const oct_layer_decision *d = &c->layers[i].d;
        int v = oct_graph_find(d->graph, name);
        if (v >= 0 && d->node == d->graph->value[v].producer)
            return &c->layers[i];
    }
    return NULL;
}

static oct_status no_such_node(const oct_session *s, const char *name, oct_err *err)
{
    const oct_conversion *c = &s->c;
    oct_nearest near = { .word = name, .most = INT_MAX };
    for (size_t i = 0; i < c->n_layers; i++)
        oct_nearest_try(&near, c->layers[i].name);
    oct_fail(err, OCT_EUSAGE, "%s: no node is named '%s' after the model was prepared", s->x.model, name);
    for (size_t i = 0; i < c->n_changes; i++)
        if (strcmp(c->changes[i].node, name) == 0)
            oct_hint(err, "the pass '%s' changed it: %s", c->changes[i].pass, c->changes[i].what);
    oct_nearest_hint(&near, OCT_NEAREST, NULL, err);
    return OCT_EUSAGE;
}

static void put_values(oct_json *j, const char *key, const oct_conversion *c, const oct_graph *g, const int *value,
                       int n)
{
    oct_json_open(j, key, '[');
    for (int i = 0; i < n; i++) {
        if (value[i] < 0)
            continue;
        const oct_value *v = &g->value[value[i]];
        const oct_calib_tensor *t = c->calib ? oct_calib_find(c->calib, oct_value_name(g, value[i])) : NULL;
        char shape[200];
        oct_json_open(j, NULL, '{');
        oct_json_int(j, "slot", i);
        oct_json_str(j, "name", v->name);
        oct_json_str(j, "type", oct_dtype_name(v->dtype));
        oct_json_str(j, "shape", oct_shape_text(&v->shape, shape, sizeof shape));
        oct_json_bool(j, "constant", v->constant);
        oct_json_bool(j, "model_input", v->is_input);
        if (t && oct_stats_finite(&t->stats)) {
            oct_json_num(j, "min", (double)t->stats.min);
            oct_json_num(j, "max", (double)t->stats.max);
            oct_json_int(j, "values", (int64_t)t->stats.n);
        }
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put_attribute(oct_json *j, const void *row)
{
    const oct_attr *a = row;
    oct_buf b = OCT_BUF_INIT;
    if (a->type == OCT_ATTR_INT)
        oct_buf_printf(&b, "%lld", (long long)a->i);
    else if (a->type == OCT_ATTR_FLOAT)
        oct_buf_printf(&b, "%g", (double)a->f);
    else if (a->type == OCT_ATTR_STRING && a->s)
        oct_buf_printf(&b, "'%.100s'", a->s);
    else if (a->type == OCT_ATTR_INTS)
        for (int k = 0; k < a->n && k < 32; k++)
            oct_buf_printf(&b, "%s%lld", k ? " " : "", (long long)a->ints[k]);
    else
        oct_buf_puts(&b, "(not shown)");
    oct_json_str(j, "name", a->name);
    oct_json_str(j, "value", oct_buf_str(&b));
    oct_buf_free(&b);
}

/* What restricted the decision beyond policy and target. */
static void put_constraints(oct_json *j, const oct_conversion *c, const oct_layer_decision *d)
{
    oct_constraint_words w;
    size_t i = 0, n = oct_qjob_n_layers(c->job);
    while (i < n && (oct_qjob_layer(c->job, i)->graph != d->graph || oct_qjob_layer(c->job, i)->node != d->node))
        i++;
    oct_json_open(j, "constraints", '[');
    for (size_t k = 0; i < n && oct_qjob_constraint(c->job, i, k, &w); k++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "what", w.what);
        oct_json_str(j, "from", w.from);
        oct_json_str(j, "why", w.why);
        oct_json_close(j);
    }
    oct_json_close(j);
}

static void put(const oct_session *s, const oct_layer *l, oct_document *to)
{
    const oct_conversion *c = &s->c;
    const oct_graph *g = l->d.graph;
    const oct_node *n = &g->node[l->d.node];
    const oct_policy_facts facts = { l->name, c->calib, oct_graph_macs(c->m->graph) };
    oct_policy_row row;
    oct_json json = { .to = to }, *j = &json;
    oct_policy_match(c->policy, g, l->d.node, &facts, &row);
    oct_report_open(j, "octet-explain-1");
    oct_json_str(j, "model", s->x.model);
    oct_json_bool(j, "samples", c->calib != NULL);
    oct_json_str(j, "domain", n->domain);
    put_values(j, "inputs", c, g, n->in, n->n_in);
    put_values(j, "outputs", c, g, n->out, n->n_out);
    oct_json_rows(j, "attributes", n->attr, n->n_attr, sizeof *n->attr, put_attribute);
    oct_json_open(j, "decision", '{');
    oct_report_layer(j, l, l->d.why);
    oct_json_close(j);
    oct_json_open(j, "policy", '{');
    oct_json_str(j, "scheme", oct_scheme_name(row.scheme));
    oct_json_str(j, "rule", row.rule);
    oct_json_close(j);
    put_constraints(j, c, &l->d);
    oct_json_open(j, "passes", '[');
    for (size_t i = 0; i < c->n_changes; i++)
        if (*c->changes[i].node && strcmp(c->changes[i].node, l->own) == 0) {
            oct_json_open(j, NULL, '{');
            oct_report_change(j, &c->changes[i]);
            oct_json_close(j);
        }
    oct_json_close(j);
    oct_json_close(j);
}

oct_status oct_session_explain(const octet_convert_options *x, const oct_session_host *h, const char *node,
                               oct_document *to, oct_err *err)
{
    oct_session *s;
    oct_session_host host = *h;
    host.no_save = true;
    oct_status st = oct_session_open(x, &host, &s, err);
    if (st == OCT_OK)
        st = oct_session_decide(s, err);
    const oct_layer *l = st == OCT_OK ? find(&s->c, node) : NULL;
    if (l)
        put(s, l, to);
    else if (st == OCT_OK)
        st = no_such_node(s, node, err);
    oct_session_close(s);
    return st;
}
