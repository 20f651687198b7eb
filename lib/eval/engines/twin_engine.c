/* Between the samples of an evaluation, in ONNX's order of axes, and a twin, whose tensors have the file's. */
#include "eval/engines/twin_engine_int.h"

#include "base/io.h"
#include "runtime/model_inputs.h"
#include "tflite/tfl_read.h"
#include "tflite/tflite.h"

#include <math.h>
#include <string.h>

enum { MOST_FILE = 1 << 30 };

/* ---- the model ---- */

bool oct_twin_has_order(const oct_tfl_tensor *t, const oct_value *v, const oct_tfl_order *o)
{
    bool same = v->shape.rank == t->rank;
    for (int i = 0; same && i < t->rank; i++) {
        const int64_t n = v->shape.d[o->d[i]].n;
        same = n < 0 || n == t->dims[i];
    }
    return same;
}

/* The order of an end of a file: that of the file that would be written of its graph, if it can be, else the first that
 * its dimensions have. */
static oct_status find_order(const oct_tfl_end *end, const oct_tfl_model *m, const oct_value *v,
                             const oct_tfl_end *made, oct_tfl_order *order, oct_err *err)
{
    const oct_tfl_tensor *t = &m->tensor[end->tensor];
    const oct_tfl_order tries[] = { made ? made->order : oct_tfl_plain(), oct_tfl_channels_last(t->rank),
                                    oct_tfl_plain() };
    for (size_t i = 0; i < OCT_COUNT(tries); i++)
        if (oct_twin_has_order(t, v, &tries[i])) {
            *order = tries[i];
            return OCT_OK;
        }
    return oct_fail(err, OCT_EUNSUPPORTED, "'%s' has another shape in the file than in its graph", v->name);
}

static oct_status find_orders(oct_twin_engine *e, const oct_tfl_end *end, size_t n, const int *values, size_t n_values,
                              const oct_tfl_end *made, size_t n_made, oct_tfl_order **orders, oct_err *err)
{
    if (n != n_values)
        return oct_fail(err, OCT_EUNSUPPORTED, "its file has %zu inputs or outputs, and its graph %zu", n, n_values);
    if (!(*orders = oct_arena_calloc(e->arena, n + 1, sizeof **orders)))
        return oct_nomem(err);
    for (size_t i = 0; i < n; i++)
        OCT_TRY(find_order(&end[i], e->m, &e->g->value[values[i]], made && n_made == n ? &made[i] : NULL, &(*orders)[i],
                           err));
    return OCT_OK;
}

static oct_status read_file(oct_twin_engine *e, const char *path, oct_err *err)
{
    size_t size = 0;
    if (!path || strcmp(path, "-") == 0 || oct_read_all(path, MOST_FILE, &e->file, &size, NULL) != OCT_OK)
        return OCT_OK; /* models that large, or from a pipe, are computed from their graphs */
    if (oct_tfl_is_model(e->file, size))
        return oct_tfl_model_read(e->file, size, path, e->arena, &e->read, err);
    oct_free(e->file);
    e->file = NULL;
    return OCT_OK;
}

static oct_status open_model(oct_twin_engine *e, const char *path, oct_err *err)
{
    OCT_TRY(read_file(e, path, err));
    const oct_status made = oct_tflite_make(e->g, "", &e->made, e->file ? NULL : err);
    if (made != OCT_OK && !e->file)
        return made;
    const oct_tfl_model *like = made == OCT_OK ? &e->made.model : NULL;
    e->m = e->file ? &e->read : like;
    OCT_TRY(find_orders(e, e->m->input, e->m->n_input, e->g->input, e->g->n_input, like ? like->input : NULL,
                        like ? like->n_input : 0, &e->input, err));
    return find_orders(e, e->m->output, e->m->n_output, e->g->output, e->g->n_output, like ? like->output : NULL,
                       like ? like->n_output : 0, &e->output, err);
}

static oct_status open_all(oct_twin_engine *e, const oct_twin *t, const char *path, const oct_input_desc *feed,
                           size_t n_feed, oct_err *err)
{
    OCT_TRY(open_model(e, path, err));
    OCT_TRY(oct_model_inputs_match(&e->in, e->g, feed, n_feed, e->arena, err));
    e->out = oct_arena_calloc(e->arena, e->g->n_output + 1, sizeof *e->out);
    e->room = oct_arena_calloc(e->arena, e->g->n_output + 1, sizeof *e->room);
    e->name = oct_arena_printf(e->arena, "the twin of %s", t->runtime);
    if (!e->out || !e->room || !e->name)
        return oct_nomem(err);
    return oct_twin_open(t, e->m, &e->run, err);
}

