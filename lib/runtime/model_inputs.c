/* Arrays of samples as a model's inputs. */
#include "runtime/model_inputs.h"

#include <string.h>

static int find_feed(const oct_input_desc *feed, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(feed[i].name, name) == 0)
            return (int)i;
    return -1;
}

static oct_status match(oct_model_inputs *x, const oct_input_desc *feed, size_t n_feed, oct_err *err)
{
    size_t found = 0;
    for (size_t i = 0; i < x->n; i++)
        x->from[i] = i;
    for (size_t i = 0; i < x->n && feed; i++)
        found += find_feed(feed, n_feed, x->g->value[x->g->input[i]].name) >= 0;
    for (size_t i = 0; i < x->n && feed; i++) {
        const char *name = x->g->value[x->g->input[i]].name;
        int at = found ? find_feed(feed, n_feed, name) : i < n_feed ? (int)i : -1;
        if (at < 0)
            return oct_fail(err, OCT_EMALFORMED,
                            "nothing feeds input '%s': the reference model has no input of that name", name);
        x->from[i] = (size_t)at;
    }
    return OCT_OK;
}

oct_status oct_model_inputs_match(oct_model_inputs *x, const oct_graph *g, const oct_input_desc *feed, size_t n_feed,
                                  oct_arena *arena, oct_err *err)
{
    *x = (oct_model_inputs){ .g = g, .n = g->n_input };
    x->from = oct_arena_calloc(arena, x->n + 1, sizeof *x->from);
    x->data = oct_arena_calloc(arena, x->n + 1, sizeof *x->data);
    x->converted = oct_arena_calloc(arena, x->n + 1, sizeof *x->converted);
    return x->from && x->data && x->converted ? match(x, feed, n_feed, err) : oct_nomem(err);
}

void oct_model_inputs_free(oct_model_inputs *x)
{
    for (size_t i = 0; x->converted && i < x->n; i++)
        oct_array_free(&x->converted[i]);
}

/* The array in the model's element type, aligned. */
static oct_status convert(oct_model_inputs *x, size_t i, const oct_array *a, oct_err *err)
{
    const oct_value *v = &x->g->value[x->g->input[i]];
    const oct_dtype to = v->dtype == OCT_UNDEFINED ? a->dtype : v->dtype;
    x->data[i] = a->data;
    if (to == a->dtype && (uintptr_t)a->data % oct_dtype_align(a->dtype) == 0)
        return OCT_OK;
    oct_array *c = &x->converted[i];
    if (c->dtype != to || oct_array_count(c) != oct_array_count(a)) {
        oct_array_free(c);
        OCT_TRY(oct_array_create(c, to, a->rank, a->dims, err));
    }
    const oct_status s = oct_array_convert(a->dtype, a->data, to, c->data, (size_t)oct_array_count(a), err);
    if (s != OCT_OK)
        oct_within(err, "input '%s'", v->name);
    x->data[i] = c->data;
    return s;
}

oct_status oct_model_inputs_convert(oct_model_inputs *x, const oct_array *arrays, oct_err *err)
{
    for (size_t i = 0; i < x->n; i++)
        OCT_TRY(convert(x, i, &arrays[x->from[i]], err));
    return OCT_OK;
}
