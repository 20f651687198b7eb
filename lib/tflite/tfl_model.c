/* From a model in memory to the bytes of its file: tables first, and constants behind them, so that these are written
 * from where they are. */
#include "tflite/tfl_model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DATA_ALIGN = 16, RUNTIME_BYTES = 16 };

static const struct {
    const char *runtimes;
    int number, options, int8, int16;
} codes[] = {
#define OPERATOR(name, number, options, int8, int16, versions) { versions, number, options, int8, int16 },
#include "tflite/schema_operators.inc"
#undef OPERATOR
    { "", -1, 0, 1, 0 }, /* any other one: nothing is known of it */
};

static size_t index_of(oct_tfl_code code)
{
    size_t i = 0;
    while (i + 1 < OCT_COUNT(codes) && codes[i].number != (int)code)
        i++;
    return i;
}

int oct_tfl_code_options(oct_tfl_code code)
{
    return codes[index_of(code)].options;
}

int oct_tfl_code_int8(oct_tfl_code code)
{
    return codes[index_of(code)].int8;
}

int oct_tfl_code_int16(oct_tfl_code code)
{
    return codes[index_of(code)].int16;
}

const char *oct_tfl_code_runtime(oct_tfl_code code, int version, char dst[16])
{
    const char *s = codes[index_of(code)].runtimes;
    for (int i = 1; i < version && s; i++) {
        s = strchr(s, ' ');
        s = s ? s + 1 : NULL;
    }
    snprintf(dst, 16, "%.*s", s ? (int)strcspn(s, " ") : 0, s ? s : "");
    return dst;
}

/* ---- the tables ---- */

typedef struct version {
    oct_tfl_code code;
    int number;
} version;

/* A place that refers to a vector of n zeros. */
typedef struct zero_points {
    size_t at;
    int n;
    bool placed;
} zero_points;

typedef struct writing {
    const oct_tfl_model *m;
    oct_arena *arena;
    oct_flat f;
    version *version; /* the operators that occur, each version once */
    size_t n_versions;
    size_t *data_at; /* [n_tensor + 1] by buffer: the place that refers to its data; 0: it has none */
    const void **data;
    size_t *bytes;
    size_t n_data;
    char runtime[RUNTIME_BYTES]; /* the oldest runtime that has all of them */
    zero_points *zeros;          /* [n_tensor]: places that refer to zero points that are all 0 */
    size_t n_zeros;
} writing;

#define OFFSET(slot) { (slot), 0, 0 }
#define NUMBER(slot, x) { (slot), 4, (uint32_t)(x) }
#define BYTE(slot, x) { (slot), 1, (uint32_t)(x) }

/* Whether version a is older than version b, number by number. */
static bool is_older(const char *a, const char *b)
{
    int x[3] = { 0 }, y[3] = { 0 };
    sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2]);
    sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2]);
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return false;
}

static size_t version_of(writing *w, const oct_tfl_operator *o)
{
    size_t i = 0;
    char runtime[RUNTIME_BYTES] = { 0 };
    while (i < w->n_versions && (w->version[i].code != o->code || w->version[i].number != o->version))
        i++;
    if (i < w->n_versions)
        return i;
    w->version[w->n_versions++] = (version){ o->code, o->version };
    if (is_older(w->runtime, oct_tfl_code_runtime(o->code, o->version, runtime)))
        memcpy(w->runtime, runtime, sizeof runtime);
    return i;
}

/* A buffer for these bytes. Buffer 0 is empty, that of all tensors without data. */
static size_t buffer_of(writing *w, const void *data, size_t bytes)
{
    w->data[w->n_data] = data;
    w->bytes[w->n_data] = bytes;
    return w->n_data++;
}

/* Zero points that are all 0 are shared, and so stand behind all that refer to them: with 8 bytes a channel, those of
 * weights and biases would take more than the biases. */
static oct_status write_zeros(writing *w, oct_err *err)
{
    for (size_t i = 0; i < w->n_zeros; i++) {
        if (w->zeros[i].placed)
            continue;
        const int n = w->zeros[i].n;
        int64_t *x = oct_arena_calloc(w->arena, (size_t)n, sizeof *x);
        if (!x)
            return oct_nomem(err);
        const size_t at = oct_flat_vector(&w->f, x, (size_t)n, sizeof *x);
        for (size_t k = i; k < w->n_zeros; k++)
            if (w->zeros[k].n == n) {
                oct_flat_point(&w->f, w->zeros[k].at, at);
                w->zeros[k].placed = true;
            }
    }
    return OCT_OK;
}

