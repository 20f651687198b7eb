/* Chooses schemes by cost. The choice is a minimum cut between nodes that run on integers and nodes that do not.
 *
 * Each node has a price on either side, and so has each border between the sides: a group of integer nodes pays for the
 * quantizers around it. On the float side, a product may be dynamic or have weights in blocks, whichever is cheaper. On
 * the integer side, activations have 16 bits where 8 bits save no time. Weights that stay float and cannot be stored in
 * 8 bits have a price as well, because they enlarge the file. At first that price is so high that only nodes with a
 * large advantage change, and accuracy is that of the policy. Then the price is a fraction of the model's time for each
 * fraction of its weights. It is lowered until the model is slower neither than the float model nor than the model with
 * everything static or dynamic. If a target stands for several classes of CPUs, prices are the mean of the shares of
 * float time, and the limits must hold for each class.
 *
 * The bodies of If, Loop and Scan are chosen separately, because it is not known how often they run.
 *
 * A node that no table knows has the same cost on both sides. If a run of the model is so short that the overhead of
 * calls dominates, nothing is changed unless much is lost. */
#include "ops/traits.h"

#include "quant/place/layer_costs_int.h"
#include "quant/place/least_cut.h"
#include "quant/place/place.h"
#include "quant/weights/weights.h"

#include <math.h>
#include <string.h>

#define SHORT_RUN 500e3 /* ns in float: in shorter runs, most of the time that tables give is overhead of calls */
#define SHORT_LOSS 50e3 /* ns that such a run may lose */
#define SHORT_BODY 20e3 /* ns in float: in a shorter body, all of the time is overhead of calls */
#define BODY_LOSS 0.1   /* the share of its float time that a longer body may lose, as it may run many times */
#define MARGIN \
    0.05 /* the share of an integer node's time that leaving integers must gain, because tables are not more exact */
#define WIDE_MARGIN                                                                                                   \
    0.2 /* the additional share for a product, and for a dynamic form, if the model is fast enough without the change \
         */
enum { MOST_NODES = 1 << 16 };

/* ---- choices ---- */

/* What a node becomes. */
typedef struct choice {
    oct_scheme scheme; /* OCT_SCHEME_AUTO: the scheme of the policy */
    bool wide;         /* with 16-bit activations */
} choice;

typedef struct chooser {
    oct_qjob *j;
    const struct oct_job_costs *c;
    oct_arena *arena;
    bool *could;    /* by node: the policy puts it on integers, so there is a choice */
    bool *product;  /* by node: it may be dynamic */
    bool *blocks;   /* by node: it may have weights in blocks, where the runtime quantizes the other factor in blocks */
    bool *wide;     /* by node: it may have 16-bit activations on integers, at no higher cost than with 8 bits */
    double *grows;  /* by node: how many weights the file gets as floats if the node is float, because they cannot be
                       stored in 8 bits */
    double weights; /* the sum of `grows` */
    choice *best;   /* by node */
    double limit[OCT_COST_TABLES]; /* by table: the time that must not be exceeded */
    double excess; /* of the best: the largest relative excess of a limit; negative: no limit is exceeded */
} chooser;

/* The mean of the shares of float time. */
static double share(const chooser *x, const double cost[OCT_COST_TABLES][OCT_COST_HOWS], oct_cost_how how)
{
    double sum = 0;
    for (size_t t = 0; t < x->c->n; t++)
        sum += x->c->on_floats[t] > 0 ? cost[t][how] / x->c->on_floats[t] : 0;
    return sum / (double)x->c->n;
}

static double border_share(const chooser *x, int value, oct_cost_border border)
{
    double sum = 0;
    for (size_t t = 0; t < x->c->n; t++)
        sum += x->c->on_floats[t] > 0 ? x->c->border[value][t][border] / x->c->on_floats[t] : 0;
    return sum / (double)x->c->n;
}

