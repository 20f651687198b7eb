/* lib/data/source/source_batch.c -- the samples of a source, joined to batches. */
#include "data/source/source_int.h"

#include "base/mem.h"

#include <string.h>

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

void oct_batch_within(const oct_batch *b, oct_err *err)
{
    if (b->n == 1)
        oct_within(err, "sample '%s'", b->names[0]);
    else if (b->n)
        oct_within(err, "samples '%s' to '%s'", b->names[0], b->names[b->n - 1]);
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
    oct_free(b->pictures);
    oct_free(b->names);
    oct_free(b->indices);
    oct_free(b->places);
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
        !grow((void **)&b->indices, st->room, want, sizeof *b->indices) ||
        !grow((void **)&b->places, st->room, want, sizeof *b->places) ||
        !grow((void **)&b->pictures, st->room, want, sizeof *b->pictures))
        return oct_nomem(err);
    st->room = want;
    return OCT_OK;
}

/* The number of samples like this one in a batch; *fixed: the batch size that the model demands, 0 if it is free. */
static oct_status capacity(const oct_source *s, const oct_slot *t, size_t max, size_t *cap, size_t *fixed, oct_err *err)
{
    *cap = max ? max : 1;
    *fixed = 0;
    const char *by = "", *against = NULL;
    for (size_t i = 0; i < s->n_inputs; i++) {
        const oct_input_desc *in = &s->inputs[i];
        if (t->stack[i] && in->rank > 0 && in->dims[0] > 0) {
            if (*fixed && *fixed != (size_t)in->dims[0])
                against = in->name;
            *fixed = (size_t)in->dims[0];
            by = in->name;
        }
    }
    for (size_t i = 0; i < s->n_inputs; i++)
        if (!t->stack[i] && !t->shared[i] && *fixed > 1)
            against = s->inputs[i].name;
        else if (!t->stack[i] && !t->shared[i])
            *cap = 1;
    if (against)
        return oct_fail(err, OCT_EMALFORMED, "%s: input '%s' fixes the batch to %zu, input '%s' does not go with it",
                        t->item.name, by, *fixed, against);
    if (s->n_states && *fixed > 1)
        return oct_fail(err, OCT_EMALFORMED,
                        "%s: states pass from sample to sample, and input '%s' fixes the batch to %zu", t->item.name,
                        by, *fixed);
    if (*fixed)
        *cap = *fixed;
    if (s->n_states)
        *cap = 1;
    return OCT_OK;
}

/* Takes the shapes of the first sample. */
static void shape_batch(const oct_source *s, const oct_slot *t, oct_batch *b)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        void *data = b->tensors[i].data;
        b->tensors[i] = t->out[i];
        b->tensors[i].data = data;
        b->tensors[i].owned = false; /* the store's */
        b->tensors[i].bytes = 0;
    }
}

static bool same_shape(const oct_array *a, const oct_array *b, int from)
{
    return a->rank == b->rank &&
           memcmp(a->dims + from, b->dims + from, (size_t)(a->rank - from) * sizeof a->dims[0]) == 0;
}

/* Whether a sample can join the batch. */
static bool joins(const oct_source *s, const oct_slot *t, const oct_batch *b)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        const oct_array *have = &b->tensors[i], *more = &t->out[i];
        if (t->stack[i] ? !same_shape(have, more, 1)
                        : !same_shape(have, more, 0) || have->bytes != more->bytes ||
                              memcmp(have->data, more->data, more->bytes) != 0)
            return false;
    }
    return true;
}

/* Appends a row (or a whole array if it is not stacked); reserve: number of rows for which memory is allocated at
 * first. */
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

/* A score of only the samples with labels would not be that of the data. */
static oct_status find_label(const oct_source *s, const oct_slot *t, int64_t *label, oct_err *err)
{
    const int64_t n = oct_labels_count(s->labels);
    *label = -1;
    if (oct_labels_find(s->labels, t->item.name, t->index, label) || n < 0)
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED, "%s: %lld labels, and none for sample %lld (counted from 0), '%s'",
                    s->labels_path, (long long)n, (long long)t->index, t->item.name);
}

/* Records what the first given sample left out. */
static void note_left_out(oct_source *s, const oct_slot *t)
{
    memcpy(s->made, t->made, s->n_inputs * sizeof *s->made);
    s->n_empty = 0;
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->role[i] == OCT_ROLE_PAST && oct_array_count(&t->out[i]) == 0) {
            s->n_empty++;
            s->empty = s->inputs[i].name;
        }
}

