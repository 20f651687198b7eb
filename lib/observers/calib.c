/* lib/observers/calib.c -- the calibration table in memory: tensors, shards, merging, comparing. */
#include "observers/calib.h"

#include "base/io.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static oct_status set_text(char **field, const char *text, oct_err *err)
{
    char *d = oct_strdup(text);
    if (!d)
        return oct_nomem(err);
    oct_free(*field);
    *field = d;
    return OCT_OK;
}

/* Makes room for one more element. */
static bool grow(void **v, size_t n, size_t *cap, size_t elem)
{
    if (n < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 16, bytes;
    if (!oct_mul_size(more, elem, &bytes))
        return false;
    void *p = oct_realloc(*v, *cap * elem, bytes);
    if (!p)
        return false;
    *v = p;
    *cap = more;
    return true;
}

oct_calib *oct_calib_create(void)
{
    oct_calib *c = oct_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    if (set_text(&c->model, "", NULL) != OCT_OK || set_text(&c->preprocess, "", NULL) != OCT_OK) {
        oct_calib_destroy(c);
        return NULL;
    }
    return c;
}

void oct_calib_destroy(oct_calib *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_tensors; i++) {
        oct_stats_free(&c->tensors[i]->stats);
        oct_chan_free(&c->tensors[i]->chan);
        oct_free(c->tensors[i]->name);
        oct_free(c->tensors[i]);
    }
    for (size_t i = 0; i < c->n_shards; i++)
        oct_free(c->shards[i].set);
    oct_free(c->tensors);
    oct_free(c->shards);
    oct_free(c->slots);
    oct_free(c->model);
    oct_free(c->preprocess);
    oct_free(c);
}

oct_status oct_calib_set_model(oct_calib *c, const char *name, uint64_t hash, oct_err *err)
{
    c->model_hash = hash;
    return set_text(&c->model, name, err);
}

oct_status oct_calib_set_preprocess(oct_calib *c, const char *text, oct_err *err)
{
    return set_text(&c->preprocess, text, err);
}

/* The slot of a name, or the one where it belongs. The hash table is never full. */
static uint32_t *slot_of(const oct_calib *c, const char *name)
{
    size_t mask = c->n_slots - 1;
    size_t i = (size_t)oct_hash(OCT_HASH_INIT, name, strlen(name)) & mask;
    while (c->slots[i] && strcmp(c->tensors[c->slots[i] - 1]->name, name) != 0)
        i = (i + 1) & mask;
    return &c->slots[i];
}

oct_calib_tensor *oct_calib_find(const oct_calib *c, const char *name)
{
    uint32_t at = c->n_slots ? *slot_of(c, name) : 0;
    return at ? c->tensors[at - 1] : NULL;
}

static bool reindex(oct_calib *c)
{
    if (c->n_slots > 2 * (c->n_tensors + 1))
        return true;
    size_t n = c->n_slots ? c->n_slots * 2 : 64;
    uint32_t *slots = oct_calloc(n, sizeof *slots);
    if (!slots)
        return false;
    oct_free(c->slots);
    c->slots = slots;
    c->n_slots = n;
    for (size_t i = 0; i < c->n_tensors; i++)
        *slot_of(c, c->tensors[i]->name) = (uint32_t)i + 1;
    return true;
}

oct_status oct_calib_add(oct_calib *c, const char *name, oct_calib_tensor **out, oct_err *err)
{
    *out = oct_calib_find(c, name);
    if (*out)
        return OCT_OK;
    if (!reindex(c) || !grow((void **)&c->tensors, c->n_tensors, &c->cap_tensors, sizeof *c->tensors))
        return oct_nomem(err);
    oct_calib_tensor *t = oct_calloc(1, sizeof *t);
    char *d = t ? oct_strdup(name) : NULL;
    if (!d) {
        oct_free(t);
        return oct_nomem(err);
    }
    t->name = d;
    c->tensors[c->n_tensors] = t;
    *slot_of(c, name) = (uint32_t)++c->n_tensors;
    *out = t;
    return OCT_OK;
}

/* Fails unless s is disjoint from all recorded parts: they are of other sets, or other parts of the same division of
 * its set. */
