/* The time that each node of a job takes in float, on integers and in other ways, by the target's tables of costs; and
 * the time of the whole placement. */
#include "quant/place/layer_costs_int.h"

#include "ops/traits.h"
#include "passes/pass.h"
#include "quant/job/job.h"
#include "quant/place/place.h"
#include "quant/weights/weights.h"

#include <math.h>

/* ---- costs ---- */

static void fill_node(const oct_qjob *j, const oct_graph *g, int id, struct oct_job_costs *c)
{
    c->known[id] = c->dynamic[id] = c->blocks[id] = c->wide[id] = true;
    for (size_t t = 0; t < c->n; t++) {
        double *cost = c->node[id][t];
        for (int how = 0; how < OCT_COST_HOWS; how++)
            cost[how] = oct_target_cost(j->opts.target, t, g, id, (oct_cost_how)how);
        const double known = isnan(cost[OCT_COST_FLOAT]) ? 0 : cost[OCT_COST_FLOAT];
        c->known[id] &=
            !isnan(cost[OCT_COST_FLOAT]) && (!isnan(cost[OCT_COST_STATIC]) || !isnan(cost[OCT_COST_DYNAMIC]));
        c->dynamic[id] &= !isnan(cost[OCT_COST_FLOAT]) && !isnan(cost[OCT_COST_DYNAMIC]);
        c->wide[id] &= !isnan(cost[OCT_COST_FLOAT]) && !isnan(cost[OCT_COST_STATIC16]);
        c->blocks[id] &= !isnan(cost[OCT_COST_FLOAT]) && !isnan(cost[OCT_COST_BLOCKS8_BYTES]);
        for (int how = 0; how < OCT_COST_HOWS; how++)
            cost[how] = isnan(cost[how]) || isnan(cost[OCT_COST_FLOAT]) ? known : cost[how];
        c->on_floats[t] += known;
    }
}

static oct_status fill_costs(const oct_qjob *j, const oct_graph *g, struct oct_job_costs *c, oct_err *err)
{
    c->n = oct_target_n_costs(j->opts.target);
    c->node = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *c->node);
    c->known = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *c->known);
    c->dynamic = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *c->dynamic);
    c->blocks = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *c->blocks);
    c->wide = oct_arena_calloc(j->arena, j->n_nodes + 1, sizeof *c->wide);
    c->border = oct_arena_calloc(j->arena, j->n_values + 1, sizeof *c->border);
    if (!c->node || !c->known || !c->dynamic || !c->blocks || !c->wide || !c->border)
        return oct_nomem(err);
    for (size_t i = 0; i < j->g->n_order; i++)
        if (!g->node[j->g->order[i]].dead)
            fill_node(j, g, j->g->order[i], c);
    for (size_t v = 0; v < j->n_values; v++)
        for (size_t t = 0; t < c->n; t++)
            for (int b = 0; b < 2; b++)
                c->border[v][t][b] = oct_target_border_cost(j->opts.target, t, g, (int)v, (oct_cost_border)b);
    return OCT_OK;
}

oct_status oct_costs_find(oct_qjob *j, oct_err *err)
{
    struct oct_job_costs *c = j->costs = oct_arena_calloc(j->arena, 1, sizeof *c);
    oct_graph *copy;
    if (!c)
        return oct_nomem(err);
    OCT_TRY(oct_usual_shapes(j, &copy, err));
    const oct_status s = fill_costs(j, copy ? copy : j->g, c, err);
    oct_graph_destroy(copy);
    return s;
}

/* ---- expected times ---- */

static int bits_of(const oct_qjob *j, const oct_policy_row *row)
{
    return oct_dtype_bits(oct_asked_activations(j, row));
}