oct_status oct_twin_engine_open(const oct_twin *t, const char *path, const oct_graph *g, const oct_input_desc *feed,
                                size_t n_feed, oct_twin_engine **out, oct_err *err)
{
    oct_arena *a = oct_arena_create();
    oct_twin_engine *e = a ? oct_arena_calloc(a, 1, sizeof *e) : NULL;
    if (!e) {
        oct_arena_destroy(a);
        return oct_nomem(err);
    }
    e->arena = a;
    e->g = g;
    const oct_status s = open_all(e, t, path, feed, n_feed, err);
    if (s != OCT_OK)
        oct_twin_engine_close(e);
    else
        *out = e;
    return s;
}

void oct_twin_engine_close(oct_twin_engine *e)
{
    if (!e)
        return;
    for (size_t i = 0; e->out && i < e->g->n_output; i++)
        oct_free(e->out[i].data);
    oct_twin_close(e->run);
    oct_model_inputs_free(&e->in);
    oct_tflite_free(&e->made);
    oct_free(e->file);
    oct_arena_destroy(e->arena);
}

/* ---- a run ---- */

int64_t oct_twin_elements(const oct_tfl_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dims[i];
    return n;
}

/* Calls for each element of a tensor, in order, with its place in the value. */
typedef void (*visit)(void *arg, int64_t at, int64_t in_value);
static void walk(const oct_tfl_tensor *t, const oct_tfl_order *o, visit fn, void *arg)
{
    int64_t stride[OCT_MAX_RANK] = { 0 }, dims[OCT_MAX_RANK] = { 0 }, at[OCT_MAX_RANK] = { 0 }, step = 1;
    for (int i = 0; i < t->rank; i++)
        dims[o->d[i]] = t->dims[i];
    int64_t of[OCT_MAX_RANK];
    for (int k = t->rank - 1; k >= 0; k--) {
        of[k] = step;
        step *= dims[k];
    }
    for (int i = 0; i < t->rank; i++)
        stride[i] = of[o->d[i]];
    for (int64_t i = 0, place = 0; i < step; i++) {
        fn(arg, i, place);
        for (int k = t->rank - 1; k >= 0; k--) {
            place += stride[k];
            if (++at[k] < t->dims[k])
                break;
            place -= stride[k] * at[k];
            at[k] = 0;
        }
    }
}

typedef struct copy {
    char *tensor, *value;
    size_t bytes; /* of an element */
    float scale;  /* of integers that the value is the reals of */
    int32_t zero;
    bool u8;
} copy;

static void put(void *arg, int64_t at, int64_t in_value)
{
    const copy *c = arg;
    memcpy(c->tensor + (size_t)at * c->bytes, c->value + (size_t)in_value * c->bytes, c->bytes);
}

static void take(void *arg, int64_t at, int64_t in_value)
{
    const copy *c = arg;
    memcpy(c->value + (size_t)in_value * c->bytes, c->tensor + (size_t)at * c->bytes, c->bytes);
}

static void put_rounded(void *arg, int64_t at, int64_t in_value)
{
    const copy *c = arg;
    const int lo = c->u8 ? 0 : -128, hi = c->u8 ? 255 : 127;
    const float x = rintf(((const float *)(const void *)c->value)[in_value] / c->scale) + (float)c->zero;
    c->tensor[at] = (char)(int)(x > (float)hi ? (float)hi : x > (float)lo ? x : (float)lo);
}

static void take_meant(void *arg, int64_t at, int64_t in_value)
{
    const copy *c = arg;
    const int q = c->u8 ? (unsigned char)c->tensor[at] : (signed char)c->tensor[at];
    ((float *)(void *)c->value)[in_value] = (float)(q - c->zero) * c->scale;
}

/* Whether the value is the reals that a tensor of 8-bit integers represents. */
static bool is_meant(const oct_tfl_tensor *t, oct_dtype dtype)
{
    return dtype == OCT_F32 && (t->type == OCT_TFL_INT8 || t->type == OCT_TFL_UINT8) && t->quant && t->quant->n == 1;
}

void oct_twin_round(const oct_tfl_tensor *t, const oct_tfl_order *order, const float *reals, void *to)
{
    const bool whole = t->quant != NULL;
    copy c = { .tensor = to,
               .value = (char *)(uintptr_t)reals, /* they are read */
               .bytes = sizeof(float),
               .u8 = t->type == OCT_TFL_UINT8 };
    if (whole) {
        c.scale = t->quant->scale[0];
        c.zero = t->quant->zp ? t->quant->zp[0] : 0;
    }
    walk(t, order, whole ? put_rounded : put, &c);
}

static oct_status copy_of(const oct_twin_engine *e, int tensor, const oct_value *v, oct_dtype dtype, copy *c,
                          oct_err *err)
{
    const oct_tfl_tensor *t = &e->m->tensor[tensor];
    *c = (copy){ .tensor = oct_twin_data(e->run, tensor),
                 .bytes = oct_tfl_type_bytes(t->type),
                 .u8 = t->type == OCT_TFL_UINT8 };
    if (is_meant(t, dtype)) {
        c->scale = t->quant->scale[0];
        c->zero = t->quant->zp ? t->quant->zp[0] : 0;
        return OCT_OK;
    }
    if (oct_tfl_type_dtype(t->type) == dtype)
        return OCT_OK;
    return oct_fail(err, OCT_EUNSUPPORTED, "'%s' is %s, and %s in .tflite", v->name, oct_dtype_name(dtype),
                    oct_tfl_type_name(t->type));
}