static bool may_be_dynamic(const oct_qjob *j, int id)
{
    const oct_op *op = oct_op_of(j->g, id);
    return op->quant == OCT_QUANT_WEIGHTED && op->dynamic && oct_layer_weights(j->g, id) &&
           oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_DYNAMIC, NULL);
}

static bool may_be_blocks(const oct_qjob *j, int id)
{
    return j->opts.block_bytes && !j->opts.blocks_qdq && !oct_no_blocks(j, id) &&
           oct_target_runs(j->opts.target, j->g, id, OCT_TARGET_WEIGHT_ONLY, NULL);
}

/* ---- activations of 16 bits ---- */

/* Whether a value would be rounded a second time, between integer nodes of which some have 16 bits. */
static bool meets_narrow(const chooser *x, int value, bool wide)
{
    const oct_value *v = &x->j->g->value[value];
    const int maker = oct_maker_node(x->j, value);
    bool any = oct_is_static(x->j, maker) && x->wide[maker] != wide;
    for (size_t i = 0; i < v->n_uses; i++)
        any |= oct_is_static(x->j, v->uses[i].node) && oct_reads_quantized(x->j, v->uses[i].node, v->uses[i].slot) &&
               x->wide[v->uses[i].node] != wide;
    return any;
}

/* The cost of conversions between a 16-bit node and the 8-bit nodes beside it. */
static double conversions(const chooser *x, int id)
{
    const oct_node *n = &x->j->g->node[id];
    double sum = 0;
    for (int k = 0; k <= oct_data_inputs(x->j, id); k++) {
        const int v = k < oct_data_inputs(x->j, id) ? n->in[k] : oct_quantized_output(x->j, id);
        if (v >= 0 && !x->j->g->value[v].constant && meets_narrow(x, v, true))
            sum += border_share(x, v, OCT_COST_DEQUANTIZE) + border_share(x, v, OCT_COST_QUANTIZE);
    }
    return sum;
}

static double integer_price(const chooser *x, int id)
{
    return share(x, x->c->node[id], x->wide[id] ? OCT_COST_STATIC16 : OCT_COST_STATIC);
}

/* Nodes that take no longer with 16 bits than with 8 may have 16 bits. A node that no table knows, such as data
 * movement, follows the node before it. */
static bool starts_wide(const chooser *x, int id)
{
    const oct_node *n = &x->j->g->node[id];
    bool wide =
        x->c->wide[id] && share(x, x->c->node[id], OCT_COST_STATIC16) <= share(x, x->c->node[id], OCT_COST_STATIC);
    for (int k = 0; k < n->n_in && !x->c->known[id]; k++) {
        const int maker = n->in[k] >= 0 ? oct_maker_node(x->j, n->in[k]) : -1;
        wide |= maker >= 0 && x->wide[maker];
    }
    return wide && x->could[id] && oct_may_be_wide(x->j, id);
}

/* 16 bits lose less accuracy, so nodes get them if they cost no more. A node that loses more by conversions than it
 * gains returns to 8 bits; this may affect its neighbours. */
static void find_wide(chooser *x)
{
    const oct_qjob *j = x->j;
    for (size_t i = 0; i < j->g->n_order; i++)
        if (j->g->order[i] < (int)j->n_nodes)
            x->wide[j->g->order[i]] = starts_wide(x, j->g->order[i]);
    for (bool again = true; again;) {
        again = false;
        for (size_t id = 0; id < j->n_nodes; id++) {
            const bool back = x->wide[id] && integer_price(x, (int)id) + conversions(x, (int)id) >
                                                 share(x, x->c->node[id], OCT_COST_STATIC);
            x->wide[id] &= !back;
            again |= back;
        }
    }
}

