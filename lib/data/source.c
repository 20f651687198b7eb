/* lib/data/source.c -- the stream: specs to samples to batches. Decoding threads take samples from the readers one at
 * a time and in order, decode side by side, and leave them in a ring that oct_source_next empties in order. */
#include "data/choice.h"
#include "data/labels.h"
#include "data/spec.h"
#include "data/store.h"

#include "base/io.h"
#include "base/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 16, KEPT_OPEN = 16, MAX_BAD_TEXTS = 100, STORE_BYTES = 256 << 20, LEAST_ASIDE = 64 };

typedef struct slot {
    bool done, end;
    bool setup; /* the failure is not the sample's: it stops the run */
    oct_status status;
    oct_err err;
    oct_item item;
    int64_t index;
    oct_array *out; /* one per input */
    bool *stack;
    uint64_t hash;
} slot;

struct oct_source {
    oct_arena *arena;
    oct_feed_ctx ctx;
    oct_steps *steps;
    oct_leaves leaves;
    oct_labels *labels;
    const char *labels_path;
    char *text, *words;
    bool skip_bad;
    int n_threads;
    /* Which samples are chosen, and which of them this pass gives. */
    int64_t asked, total, n_chosen; /* total: of all, -1 when not known; n_chosen: then as many as are asked for */
    bool first, hold, once;
    size_t store_bytes;
    oct_store store;                /* of a stream */
    int64_t n_stream;               /* samples that it had; 0: there is no store */
    oct_pick pick;
    int64_t n_side;                 /* of the side that is picked, -1 when not known */
    /* The readers' side; one thread at a time. */
    size_t leaf;
    int64_t index;
    int64_t at_side, at_most, left; /* how many of the side came by, and of those counted by pick.most; still to be given */
    /* The ring: samples [consumed, produced) are in slots. Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[MAX_THREADS];
    int running;
    slot *slots;
    size_t depth;
    uint64_t produced, consumed;
    bool fetching, ended, stop;
    /* What was given. */
    bool failed;
    oct_err fault;
    bool any_label;
    int64_t given, bad;
    uint64_t hash;
    char *bad_text[MAX_BAD_TEXTS];
    char bad_hint[sizeof ((oct_err *)0)->hint]; /* of the first */
};

/* ---- readers ---- */

static oct_status open_leaf(oct_source *s, oct_leaf *l, oct_err *err)
{
    return l->self ? OCT_OK : l->reader->open(&s->ctx, l->path, &l->self, err);
}

static void close_leaf(oct_leaf *l)
{
    if (l->self)
        l->reader->close(l->self);
    l->self = NULL;
}

static void leave_leaf(oct_source *s)
{
    if (s->leaves.n > KEPT_OPEN)
        close_leaf(&s->leaves.v[s->leaf]);
    s->leaf++;
}

/* ---- which samples ---- */

/* Whether the sample is one of those asked for, rather than one that is left aside. */
static bool chosen(const oct_source *s, int64_t index)
{
    if (s->total < 0)
        return s->asked == 0 || index < s->asked;
    return s->first ? index < s->n_chosen : oct_spread_has(s->total, s->n_chosen, index);
}

/* Whether the next sample is given; side: whether it is of the side that is picked. */
static bool wanted(const oct_source *s, bool side)
{
    const int64_t most = s->pick.most;
    if (!side || (most && s->n_side < 0 && s->at_most >= most))
        return false;
    return (s->n_side < 0 || oct_spread_has(s->n_side, most, s->at_side)) &&
           (s->pick.n <= 1 || s->at_most % s->pick.n == s->pick.i);
}

/* Goes on to the next sample. */
static void advance(oct_source *s, bool side, bool want)
{
    s->index++;
    s->at_most += side && (s->n_side < 0 || oct_spread_has(s->n_side, s->pick.most, s->at_side));
    s->at_side += side;
    s->left -= want;
}

/* Whether samples may follow that are wanted. What is read to its end is checked to its end. */
static bool more(const oct_source *s)
{
    return s->left > 0 && (s->total >= 0 || s->asked == 0 || s->pick.aside || s->index < s->asked);
}

/* The next sample of the store that is wanted. */
static void fetch_kept(oct_source *s, slot *t)
{
    while ((size_t)s->index < s->store.n) {
        const oct_kept *k = &s->store.v[s->index];
        const bool side = k->chosen != s->pick.aside, want = wanted(s, side);
        advance(s, side, want);
        if (!want)
            continue;
        oct_item_free(&t->item, s->ctx.n);
        t->index = k->index;
        t->status = oct_store_view(&s->store, (size_t)(k - s->store.v), &t->item, &t->err);
        if (k->fault && t->status == OCT_OK) {
            t->err = *k->fault;
            t->status = k->fault->status;
        }
        t->setup = t->status == OCT_EIO;
        return;
    }
    t->end = true;
}

