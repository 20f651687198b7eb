/* Pass: an If with a constant condition is replaced by the branch that it takes. */
#include "passes/inline.h"

#include <string.h>

/* The branch that is taken, or NULL if the condition is not known. */
static oct_graph *taken_branch(const oct_graph *g, const oct_node *n)
{
    if (!oct_is_op(n, "If") || n->n_in < 1 || n->in[0] < 0)
        return NULL;
    const oct_tensor *t = g->value[n->in[0]].constant;
    if (!t || t->dtype != OCT_BOOL || t->count != 1 || !t->data)
        return NULL;
    return oct_node_graph(n, *(const uint8_t *)t->data ? "then_branch" : "else_branch");
}

static oct_status take(oct_graph *g, int id, const oct_graph *branch, oct_err *err)
{
    int *map = oct_calloc(branch->n_value + 1, sizeof *map);
    if (!map)
        return oct_nomem(err);
    for (size_t v = 0; v < branch->n_value; v++)
        map[v] = branch->value[v].outer >= 0 ? branch->value[v].outer : -2;
    oct_status s = oct_inline(g, id, branch, "", map, NULL, NULL, err);
    oct_free(map);
    return s;
}

static oct_status run(oct_graph *g, const oct_pass *self, const oct_pass_log *log, oct_err *err)
{
    char text[300];
    for (size_t i = 0; i < g->n_order;) {
        int id = g->order[i];
        const oct_graph *branch = taken_branch(g, &g->node[id]);
        const char *name = g->node[id].name;
        if (!branch) {
            i++;
            continue;
        }
        oct_node_text(g, id, text, sizeof text);
        oct_status s = take(g, id, branch, err);
        if (s != OCT_OK) {
            oct_within(err, "%s", text);
            return s;
        }
        oct_pass_note(log, self, "If", name);
    }
    return OCT_OK;
}

const oct_pass oct_pass_branch = { "branch", "put the branch that a constant condition takes in the place of an If",
                                   run, true };
