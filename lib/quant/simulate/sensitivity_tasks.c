/* Measures sensitivities in parts. The search divides groups depending on what it has measured. So it is not known in
 * advance which measurements it will make. But the measurements inside a group depend on nothing outside it. Therefore
 * groups of a certain depth are tasks that include everything inside them, and each group above is a task of one
 * measurement. All parts compute the same tasks, and distribute them in the same way. */
#include "quant/simulate/sensitivity_int.h"

#include <math.h>
#include <stdlib.h>

enum { TASKS_A_PART = 8 }; /* the least number of tasks of each kind for a part, if there are so many sites */

typedef struct task {
    oct_site_group group;
    bool weights, whole; /* whole: the task includes everything inside the group */
    double cost;
    size_t at, part; /* at: the index in the list */
} task;

typedef struct work {
    const oct_qjob *j;
    oct_site_search of[2]; /* the searches: values, weights */
    task *task;
    size_t n;
    double *behind; /* by node: the work of computing the graph from there to its end */
    double all;
} work;

/* ---- the tasks ---- */

/* Weighs nodes by their multiply-accumulates plus a constant. */
static oct_status weigh_nodes(work *w, oct_arena *arena, oct_err *err)
{
    const oct_graph *g = w->j->g;
    if (!(w->behind = oct_arena_calloc(arena, g->n_node + 1, sizeof *w->behind)))
        return oct_nomem(err);
    const double least = (double)oct_graph_macs(g) / 1e3 + 1;
    for (size_t i = g->n_order; i-- > 0;)
        w->behind[g->order[i]] = w->all += (double)oct_node_macs(g, g->order[i]) + least;
    return OCT_OK;
}

/* The work of a run. With rounded values it starts at the first of them; with rounded weights it starts at the
 * beginning. */
static double run_cost(const work *w, const oct_site_search *x, size_t from)
{
    const oct_site *s = &x->site[from];
    const int maker = s->value >= 0 ? w->j->g->value[s->value].producer : -1;
    return maker >= 0 ? w->behind[maker] : w->all;
}

static void add_task(work *w, bool weights, const oct_site_group *g, bool whole)
{
    const oct_site_search *x = &w->of[weights];
    const double runs = (whole ? 2 * (double)(g->to - g->from) - 1 : 1) - !isnan(x->known[g->place]);
    w->task[w->n] =
        (task){ .group = *g, .weights = weights, .whole = whole, .cost = runs * run_cost(w, x, g->from), .at = w->n };
    w->n++;
}

/* Lists tasks level by level. x->group: room for groups. */
static void list_tasks(work *w, bool weights, size_t wanted)
{
    const oct_site_search *x = &w->of[weights];
    oct_site_group *g = x->group;
    size_t n = x->n ? 1 : 0;
    g[0] = (oct_site_group){ 1, 0, x->n, 0 };
    for (size_t level = 1; n > 0; level *= 2) {
        size_t divided = 0;
        for (size_t i = 0; i < n; i++) {
            const bool whole = level >= wanted || g[i].to - g[i].from == 1;
            add_task(w, weights, &g[i], whole);
            if (!whole)
                g[divided++] = g[i];
        }
        for (size_t i = divided; i-- > 0;) {
            const oct_site_group both = g[i];
            oct_site_group_halve(&both, &g[2 * i]);
        }
        n = 2 * divided;
    }
}

static int dearest_first(const void *a, const void *b)
{
    const task *x = a, *y = b;
    return x->cost != y->cost ? (x->cost < y->cost ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

static int by_place(const void *a, const void *b)
{
    const task *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Distributes the tasks by decreasing work, each to the part with the least work. */
static oct_status deal(work *w, size_t parts, oct_arena *arena, oct_err *err)
{
    double *load = oct_arena_calloc(arena, parts, sizeof *load);
    if (!load)
        return oct_nomem(err);
    qsort(w->task, w->n, sizeof *w->task, dearest_first);
    for (size_t i = 0; i < w->n; i++) {
        size_t least = 0;
        for (size_t k = 1; k < parts; k++)
            least = load[k] < load[least] ? k : least;
        w->task[i].part = least;
        load[least] += w->task[i].cost;
    }
    qsort(w->task, w->n, sizeof *w->task, by_place);
    return OCT_OK;
}

/* ---- doing the work ---- */

static int by_first_site(const void *a, const void *b)
{
    const oct_site_group *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static oct_status run_tasks(work *w, bool weights, uint32_t part, oct_err *err)
{
    oct_site_search *x = &w->of[weights];
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        task *t = &w->task[i];
        if (t->part != part || t->weights != weights)
            continue;
        if (t->whole)
            x->group[n++] = t->group;
        else
            OCT_TRY(oct_site_group_measure(x, &t->group, err));
    }
    qsort(x->group, n, sizeof *x->group, by_first_site);
    return oct_site_groups_divide(x, n, err);
}

static oct_status open_work(work *w, oct_sim *s, double least, const oct_sim_loss loss[2], oct_memo *memo,
                            oct_arena *arena, oct_err *err)
{
    OCT_TRY(oct_sites_open_values(&w->of[0], s, w->j, memo, loss[0].noise, arena, err));
    OCT_TRY(oct_sites_open_layers(&w->of[1], &w->of[0], w->j, arena, err));
    for (int k = 0; k < 2; k++)
        w->of[k].least = loss[k].noise * least;
    OCT_TRY(weigh_nodes(w, arena, err));
    w->task = oct_arena_calloc(arena, 2 * (w->of[0].n + w->of[1].n) + 2, sizeof *w->task);
    return w->task ? OCT_OK : oct_nomem(err);
}

oct_status oct_sensitivity_measure_part(oct_sim *s, oct_qjob *j, double least, uint32_t part, uint32_t parts,
                                        oct_memo *memo, oct_arena *arena, oct_err *err)
{
    work w = { .j = j };
    oct_sim_loss all, loss[2];
    if (part == 0)
        OCT_TRY(oct_sites_measure(s, memo, OCT_SITES_ALL, &all, err));
    /* These tell each part which noise is too small to be divided. */
    OCT_TRY(oct_sites_measure(s, memo, OCT_SITES_WEIGHTS, &loss[1], err));
    OCT_TRY(oct_sites_measure(s, memo, OCT_SITES_VALUES, &loss[0], err));
    OCT_TRY(open_work(&w, s, least, loss, memo, arena, err));
    const size_t most = w.of[0].n + w.of[1].n + 1,
                 used = parts < most ? parts : most; /* parts beyond this number have nothing to do */
    for (int k = 0; k < 2; k++)
        list_tasks(&w, k, used * TASKS_A_PART);
    OCT_TRY(deal(&w, used, arena, err));
    for (int k = 0; k < 2; k++)
        OCT_TRY(run_tasks(&w, k, part, err));
    return OCT_OK;
}