/* The next sample that is wanted into the slot; faults are the slot's. */
static void fetch(oct_source *s, slot *t)
{
    t->end = false;
    t->status = OCT_OK;
    t->err = (oct_err)OCT_ERR_INIT;
    if (s->n_stream) {
        fetch_kept(s, t);
        return;
    }
    while (s->leaf < s->leaves.n && more(s)) {
        oct_leaf *l = &s->leaves.v[s->leaf];
        const bool side = chosen(s, s->index) != s->pick.aside, want = wanted(s, side);
        bool over = false;
        oct_item_free(&t->item, s->ctx.n);
        t->status = open_leaf(s, l, &t->err);
        if (t->status != OCT_OK)
            over = true;
        else
            t->status = l->reader->next(l->self, want, &t->item, &over, &t->err);
        t->setup = t->status == OCT_EIO; /* else the rest of a shard, or of all data, would count as one broken sample */
        if (over)
            leave_leaf(s);
        if (over && t->status == OCT_OK)
            continue;
        t->index = s->index;
        advance(s, side, want);
        if (want || over)
            return;
    }
    t->status = OCT_OK;
    t->end = true;
}

/* ---- decoding threads ---- */

static void decode(const oct_source *s, slot *t)
{
    t->hash = OCT_HASH_INIT;
    for (size_t i = 0; i < s->ctx.n && t->status == OCT_OK; i++) {
        uint64_t h;
        t->status = oct_part_decode(&s->ctx.inputs[i], &s->steps[i], &t->item.parts[i], &t->out[i], &t->stack[i], &h, &t->setup,
                                    &t->err);
        t->hash = oct_hash(t->hash, &h, sizeof h);
        if (t->status != OCT_OK && strncmp(t->err.text, t->item.name, strlen(t->item.name)) != 0)
            oct_within(&t->err, "%s", t->item.name);
    }
    for (size_t i = 0; i < s->ctx.n; i++) {
        bool shared = t->item.parts[i].shared;
        oct_part_free(&t->item.parts[i]);
        t->item.parts[i].shared = shared;
    }
}

static void *worker(void *arg)
{
    oct_source *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stop && (s->ended || s->fetching || s->produced - s->consumed >= s->depth))
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stop)
            break;
        slot *t = &s->slots[s->produced++ % s->depth];
        s->fetching = true;
        pthread_mutex_unlock(&s->lock);
        fetch(s, t);
        pthread_mutex_lock(&s->lock);
        s->fetching = false;
        s->ended = t->end;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        if (!t->end && t->status == OCT_OK)
            decode(s, t);
        pthread_mutex_lock(&s->lock);
        t->done = true;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static oct_status start(oct_source *s, oct_err *err)
{
    s->stop = false;
    while (s->running < s->n_threads && oct_thread_start(&s->threads[s->running], worker, s))
        s->running++;
    return s->running ? OCT_OK : oct_fail(err, OCT_ENOMEM, "cannot start a thread");
}

static void empty_slot(oct_source *s, slot *t)
{
    oct_item_free(&t->item, s->ctx.n);
    for (size_t i = 0; i < s->ctx.n; i++)
        oct_array_free(&t->out[i]);
    t->done = false;
}

static void halt(oct_source *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    while (s->running)
        pthread_join(s->threads[--s->running], NULL);
    for (size_t i = 0; s->slots && i < s->depth; i++)
        if (s->slots[i].item.parts)
            empty_slot(s, &s->slots[i]);
    s->produced = s->consumed = 0;
    s->ended = s->fetching = false;
}

/* Waits for the next sample in order. */
static slot *peek(oct_source *s)
{
    slot *t = &s->slots[s->consumed % s->depth];
    pthread_mutex_lock(&s->lock);
    while (!(s->consumed < s->produced && t->done))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return t;
}

