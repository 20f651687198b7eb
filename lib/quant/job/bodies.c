/* Jobs of the graphs that nodes hold: the bodies of If, Loop and Scan are quantized like the graph around them.
 *
 * A job of its own decides and writes each body. Inputs and outputs of a body stay float32. A value that a body takes
 * from outside keeps its name and its type, and gets a quantizer inside the body. */
#include "quant/job/job.h"

#include <stdlib.h>
#include <string.h>

/* The path to the k-th graph that a node holds; NULL: out of memory. */
static const char *place_name(const oct_qjob *j, int id, size_t k)
{
    oct_buf b = OCT_BUF_INIT;
    oct_buf_puts(&b, j->where);
    oct_node_put_path(j->g, id, k, &b);
    const char *name = b.failed ? NULL : oct_arena_strdup(j->arena, oct_buf_str(&b));
    oct_buf_free(&b);
    return name;
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
        o.n_given = 0;
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

/* Lists each node, followed by the nodes of its bodies in order. to: the outermost job. */
static oct_status list_layers(oct_qjob *to, oct_qjob *j, oct_err *err)
{
    size_t k = 0;
    for (size_t i = 0; i < j->n_layer; i++) {
        if (!OCT_GROW(to->arena, to->all, to->n_all, to->cap_all))
            return oct_nomem(err);
        to->all[to->n_all++] = (oct_qlayer){ j, j->layer[i] };
        for (; k < j->n_body && j->body[k].node == j->layer[i]; k++)
            OCT_TRY(list_layers(to, j->body[k].job, err));
    }
    return OCT_OK;
}

/* A wanted value in one of the graphs. */
typedef struct mention {
    const char *name;
    const oct_graph
        *g; /* the graph that computes the value, and the index there; a captured value belongs to an outer graph */
    int value;
    size_t at; /* the position in the list */
    int axis;
} mention;

typedef struct mentions {
    oct_arena *arena;
    mention *m;
    size_t n, cap;
} mentions;

static oct_status mention_values(mentions *to, const oct_qjob *j, oct_err *err)
{
    for (size_t v = 0; v < j->n_values; v++) {
        if (!oct_is_observed(j, (int)v))
            continue;
        if (!OCT_GROW(to->arena, to->m, to->n, to->cap))
            return oct_nomem(err);
        mention m = { oct_value_name(j->g, (int)v), j->g, (int)v, to->n, oct_moments_axis(j, v) };
        for (int outer; (outer = m.g->value[m.value].outer) >= 0; m.g = m.g->outer)
            m.value = outer;
        to->m[to->n++] = m;
    }
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(mention_values(to, j->body[i].job, err));
    return OCT_OK;
}

static int by_name(const void *a, const void *b)
{
    const mention *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

/* Branches may use the same name for different values. These share statistics, and have no moments, because their
 * channels differ. */
static oct_status list_values(oct_qjob *j, mentions *all, oct_err *err)
{
    j->all_wanted = oct_arena_calloc(j->arena, all->n + 1, sizeof *j->all_wanted);
    j->all_axes = oct_arena_calloc(j->arena, all->n + 1, sizeof *j->all_axes);
    if (!j->all_wanted || !j->all_axes)
        return oct_nomem(err);
    if (all->n)
        qsort(all->m, all->n, sizeof *all->m, by_name);
    for (size_t i = 0; i < all->n;) {
        const mention *first = &all->m[i];
        bool same = true;
        int axis = 0;
        for (; i < all->n && strcmp(all->m[i].name, first->name) == 0; i++) {
            same &= all->m[i].g == first->g && all->m[i].value == first->value;
            axis = axis ? axis : all->m[i].axis;
        }
        j->all_wanted[first->at] = first->name;
        j->all_axes[first->at] = same ? axis : 0;
    }
    for (size_t i = 0; i < all->n; i++)
        if (j->all_wanted[i]) {
            j->all_axes[j->n_all_wanted] = j->all_axes[i];
            j->all_wanted[j->n_all_wanted++] = j->all_wanted[i];
        }
    return OCT_OK;
}

oct_status oct_bodies_list(oct_qjob *j, oct_err *err)
{
    mentions all = { .arena = j->arena };
    j->n_all = j->n_all_wanted = 0;
    OCT_TRY(list_layers(j, j, err));
    OCT_TRY(mention_values(&all, j, err));
    return list_values(j, &all, err);
}

oct_status oct_bodies_decide(oct_qjob *j, const oct_calib *c, oct_err *err)
{
    for (size_t i = 0; i < j->n_body; i++) {
        oct_qjob *b = j->body[i].job;
        b->observer = j->observer;
        OCT_TRY_WITHIN(oct_qjob_decide(b, c, err), err, "in '%s'", b->where);
    }
    return OCT_OK;
}

oct_status oct_bodies_do(const oct_qjob *j, oct_graph *g, oct_status (*step)(const oct_qjob *, oct_graph *, oct_err *),
                         oct_err *err)
{
    for (size_t i = 0; i < j->n_body; i++) {
        const qbody *b = &j->body[i];
        OCT_TRY_WITHIN(step(b->job, oct_node_graph_at(&g->node[b->node], b->at), err), err, "in '%s'", b->job->where);
        OCT_TRY(oct_graph_set_captures(g, b->node, err));
    }
    return OCT_OK;
}

size_t oct_job_count_named(const oct_qjob *j, const char *name)
{
    size_t n = 0;
    for (size_t v = 0; v < j->n_values; v++)
        n += j->g->value[v].outer < 0 && !j->g->value[v].dead && strcmp(oct_value_name(j->g, (int)v), name) == 0;
    for (size_t i = 0; i < j->n_body; i++)
        n += oct_job_count_named(j->body[i].job, name);
    return n;
}
