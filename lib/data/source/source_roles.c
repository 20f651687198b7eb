/* lib/data/source/source_roles.c -- which inputs samples fill, and the contents of the others. */
#include "data/source/source_int.h"
#include "data/text/token_rows.h"

#include <string.h>

static bool is_state(const oct_source_options *o, const char *name)
{
    for (size_t i = 0; i < o->n_states; i++)
        if (strcmp(o->states[i], name) == 0)
            return true;
    return false;
}

/* An input that no node reads, as some converters leave them, needs no data if another input takes data. */
static oct_role role_of(const oct_source *s, const oct_source_options *o, size_t i, bool needs_all)
{
    const oct_input_desc *in = &s->inputs[i];
    if (is_state(o, in->name))
        return OCT_ROLE_STATE;
    if (s->steps[i].has_value || (in->unread && !needs_all))
        return OCT_ROLE_VALUE;
    return in->past && !needs_all ? OCT_ROLE_PAST : OCT_ROLE_DATA;
}

oct_status oct_source_assign(oct_source *s, const oct_source_options *o, oct_err *err)
{
    const size_t n = s->n_inputs;
    size_t *number = oct_arena_calloc(s->arena, n + 1, sizeof *number);
    oct_input_desc *data = oct_arena_calloc(s->arena, n + 1, sizeof *data),
                   *extra = oct_arena_calloc(s->arena, n + 1, sizeof *extra);
    oct_steps *steps = oct_arena_calloc(s->arena, n + 1, sizeof *steps);
    s->role = oct_arena_calloc(s->arena, n + 1, sizeof *s->role);
    s->part = oct_arena_calloc(s->arena, n + 1, sizeof *s->part);
    s->made = oct_arena_calloc(s->arena, n + 1, sizeof *s->made);
    if (!number || !data || !extra || !steps || !s->role || !s->part || !s->made)
        return oct_nomem(err);
    s->ctx = (oct_feed_ctx){ .inputs = data, .steps = steps, .extra = extra, .number = number };
    size_t n_read = 0;
    for (size_t i = 0; i < n; i++)
        n_read += role_of(s, o, i, false) == OCT_ROLE_DATA;
    for (size_t i = 0; i < n; i++) {
        s->role[i] = role_of(s, o, i, n_read == 0);
        s->part[i] = SIZE_MAX;
        const bool given = s->role[i] == OCT_ROLE_VALUE && s->steps[i].has_value;
        if (s->role[i] != OCT_ROLE_DATA) /* steps for all inputs are for those of the samples */
            s->steps[i] = (oct_steps){ .has_value = given, .value = given ? s->steps[i].value : 0 };
        if (s->role[i] != OCT_ROLE_DATA)
            continue;
        steps[s->ctx.n] = s->steps[i];
        number[s->ctx.n] = i;
        data[s->part[i] = s->ctx.n++] = s->inputs[i];
    }
    for (size_t i = 0; i < n; i++)
        if (s->role[i] == OCT_ROLE_STATE || s->role[i] == OCT_ROLE_PAST) {
            number[s->part[i] = s->ctx.n + s->ctx.n_extra] = i;
            extra[s->ctx.n_extra++] = s->inputs[i];
            s->n_states += s->role[i] == OCT_ROLE_STATE;
        }
    if (s->ctx.n)
        return OCT_OK;
    oct_fail(err, OCT_EUSAGE, "no input is left for the samples: all are states or have a value=");
    return OCT_EUSAGE;
}

/* The shape of an input without data: free dimensions are those of the first array with the same rank, else 1. A cache
 * is empty. */
static void shape_of(const oct_source *s, const oct_slot *t, size_t i, oct_array *a)
{
    const oct_input_desc *in = &s->inputs[i];
    const oct_array *like = NULL;
    for (size_t k = 0; k < s->n_inputs && !like; k++)
        if (s->role[k] == OCT_ROLE_DATA && t->out[k].rank == in->rank && s->role[i] == OCT_ROLE_VALUE)
            like = &t->out[k];
    *a = (oct_array){ .dtype = in->dtype, .rank = in->rank > 0 ? in->rank : 0 };
    for (int d = 0; d < a->rank; d++)
        a->dims[d] = in->dims[d] >= 0 ? in->dims[d] : like ? like->dims[d] : in->past == d + 1 ? 0 : 1;
}

static oct_status set_all(const oct_input_desc *in, double value, oct_array *a, oct_err *err)
{
    const int64_t whole = (int64_t)value, n = oct_array_count(a);
    const bool exact = (double)whole == value;
    char *p = a->data;
    if (n == 0)
        return OCT_OK;
    OCT_TRY(exact ? oct_array_convert(OCT_S64, &whole, a->dtype, p, 1, err)
                  : oct_array_convert(OCT_F64, &value, a->dtype, p, 1, err));
    const size_t size = a->bytes / (size_t)n;
    for (int64_t i = 1; i < n; i++)
        memcpy(p + (size_t)i * size, p, size);
    return OCT_OK;
}

/* How many tokens the first cache holds that the sample gave. */
static int64_t past_of(const oct_source *s, const oct_slot *t)
{
    for (size_t k = 0; k < s->n_inputs; k++)
        if (s->role[k] == OCT_ROLE_PAST && s->inputs[k].past > 0 && t->out[k].rank >= s->inputs[k].past)
            return t->out[k].dims[s->inputs[k].past - 1];
    return 0;
}

static oct_status follow_tokens(const oct_source *s, oct_slot *t, size_t i)
{
    size_t at;
    oct_token_follows(&s->ctx, s->part[i], &at);
    const size_t ids = s->ctx.number[at];
    const oct_status st = oct_token_follow(&s->inputs[i], &t->out[ids], past_of(s, t), &t->out[i], &t->err);
    t->stack[i] = t->stack[ids];
    t->shared[i] = t->shared[ids];
    if (st != OCT_OK)
        oct_within(&t->err, "%s", t->item.name);
    return st;
}

/* An input whose batch size is free is a row, so that it is stacked like the data. */
static oct_status fill(const oct_source *s, oct_slot *t, size_t i)
{
    oct_array shape;
    shape_of(s, t, i, &shape);
    OCT_TRY(oct_array_create(&t->out[i], shape.dtype, shape.rank, shape.dims, &t->err));
    const bool row = s->role[i] == OCT_ROLE_VALUE || s->role[i] == OCT_ROLE_PAST;
    t->stack[i] = row && shape.rank > 0 && shape.dims[0] == 1;
    t->shared[i] = !t->stack[i] && s->role[i] != OCT_ROLE_PAST; /* a cache with the batch elsewhere is for one sample */
    const oct_status st = set_all(&s->inputs[i], s->steps[i].value, &t->out[i], &t->err);
    if (st != OCT_OK)
        oct_within(&t->err, "value= of input '%s'", s->inputs[i].name);
    return st;
}

void oct_source_fill_rest(const oct_source *s, oct_slot *t)
{
    for (size_t i = 0; i < s->n_inputs && t->status == OCT_OK; i++)
        if (t->made[i])
            t->status = follow_tokens(s, t, i);
    for (size_t i = 0; i < s->n_inputs && t->status == OCT_OK; i++)
        if (!t->out[i].data && !t->made[i]) {
            t->status = fill(s, t, i);
            t->setup = t->status != OCT_OK;
        }
}
