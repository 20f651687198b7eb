/* The list of constraints of a job. */
#include "quant/place/constraints.h"

static oct_constraint *find(const oct_constraints *l, int node, oct_constraint_kind kind, int slot)
{
    if (node < 0 || node >= (int)l->n_nodes)
        return NULL;
    for (int i = l->last[node]; i >= 0; i = l->v[i].next)
        if (l->v[i].kind == kind && (slot < 0 || l->v[i].slot == slot))
            return &l->v[i];
    return NULL;
}

static void link_to_node(oct_constraints *l, size_t i)
{
    l->v[i].next = l->last[l->v[i].node];
    l->last[l->v[i].node] = (int)i;
}

oct_status oct_constraints_open(oct_constraints *l, oct_arena *arena, size_t n_nodes, oct_err *err)
{
    *l = (oct_constraints){ .arena = arena, .n_nodes = n_nodes };
    if (!(l->last = oct_arena_alloc(arena, (n_nodes + 1) * sizeof *l->last)))
        return oct_nomem(err);
    for (size_t id = 0; id < n_nodes; id++)
        l->last[id] = -1;
    return OCT_OK;
}

oct_status oct_constrain(oct_constraints *l, const oct_constraint *c, oct_err *err)
{
    const bool of_slot = c->kind == OCT_CONSTRAINT_OWN_PARAMS || c->kind == OCT_CONSTRAINT_AROUND_ZERO;
    oct_constraint *was = find(l, c->node, c->kind, of_slot ? c->slot : -1);
    if (!c->why || (!was && !OCT_GROW(l->arena, l->v, l->n, l->cap)))
        return oct_nomem(err);
    const int next = was ? was->next : -1;
    *(was ? was : &l->v[l->n]) = *c;
    if (was)
        was->next = next;
    else
        link_to_node(l, l->n++);
    return OCT_OK;
}

oct_status oct_constraints_set(oct_constraints *l, const oct_constraint *v, size_t n, oct_err *err)
{
    for (size_t id = 0; id < l->n_nodes; id++)
        l->last[id] = -1;
    l->n = 0;
    for (size_t i = 0; i < n; i++)
        OCT_TRY(oct_constrain(l, &v[i], err));
    return OCT_OK;
}

oct_status oct_keep_float(oct_constraints *l, int node, oct_constraint_from from, const char *why, oct_err *err)
{
    return oct_constrain(l, &(oct_constraint){ .kind = OCT_CONSTRAINT_FLOAT, .from = from, .node = node, .why = why },
                         err);
}

void oct_constraints_drop(oct_constraints *l, oct_constraint_kind kind, oct_constraint_from from, int node)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        l->last[l->v[i].node] = -1;
        if (l->v[i].kind != kind || l->v[i].from != from || (node >= 0 && l->v[i].node != node))
            l->v[kept++] = l->v[i];
    }
    l->n = kept;
    for (size_t i = 0; i < kept; i++)
        link_to_node(l, i);
}

const oct_constraint *oct_constraint_on(const oct_constraints *l, int node, oct_constraint_kind kind)
{
    return find(l, node, kind, -1);
}

bool oct_slot_constrained(const oct_constraints *l, int node, oct_constraint_kind kind, int slot)
{
    return find(l, node, kind, slot) != NULL;
}

const char *oct_kept_float(const oct_constraints *l, int node)
{
    const oct_constraint *c = find(l, node, OCT_CONSTRAINT_FLOAT, -1);
    return c ? c->why : NULL;
}

oct_scheme oct_scheme_by_cost(const oct_constraints *l, int node)
{
    const oct_constraint *c = find(l, node, OCT_CONSTRAINT_COST, -1);
    return c ? c->scheme : OCT_SCHEME_AUTO;
}

const char *oct_constraint_kind_name(oct_constraint_kind kind)
{
    static const char *const name[OCT_CONSTRAINT_KINDS] = {
        [OCT_CONSTRAINT_FLOAT] = "kept in float",
        [OCT_CONSTRAINT_NO_RANGES] = "without ranges",
        [OCT_CONSTRAINT_WIDE] = "activations of 16 bits",
        [OCT_CONSTRAINT_COST] = "by cost",
        [OCT_CONSTRAINT_FORM] = "form of weights",
        [OCT_CONSTRAINT_OWN_PARAMS] = "parameters of its own",
        [OCT_CONSTRAINT_AROUND_ZERO] = "parameters around 0",
    };
    return name[kind];
}

const char *oct_constraint_from_name(oct_constraint_from from)
{
    static const char *const name[OCT_CONSTRAINT_SOURCES] = {
        [OCT_FROM_PLACEMENT] = "placement",
        [OCT_FROM_STATISTICS] = "statistics",
        [OCT_FROM_RANGES] = "ranges",
        [OCT_FROM_RUN] = "a run",
        [OCT_FROM_JOINS] = "joined values",
        [OCT_FROM_FACTORS] = "the target's factors",
        [OCT_FROM_COSTS] = "the target's costs",
        [OCT_FROM_MIXED_PRECISION] = "mixed-precision",
        [OCT_FROM_GOALS] = "goals",
        [OCT_FROM_SIZE] = "size",
        [OCT_FROM_FINER] = "finer",
        [OCT_FROM_TRIAL] = "trial",
    };
    return name[from];
}