static oct_status check_shard(const oct_calib *c, const oct_calib_shard *s, oct_err *err)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        const oct_calib_shard *o = &c->shards[i];
        if (strcmp(o->set, s->set) != 0)
            continue;
        if (o->count == s->count && o->index != s->index) {
            if (!o->samples || !s->samples || o->samples == s->samples)
                continue;
            oct_fail(err, OCT_EUSAGE, "the samples of '%s' changed between shard %u/%u and shard %u/%u", s->set,
                     o->index, o->count, s->index, s->count);
            oct_hint(err, "make all its shards from the same samples");
            return OCT_EUSAGE;
        }
        if (o->count == s->count)
            return oct_fail(err, OCT_EUSAGE, "shard %u/%u of '%s' is in the table already", s->index, s->count, s->set);
        return oct_fail(err, OCT_EUSAGE,
                        "shard %u/%u of '%s' does not fit shard %u/%u in the table: one set, divided in two ways",
                        s->index, s->count, s->set, o->index, o->count);
    }
    return OCT_OK;
}

static int by_shard(const void *a, const void *b)
{
    const oct_calib_shard *x = a, *y = b;
    int c = strcmp(x->set, y->set);
    if (c == 0)
        c = (x->count > y->count) - (x->count < y->count);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* If all parts of a set are there, they become 0/1. */
static void join_shards(oct_calib *c, const char *set, uint32_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_shards; i++)
        n += strcmp(c->shards[i].set, set) == 0;
    if (count < 2 || n != count)
        return;
    size_t kept = 0;
    bool first = true;
    for (size_t i = 0; i < c->n_shards; i++) {
        oct_calib_shard s = c->shards[i];
        bool same = s.count == count && strcmp(s.set, set) == 0;
        if (same && !first) {
            if (s.set != set)
                oct_free(s.set);
            continue;
        }
        if (same) {
            s.index = 0;
            s.count = 1;
            s.samples = s.files = 0;
            first = false;
            set = s.set; /* the text that stays */
        }
        c->shards[kept++] = s;
    }
    c->n_shards = kept;
}

oct_status oct_calib_add_shard(oct_calib *c, const char *set, uint32_t index, uint32_t count, oct_err *err)
{
    oct_calib_shard s = { .set = (char *)set, .index = index, .count = count };
    if (count == 0 || index >= count)
        return oct_fail(err, OCT_EUSAGE, "shard %u/%u: the first number must be less than the second", index, count);
    OCT_TRY(check_shard(c, &s, err));
    if (!grow((void **)&c->shards, c->n_shards, &c->cap_shards, sizeof s))
        return oct_nomem(err);
    s.set = oct_strdup(set);
    if (!s.set)
        return oct_nomem(err);
    c->shards[c->n_shards++] = s;
    qsort(c->shards, c->n_shards, sizeof s, by_shard);
    join_shards(c, set, count);
    return OCT_OK;
}

void oct_calib_mark_shard(oct_calib *c, const oct_calib_shard *mark)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        oct_calib_shard *s = &c->shards[i];
        if (s->count > 1 && s->count == mark->count && s->index == mark->index && strcmp(s->set, mark->set) == 0) {
            s->samples = mark->samples;
            s->files = mark->files;
        }
    }
}

const oct_calib_shard *oct_calib_moved(const oct_calib *c, const oct_calib *from, const oct_calib_shard **other)
{
    for (size_t i = 0; i < from->n_shards; i++)
        for (size_t k = 0; k < c->n_shards; k++) {
            const oct_calib_shard *s = &from->shards[i], *o = &c->shards[k];
            if (s->files && o->files && s->files != o->files && strcmp(s->set, o->set) == 0) {
                *other = o;
                return s;
            }
        }
    return NULL;
}