static void release(oct_source *s, slot *t)
{
    empty_slot(s, t);
    pthread_mutex_lock(&s->lock);
    s->consumed++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening ---- */

static oct_status copy_inputs(oct_source *s, const oct_source_options *o, oct_err *err)
{
    oct_input_desc *in = oct_arena_calloc(s->arena, o->n_inputs + 1, sizeof *in);
    s->steps = oct_arena_calloc(s->arena, o->n_inputs + 1, sizeof *s->steps);
    if (!in || !s->steps)
        return oct_nomem(err);
    for (size_t i = 0; i < o->n_inputs; i++) {
        const oct_input_desc *from = &o->inputs[i];
        if (from->rank > OCT_ARRAY_RANK)
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has rank %d, at most %d is supported", from->name, from->rank,
                            OCT_ARRAY_RANK);
        in[i] = *from;
        in[i].name = oct_arena_strdup(s->arena, from->name);
        if (from->rank > 0)
            in[i].dims = oct_arena_memdup(s->arena, from->dims, (size_t)from->rank * sizeof *from->dims);
        if (!in[i].name || (from->rank > 0 && !in[i].dims))
            return oct_nomem(err);
    }
    s->ctx = (oct_feed_ctx){ in, s->steps, o->n_inputs };
    return OCT_OK;
}

static char *keep(oct_arena *a, oct_buf *b)
{
    char *t = b->failed ? NULL : oct_arena_strdup(a, oct_buf_str(b));
    oct_buf_free(b);
    return t;
}

/* All inputs alike are written without names. */
static oct_status describe_steps(oct_source *s, oct_err *err)
{
    oct_buf text = OCT_BUF_INIT, words = OCT_BUF_INIT;
    for (size_t i = 0; i < s->ctx.n; i++) {
        const char *name = s->ctx.inputs[i].name;
        oct_buf prefix = OCT_BUF_INIT;
        if (s->ctx.n > 1)
            oct_buf_printf(&prefix, "%s/", name);
        if (oct_steps_any(&s->steps[i])) {
            if (text.len)
                oct_buf_puts(&text, ":");
            oct_steps_text(&s->steps[i], oct_buf_str(&prefix), &text);
        }
        text.failed |= prefix.failed;
        oct_buf_free(&prefix);
        oct_buf_printf(&words, "%sinput '%s': ", i ? "\n" : "", name);
        oct_steps_words(&s->steps[i], &words);
    }
    s->text = keep(s->arena, &text);
    s->words = keep(s->arena, &words);
    return s->text && s->words ? OCT_OK : oct_nomem(err);
}

static oct_status parse_steps(oct_source *s, const oct_source_options *o, oct_err *err)
{
    const char **names = oct_arena_calloc(s->arena, s->ctx.n + 1, sizeof *names);
    if (!names)
        return oct_nomem(err);
    for (size_t i = 0; i < s->ctx.n; i++)
        names[i] = s->ctx.inputs[i].name;
    for (size_t i = 0; i < o->n_preprocess; i++)
        OCT_TRY(oct_steps_parse(o->preprocess[i], names, s->ctx.n, s->steps, err));
    return describe_steps(s, err);
}

/* Opens every file once: faults show before any work is done. */
static oct_status open_all(oct_source *s, oct_err *err)
{
    for (size_t i = 0; i < s->leaves.n; i++) {
        oct_leaf *l = &s->leaves.v[i];
        for (size_t k = 0; l->reader == &oct_read_descriptor && k < i; k++)
            if (s->leaves.v[k].reader == l->reader && strcmp(s->leaves.v[k].path, l->path) == 0)
                return oct_fail(err, OCT_EUSAGE, "%s is given twice", strcmp(l->path, "-") == 0 ? "standard input" : l->path);
        OCT_TRY(open_leaf(s, l, err));
        int64_t n = l->reader->count(l->self);
        if (n < 0 || s->total < 0)
            s->total = -1;
        else if (__builtin_add_overflow(s->total, n, &s->total))
            return oct_fail(err, OCT_EMALFORMED, "%s: too many samples", l->path);
        if (s->leaves.n > KEPT_OPEN)
            close_leaf(l);
    }
    return OCT_OK;
}

/* Passes over all samples once, to count them. What cannot be read is said when it is read for its samples. */
static oct_status walk(oct_source *s, oct_err *err)
{
    oct_err fault = OCT_ERR_INIT;
    oct_item item = { .parts = oct_calloc(s->ctx.n + 1, sizeof *item.parts) };
    oct_status st = item.parts ? OCT_OK : oct_nomem(&fault);
    int64_t n = 0;
    for (size_t i = 0; st == OCT_OK && i < s->leaves.n; i++) {
        oct_leaf *l = &s->leaves.v[i];
        bool over = false;
        st = open_leaf(s, l, &fault);
        for (; st == OCT_OK && !over; n += !over)
            if ((st = l->reader->next(l->self, false, &item, &over, &fault)) == OCT_OK)
                oct_item_free(&item, s->ctx.n);
        if (st == OCT_OK)
            st = l->reader->rewind(l->self, &fault);
        if (s->leaves.n > KEPT_OPEN || st != OCT_OK)
            close_leaf(l);
    }
    if (st == OCT_OK)
        s->total = n;
    if (item.parts)
        oct_item_free(&item, s->ctx.n);
    oct_free(item.parts);
    return st == OCT_ENOMEM ? oct_nomem(err) : OCT_OK;
}

