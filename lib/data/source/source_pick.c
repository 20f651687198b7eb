/* lib/data/source/source_pick.c -- which samples a source gives, and the next of them from the readers. */
#include "data/source/choice.h"
#include "data/source/source_int.h"

#include "base/mem.h"
#include "base/stop.h"

enum { KEPT_OPEN = 16, LEAST_ASIDE = 64 };

/* ---- readers ---- */

oct_status oct_leaf_open(oct_source *s, oct_leaf *l, oct_err *err)
{
    return l->self ? OCT_OK : l->reader->open(&s->ctx, l->path, &l->self, err);
}

/* To be called after a reader has listed its folder, or has reached its end. */
void oct_leaf_note(oct_leaf *l)
{
    char *text = l->self && l->reader->left_out ? l->reader->left_out(l->self) : NULL;
    const char *other = l->self && l->reader->other_name && !l->other ? l->reader->other_name(l->self) : NULL;
    if (other)
        l->other = oct_strdup(other);
    if (!text)
        return;
    oct_free(l->left);
    l->left = text;
}

void oct_leaf_close(oct_leaf *l)
{
    if (l->self)
        l->reader->close(l->self);
    l->self = NULL;
}

void oct_leaf_rest(oct_leaf *l)
{
    if (l->reader != &oct_read_descriptor)
        oct_leaf_close(l);
}

bool oct_source_keeps_open(const oct_source *s)
{
    return s->leaves.n <= KEPT_OPEN;
}

static void leave_leaf(oct_source *s)
{
    pthread_mutex_lock(&s->lock);
    oct_leaf_note(&s->leaves.v[s->leaf]);
    pthread_mutex_unlock(&s->lock);
    if (!oct_source_keeps_open(s))
        oct_leaf_rest(&s->leaves.v[s->leaf]);
    s->leaf++;
}

/* ---- which samples ---- */

static int64_t groups_chosen(const oct_source *s)
{
    return oct_choice_count(s->n_groups, s->asked, s->hold);
}

static bool group_chosen(const oct_source *s, int64_t group)
{
    const int64_t n = groups_chosen(s);
    return s->first ? group < n : oct_spread_has(s->n_groups, n, group, s->seed);
}

static int64_t group_size(const oct_source *s, int64_t group)
{
    return s->ends[group] - (group ? s->ends[group - 1] : 0);
}

/* Whether the sample is the first of a group. */
static bool begins_group(const oct_source *s)
{
    return s->n_groups && s->index == s->ends[s->group] - group_size(s, s->group);
}

/* Whether the next sample, which has that index, is chosen. */
static bool chosen(const oct_source *s, int64_t index)
{
    if (s->total < 0)
        return s->asked == 0 || index < s->asked;
    if (s->n_groups)
        return group_chosen(s, s->group);
    return s->first ? index < s->n_chosen : oct_spread_has(s->total, s->n_chosen, index, s->seed);
}

/* Whether a place among the samples of the side is in the picked part, which is one of each n. */
static bool is_part(const oct_pick *p, int64_t at)
{
    if (p->n <= 1)
        return true;
    const uint64_t turn = p->mixed ? oct_place_hash((uint64_t)(at / p->n)) % (uint64_t)p->n : 0;
    return (at + (int64_t)turn) % p->n == p->i;
}

/* Whether the next sample is given; side: whether it is on the picked side. */
static bool wanted(const oct_source *s, bool side)
{
    const oct_pick *p = &s->pick;
    if (!side || !is_part(p, s->n_groups ? s->at_group : s->at_side))
        return false;
    const int64_t place = s->n_groups ? s->at_part : s->at_side / (p->n > 1 ? p->n : 1);
    return s->n_part < 0 ? !p->most || place < p->most : oct_spread_has(s->n_part, p->most, place, 0);
}

/* The first place, from a given one on, among the samples of the side that is in the picked part, which is one of each
 * n. */