/* Appends the parts of a division that v[n], which is in order, does not have: "0/7, 3/7 to 5/7". */
static void put_gaps(const oct_calib_shard *v, size_t n, oct_buf *b)
{
    enum { MOST = 12 };
    size_t ranges = 0;
    uint32_t next = 0, count = v->count;
    for (size_t i = 0; i <= n; i++) {
        const uint32_t at = i < n ? v[i].index : count;
        if (at > next && ranges < MOST)
            oct_buf_printf(b, "%s%u/%u", ranges ? ", " : "", next, count);
        if (at > next + 1 && ranges < MOST)
            oct_buf_printf(b, at > next + 2 ? " to %u/%u" : ", %u/%u", at - 1, count);
        ranges += at > next;
        next = at + 1;
    }
    if (ranges > MOST)
        oct_buf_puts(b, ", ...");
}

bool oct_calib_missing(const oct_calib *c, oct_buf *b)
{
    bool any = false;
    for (size_t i = 0, n; i < c->n_shards; i += n) {
        const oct_calib_shard *s = &c->shards[i];
        for (n = 1; i + n < c->n_shards && strcmp(s[n].set, s->set) == 0; n++)
            ;
        if (n == s->count)
            continue;
        oct_buf_printf(b, "%s%s ", any ? "; " : "", s->count - n == 1 ? "shard" : "shards");
        put_gaps(s, n, b);
        oct_buf_printf(b, " of '%s'", s->set);
        any = true;
    }
    return any;
}

/* Whether two tensors have the same pin, or none has one. */
static bool same_pin(const oct_calib_tensor *a, const oct_calib_tensor *b)
{
    if (!a->pinned || !b->pinned)
        return a->pinned == b->pinned;
    return a->pin.lo == b->pin.lo && a->pin.hi == b->pin.hi && a->exact.bits == b->exact.bits &&
           a->exact.scale == b->exact.scale && a->exact.zero == b->exact.zero;
}

/* The range of a tensor: the pinned one, or that of the values seen. */
static oct_range range_of(const oct_calib_tensor *t)
{
    return t->pinned ? t->pin : (oct_range){ t->stats.min, t->stats.max };
}

static oct_status check_tensors(const oct_calib *a, const oct_calib *b, oct_err *err)
{
    for (size_t i = 0; i < b->n_tensors; i++) {
        const oct_calib_tensor *y = b->tensors[i], *x = oct_calib_find(a, y->name);
        if (!x)
            return oct_fail(err, OCT_EUSAGE, "tensor '%s' is in one of the tables only", y->name);
        if (x->pinned && y->pinned && !same_pin(x, y))
            return oct_fail(err, OCT_EUSAGE, "tensor '%s' is pinned to different ranges", y->name);
        if (x->stats.n && y->stats.n && x->chan.channels != y->chan.channels)
            return oct_fail(err, OCT_EUSAGE, "tensor '%s' has %zu channels in one table, %zu in the other", y->name,
                            x->chan.channels, y->chan.channels);
    }
    return OCT_OK;
}

static oct_status check_merge(const oct_calib *a, const oct_calib *b, oct_err *err)
{
    if (a->model_hash != b->model_hash)
        return oct_fail(err, OCT_EUSAGE, "the tables are of different models ('%s' %016llx, '%s' %016llx)", a->model,
                        (unsigned long long)a->model_hash, b->model, (unsigned long long)b->model_hash);
    if (strcmp(a->preprocess, b->preprocess) != 0)
        return oct_fail(err, OCT_EUSAGE, "the tables differ in preprocessing: '%s', '%s'", a->preprocess,
                        b->preprocess);
    for (size_t i = 0; i < b->n_shards; i++)
        OCT_TRY(check_shard(a, &b->shards[i], err));
    OCT_TRY(check_tensors(a, b, err));
    return check_tensors(b, a, err);
}

static oct_status merge_chan(oct_chan_stats *s, const oct_chan_stats *o, oct_err *err)
{
    if (o->channels == 0)
        return OCT_OK;
    if (s->channels == 0)
        OCT_TRY(oct_chan_init(s, o->channels, err));
    return s->channels == o->channels ? oct_chan_merge(s, o, err) : OCT_OK;
}

oct_status oct_calib_add_statistics(oct_calib *into, const oct_calib *from, oct_err *err)
{
    oct_calib_tensor *x;
    for (size_t i = 0; i < from->n_tensors; i++) {
        OCT_TRY(oct_calib_add(into, from->tensors[i]->name, &x, err));
        OCT_TRY(oct_stats_merge(&x->stats, &from->tensors[i]->stats, err));
        OCT_TRY(merge_chan(&x->chan, &from->tensors[i]->chan, err));
    }
    into->samples += from->samples;
    return OCT_OK;
}

