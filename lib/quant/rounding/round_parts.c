/* Files of parts of rounding. */
#include "quant/rounding/round_parts.h"

#include "base/mem.h"
#include "eval/parts/part_bytes.h"

#include <math.h>
#include <stdlib.h>

const oct_part_form oct_part_of_rounding = { "octet-rounding-part 1\n", "rounding", "another rounding",
                                             "qconvert --shard", "model, samples, options and N of --shard I/N" };
static const oct_part_form *const forms[] = { &oct_part_of_rounding, NULL };

/* The files of one method. */
typedef struct round_set {
    const char *method;
    uint64_t key, layers;
    oct_parts parts;
    bool used;
} round_set;

struct oct_round_parts {
    oct_arena *arena;
    round_set *set;
    size_t n;
};

/* ---- writing ---- */

static void put_layer(const oct_rounded *x, oct_buf *b)
{
    ev_put_u64(b, x->weights);
    ev_put_u64(b, x->scales);
    ev_put_u32(b, x->bound);
    oct_buf_add(b, x->qvals, x->weights);
    ev_put_f64(b, x->noise[0]);
    if (!x->bound)
        return;
    oct_buf_add(b, x->safe_qvals, x->weights);
    for (size_t i = 0; i < x->scales; i++)
        ev_put_f32(b, x->widened[i]);
    ev_put_f64(b, x->noise[1]);
}

oct_status oct_round_part_write(const oct_rounding_share *share, const char *asked, const char *method, uint64_t key,
                                size_t layers, const oct_rounded *const *own, size_t n, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    oct_part_out p;
    OCT_TRY(oct_part_create(&p, &oct_part_of_rounding, share->path, asked, share->part, share->parts, err));
    oct_status s = OCT_OK;
    for (size_t i = 0; i < n && s == OCT_OK; i++) {
        oct_buf_cut(&b, 0);
        put_layer(own[i], &b);
        s = oct_part_add(&p, own[i]->node, &b, err);
    }
    oct_buf_cut(&b, 0);
    ev_put_text(&b, method);
    ev_put_u64(&b, key);
    ev_put_u64(&b, layers);
    if (s == OCT_OK)
        s = oct_part_commit(&p, &b, err);
    else
        oct_part_abort(&p);
    oct_buf_free(&b);
    return s;
}

/* ---- reading ---- */

static oct_status read_rest(const oct_part *p, oct_arena *arena, round_set *x, oct_err *err)
{
    ev_bytes r = { p->rest, p->n_rest, false };
    bool memory = false;
    x->method = ev_take_text(&r, arena, &memory);
    x->key = ev_take_u64(&r);
    x->layers = ev_take_u64(&r);
    if (memory)
        return oct_nomem(err);
    return r.bad || r.n || !x->method ? oct_part_broken(p, "what was rounded is cut short", err) : OCT_OK;
}

/* Finds the method of a file. */
static oct_status look(const char *path, oct_arena *arena, const char **method, oct_err *err)
{
    oct_part p;
    round_set x;
    OCT_TRY(oct_part_open(&p, forms, path, err));
    const oct_status s = read_rest(&p, arena, &x, err);
    oct_part_close(&p);
    *method = x.method;
    return s;
}

static oct_status check_set(round_set *x, oct_arena *arena, oct_err *err)
{
    uint64_t layers = 0;
    for (size_t i = x->parts.n; i-- > 0;) {
        round_set other = { 0 };
        const oct_part *p = &x->parts.v[i];
        OCT_TRY(read_rest(p, arena, &other, err));
        if (i + 1 < x->parts.n && (other.key != x->key || other.layers != x->layers)) {
            oct_fail(err, OCT_EUSAGE, "%s was rounded with other samples, or another model, than %s", p->path,
                     x->parts.v[i + 1].path);
            oct_hint(err, "files changed between the runs: make the parts again");
            return OCT_EUSAGE;
        }
        x->key = other.key;
        x->layers = other.layers;
        layers += p->samples;
    }
    return layers == x->layers ? OCT_OK : oct_part_broken(&x->parts.v[0], "the parts have not each layer once", err);
}

/* Opens the files of one method together. method[n]: the method of each path. */
static oct_status open_set(oct_round_parts *p, const char *const *path, const char *const *method, size_t n,
                           size_t first, oct_err *err)
{
    round_set *x = &p->set[p->n];
    const char **of = oct_arena_calloc(p->arena, n + 1, sizeof *of);
    size_t k = 0;
    if (!of)
        return oct_nomem(err);
    for (size_t i = first; i < n; i++)
        if (strcmp(method[i], method[first]) == 0)
            of[k++] = path[i];
    OCT_TRY(oct_parts_open(&x->parts, forms, of, k, err));
    x->method = method[first];
    p->n++;
    return check_set(x, p->arena, err);
}

static round_set *find_set(const oct_round_parts *p, const char *method)
{
    for (size_t i = 0; p && i < p->n; i++)
        if (strcmp(p->set[i].method, method) == 0)
            return &p->set[i];
    return NULL;
}