static oct_status open_choice(chooser *x, oct_qjob *j, oct_err *err)
{
    *x = (chooser){ .j = j, .c = j->costs, .arena = oct_arena_create(), .excess = INFINITY };
    if (!x->arena)
        return oct_nomem(err);
    x->could = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *x->could);
    x->product = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *x->product);
    x->grows = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *x->grows);
    x->blocks = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *x->blocks);
    x->wide = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *x->wide);
    x->best = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *x->best);
    if (!x->could || !x->product || !x->blocks || !x->grows || !x->wide || !x->best)
        return oct_nomem(err);
    for (size_t i = 0; i < j->g->n_order; i++) {
        const int id = j->g->order[i];
        const oct_tensor *w = oct_layer_weights(j->g, id);
        x->weights += w ? (double)w->count : 0;
        x->grows[id] = w && oct_no_stored(j, id) ? (double)w->count : 0;
        x->could[id] = (oct_is_static(j, id) || (oct_scheme_of(j, id) == OCT_SCHEME_DYNAMIC && x->c->known[id])) &&
                       !oct_row_of(j, id)->asked;
        x->product[id] = x->could[id] && x->c->dynamic[id] && may_be_dynamic(j, id);
        x->blocks[id] = x->product[id] && x->c->blocks[id] && may_be_blocks(j, id);
    }
    find_wide(x);
    return OCT_OK;
}

/* The cost of a node on the float side, including the price of its weights. *as: float, or for a product in blocks or
 * dynamic. If several take equally long according to the tables, the one that loses least accuracy is taken, in this
 * order. */
static double real_price(const chooser *x, int id, double per_share, oct_scheme *as)
{
    static const oct_scheme schemes[] = { OCT_SCHEME_FLOAT, OCT_SCHEME_WEIGHT_ONLY, OCT_SCHEME_DYNAMIC };
    const double larger =
        x->weights > 0 ? 0.75 * x->grows[id] / x->weights : 0; /* a float weight takes four times the bytes */
    const double wide = 1 + WIDE_MARGIN * per_share;
    const double price[] = { share(x, x->c->node[id], OCT_COST_FLOAT) + per_share * larger,
                             x->blocks[id] ? share(x, x->c->node[id], OCT_COST_BLOCKS8_BYTES) * wide : INFINITY,
                             x->product[id] ? share(x, x->c->node[id], OCT_COST_DYNAMIC) * wide : INFINITY };
    const double least = fmin(price[0], fmin(price[1], price[2])), most = least * (per_share > 0 ? 1 + MARGIN : 1);
    const int k = price[0] <= most ? 0 : price[1] <= most ? 1 : 2;
    *as = schemes[k];
    return price[k];
}

/* The borders of a value: things n + 2v and n + 2v + 1 of the cut stand for "some reader reads floats" and "some reader
 * reads integers". */
static oct_status price_borders(const chooser *x, oct_cut *cut, int value, const bool *on_integers, oct_err *err)
{
    const oct_qjob *j = x->j;
    const oct_value *v = &j->g->value[value];
    const int maker = oct_maker_node(j, value), real = (int)j->n_nodes + 2 * value, integer = real + 1;
    const bool made = maker >= 0 && on_integers[maker];
    /* A product that needs no quantizer after it delivers floats at no cost. */
    const bool free_reals =
        made && oct_is_product(j, maker) && !oct_target_needs_output(j->opts.target, j->g->node[maker].op, false);
    if (made && !free_reals)
        OCT_TRY(oct_cut_split(cut, maker, real, border_share(x, value, OCT_COST_DEQUANTIZE), err));
    if (made)
        OCT_TRY(oct_cut_split(cut, integer, maker, border_share(x, value, OCT_COST_QUANTIZE), err));
    else
        OCT_TRY(oct_cut_pay(cut, integer, border_share(x, value, OCT_COST_QUANTIZE), 0, err));
    if (v->is_output)
        OCT_TRY(oct_cut_pay(cut, real, INFINITY, 0, err));
    for (size_t i = 0; i < v->n_uses; i++) {
        const oct_use *u = &v->uses[i];
        if (u->slot >= 0 && on_integers[u->node] && !oct_reads_reals(j, u)) {
            OCT_TRY(oct_cut_split(cut, real, u->node, INFINITY, err));
            OCT_TRY(oct_cut_split(cut, u->node, integer, INFINITY, err));
            if (made && !oct_is_product(j, u->node)) /* the others follow the node before them */
                OCT_TRY(oct_cut_split(cut, u->node, maker, INFINITY, err));
        } else if (oct_reads_reals(j, u)) {
            OCT_TRY(oct_cut_pay(cut, real, INFINITY, 0, err));
        }
    }
    return OCT_OK;
}

