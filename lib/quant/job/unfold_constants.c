/* Restores nodes whose folded constants would make the file larger (passes/unfold.h). How many bytes each takes is
 * known when everything is decided. */
#include "forms/write/forms_write.h"
#include "passes/unfold.h"
#include "quant/job/job.h"
#include "quant/place/place.h"
#include "quant/weights/constants.h"

enum { LEAST_GROWTH = 16 << 10 }; /* bytes that a matrix must save */

/* What is unfolded: the job's graph, or a copy of it, in which indices are the same. */
typedef struct unfolded {
    const oct_qjob *j;
    const oct_graph *g;
} unfolded;

/* The job of `wanted`, which is g or a graph inside. */
static const oct_qjob *job_of(const oct_qjob *j, const oct_graph *g, const oct_graph *wanted)
{
    const oct_qjob *found = g == wanted ? j : NULL;
    for (size_t i = 0; i < j->n_body && !found; i++) {
        const qbody *b = &j->body[i];
        found = job_of(b->job, oct_node_graph_at(&g->node[b->node], b->at), wanted);
    }
    return found;
}

/* The forms in which readers need a constant. */
typedef struct wanted_forms {
    bool real, half, operand, other;
} wanted_forms;

static void add_form(const oct_qjob *j, const oct_graph *g, int v, oct_use u, wanted_forms *f)
{
    const oct_scheme scheme = u.node < (int)j->n_nodes ? oct_scheme_of(j, u.node) : OCT_SCHEME_FLOAT;
    const bool quantized = scheme != OCT_SCHEME_FLOAT;
    const qconstants *n = quantized ? &j->constants[u.node] : NULL;
    if (u.slot < 0)
        return; /* the value inside the nested graph determines it */
    if (quantized && oct_is_static(j, u.node) && u.slot < oct_data_inputs(j, u.node) && v < (int)j->n_values &&
        oct_quant_of(j, v))
        f->operand = true;
    else if (quantized && ((u.slot > 0 && u.slot < 3 && (n->weights[u.slot - 1] || n->stored)) ||
                           (u.slot == 2 && (n->bias || scheme == OCT_SCHEME_WEIGHT_ONLY)) || (u.slot == 0 && n->table)))
        f->other = true; /* weights in blocks need a constant bias */
    else if (oct_half_type(j, u.node) && oct_half_follows(&g->node[u.node], u.slot) && g->value[v].dtype == OCT_F32)
        f->half = true;
    else
        f->real = true;
}

static wanted_forms forms_of(const oct_qjob *j, const oct_graph *g, int v)
{
    const oct_value *x = &g->value[v];
    wanted_forms f = { .real = x->is_output };
    for (size_t i = 0; i < x->n_uses; i++)
        add_form(j, g, v, x->uses[i], &f);
    return f;
}

bool oct_operand_stays_real(const oct_qjob *j, const oct_graph *g, int value)
{
    return forms_of(j, g, value).real && g->value[value].constant->bytes >= OCT_HALF_TABLE * sizeof(float);
}

static oct_stored stored(const void *arg, const oct_graph *g, int v)
{
    const unfolded *u = arg;
    const oct_qjob *j = job_of(u->j, u->g, g);
    const size_t bytes = g->value[v].constant->bytes;
    if (!j)
        return (oct_stored){ bytes, true, false };
    const wanted_forms f = forms_of(j, g, v);
    return (oct_stored){ f.real ? bytes : (f.half ? bytes / 2 : 0) + (f.operand ? bytes / sizeof(float) : 0), f.real,
                         f.other };
}

oct_status oct_unfold_constants(const oct_qjob *j, oct_graph *g, size_t *n, size_t *saved, oct_err *err)
{
    return oct_unfold(g, &(oct_unfold_opts){ .stored = stored, .arg = &(unfolded){ j, g } }, n, saved, err);
}

/* ---- before anything is decided ---- */

static size_t half_of(const void *arg, const oct_tensor *t)
{
    return t->dtype == OCT_F32 ? t->bytes / 2 : t->bytes;
}

static oct_stored stored_in_half(const void *arg, const oct_graph *g, int v)
{
    return (oct_stored){ half_of(arg, g->value[v].constant), true, false };
}

oct_status oct_unfold_half(oct_graph *g, size_t *n, size_t *saved, oct_err *err)
{
    return oct_unfold(g, &(oct_unfold_opts){ .stored = stored_in_half, .source = half_of }, n, saved, err);
}

bool oct_weights_grow(const oct_qjob *j, int node, int bits)
{
    const int v = j->g->node[node].in[1];
    oct_sources s;
    if (!j->g->value[v].recipe || !oct_graph_sources(j->g, v, &s))
        return false;
    return (size_t)j->g->value[v].constant->count * (size_t)bits / 8 > s.bytes + LEAST_GROWTH;
}