static int64_t next_in_part(const oct_pick *p, int64_t at)
{
    int64_t group = at / p->n;
    for (;; group++) {
        const uint64_t turn = p->mixed ? oct_place_hash((uint64_t)group) % (uint64_t)p->n : 0;
        const int64_t place = group * p->n + (p->i - (int64_t)turn + p->n) % p->n;
        if (place >= at)
            return place;
    }
}

/* The number of samples of the side before the next one that is given. */
static int64_t until_wanted(const oct_source *s)
{
    const oct_pick *p = &s->pick;
    const int64_t n = p->n > 1 ? p->n : 1, from = n > 1 ? next_in_part(p, s->at_side) : s->at_side, at = from / n;
    if (!p->most)
        return from - s->at_side;
    const int64_t place = s->n_part >= 0 ? oct_spread_next(s->n_part, p->most, at, 0) : at < p->most ? at : INT64_MAX;
    if (place == at)
        return from - s->at_side;
    return place == INT64_MAX || place >= s->n_part ? INT64_MAX
                                                    : (n > 1 ? next_in_part(p, place * n) : place) - s->at_side;
}

/* The first sample, from the next one on, on the picked side; INT64_MAX: none. */
static int64_t next_chosen(const oct_source *s)
{
    if (s->total < 0 || s->first)
        return chosen(s, s->index) ? s->index : INT64_MAX;
    const int64_t at = s->index < s->total ? oct_spread_next(s->total, s->n_chosen, s->index, s->seed) : s->total;
    return at < s->total ? at : INT64_MAX;
}

/* The length of the run of samples, from the next one on, that are not given and are all on the same side; side:
 * whether this is the picked side. */
static int64_t idle(const oct_source *s, bool *side)
{
    const int64_t to = next_chosen(s), others = to - s->index;
    const bool all = s->total < 0 ? s->asked == 0 : s->n_chosen >= s->total;
    *side = others ? s->pick.aside : !s->pick.aside;
    const int64_t alike = others ? others : all ? INT64_MAX : 1, free = *side ? until_wanted(s) : INT64_MAX;
    return alike < free ? alike : free;
}

/* Goes on to the next sample. */
static void advance(oct_source *s, bool side, bool want)
{
    s->index++;
    if (s->n_groups) {
        const bool ends = s->index == s->ends[s->group];
        s->at_part += side && is_part(&s->pick, s->at_group);
        s->at_group += side && ends;
        s->group += ends && s->group + 1 < s->n_groups;
    }
    s->at_side += side;
    s->left -= want;
    s->n_wanted += want;
}

/* Whether wanted samples may follow. Data that are read to their end are also checked to their end. */
static bool more(const oct_source *s)
{
    return s->left > 0 && (s->total >= 0 || s->asked == 0 || s->pick.aside || s->index < s->asked);
}

/* The next sample of the store that is wanted. */
static void fetch_kept(oct_source *s, oct_slot *t)
{
    while ((size_t)s->index < s->store.n) {
        const oct_kept *k = &s->store.v[s->index];
        const bool side = k->chosen != s->pick.aside, want = wanted(s, side);
        t->place = s->pick.most ? s->n_wanted : s->at_side;
        advance(s, side, want);
        if (!want)
            continue;
        if (k->index >= s->from.place && (t->status = oct_source_check_mark(s, &t->err)) != OCT_OK)
            return;
        oct_item_free(&t->item, oct_source_parts(s));
        t->index = k->index;
        t->begins = true; /* others are missing between them */
        t->status = oct_store_view(&s->store, (size_t)(k - s->store.v), &t->item, &t->err);
        oct_source_mark_read(s, k->index, t->item.name, t->status == OCT_OK && !k->fault);
        t->mark = s->read;
        if (k->index < s->from.place && t->status != OCT_ENOMEM)
            continue;
        if (k->fault && t->status == OCT_OK) {
            t->err = *k->fault;
            t->status = k->fault->status;
        }
        t->setup = t->status == OCT_EIO;
        return;
    }
    t->status = oct_source_check_mark(s, &t->err);
    t->end = t->status == OCT_OK;
}

