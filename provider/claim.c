/* Which nodes of a graph the provider claims. */
#include "context.h"
#include "graph_bytes.h"
#include "provider_int.h"

#include <stdlib.h>

typedef struct asked {
    provider *p;
    const ort_graph *g;
    const ort_node **nodes; /* [n] */
    int *part;              /* [n]: -1: the node is left */
    const char **why;       /* [n] */
    int first_context;      /* parts from this one on are EPContext nodes, one each */
    size_t n;
    ort_support *support;
} asked;

/* A program for the nodes in list, kept. ONNX Runtime takes as long to make a view of a graph as we to read it, so the
 * whole graph is read as it is. (If it has inputs that no node reads, that program does not fit the fused node, and
 * another one is made for it.) */
static ort_status *keep(const asked *a, const ort_node **list, size_t n)
{
    const ort_api *api = a->p->api;
    ort_graph *view = NULL;
    if (n == a->n)
        return provider_keep_program(a->p, a->g);
    ort_status *s = api->Graph_GetGraphView(a->g, list, n, &view);
    s = s ? s : provider_keep_program(a->p, view);
    if (view)
        api->ReleaseGraph(view);
    return s;
}

/* Nodes of one part become one node of the session's graph, if a program can be made of them. */
static ort_status *claim_part(asked *a, int part, const ort_node **list)
{
    const ort_api *api = a->p->api;
    const ort_fusion_options fusion = { ORT_API_VERSION, .drop_constant_initializers = true };
    size_t k = 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->part[i] == part)
            list[k++] = a->nodes[i];
    if (!k)
        return NULL;
    ort_status *s = part < a->first_context ? keep(a, list, k) : NULL;
    if (!s) {
        s = api->EpGraphSupportInfo_AddNodesToFuse(a->support, list, k, &fusion);
        if (s && part < a->first_context)
            provider_drop_program(a->p);
        return s;
    }
    say(a->p, ORT_LOG_WARNING, "octet leaves %zu nodes that it would have claimed: %s", k, api->GetErrorMessage(s));
    api->ReleaseStatus(s);
    for (size_t i = 0; i < a->n; i++)
        if (a->part[i] == part) {
            a->part[i] = -1;
            a->why[i] = "no program can be made of its part";
        }
    return NULL;
}

static ort_status *claim_parts(asked *a)
{
    const ort_node **list = calloc(a->n + 1, sizeof *list);
    int n_parts = 0;
    ort_status *s = list ? NULL : no_memory(a->p->api);
    for (size_t i = 0; i < a->n; i++)
        if (a->part[i] >= n_parts)
            n_parts = a->part[i] + 1;
    for (int part = 0; part < n_parts && !s; part++)
        s = claim_part(a, part, list);
    free(list);
    return s;
}

static ort_status *say_reasons(const asked *a)
{
    const ort_api *api = a->p->api;
    size_t claimed = 0;
    for (size_t i = 0; i < a->n; i++) {
        const char *name, *op;
        claimed += a->part[i] >= 0;
        if (a->part[i] >= 0)
            continue;
        TRY(api->Node_GetName(a->nodes[i], &name));
        TRY(api->Node_GetOperatorType(a->nodes[i], &op));
        say(a->p, ORT_LOG_VERBOSE, "octet leaves %s '%s': %s", op, name, a->why[i]);
    }
    say(a->p, ORT_LOG_INFO, "octet claims %zu of %zu nodes", claimed, a->n);
    return NULL;
}

/* ONNX Runtime 1.23 takes any plug-in for another device, puts copies where a part reads or feeds other nodes, and
 * finds nobody who makes them: the session fails. So there it is the whole graph, or nothing. */
static void leave_parts(asked *a)
{
    bool whole = true;
    for (size_t i = 0; i < a->n; i++)
        whole &= a->part[i] == 0;
    for (size_t i = 0; i < a->n && !whole; i++)
        if (a->part[i] >= 0) {
            a->part[i] = -1;
            a->why[i] = "ONNX Runtime 1.23 cannot divide a graph between its own provider and a plug-in";
        }
}

/* Nobody else can run an EPContext node of ours: it is claimed, whether its program can be made or not. Then Compile
 * tells why, and ONNX Runtime passes that on. */
static ort_status *find_contexts(asked *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->part[i] >= a->first_context)
            a->first_context = a->part[i] + 1;
    for (int part = a->first_context, *at = a->part; at < a->part + a->n; at++) {
        bool ours;
        TRY(context_is_ours(a->p->api, a->nodes[at - a->part], &ours));
        if (ours)
            *at = part++;
    }
    return NULL;
}

static ort_status *claim_nodes(asked *a, const octet_claim *claims, const graph_bytes *b)
{
    for (size_t i = 0; i < a->n; i++) {
        a->part[i] = claims[i].part;
        a->why[i] = b->unread[i] ? b->unread[i] : claims[i].reason;
    }
    TRY(a->p->api->Graph_GetNodes(a->g, a->nodes, a->n));
    TRY(find_contexts(a));
    if (!a->p->divides)
        leave_parts(a);
    TRY(claim_parts(a));
    return say_reasons(a);
}

/* A graph that the library refuses stays ONNX Runtime's, with the reason in the log. */
static ort_status *claim_graph(provider *p, octet *o, const ort_graph *g, const graph_bytes *b, ort_support *support)
{
    const octet_claim *claims;
    size_t n;
    const octet_claim_what what = p->options.all          ? OCTET_CLAIM_ALL
                                  : p->options.with_float ? OCTET_CLAIM_FLOAT
                                                          : OCTET_CLAIM_INTEGERS;
    if (octet_graph_parts(o, b->message.at, b->message.n, b->constants, b->n_constants, what, &claims, &n) !=
        OCTET_OK) {
        say(p, ORT_LOG_WARNING, "octet claims nothing: %s", octet_error(o));
        return NULL;
    }
    if (n != b->n_nodes)
        return fail(p->api, "%zu nodes became %zu", b->n_nodes, n);
    asked a = { .p = p,
                .g = g,
                .nodes = calloc(n + 1, sizeof *a.nodes),
                .part = calloc(n + 1, sizeof *a.part),
                .why = calloc(n + 1, sizeof *a.why),
                .n = n,
                .support = support };
    ort_status *s = a.nodes && a.part && a.why ? claim_nodes(&a, claims, b) : no_memory(p->api);
    free(a.nodes);
    free(a.part);
    free(a.why);
    return s;
}

ort_status *provider_claim(ort_ep *ep, const ort_graph *g, ort_support *support)
{
    provider *p = (provider *)ep;
    const ort_node *parent = NULL;
    graph_bytes b;
    provider_drop_programs(p); /* ONNX Runtime also asks in order to know which functions it need not expand */
    TRY(p->api->Graph_GetParentNode(g, &parent));
    if (parent) /* ONNX Runtime asks for bodies first: what is in them comes with their node */
        return NULL;
    if (p->has_compiled && !p->tells_parents) {
        say(p, ORT_LOG_INFO, "octet claims nothing more: this ONNX Runtime would give two parts the same name");
        return NULL;
    }
    ort_status *s = graph_bytes_make(p->api, g, GRAPH_TO_ASK, &b);
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
