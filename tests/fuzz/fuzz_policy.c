/* Fuzz target: any text as a policy table, then asked for each node of a small graph. */
#include "base/mem.h"
#include "quant/policy/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static oct_graph *small_graph(void)
{
    static const char *const ops[] = { "Conv", "MatMul", "Add" };
    oct_err err = OCT_ERR_INIT;
    oct_graph *g = oct_graph_create();
    int in, out, id;
    if (!g || oct_graph_add_value(g, "x", OCT_F32, &in, &err) != OCT_OK)
        abort();
    for (size_t i = 0; i < OCT_COUNT(ops); i++) {
        if (oct_graph_add_value(g, ops[i], OCT_F32, &out, &err) != OCT_OK ||
            oct_graph_add_node(g, ops[i], "", ops[i], 2, 1, -1, &id, &err) != OCT_OK ||
            oct_graph_set_input(g, id, 0, in, &err) != OCT_OK || oct_graph_set_input(g, id, 1, in, &err) != OCT_OK ||
            oct_graph_set_output(g, id, 0, out, &err) != OCT_OK)
            abort();
        in = out;
    }
    return g;
}

static void absent(void *arg, const char *place, const char *op)
{
    *(size_t *)arg += strlen(place) + strlen(op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static oct_graph *g;
    oct_err err = OCT_ERR_INIT;
    oct_policy *p = NULL;
    size_t said = 0;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (!g)
        g = small_graph();
    if (oct_policy_create(NULL, &p, &err) == OCT_OK && oct_policy_add(p, text, "fuzz", &err) == OCT_OK) {
        for (size_t i = 0; i < g->n_node; i++) {
            oct_policy_row row;
            oct_policy_match(p, g, (int)i, NULL, &row);
            if ((unsigned)row.scheme >= OCT_SCHEME_COUNT || row.block < 0)
                abort();
        }
        oct_status s = oct_policy_note(p, g, &err);
        if (s == OCT_OK)
            s = oct_policy_check(p, g, absent, &said, &err);
        if (s != OCT_OK && s != OCT_EUSAGE)
            abort();
        oct_policy_check_values(p, absent, &said);
        for (size_t v = 0; v < g->n_value; v++)
            oct_policy_observer_of(p, g->value[v].name, v % 2);
    }
    oct_policy_destroy(p);
    free(text);
    return 0;
}
