/* lib/data/source/source.c -- the stream: specs to samples to batches. Decoding threads take samples from the readers
 * one at a time and in order, decode side by side, and leave them in a ring that oct_source_next empties in order. */
#include "data/source/source_int.h"
#include "data/source/synthetic.h"
#include "data/text/token_rows.h"

#include "base/io.h"
#include "base/pool.h"
#include "base/stop.h"

#include <string.h>
#include <unistd.h>

enum { STORE_BYTES = 256 << 20 };

/* ---- the ring ---- The ring has room for a few samples, and for more if they are small, so that threads are woken for
 * many samples at a time: waking a thread costs as much as decoding several small samples. */

enum { MOST_SLOTS = 64, RING_BYTES = 512 << 10 };

static uint64_t in_ring(const oct_source *s)
{
    return s->produced - s->consumed;
}

static bool are_few(const oct_source *s)
{
    return in_ring(s) < (uint64_t)s->n_threads + 2;
}

static bool is_full(const oct_source *s)
{
    return !are_few(s) && (in_ring(s) >= s->depth || s->held >= RING_BYTES);
}

/* Whether at most one `parts`-th of it is filled. */
static bool is_low(const oct_source *s, size_t parts)
{
    return are_few(s) || (in_ring(s) <= s->depth / parts && s->held <= RING_BYTES / parts);
}

/* ---- decoding threads ---- */

static void decode_part(const oct_source *s, oct_slot *t, size_t i)
{
    const oct_part *p = &t->item.parts[s->part[i]];
    oct_seen seen;
    size_t ids;
    t->made[i] = p->kind == OCT_PART_NONE && oct_token_follows(&s->ctx, s->part[i], &ids);
    if (t->made[i] || (p->kind == OCT_PART_NONE && (s->role[i] == OCT_ROLE_STATE || s->role[i] == OCT_ROLE_PAST)))
        return;
    t->status = oct_part_decode(&s->inputs[i], &s->steps[i], p, &t->out[i], &t->stack[i], &t->setup, &seen, &t->err);
    t->shared[i] = p->shared;
    if (seen.size.w && t->picture_input < 0) {
        t->picture = seen;
        t->picture_input = (int)i;
    }
    if (t->status != OCT_OK && strncmp(t->err.text, t->item.name, strlen(t->item.name)) != 0)
        oct_within(&t->err, "%s", t->item.name);
}

static void decode(const oct_source *s, oct_slot *t)
{
    t->picture = (oct_seen){ 0 };
    t->picture_input = -1;
    for (size_t i = 0; i < s->n_inputs && t->status == OCT_OK; i++)
        if (s->part[i] != SIZE_MAX)
            decode_part(s, t, i);
    for (size_t i = 0; i < oct_source_parts(s); i++)
        oct_part_free(&t->item.parts[i]);
    if (t->status == OCT_OK)
        oct_source_fill_rest(s, t);
}

static size_t bytes_of(const oct_source *s, const oct_slot *t)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_inputs; i++)
        n += t->out[i].bytes;
    return n;
}

/* Fetches the next sample. The caller holds the lock, which is released meanwhile. */
static void produce(oct_source *s)
{
    oct_slot *t = &s->slots[s->produced++ % s->depth];
    s->fetching = true;
    pthread_mutex_unlock(&s->lock);
    oct_source_fetch(s, t);
    pthread_mutex_lock(&s->lock);
    s->fetching = false;
    s->ended = t->end;
    const bool help = is_low(s, 4); /* this thread does not fill it alone */
    pthread_mutex_unlock(&s->lock);
    if (help)
        pthread_cond_signal(&s->room);
    if (!t->end && t->status == OCT_OK)
        decode(s, t);
    t->bytes = bytes_of(s, t);
    pthread_mutex_lock(&s->lock);
    s->held += t->bytes;
    t->done = true;
    if (s->awaited == t)
        pthread_cond_signal(&s->arrived);
}