static oct_status append(oct_source *s, oct_slot *t, oct_batch *b, size_t cap, oct_err *err)
{
    store *st = b->store;
    OCT_TRY(room_for(b, b->n + 1, err));
    for (size_t i = 0; i < s->n_inputs; i++)
        if (t->stack[i] || b->n == 0)
            OCT_TRY(append_row(b, i, t->out[i].data, t->out[i].bytes, t->stack[i] ? (cap < 64 ? cap : 64) : 1, err));
    int64_t label = t->item.label;
    if (s->labels)
        OCT_TRY(find_label(s, t, &label, err));
    if (s->sum && !s->pick.unsummed)
        OCT_TRY(oct_sample_sum_add(s->sum, t->index, t->out, s->n_inputs, err));
    s->any_label |= label >= 0;
    b->labels[b->n] = label;
    b->indices[b->n] = t->index;
    b->places[b->n] = t->place;
    b->pictures[b->n] = t->picture.size;
    if (t->picture_input >= 0) {
        s->picture_input = t->picture_input + 1;
        s->picture = t->picture;
    }
    b->names[b->n] = t->item.name;
    t->item.name = NULL;
    st->names = ++b->n;
    if (s->given++ == 0)
        note_left_out(s, t);
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

static oct_status count_bad(oct_source *s, oct_slot *t, oct_err *err)
{
    if (s->bad < OCT_SOURCE_BAD_TEXTS)
        s->bad_index[s->bad] = t->index;
    if (s->bad < OCT_SOURCE_BAD_TEXTS && !(s->bad_text[s->bad] = oct_strdup(t->err.text)))
        return oct_nomem(err);
    if (s->bad == 0)
        memcpy(s->bad_hint, t->err.hint, sizeof s->bad_hint);
    s->bad++;
    return OCT_OK;
}

/* Only broken samples, or labels of other samples, are a failure. */
static oct_status at_end(oct_source *s, oct_err *err)
{
    if (s->given && s->labels && !s->any_label)
        return oct_fail(err, OCT_EMALFORMED, "%s: no label for any of the %lld samples", s->labels_path,
                        (long long)s->given);
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
        oct_slot *t;
        OCT_TRY(oct_source_peek(s, &t, err));
        if (t->end)
            return b->n ? OCT_OK : at_end(s, err);
        if (t->status != OCT_OK && oct_source_skips(s, t->status, t->setup)) {
            OCT_TRY(count_bad(s, t, err));
            oct_source_release(s, t);
            continue;
        }
        if (t->status != OCT_OK) {
            if (b->n)
                return OCT_OK; /* it stays in the ring, for the next call */
            if (err)
                *err = t->err;
            if (oct_sample_is_broken(t->status, t->setup))
                oct_hint(err, "--skip-bad leaves such samples out, and names them");
            return t->status;
        }
        const bool follows = !t->begins && t->index == s->last + 1;
        if (s->visit)
            OCT_TRY(s->visit(s->visit_arg, t->out, follows, err));
        if (!t->wanted) {
            s->last = t->index;
            oct_source_release(s, t);
            continue;
        }
        if (b->n == 0) {
            b->follows = follows;
            OCT_TRY(capacity(s, t, max, &cap, fixed, err));
            shape_batch(s, t, b);
            memcpy(stack, t->stack, s->n_inputs * sizeof *stack);
        } else if (!joins(s, t, b)) {
            return OCT_OK;
        }
        OCT_TRY(append(s, t, b, cap, err));
        s->last = t->index;
        oct_source_release(s, t);
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
    bool *stack = oct_calloc(s->n_inputs, sizeof *stack);
    size_t fixed = 0;
    oct_status st = stack ? ready(b, s->n_inputs, &local) : oct_nomem(&local);
    if (st == OCT_OK && s->running == 0)
        st = oct_source_start(s, &local);
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

/* ---- rows ---- */

/* Whether rows 1.. of an array repeat row 0: one sample stacked to a fixed batch, and not an input given whole. */
static bool repeats(const oct_array *x)
{
    size_t row = x->rank && x->dims[0] > 0 ? x->bytes / (size_t)x->dims[0] : 0;
    for (int64_t i = 1; row && i < x->dims[0]; i++)
        if (memcmp(x->data, (const char *)x->data + (size_t)i * row, row) != 0)
            return false;
    return row != 0;
}

int64_t oct_batch_rows(const oct_source *src, const oct_batch *b)
{
    int64_t fixed = oct_source_fixed_batch(src);
    if (b->n == 1) {
        if (fixed <= 1)
            return 0;
        for (size_t i = 0; i < b->n_tensors; i++)
            if (b->tensors[i].rank && b->tensors[i].dims[0] == fixed && !repeats(&b->tensors[i]))
                return 0;
        return fixed;
    }
    return fixed > 1 ? fixed : (int64_t)b->n;
}

int64_t oct_row_elements(int rank, const int64_t *dims, int64_t rows, int64_t *first)
{
    int64_t count = 1;
    for (int k = 0; k < rank; k++)
        count *= dims[k];
    bool divides = rows > 0 && rank > 0 && dims[0] > 0 && dims[0] % rows == 0;
    *first = rank ? (divides ? dims[0] / rows : dims[0]) : 0;
    return divides ? count / rows : count;
}
