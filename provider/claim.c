/* Which nodes of a graph the provider claims. */
#include "graph_bytes.h"
#include "provider_int.h"

#include <stdlib.h>

/* Nodes of one part become one node of the session's graph. */
static ort_status *claim_part(const provider *p, const ort_node *const *nodes, const octet_claim *claims, size_t n,
                              int part, const ort_node **list, ort_support *support)
{
    const ort_fusion_options fusion = { ORT_API_VERSION, .drop_constant_initializers = true };
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (claims[i].part == part)
            list[k++] = nodes[i];
    return k ? p->api->EpGraphSupportInfo_AddNodesToFuse(support, list, k, &fusion) : NULL;
}

static ort_status *claim_parts(const provider *p, const ort_node *const *nodes, const octet_claim *claims, size_t n,
                               ort_support *support)
{
    const ort_node **list = calloc(n + 1, sizeof *list);
    int n_parts = 0;
    ort_status *s = list ? NULL : no_memory(p->api);
    for (size_t i = 0; i < n; i++)
        if (claims[i].part >= n_parts)
            n_parts = claims[i].part + 1;
    for (int part = 0; part < n_parts && !s; part++)
        s = claim_part(p, nodes, claims, n, part, list, support);
    free(list);
    return s;
}

static ort_status *say_reasons(const provider *p, const ort_node *const *nodes, const octet_claim *claims, size_t n)
{
    size_t claimed = 0;
    for (size_t i = 0; i < n; i++) {
        const char *name, *op;
        claimed += claims[i].part >= 0;
        if (claims[i].part >= 0)
            continue;
        TRY(p->api->Node_GetName(nodes[i], &name));
        TRY(p->api->Node_GetOperatorType(nodes[i], &op));
        say(p, ORT_LOG_VERBOSE, "octet leaves %s '%s': %s", op, name, claims[i].reason);
    }
    say(p, ORT_LOG_INFO, "octet claims %zu of %zu nodes", claimed, n);
    return NULL;
}

/* A graph that the library refuses stays ONNX Runtime's, with the reason in the log. */
static ort_status *claim_graph(provider *p, octet *o, const ort_graph *g, const graph_bytes *b, ort_support *support)
{
    const octet_claim *claims;
    size_t n, n_nodes;
    const octet_claim_what what = p->options.all          ? OCTET_CLAIM_ALL
                                  : p->options.with_float ? OCTET_CLAIM_FLOAT
                                                          : OCTET_CLAIM_INTEGERS;
    if (octet_graph_parts(o, b->message.at, b->message.n, b->constants, b->n_constants, what, &claims, &n) !=
        OCTET_OK) {
        say(p, ORT_LOG_WARNING, "octet claims nothing: %s", octet_error(o));
        return NULL;
    }
    TRY(p->api->Graph_GetNumNodes(g, &n_nodes));
    if (n != n_nodes)
        return fail(p->api, "%zu nodes became %zu", n_nodes, n);
    const ort_node **nodes = calloc(n + 1, sizeof *nodes);
    ort_status *s = nodes ? p->api->Graph_GetNodes(g, nodes, n) : no_memory(p->api);
    s = s ? s : claim_parts(p, nodes, claims, n, support);
    for (size_t i = 0; i < n; i++)
        p->has_claimed |= claims[i].part >= 0;
    s = s ? s : say_reasons(p, nodes, claims, n);
    free(nodes);
    return s;
}

ort_status *provider_claim(ort_ep *ep, const ort_graph *g, ort_support *support)
{
    provider *p = (provider *)ep;
    const ort_node *parent = NULL;
    graph_bytes b;
    TRY(p->api->Graph_GetParentNode(g, &parent));
    if (parent) /* ONNX Runtime asks for bodies first: what is in them comes with their node */
        return NULL;
    if (p->has_claimed && !p->tells_parents) {
        say(p, ORT_LOG_INFO, "octet claims nothing more: this ONNX Runtime would give two parts the same name");
        return NULL;
    }
    ort_status *s = graph_bytes_make(p->api, g, true, &b);
    if (s) {
        say(p, ORT_LOG_WARNING, "octet claims nothing: %s", p->api->GetErrorMessage(s));
        p->api->ReleaseStatus(s);
        graph_bytes_free(&b);
        return NULL;
    }
    octet *o = octet_open();
    s = o ? claim_graph(p, o, g, &b, support) : no_memory(p->api);
    octet_close(o);
    graph_bytes_free(&b);
    return s;
}
