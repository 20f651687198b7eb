/* Jobs of the graphs that nodes hold: If, Loop and Scan quantize inside as the graph around them does.
 *
 * A body is decided and written by a job of its own. What goes in and out of it stays float32: a value that a body takes from
 * outside keeps its name and its type there, and gets a quantizer of its own inside. */
#include "quant/job.h"

#include <stdlib.h>
#include <string.h>

/* "If_3/then_branch/" of the k-th graph that a node holds, behind where the node itself is. */
static const char *place_name(const oct_qjob *j, int id, size_t k)
{
    const oct_node *n = &j->g->node[id];
    for (size_t i = 0; i < n->n_attr; i++) {
        const oct_attr *a = &n->attr[i];
        if (a->graphs && k < (size_t)a->n)
            return oct_arena_printf(j->arena, "%s%s/%s/", j->where, oct_node_label(j->g, id), a->name);
        k -= a->graphs ? (size_t)a->n : 0;
    }
    return NULL;
}

static oct_status open_bodies(oct_qjob *j, int id, oct_err *err)
{
    oct_graph *nested;
    for (size_t k = 0; (nested = oct_node_graph_at(&j->g->node[id], k)); k++) {
        if (!OCT_GROW(j->arena, j->body, j->n_body, j->cap_body))
            return oct_nomem(err);
        qbody *b = &j->body[j->n_body];
        *b = (qbody){ .node = id, .at = k };
        oct_qjob_opts o = j->opts;
        o.half_io = false;
        const char *where = place_name(j, id, k);
        if (!where)
            return oct_nomem(err);
        OCT_TRY(oct_job_open(j->arena, nested, &o, where, &b->job, err));
        j->n_body++;
    }
    return OCT_OK;
}

oct_status oct_bodies_open(oct_qjob *j, oct_err *err)
{
    for (size_t i = 0; i < j->g->n_order; i++)
        OCT_TRY(open_bodies(j, j->g->order[i], err));
    return OCT_OK;
}

static size_t count_layers(const oct_qjob *j)
{
    size_t n = j->n_layer;
    for (size_t i = 0; i < j->n_body; i++)
        n += count_layers(j->body[i].job);
    return n;
}

/* A node, then what its graphs hold; bodies stand in the order of their nodes. */
static void list_layers(oct_qjob *j, oct_qlayer *to, size_t *n)
{
    size_t k = 0;
    for (size_t i = 0; i < j->n_layer; i++) {
        to[(*n)++] = (oct_qlayer){ j, j->layer[i] };
        for (; k < j->n_body && j->body[k].node == j->layer[i]; k++)
            list_layers(j->body[k].job, to, n);
    }
}

static size_t count_values(const oct_qjob *j)
{
    size_t n = 0;
    for (size_t v = 0; v < j->n_values; v++)
        n += oct_is_observed(j, (int)v);
    for (size_t i = 0; i < j->n_body; i++)
        n += count_values(j->body[i].job);
    return n;
}

/* A value where it is made: a captured one is of an outer graph. */
typedef struct place {
    const oct_graph *g;
    int value;
} place;

static place place_of(const oct_graph *g, int value)
{
    while (g->value[value].outer >= 0) {
        value = g->value[value].outer;
        g = g->outer;
    }
    return (place){ g, value };
}

/* One wanted value of one graph. */
typedef struct mention {
    const char *name;
    place place;
    size_t at;   /* in order */
    int axis;
    bool again;  /* an earlier one has the name */
} mention;

static void list_values(const oct_qjob *j, mention *to, size_t *n)
{
    for (size_t v = 0; v < j->n_values; v++)
        if (oct_is_observed(j, (int)v)) {
            to[*n] = (mention){ oct_value_name(j->g, (int)v), place_of(j->g, (int)v), *n, j->value[v].axis, false };
            ++*n;
        }
    for (size_t i = 0; i < j->n_body; i++)
        list_values(j->body[i].job, to, n);
}

static int by_name(const void *a, const void *b)
{
    const mention *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

static int by_order(const void *a, const void *b)
{
    const mention *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Branches may use one name for different values: these share statistics, and have no moments, as their channels are not the same.
 * m: mentions of one name. */
static void join_mentions(mention *m, size_t n)
{
    bool same = true;
    int axis = 0;
    for (size_t i = 0; i < n; i++) {
        same &= m[i].place.g == m[0].place.g && m[i].place.value == m[0].place.value;
        axis = axis ? axis : m[i].axis;
        m[i].again = i > 0;
    }
    m[0].axis = same ? axis : 0;
}

static oct_status gather_values(oct_qjob *j, size_t n, oct_err *err)
{
    mention *m = oct_calloc(n + 1, sizeof *m);
    size_t count = 0;
    if (!m)
        return oct_nomem(err);
    list_values(j, m, &count);
    qsort(m, n, sizeof *m, by_name);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && strcmp(m[k].name, m[i].name) == 0;)
            k++;
        join_mentions(m + i, k - i);
    }
    qsort(m, n, sizeof *m, by_order);
    for (size_t i = 0; i < n; i++)
        if (!m[i].again) {
            j->all_axes[j->n_all_wanted] = m[i].axis;
            j->all_wanted[j->n_all_wanted++] = m[i].name;
        }
    oct_free(m);
    return OCT_OK;
}

oct_status oct_bodies_list(oct_qjob *j, oct_err *err)
{
    const size_t values = count_values(j), layers = count_layers(j);
    j->all = oct_arena_calloc(j->arena, layers + 1, sizeof *j->all);
    j->all_wanted = oct_arena_calloc(j->arena, values + 1, sizeof *j->all_wanted);
    j->all_axes = oct_arena_calloc(j->arena, values + 1, sizeof *j->all_axes);
    if (!j->all || !j->all_wanted || !j->all_axes)
        return oct_nomem(err);
    list_layers(j, j->all, &j->n_all);
    return gather_values(j, values, err);
}

oct_status oct_bodies_decide(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    for (size_t i = 0; i < j->n_body; i++) {
        oct_qjob *b = j->body[i].job;
        b->observer = j->observer;
        oct_status s = oct_qjob_decide(b, c, err);
        if (s != OCT_OK) {
            oct_within(err, "in '%s'", b->where);
            return s;
        }
    }
    return OCT_OK;
}

void oct_bodies_move(oct_qjob *j, oct_graph *g)
{
    j->g = g;
    for (size_t i = 0; i < j->n_body; i++)
        oct_bodies_move(j->body[i].job, oct_node_graph_at(&g->node[j->body[i].node], j->body[i].at));
}

oct_status oct_bodies_do(oct_qjob *j, oct_status (*step)(oct_qjob *, oct_err *), oct_err *err)
{
    for (size_t i = 0; i < j->n_body; i++) {
        const qbody *b = &j->body[i];
        oct_status s = step(b->job, err);
        if (s == OCT_OK)
            s = oct_graph_set_captures(j->g, b->node, err);
        if (s != OCT_OK) {
            oct_within(err, "in '%s'", b->job->where);
            return s;
        }
    }
    return OCT_OK;
}