static oct_status open_all(oct_round_parts *p, const char *const *path, size_t n, oct_err *err)
{
    const char **method = oct_arena_calloc(p->arena, n, sizeof *method);
    if (!method || !(p->set = oct_arena_calloc(p->arena, n, sizeof *p->set)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        OCT_TRY(look(path[i], p->arena, &method[i], err));
    for (size_t i = 0; i < n; i++)
        if (!find_set(p, method[i]))
            OCT_TRY(open_set(p, path, method, n, i, err));
    return OCT_OK;
}

oct_status oct_round_parts_open(const char *const *path, size_t n, oct_round_parts **out, oct_err *err)
{
    *out = NULL;
    if (!n)
        return OCT_OK;
    oct_arena *a = oct_arena_create();
    oct_round_parts *p = a ? oct_arena_calloc(a, 1, sizeof *p) : NULL;
    if (!p) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    p->arena = a;
    const oct_status s = open_all(p, path, n, err);
    if (s == OCT_OK)
        *out = p;
    else
        oct_round_parts_close(p);
    return s;
}

void oct_round_parts_close(oct_round_parts *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        oct_parts_close(&p->set[i].parts);
    oct_arena_destroy(p->arena);
}

/* ---- taking ---- */

oct_status oct_round_parts_use(oct_round_parts *p, const char *method, uint64_t key, size_t layers, size_t *from,
                               oct_err *err)
{
    round_set *x = find_set(p, method);
    *from = 0;
    if (!x)
        return OCT_OK;
    if (x->key != key || x->layers != layers) {
        oct_fail(err, OCT_EUSAGE, "%s was rounded for another model, other samples or options", x->parts.v[0].path);
        oct_hint(err, "make the parts again with what is given here, or give what they were made with");
        return OCT_EUSAGE;
    }
    x->used = true;
    *from = x->parts.n;
    return OCT_OK;
}

bool oct_round_parts_has(const oct_round_parts *p, const char *method)
{
    return find_set(p, method) != NULL;
}

bool oct_round_parts_used(const oct_round_parts *p, const char *method)
{
    const round_set *x = find_set(p, method);
    return x && x->used;
}

static bool within(const int8_t *q, size_t n, int limit)
{
    for (size_t i = 0; i < n; i++)
        if (q[i] < -limit || q[i] > limit)
            return false;
    return true;
}

/* Reads the result of a layer. NULL, or what is wrong with it. */
static const char *take_layer(ev_bytes r, oct_rounded *to)
{
    static const char size[] = "a layer of the part is not of the model's size";
    const uint64_t weights = ev_take_u64(&r), scales = ev_take_u64(&r);
    const bool bound = ev_take_u32(&r) != 0;
    if (r.bad || weights != to->weights || scales != to->scales || bound != to->bound)
        return size;
    const uint8_t *q = ev_take(&r, to->weights);
    to->noise[0] = ev_take_f64(&r);
    if (q)
        memcpy(to->qvals, q, to->weights);
    const uint8_t *safe = bound ? ev_take(&r, to->weights) : NULL;
    if (safe)
        memcpy(to->safe_qvals, safe, to->weights);
    for (size_t i = 0; i < to->scales && bound; i++) {
        to->widened[i] = ev_take_f32(&r);
        ev_need(&r, to->widened[i] >= 1 && to->widened[i] <= 2);
    }
    to->noise[1] = bound ? ev_take_f64(&r) : 0;
    ev_need(&r, to->noise[0] >= 0 && to->noise[1] >= 0);
    if (r.bad || r.n)
        return size;
    return within(to->qvals, to->weights, to->limit) && (!bound || within(to->safe_qvals, to->weights, to->limit))
               ? NULL
               : "a weight of the part is beyond the range of the layer's integers";
}

oct_status oct_round_parts_take(const oct_round_parts *p, const char *method, oct_rounded *to, oct_err *err)
{
    const round_set *x = find_set(p, method);
    for (size_t i = 0; i < x->parts.n; i++) {
        ev_bytes r = { x->parts.v[i].records, x->parts.v[i].n_records, false };
        while (r.n && !r.bad) {
            const uint64_t node = ev_take_u64(&r);
            const ev_bytes record = ev_take_bytes(&r, ev_take_u64(&r));
            if (node != (uint64_t)to->node || record.bad)
                continue;
            const char *wrong = take_layer(record, to);
            return wrong ? oct_part_broken(&x->parts.v[i], wrong, err) : OCT_OK;
        }
    }
    return oct_part_broken(&x->parts.v[0], "the parts have not each layer once", err);
}

oct_status oct_round_parts_end(const oct_round_parts *p, oct_err *err)
{
    for (size_t i = 0; p && i < p->n; i++)
        if (!p->set[i].used)
            return oct_fail(err, OCT_EUSAGE,
                            "%s has weights of the method '%s', which this conversion does not come to",
                            p->set[i].parts.v[0].path, p->set[i].method);
    return OCT_OK;
}

oct_status oct_round_parts_lack(const oct_round_parts *p, const char *method, oct_err *err)
{
    const bool one = p->n == 1 && p->set[0].parts.n == 1;
    oct_fail(err, OCT_EUSAGE, "%s%s nothing of the method '%s'", p->set[0].parts.v[0].path,
             one ? " has" : " and the other files have", method);
    oct_hint(
        err,
        "run qconvert --shard I/N with these files, and name those that it writes, too; or switch the method off (--no-method %s)",
        method);
    return OCT_EUSAGE;
}