/* A vector of zero points, to which a place refers. */
static void write_points(writing *w, const oct_quant *q, size_t at, int64_t *wide)
{
    bool zero = true;
    for (int i = 0; i < q->n; i++) {
        wide[i] = q->zp[i];
        zero = zero && !q->zp[i];
    }
    if (zero)
        w->zeros[w->n_zeros++] = (zero_points){ .at = at, .n = q->n };
    else
        oct_flat_point(&w->f, at, oct_flat_vector(&w->f, wide, (size_t)q->n, sizeof *wide));
}

static oct_status write_quant(writing *w, const oct_tfl_tensor *t, size_t at, oct_err *err)
{
    const oct_quant *q = t->quant;
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS];
    int64_t *wide = oct_arena_calloc(w->arena, (size_t)q->n, sizeof *wide);
    if (!wide)
        return oct_nomem(err);
    const oct_flat_field field[] = { OFFSET(OCT_TFL_QUANT_SCALE), OFFSET(OCT_TFL_QUANT_ZERO_POINT),
                                     NUMBER(OCT_TFL_QUANT_AXIS, t->axis) };
    oct_flat_point(f, at, oct_flat_table(f, field, q->n > 1 ? 3 : 2, to));
    oct_flat_point(f, to[OCT_TFL_QUANT_SCALE], oct_flat_vector(f, q->scale, (size_t)q->n, 4));
    write_points(w, q, to[OCT_TFL_QUANT_ZERO_POINT], wide);
    return OCT_OK;
}

static oct_status write_tensor(writing *w, const oct_tfl_tensor *t, size_t at, oct_err *err)
{
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS], n = 0;
    oct_flat_field field[8];
    field[n++] = (oct_flat_field)OFFSET(OCT_TFL_TENSOR_SHAPE);
    field[n++] = (oct_flat_field)BYTE(OCT_TFL_TENSOR_TYPE, t->type);
    if (t->data)
        field[n++] = (oct_flat_field)NUMBER(OCT_TFL_TENSOR_BUFFER, buffer_of(w, t->data, t->bytes));
    field[n++] = (oct_flat_field)OFFSET(OCT_TFL_TENSOR_NAME);
    if (t->quant)
        field[n++] = (oct_flat_field)OFFSET(OCT_TFL_TENSOR_QUANTIZATION);
    if (t->variable)
        field[n++] = (oct_flat_field)BYTE(OCT_TFL_TENSOR_VARIABLE, 1);
    if (t->open >= 0)
        field[n++] = (oct_flat_field)OFFSET(OCT_TFL_TENSOR_SIGNATURE);
    field[n++] = (oct_flat_field)BYTE(OCT_TFL_TENSOR_HAS_RANK, 1);
    oct_flat_point(f, at, oct_flat_table(f, field, n, to));
    oct_flat_point(f, to[OCT_TFL_TENSOR_SHAPE], oct_flat_vector(f, t->dims, (size_t)t->rank, 4));
    oct_flat_point(f, to[OCT_TFL_TENSOR_NAME], oct_flat_string(f, t->name));
    if (t->open >= 0) {
        int32_t dims[OCT_MAX_RANK];
        memcpy(dims, t->dims, sizeof dims);
        dims[t->open] = -1;
        oct_flat_point(f, to[OCT_TFL_TENSOR_SIGNATURE], oct_flat_vector(f, dims, (size_t)t->rank, 4));
    }
    return t->quant ? write_quant(w, t, to[OCT_TFL_TENSOR_QUANTIZATION], err) : OCT_OK;
}