static oct_cost_how how_of(const oct_qjob *j, int id)
{
    switch (oct_scheme_of(j, id)) {
    case OCT_SCHEME_STATIC:
        return !oct_is_static(j, id)                 ? OCT_COST_FLOAT
               : bits_of(j, oct_row_of(j, id)) == 16 ? OCT_COST_STATIC16
                                                     : OCT_COST_STATIC;
    case OCT_SCHEME_DYNAMIC: return OCT_COST_DYNAMIC;
    case OCT_SCHEME_WEIGHT_ONLY: return oct_op_of(j->g, id)->weights.blocks ? oct_block_cost(j, id) : OCT_COST_FLOAT;
    default: return OCT_COST_FLOAT;
    }
}

bool oct_reads_reals(const oct_qjob *j, const oct_use *u)
{
    return u->slot < 0 ||
           (!oct_is_absorbed(j, u->node) && !(oct_is_static(j, u->node) && u->slot < oct_data_inputs(j, u->node)));
}

static bool has_real_reader(const oct_qjob *j, int value)
{
    const oct_value *v = &j->g->value[value];
    bool any = v->is_output;
    for (size_t i = 0; i < v->n_uses; i++)
        any |= oct_reads_reals(j, &v->uses[i]);
    return any;
}

/* Whether an integer node reads a value with another number of bits than it was computed with. Then it is rounded a
 * second time. */
static bool is_converted(const oct_qjob *j, int value)
{
    const int maker = oct_maker_node(j, value);
    const oct_policy_row *row = oct_makes_quantized(j, maker) ? oct_row_of(j, maker) : oct_params_row(j, value);
    const oct_value *v = &j->g->value[value];
    bool any = false;
    for (size_t i = 0; i < v->n_uses; i++)
        any |= oct_reads_quantized(j, v->uses[i].node, v->uses[i].slot) &&
               bits_of(j, oct_row_of(j, v->uses[i].node)) != bits_of(j, row);
    return any;
}

/* The time of conversions that stand on a value between nodes, by one table. */
static double borders_of(const oct_qjob *j, int value, size_t t)
{
    const double *c = j->costs->border[value][t];
    const bool made = oct_is_static(j, oct_maker_node(j, value)), real = made && has_real_reader(j, value),
               converted = is_converted(j, value);
    return (made ? 0 : c[OCT_COST_QUANTIZE]) + (real || converted ? c[OCT_COST_DEQUANTIZE] : 0) +
           (converted ? c[OCT_COST_QUANTIZE] : 0);
}

void oct_expect(oct_qjob *j)
{
    const struct oct_job_costs *c = j->costs;
    if (!c)
        return;
    for (size_t t = 0; t < c->n; t++) {
        double sum = 0;
        for (size_t i = 0; i < j->g->n_order; i++) {
            const int id = j->g->order[i];
            if (id < (int)j->n_nodes && !oct_is_absorbed(j, id))
                sum += c->node[id][t][how_of(j, id)];
        }
        for (size_t v = 0; v < j->n_values; v++)
            if (oct_is_wanted(j, v) && !j->g->value[v].constant && !j->g->value[v].dead)
                sum += borders_of(j, (int)v, t);
        j->expected.on_floats[t] = c->on_floats[t];
        j->expected.decided[t] = sum;
    }
    j->expected.n = c->n;
    j->expected.least = 0;
    for (size_t t = 1; t < c->n; t++)
        if (j->expected.decided[t] * c->on_floats[j->expected.least] >
            j->expected.decided[j->expected.least] * c->on_floats[t])
            j->expected.least = t;
}

void oct_expect_node(const oct_qjob *j, int id, double *on_floats, double *decided)
{
    const struct oct_job_costs *c = j->costs;
    *on_floats = *decided = NAN;
    if (!c || !c->n || id >= (int)j->n_nodes || !c->known[id] || oct_is_absorbed(j, id))
        return;
    *on_floats = c->node[id][j->expected.least][OCT_COST_FLOAT];
    *decided = c->node[id][j->expected.least][how_of(j, id)];
}
