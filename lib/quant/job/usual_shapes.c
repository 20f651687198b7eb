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

/* Gives open dimensions of inputs the sizes that a sample has. */
static oct_status set_seen(oct_graph *g, const oct_shape *seen, oct_err *err)
{
    for (size_t i = 0; i < g->n_input; i++) {
        oct_dim d[OCT_MAX_RANK];
        const oct_shape *s = &g->value[g->input[i]].shape;
        const int rank = s->rank < 0 ? seen[i].rank : s->rank;
        if (rank <= 0 || rank != seen[i].rank || rank > OCT_MAX_RANK)
            continue;
        for (int k = 0; k < rank; k++)
            d[k] = (oct_dim){ .n = s->rank >= 0 && s->d[k].n >= 0 ? s->d[k].n : seen[i].d[k].n };
        OCT_TRY(oct_graph_set_shape(g, g->input[i], rank, d, err));
    }
    return OCT_OK;
}

oct_status oct_usual_shapes(const oct_qjob *j, oct_graph **copy, oct_err *err)
{
    oct_err ignored = { 0 };
    *copy = NULL;
    if (*j->where || shapes_are_known(j->g)) /* values that bodies take from outside have no shape in a copy */
        return OCT_OK;
    OCT_TRY(oct_graph_clone(j->g, copy, err));
    if (j->opts.n_seen == j->g->n_input && j->opts.n_seen)
        OCT_TRY(set_seen(*copy, j->opts.seen, err));
    if (oct_set_usual_shapes(*copy, &ignored) != OCT_OK) {
        oct_graph_destroy(*copy);
        *copy = NULL;
    }
    return OCT_OK;
}

oct_status oct_qjob_needs_batch(const oct_qjob *j, bool *needs, oct_err *err)
{
    oct_graph *copy = NULL;
    bool layers = false;
    *needs = false;
    for (size_t i = 0; i < j->g->n_order; i++)
        layers |= oct_node_has_weights(j->g, j->g->order[i]);
    if (!layers || !j->expected.n || j->expected.on_floats[0] > 0) /* where a time is known, shapes are */
        return OCT_OK;
    OCT_TRY(oct_usual_shapes(j, &copy, err));
    *needs = !copy;
    oct_graph_destroy(copy);
    return OCT_OK;
}

/* ---- multiply-accumulates ---- */

static bool lacks_counts(const oct_graph *g)
{
    oct_graph *nested;
    bool any = false;
    for (size_t i = 0; i < g->n_order && !any; i++) {
        any = oct_node_has_weights(g, g->order[i]) && oct_node_macs(g, g->order[i]) == 0;
        for (size_t k = 0; (nested = oct_node_graph_at(&g->node[g->order[i]], k)) && !any; k++)
            any = lacks_counts(nested);
    }
    return any;
}

/* With a sample's shapes, a first dimension that is still open is no batch, but depends on values. */
static bool is_open(const oct_graph *g, int id)
{
    const oct_node *n = &g->node[id];
    const oct_shape *s = n->n_out && n->out[0] >= 0 ? &g->value[n->out[0]].shape : NULL;
    bool open = !s || s->rank < 0;
    for (int d = 0; s && d < s->rank; d++)
        open |= s->d[d].n < 0;
    return open;
}

/* Estimates what is not known: every weight counts as often as those that are known do on average, or once. */
static void guess(oct_qjob *j)
{
    double macs = 0, weights = 0;
    for (size_t i = 0; i < j->g->n_order; i++)
        if (j->work[j->g->order[i]] > 0 && oct_node_has_weights(j->g, j->g->order[i])) {
            macs += j->work[j->g->order[i]];
            weights += (double)oct_layer_weight_count(j->g, j->g->order[i]);
        }
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        if (j->work[id] > 0 || !oct_node_has_weights(j->g, id))
            continue;
        j->guessed[id] = true;
        j->work[id] = (double)oct_layer_weight_count(j->g, id) * (macs > 0 && weights > 0 ? macs / weights : 1);
        j->all_work += j->work[id];
    }
}

static oct_status allocate(oct_qjob *j, oct_err *err)
{
    j->work = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->work);
    j->guessed = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *j->guessed);
    return j->work && j->guessed ? OCT_OK : oct_nomem(err);
}

/* Notes the multiply-accumulates of each node in g, which is the job's graph or a copy of it. */
static oct_status count(oct_qjob *j, const oct_graph *g, oct_err *err)
{
    OCT_TRY(allocate(j, err));
    j->all_work = 0;
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        j->work[id] = j->opts.n_seen && is_open(g, id) ? 0 : (double)oct_node_macs(g, id);
        j->all_work += oct_node_has_weights(g, id) ? j->work[id] : 0;
    }
    guess(j);
    j->all_work = j->all_work > 0 ? j->all_work : 1;
    for (size_t i = 0; i < j->n_body; i++)
        OCT_TRY(count(j->body[i].job, oct_node_graph_at(&g->node[j->body[i].node], j->body[i].at), err));
    return OCT_OK;
}

oct_status oct_job_count_work(oct_qjob *j, oct_err *err)
{
    oct_graph *copy = NULL;
    if (lacks_counts(j->g) || (j->opts.n_seen && !shapes_are_known(j->g)))
        OCT_TRY(oct_usual_shapes(j, &copy, err));
    const oct_status s = count(j, copy ? copy : j->g, err);
    oct_graph_destroy(copy);
    return s;
}

int64_t oct_graph_macs(const oct_graph *g)
{
    int64_t macs = 0;
    for (size_t i = 0; i < g->n_order; i++)
        if (oct_node_has_weights(g, g->order[i]) && __builtin_add_overflow(macs, oct_node_macs(g, g->order[i]), &macs))
            return INT64_MAX;
    return macs ? macs : 1;
}

/* ---- shares ---- */

/* The multiply-accumulates of a graph and of those in it. */
static double work_of(const oct_qjob *j)
{
    double work = j->all_work;
    for (size_t i = 0; i < j->n_body; i++)
        work += work_of(j->body[i].job);
    return work;
}

/* Shares are of all layers around: a body that runs more than once may be nearly all of the time, so that its own count
 * there. all, whole: the multiply-accumulates of which the layers of j, and those of bodies that run once, are a share.
 */
static void set_shares(const oct_qjob *of, const oct_qjob *j, double all, double whole, double *share)
{
    for (size_t k = 0; k < of->n_all; k++)
        if (of->all[k].job == j)
            share[k] = j->work[of->all[k].node] / all;
    for (size_t i = 0; i < j->n_body; i++) {
        const oct_qjob *b = j->body[i].job;
        const oct_op *op = oct_op_of(j->g, j->body[i].node);
        const double own = op && op->repeats ? work_of(b) : whole;
        set_shares(of, b, own, own, share);
    }
}

void oct_job_shares(const oct_qjob *j, double *share)
{
    set_shares(j, j, j->all_work, work_of(j), share);
}