static void write_operator(writing *w, const oct_tfl_operator *o, size_t at)
{
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS], n = 3;
    const int options = oct_tfl_code_options(o->code);
    oct_flat_field field[6] = { NUMBER(OCT_TFL_OPERATOR_CODE, version_of(w, o)), OFFSET(OCT_TFL_OPERATOR_INPUTS),
                                OFFSET(OCT_TFL_OPERATOR_OUTPUTS) };
    if (options) {
        field[n++] = (oct_flat_field)BYTE(OCT_TFL_OPERATOR_OPTIONS_TYPE, options);
        field[n++] = (oct_flat_field)OFFSET(OCT_TFL_OPERATOR_OPTIONS);
    }
    if (o->n_within)
        field[n++] = (oct_flat_field)OFFSET(OCT_TFL_OPERATOR_INTERMEDIATES);
    oct_flat_point(f, at, oct_flat_table(f, field, n, to));
    oct_flat_point(f, to[OCT_TFL_OPERATOR_INPUTS], oct_flat_vector(f, o->in, (size_t)o->n_in, 4));
    oct_flat_point(f, to[OCT_TFL_OPERATOR_OUTPUTS], oct_flat_vector(f, o->out, (size_t)o->n_out, 4));
    if (options)
        oct_flat_point(f, to[OCT_TFL_OPERATOR_OPTIONS], oct_flat_table(f, o->field, o->n_fields, NULL));
    if (o->n_within)
        oct_flat_point(f, to[OCT_TFL_OPERATOR_INTERMEDIATES], oct_flat_vector(f, o->within, (size_t)o->n_within, 4));
}

/* The inputs or outputs as tensors, in order. */
static void write_ends(oct_flat *f, const oct_tfl_end *end, size_t n, size_t at)
{
    const size_t list = oct_flat_vector(f, NULL, n, 4);
    oct_flat_point(f, at, list);
    for (size_t i = 0; i < n && !f->b.failed; i++) {
        const int32_t tensor = end[i].tensor;
        memcpy(f->b.data + list + 4 * (1 + i), &tensor, sizeof tensor);
    }
}

static oct_status write_subgraph(writing *w, size_t at, oct_err *err)
{
    const oct_tfl_model *m = w->m;
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS];
    const oct_flat_field field[] = { OFFSET(OCT_TFL_SUBGRAPH_TENSORS), OFFSET(OCT_TFL_SUBGRAPH_INPUTS),
                                     OFFSET(OCT_TFL_SUBGRAPH_OUTPUTS), OFFSET(OCT_TFL_SUBGRAPH_OPERATORS),
                                     OFFSET(OCT_TFL_SUBGRAPH_NAME) };
    const size_t list = oct_flat_vector(f, NULL, 1, 4);
    oct_flat_point(f, at, list);
    oct_flat_point(f, list + 4, oct_flat_table(f, field, OCT_COUNT(field), to));
    const size_t tensors = oct_flat_vector(f, NULL, m->n_tensor, 4);
    oct_flat_point(f, to[OCT_TFL_SUBGRAPH_TENSORS], tensors);
    for (size_t i = 0; i < m->n_tensor; i++)
        OCT_TRY(write_tensor(w, &m->tensor[i], tensors + 4 * (1 + i), err));
    OCT_TRY(write_zeros(w, err));
    write_ends(f, m->input, m->n_input, to[OCT_TFL_SUBGRAPH_INPUTS]);
    write_ends(f, m->output, m->n_output, to[OCT_TFL_SUBGRAPH_OUTPUTS]);
    const size_t operators = oct_flat_vector(f, NULL, m->n_op, 4);
    oct_flat_point(f, to[OCT_TFL_SUBGRAPH_OPERATORS], operators);
    for (size_t i = 0; i < m->n_op; i++)
        write_operator(w, &m->op[i], operators + 4 * (1 + i));
    oct_flat_point(f, to[OCT_TFL_SUBGRAPH_NAME], oct_flat_string(f, m->name));
    return OCT_OK;
}

static void write_codes(writing *w, size_t at)
{
    oct_flat *f = &w->f;
    const size_t list = oct_flat_vector(f, NULL, w->n_versions, 4);
    oct_flat_point(f, at, list);
    for (size_t i = 0; i < w->n_versions; i++) {
        const uint32_t code = (uint32_t)w->version[i].code;
        const oct_flat_field field[] = {
            BYTE(OCT_TFL_CODE_DEPRECATED, code < OCT_TFL_CODE_PLACEHOLDER ? code : OCT_TFL_CODE_PLACEHOLDER),
            NUMBER(OCT_TFL_CODE_VERSION, w->version[i].number), NUMBER(OCT_TFL_CODE_BUILTIN, code)
        };
        oct_flat_point(f, list + 4 * (1 + i), oct_flat_table(f, field, OCT_COUNT(field), NULL));
    }
}