/* Lack of memory is no sample's fault, nor is what the user asked for (setup). */
static bool skippable(const oct_source *s, oct_status st, bool setup)
{
    return s->skip_bad && !setup && (st == OCT_EMALFORMED || st == OCT_EIO || st == OCT_EUNSUPPORTED || st == OCT_ENUMERIC);
}

/* The samples of one leaf into the store. What ends it early is an error, or a broken sample in the place of the rest. */
static oct_status gather_leaf(oct_source *s, oct_leaf *l, oct_item *item, oct_err *err)
{
    for (;;) {
        const uint64_t hash = oct_place_hash((uint64_t)s->n_stream);
        const bool want = oct_store_wants(&s->store, hash);
        oct_err fault = OCT_ERR_INIT;
        bool over = false;
        oct_item_free(item, s->ctx.n);
        oct_status st = open_leaf(s, l, &fault);
        over = st != OCT_OK;
        if (st == OCT_OK)
            st = l->reader->next(l->self, want, item, &over, &fault);
        if (over && st == OCT_OK)
            return OCT_OK;
        if (st == OCT_ENOMEM || (st != OCT_OK && over && !skippable(s, st, st == OCT_EIO))) {
            if (err)
                *err = fault;
            return st;
        }
        if (want || over)
            OCT_TRY(oct_store_add(&s->store, over ? 0 : hash, s->n_stream, item, st == OCT_OK ? NULL : &fault, err));
        s->n_stream++;
        if (over)
            return OCT_OK;
    }
}

/* Reads a stream to its end and keeps the samples that are chosen, and some others where samples are to stay aside. */
static oct_status gather(oct_source *s, oct_err *err)
{
    const int64_t others = (s->asked + 3) / 4 > LEAST_ASIDE ? (s->asked + 3) / 4 : LEAST_ASIDE;
    oct_item item = { .parts = oct_calloc(s->ctx.n + 1, sizeof *item.parts) };
    oct_status st = item.parts ? OCT_OK : oct_nomem(err);
    oct_store_open(&s->store, s->ctx.n, (size_t)(s->asked < INT64_MAX / 2 ? s->asked + (s->hold ? others : 0) : s->asked), s->store_bytes);
    for (size_t i = 0; st == OCT_OK && i < s->leaves.n; i++) {
        st = gather_leaf(s, &s->leaves.v[i], &item, err);
        close_leaf(&s->leaves.v[i]);
    }
    if (item.parts)
        oct_item_free(&item, s->ctx.n);
    oct_free(item.parts);
    s->total = (int64_t)s->store.n;
    return st;
}

/* Whether passing over all samples reads little. */
static bool walks_cheaply(const oct_source *s)
{
    for (size_t i = 0; i < s->leaves.n; i++) {
        const oct_leaf *l = &s->leaves.v[i];
        if (l->reader->is_cheap_to_pass && !l->reader->is_cheap_to_pass(l->path))
            return false;
    }
    return true;
}

/* What is spread over all samples, or taken from all of them, needs their number, or their end. */
static oct_status count_all(oct_source *s, oct_err *err)
{
    for (size_t i = 0; i < s->leaves.n; i++)
        s->once |= s->leaves.v[i].reader == &oct_read_descriptor;
    const bool spread = s->asked > 0 && !s->first;
    if (s->total >= 0 || !(s->hold || spread))
        return OCT_OK;
    if (!s->once && (walks_cheaply(s) || !spread))
        OCT_TRY(walk(s, err));
    return s->total < 0 && spread ? gather(s, err) : OCT_OK;
}

/* What follows from the number of samples and the pick. */
static void settle(oct_source *s)
{
    s->n_chosen = s->total < 0 ? s->asked : oct_choice_count(s->total, s->asked, s->hold);
    s->n_side = s->total >= 0 ? (s->pick.aside ? s->total - s->n_chosen : s->n_chosen) : s->pick.aside && !s->asked ? 0 : -1;
    if (s->n_stream)
        oct_store_close(&s->store, s->n_chosen);
    s->at_side = s->at_most = 0;
    s->left = s->asked || s->pick.most ? oct_source_count(s) : -1;
    if (s->left < 0)
        s->left = INT64_MAX;
}