static oct_dtype type_of(const oct_value *v, const oct_tfl_tensor *t)
{
    return v->dtype == OCT_UNDEFINED ? oct_tfl_type_dtype(t->type) : v->dtype;
}

oct_status oct_twin_feed(oct_twin_engine *e, int64_t sample, oct_err *err)
{
    for (size_t i = 0; i < e->g->n_input; i++) {
        const oct_value *v = &e->g->value[e->g->input[i]];
        const oct_tfl_tensor *t = &e->m->tensor[e->m->input[i].tensor];
        const oct_dtype dtype = type_of(v, t);
        copy c;
        OCT_TRY(copy_of(e, e->m->input[i].tensor, v, dtype, &c, err));
        const size_t each = is_meant(t, dtype) ? sizeof(float) : c.bytes;
        c.value = (char *)(uintptr_t)e->in.data[i] + (size_t)(sample * oct_twin_elements(t)) * each; /* it is read */
        walk(t, &e->input[i], is_meant(t, dtype) ? put_rounded : put, &c);
    }
    return OCT_OK;
}

/* Makes room for the outputs of so many samples. */
static oct_status make_room(oct_twin_engine *e, int64_t samples, oct_err *err)
{
    for (size_t i = 0; i < e->g->n_output; i++) {
        const oct_tfl_tensor *t = &e->m->tensor[e->m->output[i].tensor];
        oct_operand *o = &e->out[i];
        void *data = o->data;
        const oct_dtype dtype = type_of(&e->g->value[e->g->output[i]], t);
        *o = (oct_operand){ .dtype = dtype, .rank = t->rank, .count = samples * oct_twin_elements(t), .value = -1 };
        for (int k = 0; k < t->rank; k++)
            o->dims[e->output[i].d[k]] = t->dims[k];
        if (t->rank)
            o->dims[0] *= samples;
        size_t bytes;
        if (!oct_dtype_bytes(dtype, o->count, &bytes))
            return oct_nomem(err);
        if (!data || bytes > e->room[i]) {
            oct_free(data);
            data = oct_alloc(bytes);
            e->room[i] = data ? bytes : 0;
        }
        if (!(o->data = data))
            return oct_nomem(err);
    }
    return OCT_OK;
}

oct_status oct_twin_collect(oct_twin_engine *e, int64_t sample, oct_err *err)
{
    for (size_t i = 0; i < e->g->n_output; i++) {
        const oct_tfl_tensor *t = &e->m->tensor[e->m->output[i].tensor];
        copy c;
        OCT_TRY(copy_of(e, e->m->output[i].tensor, &e->g->value[e->g->output[i]], e->out[i].dtype, &c, err));
        const bool meant = is_meant(t, e->out[i].dtype);
        c.value = (char *)e->out[i].data + (size_t)(sample * oct_twin_elements(t)) * (meant ? sizeof(float) : c.bytes);
        walk(t, &e->output[i], meant ? take_meant : take, &c);
    }
    return OCT_OK;
}

/* How many samples the arrays hold; the model takes one at a time. */
static oct_status count_samples(const oct_twin_engine *e, const oct_array *arrays, int64_t *n, oct_err *err)
{
    *n = 1;
    for (size_t i = 0; i < e->g->n_input; i++) {
        const int64_t one = oct_twin_elements(&e->m->tensor[e->m->input[i].tensor]),
                      all = oct_array_count(&arrays[e->in.from[i]]);
        const int64_t here = one > 0 && all % one == 0 ? all / one : 0;
        if (here < 1 || (i && here != *n))
            return oct_fail(err, OCT_EUNSUPPORTED, "input '%s' has another shape than the .tflite model takes",
                            e->g->value[e->g->input[i]].name);
        *n = here;
    }
    return OCT_OK;
}

oct_status oct_twin_take(oct_twin_engine *e, const oct_array *arrays, int64_t *n, oct_err *err)
{
    OCT_TRY(oct_model_inputs_convert(&e->in, arrays, err));
    OCT_TRY(count_samples(e, arrays, n, err));
    return make_room(e, *n, err);
}

oct_status oct_twin_engine_run(oct_twin_engine *e, const oct_array *arrays, oct_err *err)
{
    int64_t n;
    OCT_TRY(oct_twin_take(e, arrays, &n, err));
    for (int64_t k = 0; k < n; k++) {
        OCT_TRY(oct_twin_feed(e, k, err));
        OCT_TRY(oct_twin_compute(e->run, err));
        OCT_TRY(oct_twin_collect(e, k, err));
    }
    return OCT_OK;
}

const oct_operand *oct_twin_engine_output(const oct_twin_engine *e, size_t i)
{
    return &e->out[i];
}

const char *oct_twin_engine_name(const oct_twin_engine *e)
{
    return e->name;
}