static void *worker(void *arg)
{
    oct_source *s = arg;
    oct_stop_watch(&s->cut);
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        s->full |= is_full(s);
        if (s->ended || s->fetching || s->full)
            pthread_cond_wait(&s->room, &s->lock);
        else
            produce(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

oct_status oct_source_start(oct_source *s, oct_err *err)
{
    s->stop = false;
    while (s->running < s->n_threads && oct_thread_start(&s->threads[s->running], worker, s))
        s->running++;
    return s->running ? OCT_OK : oct_fail(err, OCT_ENOMEM, "cannot start a thread");
}

static void empty_slot(oct_source *s, oct_slot *t)
{
    oct_item_free(&t->item, oct_source_parts(s));
    for (size_t i = 0; i < s->n_inputs; i++)
        oct_array_free(&t->out[i]);
    t->done = false;
    t->bytes = 0;
}

void oct_source_halt(oct_source *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->room);
    pthread_mutex_unlock(&s->lock);
    while (s->running)
        pthread_join(s->threads[--s->running], NULL);
    for (size_t i = 0; s->slots && i < s->depth; i++)
        if (s->slots[i].item.parts)
            empty_slot(s, &s->slots[i]);
    s->produced = s->consumed = 0;
    s->held = 0;
    s->ended = s->fetching = s->full = false;
}

/* The flag of this thread is set without a signal, so it is polled between short waits. */
static void wait_for_arrival(oct_source *s)
{
    struct timespec until;
    if (!oct_stop_watched()) {
        pthread_cond_wait(&s->arrived, &s->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(OCT_STOP_SLICE * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&s->arrived, &s->lock, &until);
}

oct_status oct_source_peek(oct_source *s, oct_slot **out, oct_err *err)
{
    oct_slot *t = *out = &s->slots[s->consumed % s->depth];
    oct_status st;
    pthread_mutex_lock(&s->lock);
    s->awaited = t;
    while ((st = oct_stop_check(err)) == OCT_OK && !(s->consumed < s->produced && t->done))
        wait_for_arrival(s);
    s->awaited = NULL;
    pthread_mutex_unlock(&s->lock);
    return st;
}

void oct_source_release(oct_source *s, oct_slot *t)
{
    const size_t bytes = t->bytes;
    s->taken = t->mark;
    empty_slot(s, t);
    pthread_mutex_lock(&s->lock);
    const bool was_low = is_low(s, 2);
    s->consumed++;
    s->held -= bytes;
    const bool wake = is_low(s, 2) && (s->full || !was_low || are_few(s));
    s->full &= !wake;
    pthread_mutex_unlock(&s->lock);
    if (wake) /* not before: who wakes wants the lock */
        pthread_cond_signal(&s->room);
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
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has rank %d, at most %d is supported", from->name,
                            from->rank, OCT_ARRAY_RANK);
        in[i] = *from;
        in[i].name = oct_arena_strdup(s->arena, from->name);
        if (from->rank > 0)
            in[i].dims = oct_arena_memdup(s->arena, from->dims, (size_t)from->rank * sizeof *from->dims);
        if (!in[i].name || (from->rank > 0 && !in[i].dims))
            return oct_nomem(err);
    }
    s->inputs = in;
    s->n_inputs = o->n_inputs;
    return OCT_OK;
}

static char *keep(oct_arena *a, oct_buf *b)
{
    char *t = b->failed ? NULL : oct_arena_strdup(a, oct_buf_str(b));
    oct_buf_free(b);
    return t;
}

/* Whether there may be pictures among the samples, and not arrays alone. */
static bool may_have_pictures(const oct_source *s)
{
    for (size_t i = 0; i < s->leaves.n; i++) {
        const oct_reader *r = s->leaves.v[i].reader;
        if (r != &oct_read_npy && r != &oct_read_npz && r != &oct_read_pb && r != &oct_read_given &&
            r != &oct_read_synthetic)
            return true;
    }
    return false;
}

/* All inputs alike are written without names. */
static oct_status describe_steps(oct_source *s, oct_err *err)
{
    oct_buf text = OCT_BUF_INIT, words = OCT_BUF_INIT;
    const oct_given_samples *given = s->ctx.given;
    for (size_t i = 0; i < s->n_inputs && !(given && given->words); i++) {
        const char *name = s->inputs[i].name;
        oct_buf prefix = OCT_BUF_INIT;
        if (s->n_inputs > 1)
            oct_buf_printf(&prefix, "%s/", name);
        if (oct_steps_any(&s->steps[i])) {
            if (text.len)
                oct_buf_puts(&text, ":");
            oct_steps_text(&s->steps[i], oct_buf_str(&prefix), &text);
        }
        text.failed |= prefix.failed;
        oct_buf_free(&prefix);
        oct_buf_printf(&words, "%sinput '%s': ", i ? "; " : "", name);
        if (s->role[i] == OCT_ROLE_STATE)
            oct_buf_printf(&words, "a state, %s where a recording begins", s->inputs[i].past ? "empty" : "zeros");
        else if (s->role[i] == OCT_ROLE_VALUE && !s->steps[i].has_value)
            oct_buf_puts(&words, "zeros, as nothing reads it");
        else
            oct_steps_words(&s->steps[i], oct_input_is_picture(&s->inputs[i]) && may_have_pictures(s), &words);
    }
    if (given && given->words) {
        oct_buf_puts(&text, given->preprocess);
        oct_buf_puts(&words, given->words);
    }
    s->text = keep(s->arena, &text);
    s->words = keep(s->arena, &words);
    return s->text && s->words ? OCT_OK : oct_nomem(err);
}

static oct_status parse_steps(oct_source *s, const oct_source_options *o, oct_err *err)
{
    const char **names = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *names);
    if (!names)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n_inputs; i++)
        names[i] = s->inputs[i].name;
    for (size_t i = 0; i < o->n_preprocess; i++)
        OCT_TRY(oct_steps_parse(o->preprocess[i], names, s->n_inputs, s->steps, err));
    for (size_t i = 0; i < s->n_inputs; i++)
        OCT_TRY(oct_steps_check(&s->steps[i], err));
    return OCT_OK;
}