/* Whether a sample is a window of a recording, and not one of several that form a recording together. */
static bool is_sound(const oct_source *s, const oct_item *item)
{
    for (size_t i = 0; i < oct_source_parts(s); i++)
        if (item->parts[i].sound)
            return true;
    return false;
}

/* Passes over the unused samples of a leaf, as many as its reader can at once; *n: their number. Marks need the name of
 * each, so it is not done with marks. */
static oct_status pass_idle(oct_source *s, const oct_leaf *l, int64_t *n, oct_err *err)
{
    bool side;
    *n = 0;
    if (!l->reader->pass || s->visit || s->marks)
        return OCT_OK;
    const int64_t most = idle(s, &side);
    oct_status st = most ? l->reader->pass(l->self, most, n, err) : OCT_OK;
    s->index += *n;
    s->at_side += side ? *n : 0;
    s->fresh &= *n == 0;
    return st;
}

void oct_source_fetch(oct_source *s, oct_slot *t)
{
    t->end = false;
    t->wanted = true;
    t->status = OCT_OK;
    t->err = (oct_err)OCT_ERR_INIT;
    if (s->n_stream) {
        fetch_kept(s, t);
        return;
    }
    while (s->leaf < s->leaves.n && more(s)) {
        oct_leaf *l = &s->leaves.v[s->leaf];
        const bool before = s->index < s->from.place;
        int64_t passed = 0;
        oct_item_free(&t->item, oct_source_parts(s));
        t->setup = true;
        if (!before && (t->status = oct_source_check_mark(s, &t->err)) != OCT_OK)
            return;
        t->status = oct_leaf_open(s, l, &t->err);
        if (t->status == OCT_OK)
            t->status = pass_idle(s, l, &passed, &t->err);
        if (t->status == OCT_OK && passed)
            continue;
        const bool side = chosen(s, s->index) != s->pick.aside, mine = wanted(s, side), want = mine && !before;
        bool over = t->status != OCT_OK;
        if (!over)
            t->status = l->reader->next(l->self, want || s->visit || (mine && s->skip_bad), &t->item, &over,
                                        &t->err); /* what is broken shows as it did before */
        for (size_t i = 0; t->status == OCT_OK && !oct_source_keeps_open(s) && i < oct_source_parts(s); i++)
            t->status =
                oct_part_own(&t->item.parts[i], &t->err); /* the file may be closed while the sample is decoded */
        t->setup =
            t->status == OCT_EIO; /* otherwise the rest of a shard, or of all data, would count as one broken sample */
        if (over)
            leave_leaf(s);
        if (over && t->status == OCT_OK) {
            s->fresh = true;
            continue;
        }
        oct_source_mark_read(s, s->index, t->item.name, t->status == OCT_OK);
        t->mark = s->read;
        t->index = s->index;
        t->place = s->pick.most ? s->n_wanted : s->at_side;
        t->begins = s->fresh || (is_sound(s, &t->item) && !t->item.inside) || begins_group(s);
        t->wanted = want || over;
        s->fresh = over;
        advance(s, side, mine);
        if (before && t->status != OCT_OK && oct_source_skips(s, t->status, t->setup))
            continue; /* it was counted before */
        if (t->wanted || s->visit || t->status == OCT_ESTOPPED)
            return;
    }
    t->status = oct_source_check_mark(s, &t->err);
    t->setup = true;
    t->end = t->status == OCT_OK;
}

/* ---- how many there are ---- */

