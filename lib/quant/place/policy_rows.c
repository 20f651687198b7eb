/* What the policy asks of each node, with what the target does not take replaced, and the rules that have no effect. */
#include "quant/job/records.h"
#include "quant/place/place_int.h"

#include <string.h>

static void add_to_rule(const oct_qjob *j, oct_policy_row *row, const char *clause)
{
    const char *rule = clause ? oct_arena_printf(j->arena, "%s; %s", row->rule, clause) : NULL;
    row->rule = rule ? rule : row->rule;
}

/* A type of activations to replace one that the target does not support: with the same number of bits if possible. */
static oct_dtype taken_instead(const oct_target *t, oct_dtype asked)
{
    static const oct_dtype narrow[] = { OCT_U8, OCT_S8, OCT_U16, OCT_S16 },
                           wide[] = { OCT_U16, OCT_S16, OCT_U8, OCT_S8 };
    const oct_dtype *type = oct_dtype_bits(asked) == 8 ? narrow : wide;
    size_t i = 0;
    while (i + 1 < OCT_COUNT(narrow) && !oct_takes_activations(t, type[i]))
        i++;
    return type[i];
}

/* Replaces types of activations and granularities that the target never supports by those that it does, and says so in
 * the rule. (Types of weights follow from those of activations: oct_weights_type.) */
static void fit_target(const oct_qjob *j, const oct_op *op, oct_policy_row *row)
{
    const oct_target *t = j->opts.target;
    const bool rounded = op && oct_target_lists(t, op->type, OCT_TARGET_ROUNDED),
               fixed = row->scheme == OCT_SCHEME_STATIC || rounded;
    if (!op || (op->quant == OCT_QUANT_NONE && !rounded) || !(fixed || row->scheme == OCT_SCHEME_DYNAMIC))
        return;
    row->symmetric |= oct_target_rules_of(t)->symmetric;
    if (fixed && !oct_takes_activations(t, row->activations)) {
        row->unmet = row->types_asked ? row->activations : OCT_UNDEFINED;
        row->activations = taken_instead(t, row->activations);
        add_to_rule(j, row,
                    oct_arena_printf(j->arena, "the target takes %s activations",
                                     oct_policy_activations(row->activations)));
    }
    if (row->per_channel && oct_target_op_rules_of(t, op->type)->per_tensor) {
        row->per_channel = false;
        add_to_rule(j, row, "the target takes one scale for all weights");
    }
}

size_t oct_qjob_unmet(const oct_qjob *j, oct_dtype *asked, oct_dtype *taken)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_all; i++) {
        const oct_policy_row *row = &j->all[i].job->node[j->all[i].node].row;
        if (row->unmet == OCT_UNDEFINED)
            continue;
        if (n++ == 0) {
            *asked = row->unmet;
            *taken = row->activations;
        }
    }
    return n;
}

typedef struct void_rules {
    oct_arena *arena;
    oct_void_rule *v;
    size_t n, room;
} void_rules;

static oct_status add_void(void_rules *x, const char *rule, const char *why, oct_err *err)
{
    for (size_t i = 0; i < x->n; i++)
        if (strcmp(x->v[i].rule, rule) == 0 && strcmp(x->v[i].why, why) == 0) {
            x->v[i].nodes++;
            return OCT_OK;
        }
    if (!OCT_GROW(x->arena, x->v, x->n, x->room))
        return oct_nomem(err);
    x->v[x->n++] = (oct_void_rule){ rule, why, 1 };
    return OCT_OK;
}

oct_status oct_qjob_void_rules(const oct_qjob *j, oct_arena *arena, oct_void_rule **list, size_t *n, oct_err *err)
{
    void_rules x = { .arena = arena };
    const oct_scheme s = j->opts.scheme;
    const bool rounds = s == OCT_SCHEME_AUTO || s == OCT_SCHEME_STATIC || s == OCT_SCHEME_FLOAT;
    const char *decides = oct_arena_printf(arena, "--scheme %s decides there", oct_scheme_name(s));
    const char *no_types = oct_arena_printf(arena, "--scheme %s rounds no activations beforehand", oct_scheme_name(s));
    if (!decides || !no_types)
        return oct_nomem(err);
    for (size_t i = 0; i < j->n_all; i++) {
        const oct_qjob *of = j->all[i].job;
        const oct_policy_row *row = &of->node[j->all[i].node].row;
        const oct_op *op = oct_op_of(of->g, j->all[i].node);
        if (!op || op->quant == OCT_QUANT_NONE)
            continue;
        if (row->scheme_replaced)
            OCT_TRY(add_void(&x, row->scheme_replaced, decides, err));
        if (row->types_rule && !rounds && s != OCT_SCHEME_DYNAMIC && row->scheme == s)
            OCT_TRY(add_void(&x, row->types_rule, no_types, err));
        if (row->observer_rule && !rounds && row->scheme == s)
            OCT_TRY(add_void(&x, row->observer_rule, no_types, err));
        if (row->observer_replaced)
            OCT_TRY(add_void(&x, row->observer_replaced, OCT_POLICY_OBSERVER " replaces its observer", err));
    }
    *list = x.v;
    *n = x.n;
    return OCT_OK;
}

oct_status oct_job_read_policy(oct_qjob *j, oct_err *err)
{
    const oct_graph *whole = j->g;
    while (whole->outer)
        whole = whole->outer;
    oct_policy_facts facts = { .calib = j->opts.calib, .macs = oct_graph_macs(whole), .late = j->opts.late };
    j->n_layer = j->n_picker = 0;
    const char *asked = oct_arena_printf(j->arena, "scheme:%s (asked for)", oct_scheme_name(j->opts.scheme));
    for (size_t i = 0; i < j->g->n_order; i++) {
        int id = j->g->order[i];
        oct_policy_row *row = &j->node[id].policy;
        const oct_op *op = oct_op_of(j->g, id);
        facts.path = *j->where ? oct_arena_printf(j->arena, "%s%s", j->where, oct_node_label(j->g, id)) : NULL;
        if (*j->where && !facts.path)
            return oct_nomem(err);
        oct_policy_match(j->opts.policy, j->g, id, &facts, row);
        if (j->opts.scheme != OCT_SCHEME_AUTO && row->scheme != OCT_SCHEME_FLOAT) {
            bool no_form = op && op->quant == OCT_QUANT_RECURRENT && j->opts.scheme == OCT_SCHEME_STATIC &&
                           !oct_scheme_is_half(j->opts.scheme);
            if (row->asked && row->scheme != j->opts.scheme)
                row->scheme_replaced = row->rule;
            row->asked &= row->scheme == j->opts.scheme; /* a rule of another scheme did not ask for this one */
            row->scheme = no_form ? OCT_SCHEME_FLOAT : j->opts.scheme;
            row->rule = asked ? asked : row->rule;
        }
        fit_target(j, op, row);
        j->node[id].row = *row;
        j->layer[j->n_layer++] = id;
        if (op && op->picks)
            j->picker[j->n_picker++] = id;
    }
    return OCT_OK;
}
