/* Values that writers of forms add to the graph, and whom these belong to. */
#include "forms/write/write_int.h"

#include "ops/op.h"
#include "passes/match.h"

#include <stdlib.h>
#include <string.h>

oct_status oct_write_base(const oct_writer *w, int value, const char **base, oct_err *err)
{
    static const char suffix[] = "_quantized";
    const char *name = w->g->value[value].name, *at = NULL;
    for (const char *s = name; (s = strstr(s, suffix)); s++)
        at = s;
    const char *rest = at ? at + strlen(suffix) : "-";
    if (*rest == '_' && rest[1])
        rest += 1 + strspn(rest + 1, "0123456789");
    *base = *rest || at == name ? name : oct_arena_strndup(w->g->arena, name, (size_t)(at - name));
    return *base ? OCT_OK : oct_nomem(err);
}

oct_status oct_write_qvals(oct_writer *w, int v, const oct_tensor *t, int *qvals, oct_err *err)
{
    oct_graph *g = w->g;
    const char *name = g->value[v].name, *base;
    OCT_TRY(oct_write_base(w, v, &base, err));
    if (!oct_edit_keeps(g, v))
        oct_graph_remove_value(g, v);
    const bool named = base != name && g->value[v].dead;
    return oct_edit_refer(g, named ? name : base, named ? "" : "_quantized", t, qvals, err);
}

oct_status oct_write_readers(oct_writer *w, int v, const int qval[3], int to, oct_err *err)
{
    for (size_t i = 0; i < w->g->value[v].n_uses;) {
        const oct_use u = w->g->value[v].uses[i];
        const int in = oct_write_input_qvals(w, u, qval) ? qval[0] : to;
        if (in == v || u.slot < 0)
            i++;
        else
            OCT_TRY(oct_graph_set_input(w->g, u.node, u.slot, in, err));
    }
    return OCT_OK;
}

oct_status oct_write_real(oct_writer *w, int v, const char *base, const int qval[3], int *real, oct_err *err)
{
    oct_value *x = &w->g->value[v];
    x->quant = NULL;
    x->constant = NULL;
    *real = v;
    if (!oct_edit_keeps(w->g, v))
        OCT_TRY(oct_edit_value(w->g, base, "_dequantized", x->dtype, v, real, err));
    return oct_write_readers(w, v, qval, *real, err);
}