/* Passes over all samples once to count them. Faults are reported later, when the samples are read. */
static oct_status walk(oct_source *s, oct_err *err)
{
    oct_err fault = OCT_ERR_INIT;
    oct_item item = { .parts = oct_calloc(oct_source_parts(s) + 1, sizeof *item.parts) };
    oct_status st = item.parts ? OCT_OK : oct_nomem(&fault);
    int64_t n = 0;
    for (size_t i = 0; st == OCT_OK && i < s->leaves.n; i++) {
        oct_leaf *l = &s->leaves.v[i];
        bool over = false;
        st = oct_leaf_open(s, l, &fault);
        for (; st == OCT_OK && !over; n += !over)
            if ((st = l->reader->next(l->self, false, &item, &over, &fault)) == OCT_OK)
                oct_item_free(&item, oct_source_parts(s));
        if (st == OCT_OK)
            st = l->reader->rewind(l->self, &fault);
        if (!oct_source_keeps_open(s) || st != OCT_OK)
            oct_leaf_rest(l);
    }
    if (st == OCT_OK)
        s->total = n;
    if (item.parts)
        oct_item_free(&item, oct_source_parts(s));
    oct_free(item.parts);
    return st == OCT_ENOMEM ? oct_nomem(err) : oct_stop_check(err);
}

/* Lack of memory is not the fault of a sample, nor is a wrong request of the user (setup). */
bool oct_sample_is_broken(oct_status st, bool setup)
{
    return !setup && (st == OCT_EMALFORMED || st == OCT_EIO || st == OCT_EUNSUPPORTED || st == OCT_ENUMERIC);
}

bool oct_source_skips(const oct_source *s, oct_status st, bool setup)
{
    return s->skip_bad && oct_sample_is_broken(st, setup);
}

/* Reads the samples of one leaf into the store. If the leaf ends early, this is an error, or one broken sample that
 * replaces the rest. */