/* Opens every file once, so that faults are found before any work is done. */
static oct_status open_all(oct_source *s, oct_err *err)
{
    for (size_t i = 0; i < s->leaves.n; i++) {
        oct_leaf *l = &s->leaves.v[i];
        for (size_t k = 0; l->reader == &oct_read_descriptor && k < i; k++)
            if (s->leaves.v[k].reader == l->reader && strcmp(s->leaves.v[k].path, l->path) == 0)
                return oct_fail(err, OCT_EUSAGE, "%s is given twice",
                                strcmp(l->path, "-") == 0 ? "standard input" : l->path);
        OCT_TRY(oct_leaf_open(s, l, err));
        oct_leaf_note(l);
        int64_t n = l->reader->count(l->self);
        if (n < 0 || s->total < 0)
            s->total = -1;
        else if (__builtin_add_overflow(s->total, n, &s->total))
            return oct_fail(err, OCT_EMALFORMED, "%s: too many samples", l->path);
        if (!oct_source_keeps_open(s))
            oct_leaf_rest(l);
    }
    return OCT_OK;
}

static oct_status make_ring(oct_source *s, oct_err *err)
{
    s->depth = MOST_SLOTS;
    if (!(s->slots = oct_arena_calloc(s->arena, s->depth, sizeof *s->slots)))
        return oct_nomem(err);
    for (size_t i = 0; i < s->depth; i++) {
        oct_slot *t = &s->slots[i];
        t->out = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *t->out);
        t->stack = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *t->stack);
        t->shared = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *t->shared);
        t->made = oct_arena_calloc(s->arena, s->n_inputs + 1, sizeof *t->made);
        t->item.parts = oct_arena_calloc(s->arena, oct_source_parts(s) + 1, sizeof *t->item.parts);
        t->item.label = -1;
        if (!t->out || !t->stack || !t->shared || !t->made || !t->item.parts)
            return oct_nomem(err);
    }
    return OCT_OK;
}

