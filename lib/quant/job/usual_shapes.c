/* Sizes for dimensions that a model leaves open, and the work of each layer with them. */
#include "quant/job/job.h"

#include "ops/traits.h"
#include "passes/pass.h"

static bool shapes_are_known(const oct_graph *g)
{
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        for (int k = 0; k < n->n_out; k++) {
            const oct_shape *s = n->out[k] >= 0 ? &g->value[n->out[k]].shape : NULL;
            for (int d = 0; s && d < s->rank; d++)
                if (s->d[d].n < 0)
                    return false;
        }
    }
    return true;
}

oct_status oct_usual_shapes(const oct_qjob *j, oct_graph **copy, oct_err *err)
{
    oct_err ignored = { 0 };
    *copy = NULL;
    if (*j->where || shapes_are_known(j->g)) /* values that bodies take from outside have no shape in a copy */
        return OCT_OK;
    OCT_TRY(oct_graph_clone(j->g, copy, err));
    if (oct_set_usual_shapes(*copy, &ignored) != OCT_OK) {
        oct_graph_destroy(*copy);
        *copy = NULL;
    }
    return OCT_OK;
}

/* ---- multiply-accumulates ---- */

static bool lacks_counts(const oct_graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->n_order; i++)
        any |= oct_node_has_weights(g, g->order[i]) && oct_node_macs(g, g->order[i]) == 0;
    return any;
}

/* Notes the multiply-accumulates of each node in g, and returns those of all layers; 1 if none are known. */
static double count(oct_qjob *j, const oct_graph *g)
{
    for (size_t i = 0; i < j->g->n_order; i++)
        j->work[j->g->order[i]] = (double)oct_node_macs(g, j->g->order[i]);
    return (double)oct_graph_macs(g);
}

/* The same of the weights alone. */
static double count_weights(oct_qjob *j)
{
    double all = 0;
    for (size_t i = 0; i < j->g->n_order; i++)
        if (oct_node_has_weights(j->g, j->g->order[i]))
            all += j->work[j->g->order[i]] = (double)oct_layer_weight_count(j->g, j->g->order[i]);
    return all > 0 ? all : 1;
}

oct_status oct_job_count_work(oct_qjob *j, oct_err *err)
{
    oct_graph *copy = NULL;
    j->work = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->work);
    if (!j->work)
        return oct_nomem(err);
    if (lacks_counts(j->g))
        OCT_TRY(oct_usual_shapes(j, &copy, err));
    j->all_work = count(j, copy ? copy : j->g);
    if (j->all_work <= 1) /* nothing is known: every weight counts once */
        j->all_work = count_weights(j);
    oct_graph_destroy(copy);
    return OCT_OK;
}

int64_t oct_graph_macs(const oct_graph *g)
{
    int64_t macs = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_node_has_weights(g, g->order[i]) && __builtin_add_overflow(macs, oct_node_macs(g, g->order[i]), &macs))
            return INT64_MAX;
    return macs ? macs : 1;
}