/* The minimum cut, starting from the state of the policy, which j is in. */
static oct_status choose(const chooser *x, double per_share, choice *chosen, oct_err *err)
{
    const oct_qjob *j = x->j;
    const size_t things = j->n_nodes + 2 * j->n_values;
    oct_scheme as;
    bool *on_integers = oct_arena_calloc(x->arena, j->n_nodes + 1, sizeof *on_integers),
         *first = oct_arena_calloc(x->arena, things + 1, 1);
    oct_cut *cut;
    if (!on_integers || !first)
        return oct_nomem(err);
    OCT_TRY(oct_cut_create(x->arena, things, &cut, err));
    for (size_t id = 0; id < j->n_nodes; id++) {
        if (!(on_integers[id] = oct_is_static(j, (int)id)))
            continue;
        const double here = integer_price(x, (int)id);
        const double margin = MARGIN + (oct_is_product(j, (int)id) ? WIDE_MARGIN * per_share : 0);
        const double there = x->could[id] ? real_price(x, (int)id, per_share, &as) + margin * here : INFINITY;
        OCT_TRY(oct_cut_pay(cut, (int)id, here, there, err));
    }
    for (size_t v = 0; v < j->n_values; v++)
        if (oct_is_wanted(j, v) && !j->g->value[v].constant && !j->g->value[v].dead)
            OCT_TRY(price_borders(x, cut, (int)v, on_integers, err));
    oct_cut_solve(cut, first);
    for (size_t id = 0; id < j->n_nodes; id++) {
        const bool stays = on_integers[id] && first[id];
        chosen[id] = (choice){ OCT_SCHEME_AUTO, stays && x->wide[id] };
        if (!x->could[id] || stays)
            continue;
        const bool is_dynamic = oct_scheme_of(j, id) == OCT_SCHEME_DYNAMIC;
        (void)real_price(x, (int)id, per_share, &as);
        chosen[id].scheme = as == OCT_SCHEME_DYNAMIC && is_dynamic ? OCT_SCHEME_AUTO : as;
    }
    return OCT_OK;
}

static oct_status place_as(const chooser *x, const choice *chosen, oct_err *err)
{
    oct_constraints_drop(&x->j->constraints, OCT_CONSTRAINT_COST, OCT_FROM_COSTS, -1);
    for (size_t id = 0; chosen && id < x->j->n_nodes; id++)
        if (chosen[id].scheme != OCT_SCHEME_AUTO || chosen[id].wide)
            OCT_TRY(oct_constrain(&x->j->constraints,
                                  &(oct_constraint){ .kind = OCT_CONSTRAINT_COST,
                                                     .from = OCT_FROM_COSTS,
                                                     .node = (int)id,
                                                     .why = "by cost",
                                                     .scheme = chosen[id].scheme,
                                                     .wide = chosen[id].wide },
                                  err));
    OCT_TRY(oct_job_place(x->j, err));
    oct_expect(x->j);
    return OCT_OK;
}

/* Places a choice. It becomes the best one if it is the first that meets all limits, or the one that misses them
 * least. */