static oct_status set_up(oct_source *s, const oct_source_options *o, oct_err *err)
{
    if (o->n_inputs == 0) {
        oct_fail(err, OCT_EUSAGE, "the model has no inputs to feed");
        oct_hint(err, "its result is constant: leave out the data");
        return OCT_EUSAGE;
    }
    if (o->n_specs == 0 && !o->given)
        return oct_fail(err, OCT_EUSAGE, "no data is given");
    if (o->samples < 0 || o->shard_n < 0 || (o->shard_n > 0 && (o->shard_i < 0 || o->shard_i >= o->shard_n)))
        return oct_fail(err, OCT_EUSAGE, "shard %lld/%lld is out of range: the first is 0/%lld", (long long)o->shard_i,
                        (long long)o->shard_n, (long long)o->shard_n);
    s->skip_bad = o->skip_bad;
    s->asked = o->samples;
    s->first = o->first;
    s->seed = o->seed;
    s->hold = o->hold;
    s->pick = (oct_pick){ .i = o->shard_i, .n = o->shard_n };
    s->store_bytes = o->store_bytes ? o->store_bytes : STORE_BYTES;
    s->n_threads = o->threads > 0 ? o->threads : sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    s->n_threads = s->n_threads > OCT_SOURCE_THREADS ? OCT_SOURCE_THREADS : s->n_threads;
    OCT_TRY(copy_inputs(s, o, err));
    OCT_TRY(parse_steps(s, o, err));
    OCT_TRY(oct_source_assign(s, o, err));
    OCT_TRY(oct_interned_create(&s->ctx.texts, err));
    s->ctx.given = o->given;
    s->ctx.skip_bad = o->skip_bad;
    if (o->given && !o->n_specs) {
        s->ends = o->given->ends;
        s->n_groups = o->given->n_groups;
    }
    for (size_t i = 0; i < o->n_specs; i++)
        OCT_TRY(o->synthetic && strcmp(o->specs[i], OCT_SYNTHETIC) == 0
                    ? oct_spec_synthetic(s->arena, &s->leaves, err)
                    : oct_spec_expand(o->specs[i], s->arena, &s->leaves, err));
    if (o->given)
        OCT_TRY(oct_spec_given(s->arena, &s->leaves, err));
    OCT_TRY(describe_steps(s, err));
    if (o->labels)
        OCT_TRY(oct_labels_load(o->labels, &s->labels, err));
    if (o->labels && !(s->labels_path = oct_arena_strdup(s->arena, o->labels)))
        return oct_nomem(err);
    OCT_TRY(open_all(s, err));
    OCT_TRY(oct_source_count_all(s, err));
    oct_source_start_pass(s);
    return make_ring(s, err);
}

static void init_arrived(oct_source *s)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->arrived, &attr);
    pthread_condattr_destroy(&attr);
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
    s->last = -2;
    s->fresh = true;
    s->read = s->taken = s->from = (oct_source_mark){ .names = OCT_HASH_INIT };
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->room, NULL);
    init_arrived(s);
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
    for (size_t i = 0; i < OCT_SOURCE_BAD_TEXTS; i++) {
        oct_free(s->bad_text[i]);
        s->bad_text[i] = NULL;
    }
    s->bad = 0;
}

void oct_source_close(oct_source *s)
{
    if (!s)
        return;
    s->cut = true;
    oct_source_halt(s);
    if (s->visit_done)
        s->visit_done(s->visit_arg);
    for (size_t i = 0; i < s->leaves.n; i++) {
        oct_leaf_close(&s->leaves.v[i]);
        oct_free(s->leaves.v[i].left);
        oct_free(s->leaves.v[i].other);
    }
    oct_labels_free(s->labels);
    oct_store_free(&s->store);
    if (s->sum)
        oct_sample_sum_free(s->sum);
    forget_bad(s);
    oct_interned_destroy(s->ctx.texts);
    pthread_cond_destroy(&s->room);
    pthread_cond_destroy(&s->arrived);
    pthread_mutex_destroy(&s->lock);
    oct_arena_destroy(s->arena);
}

oct_status oct_source_reset(oct_source *s, oct_err *err)
{
    oct_source_halt(s);
    for (size_t i = 0; i < s->leaves.n; i++)
        if (s->leaves.v[i].self)
            OCT_TRY(s->leaves.v[i].reader->rewind(s->leaves.v[i].self, err));
    forget_bad(s);
    s->leaf = 0;
    s->index = s->given = 0;
    s->last = -2;
    s->fresh = true;
    s->read = s->taken = s->from = (oct_source_mark){ .names = OCT_HASH_INIT };
    s->failed = s->any_label = false;
    oct_source_start_pass(s);
    return OCT_OK;
}

oct_status oct_source_sum(oct_source *s, oct_err *err)
{
    if (!s->sum && !(s->sum = oct_arena_calloc(s->arena, 1, sizeof *s->sum)))
        return oct_nomem(err);
    return OCT_OK;
}

oct_status oct_source_exchange_steps(oct_source *s, oct_steps *steps, oct_err *err)
{
    oct_source_halt(s);
    oct_steps *read = oct_arena_calloc(s->arena, s->ctx.n + 1, sizeof *read);
    if (!read)
        return oct_nomem(err);
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (s->role[i] != OCT_ROLE_DATA)
            continue;
        const oct_steps former = s->steps[i];
        read[s->part[i]] = s->steps[i] = steps[i];
        steps[i] = former;
    }
    s->ctx.steps = read;
    if (s->sum)
        oct_sample_sum_free(s->sum);
    OCT_TRY(describe_steps(s, err));
    return oct_source_reset(s, err);
}