static oct_status make_ring(oct_source *s, oct_err *err)
{
    s->depth = (size_t)s->n_threads + 2;
    if (!(s->slots = oct_arena_calloc(s->arena, s->depth, sizeof *s->slots)))
        return oct_nomem(err);
    for (size_t i = 0; i < s->depth; i++) {
        slot *t = &s->slots[i];
        t->out = oct_arena_calloc(s->arena, s->ctx.n + 1, sizeof *t->out);
        t->stack = oct_arena_calloc(s->arena, s->ctx.n + 1, sizeof *t->stack);
        t->item.parts = oct_arena_calloc(s->arena, s->ctx.n + 1, sizeof *t->item.parts);
        t->item.label = -1;
        if (!t->out || !t->stack || !t->item.parts)
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status set_up(oct_source *s, const oct_source_options *o, oct_err *err)
{
    if (o->n_inputs == 0)
        return oct_fail(err, OCT_EUSAGE, "the model has no inputs to feed");
    if (o->n_specs == 0)
        return oct_fail(err, OCT_EUSAGE, "no data is given");
    if (o->samples < 0 || o->shard_n < 0 || (o->shard_n > 0 && (o->shard_i < 0 || o->shard_i >= o->shard_n)))
        return oct_fail(err, OCT_EUSAGE, "shard %lld/%lld is out of range: the first is 0/%lld", (long long)o->shard_i,
                        (long long)o->shard_n, (long long)o->shard_n);
    s->skip_bad = o->skip_bad;
    s->asked = o->samples;
    s->first = o->first;
    s->hold = o->hold;
    s->pick = (oct_pick){ .i = o->shard_i, .n = o->shard_n };
    s->store_bytes = o->store_bytes ? o->store_bytes : STORE_BYTES;
    s->n_threads = o->threads > 0 ? o->threads : sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    s->n_threads = s->n_threads > MAX_THREADS ? MAX_THREADS : s->n_threads;
    OCT_TRY(copy_inputs(s, o, err));
    OCT_TRY(parse_steps(s, o, err));
    for (size_t i = 0; i < o->n_specs; i++)
        OCT_TRY(oct_spec_expand(o->specs[i], s->arena, &s->leaves, err));
    if (o->labels)
        OCT_TRY(oct_labels_load(o->labels, &s->labels, err));
    if (o->labels && !(s->labels_path = oct_arena_strdup(s->arena, o->labels)))
        return oct_nomem(err);
    OCT_TRY(open_all(s, err));
    OCT_TRY(count_all(s, err));
    settle(s);
    return make_ring(s, err);
}

oct_status oct_source_open(const oct_source_options *o, oct_source **src, oct_err *err)
{
    *src = NULL;
    oct_arena *a = oct_arena_create();
    oct_source *s = a ? oct_arena_calloc(a, 1, sizeof *s) : NULL;
    if (!s) {
        if (a)
            oct_arena_destroy(a);
        return oct_nomem(err);
    }
    s->arena = a;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    oct_status st = set_up(s, o, err);
    if (st != OCT_OK) {
        oct_source_close(s);
        return st;
    }
    *src = s;
    return OCT_OK;
}

static void forget_bad(oct_source *s)
{
    for (size_t i = 0; i < MAX_BAD_TEXTS; i++) {
        oct_free(s->bad_text[i]);
        s->bad_text[i] = NULL;
    }
    s->bad = 0;
}

void oct_source_close(oct_source *s)
{
    if (!s)
        return;
    halt(s);
    for (size_t i = 0; i < s->leaves.n; i++)
        close_leaf(&s->leaves.v[i]);
    oct_labels_free(s->labels);
    oct_store_free(&s->store);
    forget_bad(s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    oct_arena_destroy(s->arena);
}

oct_status oct_source_reset(oct_source *s, oct_err *err)
{
    halt(s);
    for (size_t i = 0; i < s->leaves.n; i++)
        if (s->leaves.v[i].self)
            OCT_TRY(s->leaves.v[i].reader->rewind(s->leaves.v[i].self, err));
    forget_bad(s);
    s->leaf = 0;
    s->index = s->given = 0;
    s->hash = 0;
    s->failed = s->any_label = false;
    settle(s);
    return OCT_OK;
}

oct_status oct_source_pick(oct_source *s, const oct_pick *p, oct_err *err)
{
    halt(s);
    s->pick = *p;
    return oct_source_reset(s, err);
}

void oct_source_hold(oct_source *s, bool hold)
{
    s->hold = hold;
    settle(s);
}

/* ---- batches ---- */

/* What backs a batch: room per tensor, and its names. */
typedef struct store {
    size_t n_inputs, room, names;
    size_t *bytes;
} store;

static void drop_names(oct_batch *b)
{
    store *st = b->store;
    for (size_t i = 0; i < st->names; i++)
        oct_free((char *)(uintptr_t)b->names[i]);
    st->names = 0;
}

void oct_batch_free(oct_batch *b)
{
    store *st = b->store;
    if (st) {
        drop_names(b);
        for (size_t i = 0; b->tensors && i < st->n_inputs; i++)
            oct_free(b->tensors[i].data);
        oct_free(st->bytes);
    }
    oct_free(st);
    oct_free(b->tensors);
    oct_free(b->labels);
    oct_free(b->names);
    oct_free(b->indices);
    *b = (oct_batch)OCT_BATCH_INIT;
}

static oct_status ready(oct_batch *b, size_t n_inputs, oct_err *err)
{
    store *st = b->store;
    if (st && st->n_inputs != n_inputs) { /* used with another model before */
        oct_batch_free(b);
        st = NULL;
    }
    if (!st) {
        if (!(st = b->store = oct_calloc(1, sizeof *st)))
            return oct_nomem(err);
        st->n_inputs = n_inputs;
        b->tensors = oct_calloc(n_inputs, sizeof *b->tensors);
        st->bytes = oct_calloc(n_inputs, sizeof *st->bytes);
        if (!b->tensors || !st->bytes) {
            oct_batch_free(b);
            return oct_nomem(err);
        }
    }
    drop_names(b);
    b->n_tensors = n_inputs;
    b->n = 0;
    return OCT_OK;
}

static bool grow(void **p, size_t have, size_t want, size_t size)
{
    void *q = oct_realloc(*p, have * size, want * size);
    if (q)
        *p = q;
    return q != NULL;
}

static oct_status room_for(oct_batch *b, size_t n, oct_err *err)
{
    store *st = b->store;
    if (n <= st->room)
        return OCT_OK;
    size_t want = n > st->room * 2 ? n : st->room * 2;
    if (!grow((void **)&b->labels, st->room, want, sizeof *b->labels) ||
        !grow((void **)&b->names, st->room, want, sizeof *b->names) ||
        !grow((void **)&b->indices, st->room, want, sizeof *b->indices))
        return oct_nomem(err);
    st->room = want;
    return OCT_OK;
}

/* How many samples like this one go into a batch; *fixed is what the model demands, 0 when it is free. */
static oct_status capacity(const oct_source *s, const slot *t, size_t max, size_t *cap, size_t *fixed, oct_err *err)
{
    *cap = max ? max : 1;
    *fixed = 0;
    const char *by = "", *against = NULL;
    for (size_t i = 0; i < s->ctx.n; i++) {
        const oct_input_desc *in = &s->ctx.inputs[i];
        if (t->stack[i] && in->rank > 0 && in->dims[0] > 0) {
            if (*fixed && *fixed != (size_t)in->dims[0])
                against = in->name;
            *fixed = (size_t)in->dims[0];
            by = in->name;
        }
    }
    for (size_t i = 0; i < s->ctx.n; i++)
        if (!t->stack[i] && !t->item.parts[i].shared && *fixed > 1)
            against = s->ctx.inputs[i].name;
        else if (!t->stack[i] && !t->item.parts[i].shared)
            *cap = 1;
    if (against)
        return oct_fail(err, OCT_EMALFORMED, "%s: input '%s' fixes the batch to %zu, input '%s' does not go with it",
                        t->item.name, by, *fixed, against);
    if (*fixed)
        *cap = *fixed;
    return OCT_OK;
}

/* Takes the shapes of the first sample. */
static void shape_batch(const oct_source *s, const slot *t, oct_batch *b)
{
    for (size_t i = 0; i < s->ctx.n; i++) {
        void *data = b->tensors[i].data;
        b->tensors[i] = t->out[i];
        b->tensors[i].data = data;
        b->tensors[i].owned = false; /* the store's */
        b->tensors[i].bytes = 0;
    }
}

static bool same_shape(const oct_array *a, const oct_array *b, int from)
{
    return a->rank == b->rank && memcmp(a->dims + from, b->dims + from, (size_t)(a->rank - from) * sizeof a->dims[0]) == 0;
}

/* Whether a sample can join the batch. */
static bool joins(const oct_source *s, const slot *t, const oct_batch *b)
{
    for (size_t i = 0; i < s->ctx.n; i++) {
        const oct_array *have = &b->tensors[i], *more = &t->out[i];
        if (t->stack[i] ? !same_shape(have, more, 1)
                        : !same_shape(have, more, 0) || have->bytes != more->bytes ||
                              memcmp(have->data, more->data, more->bytes) != 0)
            return false;
    }
    return true;
}

/* Appends a row (or the whole of what is not stacked); reserve: rows to get memory for at first. */
static oct_status append_row(oct_batch *b, size_t i, const void *data, size_t bytes, size_t reserve, oct_err *err)
{
    store *st = b->store;
    oct_array *a = &b->tensors[i];
    size_t need = a->bytes + bytes, first;
    if (need > st->bytes[i]) {
        if (a->bytes == 0 && oct_mul_size(bytes, reserve, &first) && first > need)
            need = first;
        else if (need < st->bytes[i] * 2)
            need = st->bytes[i] * 2;
        void *p = oct_realloc(a->data, a->bytes, need);
        if (!p)
            return oct_nomem(err);
        a->data = p;
        st->bytes[i] = need;
    }
    if (bytes)
        memcpy((char *)a->data + a->bytes, data, bytes);
    a->bytes += bytes;
    return OCT_OK;
}

/* A score of the samples that happen to have labels would not be that of the data. */
static oct_status find_label(const oct_source *s, const slot *t, int64_t *label, oct_err *err)
{
    const int64_t n = oct_labels_count(s->labels);
    *label = -1;
    if (oct_labels_find(s->labels, t->item.name, t->index, label) || n < 0)
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED, "%s: %lld labels, and none for sample %lld (counted from 0), '%s'", s->labels_path,
                    (long long)n, (long long)t->index, t->item.name);
}

static oct_status append(oct_source *s, slot *t, oct_batch *b, size_t cap, oct_err *err)
{
    store *st = b->store;
    OCT_TRY(room_for(b, b->n + 1, err));
    for (size_t i = 0; i < s->ctx.n; i++)
        if (t->stack[i] || b->n == 0)
            OCT_TRY(append_row(b, i, t->out[i].data, t->out[i].bytes, t->stack[i] ? (cap < 64 ? cap : 64) : 1, err));
    int64_t label = t->item.label;
    if (s->labels)
        OCT_TRY(find_label(s, t, &label, err));
    s->any_label |= label >= 0;
    b->labels[b->n] = label;
    b->indices[b->n] = t->index;
    b->names[b->n] = t->item.name;
    t->item.name = NULL;
    st->names = ++b->n;
    s->given++;
    s->hash += t->hash;
    return OCT_OK;
}

/* Repeats the last row up to the fixed batch, and sets the first dimensions. */
static oct_status close_batch(oct_batch *b, const bool *stack, size_t fixed, oct_err *err)
{
    for (size_t i = 0; i < b->n_tensors; i++) {
        oct_array *a = &b->tensors[i];
        if (!stack[i])
            continue;
        const size_t row = a->bytes / b->n;
        if (b->n < fixed) {
            store *st = b->store;
            if (row * fixed > st->bytes[i]) {
                void *p = oct_realloc(a->data, a->bytes, row * fixed);
                if (!p)
                    return oct_nomem(err);
                a->data = p;
                st->bytes[i] = row * fixed;
            }
            for (; a->bytes < row * fixed; a->bytes += row)
                memcpy((char *)a->data + a->bytes, (char *)a->data + a->bytes - row, row);
        }
        a->dims[0] = (int64_t)(fixed > b->n ? fixed : b->n);
    }
    return OCT_OK;
}

static oct_status count_bad(oct_source *s, slot *t, oct_err *err)
{
    if (s->bad < MAX_BAD_TEXTS && !(s->bad_text[s->bad] = oct_strdup(t->err.text)))
        return oct_nomem(err);
    if (s->bad == 0)
        memcpy(s->bad_hint, t->err.hint, sizeof s->bad_hint);
    s->bad++;
    return OCT_OK;
}

/* Nothing but broken samples is no result, nor are labels of other samples. */
static oct_status at_end(oct_source *s, oct_err *err)
{
    if (s->given && s->labels && !s->any_label)
        return oct_fail(err, OCT_EMALFORMED, "%s: no label for any of the %lld samples", s->labels_path, (long long)s->given);
    if (s->given || !s->bad)
        return OCT_OK;
    oct_fail(err, OCT_EMALFORMED, "all %lld samples are broken; the first: %s", (long long)s->bad, s->bad_text[0]);
    if (s->bad_hint[0])
        oct_hint(err, "%s", s->bad_hint);
    return OCT_EMALFORMED;
}

static oct_status fill(oct_source *s, size_t max, oct_batch *b, bool *stack, size_t *fixed, oct_err *err)
{
    size_t cap = 1;
    for (;;) {
        slot *t = peek(s);
        if (t->end)
            return b->n ? OCT_OK : at_end(s, err);
        if (t->status != OCT_OK && skippable(s, t->status, t->setup)) {
            OCT_TRY(count_bad(s, t, err));
            release(s, t);
            continue;
        }
        if (t->status != OCT_OK) {
            if (b->n)
                return OCT_OK; /* it stays in the ring, for the next call */
            if (err)
                *err = t->err;
            return t->status;
        }
        if (b->n == 0) {
            OCT_TRY(capacity(s, t, max, &cap, fixed, err));
            shape_batch(s, t, b);
            memcpy(stack, t->stack, s->ctx.n * sizeof *stack);
        } else if (!joins(s, t, b)) {
            return OCT_OK;
        }
        OCT_TRY(append(s, t, b, cap, err));
        release(s, t);
        if (b->n == cap)
            return OCT_OK;
    }
}

oct_status oct_source_next(oct_source *s, size_t max, oct_batch *b, oct_err *err)
{
    if (s->failed) {
        if (err)
            *err = s->fault;
        return s->fault.status;
    }
    oct_err local = OCT_ERR_INIT;
    bool *stack = oct_calloc(s->ctx.n, sizeof *stack);
    size_t fixed = 0;
    oct_status st = stack ? ready(b, s->ctx.n, &local) : oct_nomem(&local);
    if (st == OCT_OK && s->running == 0)
        st = start(s, &local);
    if (st == OCT_OK)
        st = fill(s, max, b, stack, &fixed, &local);
    if (st == OCT_OK && b->n)
        st = close_batch(b, stack, fixed, &local);
    oct_free(stack);
    if (st != OCT_OK) {
        b->n = 0;
        s->failed = true;
        s->fault = local;
        if (err)
            *err = local;
    }
    return st;
}

/* ---- what is known ---- */

int64_t oct_source_count(const oct_source *s)
{
    const oct_pick *p = &s->pick;
    if (s->n_side < 0)
        return -1;
    int64_t n = p->most && p->most < s->n_side ? p->most : s->n_side;
    if (p->n <= 1)
        return n;
    return n <= p->i ? 0 : (n - p->i - 1) / p->n + 1;
}

oct_source_choice oct_source_chosen(const oct_source *s)
{
    oct_source_choice c = { .asked = s->asked, .total = s->n_stream ? s->n_stream : s->total, .chosen = -1, .aside = -1 };
    c.how = s->n_stream ? OCT_CHOICE_STREAM : !s->asked ? OCT_CHOICE_ALL : s->first || s->total < 0 ? OCT_CHOICE_FIRST : OCT_CHOICE_SPREAD;
    if (s->total >= 0) {
        c.chosen = s->n_chosen;
        c.aside = s->total - s->n_chosen;
    }
    c.stored = s->n_stream ? s->store.bytes : 0;
    return c;
}

bool oct_source_is_once(const oct_source *s)
{
    return s->once && !s->n_stream;
}

int64_t oct_source_fixed_batch(const oct_source *s)
{
    for (size_t i = 0; i < s->ctx.n; i++)
        if (s->ctx.inputs[i].rank > 0)
            return s->ctx.inputs[i].dims[0] > 0 ? s->ctx.inputs[i].dims[0] : 0;
    return 0;
}

bool oct_source_has_labels(const oct_source *s)
{
    return s->any_label;
}

int64_t oct_source_bad_count(const oct_source *s)
{
    return s->bad;
}

const char *oct_source_bad_text(const oct_source *s, size_t i)
{
    return i < MAX_BAD_TEXTS && (int64_t)i < s->bad ? s->bad_text[i] : NULL;
}

uint64_t oct_source_hash(const oct_source *s)
{
    return s->hash;
}

int64_t oct_source_given(const oct_source *s)
{
    return s->given;
}

const char *oct_source_preprocess(const oct_source *s)
{
    return s->text;
}

const char *oct_source_preprocess_words(const oct_source *s)
{
    return s->words;
}