static oct_status gather_leaf(oct_source *s, oct_leaf *l, oct_item *item, oct_err *err)
{
    for (;;) {
        const uint64_t hash = oct_seeded_hash((uint64_t)s->n_stream, s->seed);
        const bool want = oct_store_wants(&s->store, hash);
        oct_err fault = OCT_ERR_INIT;
        bool over = false;
        oct_item_free(item, oct_source_parts(s));
        oct_status st = oct_leaf_open(s, l, &fault);
        over = st != OCT_OK;
        if (st == OCT_OK)
            st = l->reader->next(l->self, want, item, &over, &fault);
        if (over && st == OCT_OK)
            return OCT_OK;
        if (st == OCT_ENOMEM || st == OCT_ESTOPPED ||
            (st != OCT_OK && over && !oct_source_skips(s, st, st == OCT_EIO))) {
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

/* Reads a stream to its end and keeps the chosen samples, and some others if samples are to be held out. */
static oct_status gather(oct_source *s, oct_err *err)
{
    const int64_t others = (s->asked + 3) / 4 > LEAST_ASIDE ? (s->asked + 3) / 4 : LEAST_ASIDE;
    oct_item item = { .parts = oct_calloc(oct_source_parts(s) + 1, sizeof *item.parts) };
    oct_status st = item.parts ? OCT_OK : oct_nomem(err);
    oct_store_open(&s->store, oct_source_parts(s),
                   (size_t)(s->asked < INT64_MAX / 2 ? s->asked + (s->hold ? others : 0) : s->asked), s->store_bytes);
    for (size_t i = 0; st == OCT_OK && i < s->leaves.n; i++) {
        st = gather_leaf(s, &s->leaves.v[i], &item, err);
        oct_leaf_note(&s->leaves.v[i]);
        oct_leaf_close(&s->leaves.v[i]);
    }
    if (item.parts)
        oct_item_free(&item, oct_source_parts(s));
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

/* Choices that are spread over all samples, or taken from all of them, need their number or their end. */
oct_status oct_source_count_all(oct_source *s, oct_err *err)
{
    for (size_t i = 0; i < s->leaves.n; i++)
        s->once |= s->leaves.v[i].reader == &oct_read_descriptor && s->leaves.v[i].self &&
                   oct_read_descriptor.count(s->leaves.v[i].self) < 0;
    if (s->n_states && s->total < 0 && (s->once || !walks_cheaply(s)))
        s->first = true; /* states need all that lies between */
    const bool spread = s->asked > 0 && !s->first;
    if (s->total >= 0 || !(s->hold || spread))
        return OCT_OK;
    if (!s->once && (walks_cheaply(s) || !spread))
        OCT_TRY(walk(s, err));
    return s->total < 0 && spread ? gather(s, err) : OCT_OK;
}

/* The number of samples of the side in the picked part; -1: unknown. */
static int64_t count_part(const oct_source *s)
{
    if (s->n_side < 0 || s->pick.n <= 1)
        return s->n_side;
    const int64_t whole = s->n_side / s->pick.n;
    for (int64_t at = whole * s->pick.n; at < s->n_side; at++)
        if (is_part(&s->pick, at))
            return whole + 1;
    return whole;
}

/* The same numbers where samples are chosen in groups. */
static void count_groups(oct_source *s)
{
    int64_t at = 0;
    s->n_chosen = s->n_side = s->n_part = 0;
    for (int64_t i = 0; i < s->n_groups; i++) {
        const int64_t size = group_size(s, i);
        const bool is_chosen = group_chosen(s, i), side = is_chosen != s->pick.aside;
        s->n_chosen += is_chosen ? size : 0;
        s->n_side += side ? size : 0;
        s->n_part += side && is_part(&s->pick, at) ? size : 0;
        at += side;
    }
}

/* Sets what depends on the number of samples and the pick. */
void oct_source_start_pass(oct_source *s)
{
    s->n_chosen = s->total < 0 ? s->asked : oct_choice_count(s->total, s->asked, s->hold);
    s->n_side = s->total >= 0                ? (s->pick.aside ? s->total - s->n_chosen : s->n_chosen)
                : s->pick.aside && !s->asked ? 0
                                             : -1;
    s->n_part = count_part(s);
    if (s->n_groups)
        count_groups(s);
    if (s->n_stream)
        oct_store_close(&s->store, s->n_chosen);
    s->at_side = s->n_wanted = s->group = s->at_group = s->at_part = 0;
    s->left = s->asked || s->pick.most ? oct_source_count(s) : -1;
    if (s->left < 0)
        s->left = INT64_MAX;
}

/* ---- other picks ---- */

oct_status oct_source_pick(oct_source *s, const oct_pick *p, oct_err *err)
{
    oct_source_halt(s);
    s->pick = *p;
    return oct_source_reset(s, err);
}

void oct_source_hold(oct_source *s, bool hold)
{
    s->hold = hold;
    oct_source_start_pass(s);
}

int64_t oct_source_count(const oct_source *s)
{
    const int64_t n = s->n_part, most = s->pick.most;
    return n >= 0 && most && most < n ? most : n;
}

oct_source_choice oct_source_chosen(const oct_source *s)
{
    oct_source_choice c = {
        .asked = s->asked, .total = s->n_stream ? s->n_stream : s->total, .chosen = -1, .aside = -1
    };
    c.how = s->n_stream                ? OCT_CHOICE_STREAM
            : !s->asked                ? OCT_CHOICE_ALL
            : s->first || s->total < 0 ? OCT_CHOICE_FIRST
                                       : OCT_CHOICE_SPREAD;
    if (s->n_groups && s->asked) {
        const int64_t n = groups_chosen(s);
        if (s->asked == n)
            c.asked = s->n_chosen;
        else if (__builtin_mul_overflow(s->asked, (s->total + s->n_groups - 1) / s->n_groups, &c.asked))
            c.asked = INT64_MAX;
    }
    if (s->total >= 0) {
        c.chosen = s->n_chosen;
        c.aside = s->total - s->n_chosen;
    }
    c.stored = s->n_stream ? s->store.bytes : 0;
    return c;
}

bool oct_source_runs_commands(const oct_source *s)
{
    bool any = false;
    for (size_t i = 0; i < s->leaves.n; i++)
        any |= s->leaves.v[i].reader == &oct_read_command;
    return any;
}

bool oct_source_is_once(const oct_source *s)
{
    return s->once && !s->n_stream;
}