uint64_t oct_source_digest(const oct_source *s, unsigned char digest[OCT_SHA256_BYTES])
{
    static const oct_sample_sum none;
    oct_sample_sum_digest(s->sum ? s->sum : &none, digest);
    return s->sum ? s->sum->n : 0;
}

void oct_source_set_visit(oct_source *s, oct_visit_fn fn, void (*done)(void *arg), void *arg)
{
    if (s->visit_done)
        s->visit_done(s->visit_arg);
    s->visit = fn;
    s->visit_done = done;
    s->visit_arg = arg;
}

/* ---- what is known ---- */

int64_t oct_source_fixed_batch(const oct_source *s)
{
    for (size_t i = 0; i < s->ctx.n; i++)
        if (s->ctx.inputs[i].rank > 0)
            return s->ctx.inputs[i].dims[0] > 0 ? s->ctx.inputs[i].dims[0] : 0;
    return 0;
}

int oct_source_picture_input(const oct_source *s)
{
    return s->picture_input - 1;
}

bool oct_source_has_bytes(const oct_source *s)
{
    return s->picture_input && !s->picture.real;
}

const char *oct_source_turned(const oct_source *s, const char **form)
{
    if (!s->picture_input || !s->picture.turned)
        return NULL;
    const oct_input_desc *in = &s->inputs[s->picture_input - 1];
    const bool last = oct_input_is_nhwc(in, &s->steps[s->picture_input - 1]);
    *form = last ? "[channels, height, width]" : "[height, width, channels]";
    return in->name;
}

oct_placing oct_source_placing(const oct_source *s, oct_picture_size size)
{
    const oct_steps none = { 0 };
    return oct_placing_of(s->picture_input ? &s->steps[s->picture_input - 1] : &none, size.w ? size.w : 1,
                          size.h ? size.h : 1);
}

bool oct_source_has_labels(const oct_source *s)
{
    return s->any_label;
}

size_t oct_source_empty_caches(const oct_source *s, const char **first)
{
    *first = s->empty;
    return s->n_empty;
}

const char *oct_source_made(const oct_source *s, size_t i, const char **contents)
{
    for (size_t k = 0; s->made && k < s->n_inputs; k++)
        if (s->made[k] && i-- == 0) {
            *contents = oct_token_contents(s->inputs[k].name);
            return s->inputs[k].name;
        }
    return NULL;
}

int64_t oct_source_bad_count(const oct_source *s)
{
    return s->bad;
}

int64_t oct_source_bad_index(const oct_source *s, size_t i)
{
    return i < OCT_SOURCE_BAD_TEXTS && (int64_t)i < s->bad ? s->bad_index[i] : -1;
}

const char *oct_source_bad_text(const oct_source *s, size_t i)
{
    return i < OCT_SOURCE_BAD_TEXTS && (int64_t)i < s->bad ? s->bad_text[i] : NULL;
}

const char *oct_source_left_out(const oct_source *s, size_t i, const char **where)
{
    pthread_mutex_t *lock =
        (pthread_mutex_t *)(uintptr_t)&s->lock; /* a decoding thread may be at the end of an archive */
    for (size_t k = 0; k < s->leaves.n; k++) {
        const oct_leaf *l = &s->leaves.v[k];
        pthread_mutex_lock(lock);
        const char *left = l->left;
        pthread_mutex_unlock(lock);
        if (left && i-- == 0) {
            *where = l->path;
            return left;
        }
    }
    return NULL;
}

const char *oct_source_other_name(const oct_source *s, const char **where, const char **input)
{
    for (size_t k = 0; k < s->leaves.n; k++)
        if (s->leaves.v[k].other) {
            *where = s->leaves.v[k].path;
            *input = s->inputs[0].name;
            return s->leaves.v[k].other;
        }
    return NULL;
}

int64_t oct_source_given(const oct_source *s)
{
    return s->given;
}

oct_status oct_source_none(const oct_source *s, oct_err *err)
{
    const oct_leaves *l = &s->leaves;
    oct_fail(err, OCT_EMALFORMED, l->n > 1 ? "%s and what else is given hold no sample" : "%s: it holds no sample",
             l->v[0].path);
    oct_hint(err, "give data with at least one sample to --data");
    return OCT_EMALFORMED;
}

const char *oct_source_preprocess(const oct_source *s)
{
    return s->text;
}

const char *oct_source_preprocess_words(const oct_source *s)
{
    return s->words;
}