oct_status oct_calib_move_statistics(oct_calib *into, oct_calib *from, oct_err *err)
{
    oct_calib_tensor *x;
    for (size_t i = 0; i < from->n_tensors; i++) {
        oct_calib_tensor *y = from->tensors[i];
        OCT_TRY(oct_calib_add(into, y->name, &x, err));
        if (x->stats.n == 0) { /* it holds nothing but, perhaps, room */
            const oct_stats empty = x->stats;
            x->stats = y->stats;
            y->stats = empty;
        } else {
            OCT_TRY(oct_stats_merge(&x->stats, &y->stats, err));
        }
        if (x->chan.channels == 0) {
            x->chan = y->chan;
            y->chan = (oct_chan_stats){ 0 };
        }
        OCT_TRY(merge_chan(&x->chan, &y->chan, err));
        oct_stats_free(&y->stats);
        oct_chan_free(&y->chan);
    }
    into->samples += from->samples;
    return OCT_OK;
}

oct_status oct_calib_merge(oct_calib *into, const oct_calib *from, oct_err *err)
{
    OCT_TRY(check_merge(into, from, err));
    OCT_TRY(oct_calib_add_statistics(into, from, err));
    for (size_t i = 0; i < from->n_tensors; i++) {
        const oct_calib_tensor *y = from->tensors[i];
        oct_calib_tensor *x = oct_calib_find(into, y->name);
        x->off |= y->off;
        if (y->pinned) {
            x->pinned = true;
            x->pin = y->pin;
            x->exact = y->exact;
        }
    }
    for (size_t i = 0; i < from->n_shards; i++) {
        const oct_calib_shard *s = &from->shards[i];
        OCT_TRY(oct_calib_add_shard(into, s->set, s->index, s->count, err));
        oct_calib_mark_shard(into, s);
    }
    return OCT_OK;
}

static bool same_chan(const oct_chan_stats *a, const oct_chan_stats *b)
{
    if (a->channels != b->channels)
        return false;
    for (size_t i = 0; i < a->channels; i++) {
        const oct_chan *x = &a->c[i], *y = &b->c[i];
        if (x->n != y->n || x->min != y->min || x->max != y->max || memcmp(&x->sum, &y->sum, sizeof x->sum) != 0)
            return false;
    }
    return true;
}

static bool same_tensor(const oct_calib_tensor *a, const oct_calib_tensor *b)
{
    if (a->off != b->off || !same_pin(a, b))
        return false;
    return oct_stats_equal(&a->stats, &b->stats) && same_chan(&a->chan, &b->chan);
}

static double change_of(const oct_calib_tensor *a, const oct_calib_tensor *b)
{
    if (!a || !b)
        return 1;
    oct_range x = range_of(a), y = range_of(b);
    double move = fmax(fabs((double)x.lo - y.lo), fabs((double)x.hi - y.hi));
    double width = fmax((double)x.hi - x.lo, (double)y.hi - y.lo);
    return move == 0 ? 0 : width > 0 ? move / width : 1;
}

oct_status oct_calib_diff(const oct_calib *a, const oct_calib *b, oct_calib_change **out, size_t *n, oct_err *err)
{
    oct_calib_change *v = oct_calloc(a->n_tensors + b->n_tensors + 1, sizeof *v);
    size_t k = 0;
    if (!v)
        return oct_nomem(err);
    for (size_t i = 0; i < a->n_tensors; i++) {
        const oct_calib_tensor *x = a->tensors[i], *y = oct_calib_find(b, x->name);
        if (!y || !same_tensor(x, y))
            v[k++] = (oct_calib_change){ x->name, x, y, change_of(x, y) };
    }
    for (size_t i = 0; i < b->n_tensors; i++)
        if (!oct_calib_find(a, b->tensors[i]->name))
            v[k++] = (oct_calib_change){ b->tensors[i]->name, NULL, b->tensors[i], 1 };
    *out = v;
    *n = k;
    return OCT_OK;
}
