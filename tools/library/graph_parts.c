/* Which nodes of a graph that another program holds are worth computing by the library. */
#include "model_int.h"

#include "passes/pass.h"
#include "targets/claim.h"

#include <string.h>

typedef struct question {
    const void *data;
    size_t size;
    const octet_array *constants;
    size_t n_constants;
    octet_claim_what what;
    const octet_claim **claims;
    size_t *n_claims;
} question;

/* Reasons name values, which may have any bytes as names. */
static oct_status clean(oct_arena *a, const char **reason, oct_err *err)
{
    const size_t size = 4 * strlen(*reason) + 1; /* a byte becomes at most \xff */
    char *s = oct_arena_alloc(a, size);
    if (!s)
        return oct_nomem(err);
    *s = 0;
    octet_clean(s, size, *reason);
    *reason = s;
    return OCT_OK;
}

static oct_status claim(octet *o, const question *x, oct_graph *g, oct_err *err)
{
    oct_claim *made;
    int n_parts;
    OCT_TRY(octet_set_constants(g, x->constants, x->n_constants, err));
    OCT_TRY(oct_infer_shapes(g, err));
    OCT_TRY(oct_claim_nodes(g, (oct_claim_what)x->what, o->claims, &made, &n_parts, err));
    octet_claim *claims = oct_arena_calloc(o->claims, g->n_node + 1, sizeof *claims);
    if (!claims)
        return oct_nomem(err);
    for (size_t i = 0; i < g->n_node; i++) { /* the loader keeps the order of the message */
        claims[i] = (octet_claim){ made[i].part, made[i].reason };
        if (*claims[i].reason)
            OCT_TRY(clean(o->claims, &claims[i].reason, err));
    }
    *x->claims = claims;
    *x->n_claims = g->n_node;
    return OCT_OK;
}

static oct_status find_parts(octet *o, void *arg, oct_err *err)
{
    static const char label[] = "graph in memory";
    const question *x = arg;
    oct_model *m;
    if (!x->claims || !x->n_claims)
        return oct_fail(err, OCT_EUSAGE, "there is no place for the result: %s is NULL",
                        x->claims ? "n_claims" : "claims");
    if (!x->data && x->size)
        return oct_fail(err, OCT_EUSAGE, "%zu bytes at NULL", x->size);
    if (!x->constants && x->n_constants)
        return oct_fail(err, OCT_EUSAGE, "%zu constants at NULL", x->n_constants);
    if (x->what < OCTET_CLAIM_INTEGERS || x->what > OCTET_CLAIM_ALL)
        return oct_fail(err, OCT_EUSAGE, "%d is not what can be claimed", (int)x->what);
    oct_arena_destroy(o->claims);
    if (!(o->claims = oct_arena_create()))
        return oct_nomem(err);
    OCT_TRY(oct_model_load_mem(x->data ? x->data : "", x->size, label, &m, err));
    const oct_status s = claim(o, x, m->graph, err);
    oct_model_free(m);
    if (s != OCT_OK)
        oct_within(err, "%s", label);
    return s;
}

octet_status octet_graph_parts(octet *o, const void *data, size_t size, const octet_array *constants,
                               size_t n_constants, octet_claim_what what, const octet_claim **claims, size_t *n_claims)
{
    if (claims)
        *claims = NULL;
    if (n_claims)
        *n_claims = 0;
    return octet_do(o, find_parts,
                    &(question){ .data = data,
                                 .size = size,
                                 .constants = constants,
                                 .n_constants = n_constants,
                                 .what = what,
                                 .claims = claims,
                                 .n_claims = n_claims });
}
