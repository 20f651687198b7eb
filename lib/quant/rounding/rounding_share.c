/* Rounding in parts: chooses the layers that a process rounds for another one, and uses the results of such
 * processes. */
#include "quant/rounding/rounding_int.h"

#include "base/json.h"
#include "quant/convert/convert_int.h"
#include "quant/simulate/memo.h"

#include <stdlib.h>
#include <string.h>

/* A hash of everything that rounding depends on: decisions and samples, and for each layer its weights and how they are
 * rounded. */
static uint64_t key_of(const rounder *r)
{
    const uint64_t decided = oct_memo_key(r->c, r->s);
    uint64_t h = oct_hash(oct_hash(OCT_HASH_INIT, OCT_VERSION, sizeof OCT_VERSION), r->method, strlen(r->method));
    h = oct_hash(h, &decided, sizeof decided);
    for (size_t i = 0; i < r->n; i++) {
        const rlayer *x = &r->layer[i];
        const oct_tensor *w = oct_layer_weights(r->j->g, x->node);
        const int64_t form[] = { x->node, x->depth, x->outs, x->rows, x->limit, x->scales, x->bound };
        h = oct_hash(h, form, sizeof form);
        h = oct_hash(h, w->data, w->bytes);
    }
    return h;
}

static oct_status take(rounder *r, size_t files, oct_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        OCT_TRY(oct_rounder_make_results(r, &r->layer[i], err));
        OCT_TRY(oct_round_parts_take(r->c->round_parts, r->method, &r->layer[i].to, err));
    }
    oct_conversion_say(r->c, 0, "%s: %zu layer%s taken from %zu file%s", r->method, r->n, r->n == 1 ? " is" : "s are",
                       files, files == 1 ? "" : "s");
    return OCT_OK;
}

oct_status oct_rounder_round_or_take(rounder *r, oct_err *err)
{
    oct_round_parts *p = r->c->round_parts;
    size_t files = 0;
    if (!p || oct_round_parts_used(p, r->method) || r->n == 0)
        return oct_rounder_round(r, err);
    OCT_TRY(oct_round_parts_use(p, r->method, key_of(r), r->n, &files, err));
    return files ? take(r, files, err) : oct_round_parts_lack(p, r->method, err);
}

/* ---- a part ---- */

typedef struct dealt {
    double cost;
    size_t at;
} dealt;

/* The approximate work: moments, factorization and rounding; or for learning, sweeps over the weights, where each looks
 * at all rows. */
static double cost_of(const rounder *r, const rlayer *x)
{
    const double groups = (double)x->l.groups, depth = (double)x->depth, outs = (double)x->outs, rows = (double)x->rows;
    return r->learns ? groups * depth * outs * rows : groups * depth * depth * (rows + depth + 2 * outs);
}

static int dearest_first(const void *a, const void *b)
{
    const dealt *x = a, *y = b;
    return x->cost != y->cost ? (x->cost < y->cost ? 1 : -1) : (x->at > y->at) - (x->at < y->at);
}

/* Keeps only the layers of one part. Layers are dealt out by decreasing work, each to the part with the least work. */
static oct_status deal(rounder *r, const oct_rounding_share *share, oct_err *err)
{
    const size_t parts = share->parts < r->n ? share->parts : r->n;
    dealt *d = oct_arena_calloc(r->a, r->n + 1, sizeof *d);
    double *load = oct_arena_calloc(r->a, parts + 1, sizeof *load);
    bool *own = oct_arena_calloc(r->a, r->n + 1, sizeof *own);
    size_t n = 0;
    if (!d || !load || !own)
        return oct_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        d[i] = (dealt){ cost_of(r, &r->layer[i]), i };
    qsort(d, r->n, sizeof *d, dearest_first);
    for (size_t i = 0; i < r->n; i++) {
        size_t least = 0;
        for (size_t k = 1; k < parts; k++)
            least = load[k] < load[least] ? k : least;
        load[least] += d[i].cost;
        own[d[i].at] = least == share->part;
    }
    for (size_t i = 0; i < r->n; i++)
        if (own[i])
            r->layer[n++] = r->layer[i];
    r->n = n;
    return OCT_OK;
}

static oct_status put_asked(const rounder *r, size_t layers, oct_buf *b, oct_err *err)
{
    oct_json j = OCT_JSON_INIT(b);
    oct_json_open(&j, NULL, '{');
    oct_json_str(&j, "schema", "octet-rounding-part-1");
    oct_json_str(&j, "version", OCT_VERSION);
    oct_json_str(&j, "command", r->c->o.made_by ? r->c->o.made_by : "");
    oct_json_str(&j, "method", r->method);
    oct_json_int(&j, "layers", (int64_t)layers);
    oct_json_close(&j);
    return b->failed ? oct_nomem(err) : OCT_OK;
}

static int by_node(const void *a, const void *b)
{
    const oct_rounded *x = *(const oct_rounded *const *)a, *y = *(const oct_rounded *const *)b;
    return (x->node > y->node) - (x->node < y->node);
}

static oct_status write_part(const rounder *r, uint64_t key, size_t layers, oct_err *err)
{
    oct_buf asked = OCT_BUF_INIT;
    const oct_rounded **own = oct_arena_calloc(r->a, r->n + 1, sizeof *own);
    if (!own)
        return oct_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        own[i] = &r->layer[i].to;
    qsort(own, r->n, sizeof *own, by_node);
    oct_status s = put_asked(r, layers, &asked, err);
    if (s == OCT_OK)
        s = oct_round_part_write(r->c->o.rounding_share, oct_buf_str(&asked), r->method, key, layers, own, r->n, err);
    oct_buf_free(&asked);
    return s;
}

oct_status oct_rounder_write_part(rounder *r, oct_err *err)
{
    OCT_TRY(oct_conversion_sim(r->c, OCT_SIM_FEW_RUNS, 0, &r->s, err));
    OCT_TRY(oct_rounder_list(r, err));
    const size_t layers = r->n;
    if (layers == 0 || oct_round_parts_has(r->c->round_parts, r->method))
        return OCT_OK;
    const uint64_t key = key_of(r);
    OCT_TRY(deal(r, r->c->o.rounding_share, err));
    OCT_TRY(oct_rounder_round(r, err));
    OCT_TRY(write_part(r, key, layers, err));
    r->c->written = (oct_rounding_written){ .method = r->method, .layers = r->n, .of = layers };
    return OCT_OK;
}