static void write_map(oct_flat *f, const oct_tfl_end *end, size_t n, size_t at)
{
    const size_t list = oct_flat_vector(f, NULL, n, 4);
    oct_flat_point(f, at, list);
    for (size_t i = 0; i < n; i++) {
        size_t to[OCT_FLAT_SLOTS];
        const oct_flat_field field[] = { OFFSET(OCT_TFL_MAP_NAME), NUMBER(OCT_TFL_MAP_TENSOR, end[i].tensor) };
        oct_flat_point(f, list + 4 * (1 + i), oct_flat_table(f, field, OCT_COUNT(field), to));
        oct_flat_point(f, to[OCT_TFL_MAP_NAME], oct_flat_string(f, end[i].name));
    }
}

/* The one signature, under the name that converters of TensorFlow give. */
static void write_signature(writing *w, size_t at)
{
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS];
    const oct_flat_field field[] = { OFFSET(OCT_TFL_SIGNATURE_INPUTS), OFFSET(OCT_TFL_SIGNATURE_OUTPUTS),
                                     OFFSET(OCT_TFL_SIGNATURE_KEY) };
    const size_t list = oct_flat_vector(f, NULL, 1, 4);
    oct_flat_point(f, at, list);
    oct_flat_point(f, list + 4, oct_flat_table(f, field, OCT_COUNT(field), to));
    write_map(f, w->m->input, w->m->n_input, to[OCT_TFL_SIGNATURE_INPUTS]);
    write_map(f, w->m->output, w->m->n_output, to[OCT_TFL_SIGNATURE_OUTPUTS]);
    oct_flat_point(f, to[OCT_TFL_SIGNATURE_KEY], oct_flat_string(f, "serving_default"));
}

static void write_metadata(writing *w, size_t at)
{
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS];
    const oct_flat_field field[] = { OFFSET(OCT_TFL_METADATA_NAME),
                                     NUMBER(OCT_TFL_METADATA_BUFFER, buffer_of(w, w->runtime, sizeof w->runtime)) };
    const size_t list = oct_flat_vector(f, NULL, 1, 4);
    oct_flat_point(f, at, list);
    oct_flat_point(f, list + 4, oct_flat_table(f, field, OCT_COUNT(field), to));
    oct_flat_point(f, to[OCT_TFL_METADATA_NAME], oct_flat_string(f, "min_runtime_version"));
}

static void write_buffers(writing *w, size_t at)
{
    oct_flat *f = &w->f;
    const oct_flat_field field[] = { OFFSET(OCT_TFL_BUFFER_DATA) };
    const size_t list = oct_flat_vector(f, NULL, w->n_data, 4);
    oct_flat_point(f, at, list);
    for (size_t i = 0; i < w->n_data; i++) {
        size_t to[OCT_FLAT_SLOTS];
        oct_flat_point(f, list + 4 * (1 + i), oct_flat_table(f, field, w->data[i] ? 1 : 0, to));
        w->data_at[i] = w->data[i] ? to[OCT_TFL_BUFFER_DATA] : 0;
    }
}

static oct_status write_tables(writing *w, oct_err *err)
{
    oct_flat *f = &w->f;
    size_t to[OCT_FLAT_SLOTS];
    const oct_flat_field field[] = { NUMBER(OCT_TFL_MODEL_VERSION, OCT_TFL_SCHEMA_VERSION),
                                     OFFSET(OCT_TFL_MODEL_CODES),
                                     OFFSET(OCT_TFL_MODEL_SUBGRAPHS),
                                     OFFSET(OCT_TFL_MODEL_DESCRIPTION),
                                     OFFSET(OCT_TFL_MODEL_BUFFERS),
                                     OFFSET(OCT_TFL_MODEL_METADATA),
                                     OFFSET(OCT_TFL_MODEL_SIGNATURES) };
    oct_buf_add(&f->b, "\0\0\0\0" OCT_TFL_IDENTIFIER, 8);
    oct_flat_point(f, 0, oct_flat_table(f, field, OCT_COUNT(field), to));
    buffer_of(w, NULL, 0);
    OCT_TRY(write_subgraph(w, to[OCT_TFL_MODEL_SUBGRAPHS], err));
    write_codes(w, to[OCT_TFL_MODEL_CODES]);
    oct_flat_point(f, to[OCT_TFL_MODEL_DESCRIPTION], oct_flat_string(f, w->m->description));
    write_metadata(w, to[OCT_TFL_MODEL_METADATA]);
    write_signature(w, to[OCT_TFL_MODEL_SIGNATURES]);
    write_buffers(w, to[OCT_TFL_MODEL_BUFFERS]);
    return f->b.failed ? oct_nomem(err) : OCT_OK;
}