static oct_status weigh(chooser *x, const choice *chosen, oct_err *err)
{
    double excess = -INFINITY;
    OCT_TRY(place_as(x, chosen, err));
    for (size_t t = 0; t < x->c->n; t++)
        excess = fmax(excess, x->limit[t] > 0 ? x->j->expected.decided[t] / x->limit[t] - 1 : 0);
    excess = excess <= 1e-9 ? 0 : excess;
    if (excess < x->excess) {
        x->excess = excess;
        memcpy(x->best, chosen, x->j->n_nodes * sizeof *chosen);
    }
    return OCT_OK;
}

/* Sets the limits: the time in float, and with everything as the policy says or dynamic. uniform[2]: these two as
 * choices. */
static oct_status set_limits(chooser *x, choice *uniform[2], oct_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (!(uniform[i] = oct_arena_calloc(x->arena, x->j->n_nodes + 1, sizeof **uniform)))
            return oct_nomem(err);
        for (size_t id = 0; id < x->j->n_nodes && i == 1; id++)
            uniform[i][id].scheme = x->product[id] ? OCT_SCHEME_DYNAMIC
                                    : x->could[id] ? OCT_SCHEME_FLOAT
                                                   : OCT_SCHEME_AUTO;
        OCT_TRY(place_as(x, uniform[i], err));
        for (size_t t = 0; t < x->c->n; t++)
            x->limit[t] = fmin(i ? x->limit[t] : x->c->on_floats[t], x->j->expected.decided[t]);
    }
    return place_as(x, NULL, err);
}

static oct_status choose_best(chooser *x, oct_err *err)
{
    static const double prices[] = { 16, 1, 0.25, 0.0625, 0 };
    choice *uniform[2], *each[OCT_COUNT(prices)];
    OCT_TRY(set_limits(x, uniform, err));
    for (size_t i = 0; i < OCT_COUNT(prices); i++) {
        if (!(each[i] = oct_arena_calloc(x->arena, x->j->n_nodes + 1, sizeof **each)))
            return oct_nomem(err);
        OCT_TRY(choose(x, prices[i], each[i], err));
    }
    for (size_t i = 0; i < OCT_COUNT(prices) && x->excess > 0; i++)
        OCT_TRY(weigh(x, each[i], err));
    for (int i = 0; i < 2 && x->excess > 0; i++)
        OCT_TRY(weigh(x, uniform[i], err));
    for (size_t id = 0; id < x->j->n_nodes; id++) /* all float */
        each[0][id] = (choice){ x->could[id] ? OCT_SCHEME_FLOAT : OCT_SCHEME_AUTO, false };
    if (x->excess > 0)
        OCT_TRY(weigh(x, each[0], err));
    return place_as(x, x->best, err);
}

/* Whether the choice of the policy is no slower than float by any table, or loses little in a run that consists mostly
 * of call overhead. Then it is kept. Tables predict well what is slower than float, but less well which of two good
 * choices is faster: a product with a single row waits for memory, which tables do not contain. */
static bool does_well(const oct_qjob *j)
{
    bool all = true;
    for (size_t t = 0; t < j->costs->n; t++) {
        const double f = j->expected.on_floats[t], room = *j->where       ? (f < SHORT_BODY ? INFINITY : BODY_LOSS * f)
                                                          : f < SHORT_RUN ? SHORT_LOSS
                                                                          : 0;
        all &= j->expected.on_floats[t] <= 0 || j->expected.decided[t] <= j->expected.on_floats[t] + room;
    }
    return all;
}

oct_status oct_choose_by_cost(oct_qjob *j, oct_err *err)
{
    chooser x;
    if (oct_target_n_costs(j->opts.target) == 0 || j->n_nodes > MOST_NODES)
        return OCT_OK;
    OCT_TRY(oct_costs_find(j, err));
    oct_expect(j);
    if (j->opts.scheme != OCT_SCHEME_AUTO || does_well(j))
        return OCT_OK;
    oct_status s = open_choice(&x, j, err);
    if (s == OCT_OK)
        s = choose_best(&x, err);
    oct_arena_destroy(x.arena);
    return s;
}