/* The place of the next constant's vector if the file ends at `end`: its elements are aligned. */
static uint64_t place_data(uint64_t end)
{
    return end + (-(end + 4) & (DATA_ALIGN - 1));
}

/* Refers to the constants behind the tables; *end: the size of the file. */
static oct_status place_all(writing *w, uint64_t *end, oct_err *err)
{
    *end = w->f.b.len;
    for (size_t i = 0; i < w->n_data; i++) {
        if (!w->data[i])
            continue;
        const uint64_t at = place_data(*end);
        if (w->bytes[i] > INT32_MAX || (*end = at + 4 + w->bytes[i]) > INT32_MAX) {
            oct_fail(err, OCT_EUNSUPPORTED, "the model is larger than a .tflite file can be (2 GB)");
            oct_hint(err, "write .onnx, whose large tensors can lie in a second file, or convert it in parts");
            return OCT_EUNSUPPORTED;
        }
        oct_flat_point(&w->f, w->data_at[i], (size_t)at);
    }
    return OCT_OK;
}

static void put_data(const writing *w, oct_out *out)
{
    static const char zeros[DATA_ALIGN];
    uint64_t end = w->f.b.len;
    oct_out_write(out, w->f.b.data, w->f.b.len);
    for (size_t i = 0; i < w->n_data; i++) {
        if (!w->data[i])
            continue;
        const uint32_t bytes = (uint32_t)w->bytes[i];
        const uint64_t at = place_data(end);
        oct_out_write(out, zeros, (size_t)(at - end));
        oct_out_write(out, &bytes, sizeof bytes);
        oct_out_write(out, w->data[i], bytes);
        end = at + 4 + bytes;
    }
}

static oct_status run(writing *w, oct_out *out, uint64_t *size, oct_err *err)
{
    const oct_tfl_model *m = w->m;
    const size_t buffers = m->n_tensor + 2; /* the empty one, and that of the metadata */
    w->version = oct_arena_calloc(w->arena, m->n_op + 1, sizeof *w->version);
    w->data_at = oct_arena_calloc(w->arena, buffers, sizeof *w->data_at);
    w->data = oct_arena_calloc(w->arena, buffers, sizeof *w->data);
    w->bytes = oct_arena_calloc(w->arena, buffers, sizeof *w->bytes);
    w->zeros = oct_arena_calloc(w->arena, m->n_tensor + 1, sizeof *w->zeros);
    if (!w->version || !w->data_at || !w->data || !w->bytes || !w->zeros)
        return oct_nomem(err);
    OCT_TRY(write_tables(w, err));
    OCT_TRY(place_all(w, size, err));
    if (out)
        put_data(w, out);
    return OCT_OK;
}

static oct_status write_or_count(const oct_tfl_model *m, oct_out *out, uint64_t *size, oct_err *err)
{
    writing w = { .m = m, .arena = oct_arena_create(), .f = { .b = OCT_BUF_INIT } };
    const oct_status s = w.arena ? run(&w, out, size, err) : oct_nomem(err);
    oct_buf_free(&w.f.b);
    oct_arena_destroy(w.arena);
    return s;
}

oct_status oct_tfl_model_write(const oct_tfl_model *m, oct_out *out, oct_err *err)
{
    uint64_t size;
    return write_or_count(m, out, &size, err);
}

oct_status oct_tfl_model_size(const oct_tfl_model *m, uint64_t *bytes, oct_err *err)
{
    return write_or_count(m, NULL, bytes, err);
}
