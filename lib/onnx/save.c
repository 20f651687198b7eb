/* Writing a message, with or without external data, and metadata. */
#include "onnx/save.h"

#include "base/spill.h"

#include <limits.h>
#include <string.h>

enum { SPILL_BYTES = 1024, SPILL_ALIGN = OCT_DATA_ALIGN };

/* The message's tensors, and those that are changed for the time of writing. */
typedef struct undo {
    Onnx__TensorProto *tensor;
    Onnx__TensorProto was;
} undo;

typedef struct save {
    oct_model *m;
    const char *path;
    uint64_t limit;
    oct_data_pool *pool; /* NULL: none */
    oct_message msg;
    Onnx__TensorProto **tensor;
    size_t n_tensor, cap_tensor;
    undo *undo;
    size_t n_undo, cap_undo;
    char *data_path;      /* the external data file that was written, or NULL */
    oct_model_draft *out; /* what is made */
    oct_err *err;
} save;

struct oct_model_draft {
    oct_out model, data; /* data.path NULL: the model needs none */
    char *location;      /* of data, as the model names it */
};

/* ---- metadata ---- */

oct_status oct_model_set_meta(oct_model *m, const char *key, const char *value, oct_err *err)
{
    Onnx__ModelProto *p = m->proto;
    char *text = oct_arena_strdup(m->arena, value);
    if (!text)
        return oct_nomem(err);
    for (size_t i = 0; i < p->n_metadata_props; i++) {
        Onnx__StringStringEntryProto *e = p->metadata_props[i];
        if (e->key && strcmp(e->key, key) == 0) {
            e->value = text;
            return OCT_OK;
        }
    }
    Onnx__StringStringEntryProto *e = oct_arena_alloc(m->arena, sizeof *e);
    Onnx__StringStringEntryProto **list = oct_arena_alloc(m->arena, (p->n_metadata_props + 1) * sizeof *list);
    if (!e || !list)
        return oct_nomem(err);
    onnx__string_string_entry_proto__init(e);
    e->key = oct_arena_strdup(m->arena, key);
    e->value = text;
    if (!e->key)
        return oct_nomem(err);
    if (p->n_metadata_props)
        memcpy(list, p->metadata_props, p->n_metadata_props * sizeof *list);
    list[p->n_metadata_props++] = e;
    p->metadata_props = list;
    return OCT_OK;
}

void oct_model_drop_meta(oct_model *m, const char *key)
{
    Onnx__ModelProto *p = m->proto;
    size_t kept = 0;
    for (size_t i = 0; i < p->n_metadata_props; i++)
        if (!p->metadata_props[i]->key || strcmp(p->metadata_props[i]->key, key) != 0)
            p->metadata_props[kept++] = p->metadata_props[i];
    p->n_metadata_props = kept;
}

const char *oct_model_meta(const oct_model *m, const char *key)
{
    const Onnx__ModelProto *p = m->proto;
    for (size_t i = 0; p && i < p->n_metadata_props; i++) /* a model that was not loaded has none */
        if (p->metadata_props[i]->key && strcmp(p->metadata_props[i]->key, key) == 0)
            return p->metadata_props[i]->value;
    return NULL;
}

const char *oct_model_meta_key(const oct_model *m, size_t i)
{
    const Onnx__ModelProto *p = m->proto;
    return p && i < p->n_metadata_props ? p->metadata_props[i]->key : NULL;
}

size_t oct_model_defaults(const oct_model *m, const char **first)
{
    const Onnx__ModelProto *p = m->proto;
    const oct_graph *g = m->graph;
    size_t n = 0;
    for (size_t i = 0; p && p->graph && i < p->graph->n_input; i++) {
        const char *name = p->graph->input[i]->name;
        const int v = name ? oct_graph_find(g, name) : -1;
        if (v < 0 || g->value[v].is_input)
            continue;
        if (n++ == 0)
            *first = name;
    }
    return n && m->ir_version > 3 && n < p->graph->n_initializer + p->graph->n_sparse_initializer ? n : 0;
}

/* ---- where tensors' bytes go ---- */

static oct_status collect(void *arg, Onnx__TensorProto *t, oct_err *err)
{
    save *s = arg;
    if (!OCT_GROW(s->msg.arena, s->tensor, s->n_tensor, s->cap_tensor))
        return oct_nomem(err);
    s->tensor[s->n_tensor++] = t;
    return OCT_OK;
}

/* Remembers a tensor before it is changed. */
static oct_status change(save *s, Onnx__TensorProto *t)
{
    if (!OCT_GROW(s->msg.arena, s->undo, s->n_undo, s->cap_undo))
        return oct_nomem(s->err);
    s->undo[s->n_undo++] = (undo){ t, *t };
    return OCT_OK;
}

static oct_status embed(save *s, Onnx__TensorProto *t)
{
    const uint8_t *data;
    size_t size;
    OCT_TRY(oct_external_bytes(s->m, t, oct_tensor_bytes(t), &data, &size, s->err));
    OCT_TRY(change(s, t));
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){ size, (uint8_t *)(uintptr_t)data };
    t->has_data_location = false;
    t->n_external_data = 0;
    return OCT_OK;
}

/* A reference would make the result depend on a file of the source: moving one would lose the other, and rewriting it
 * would change both. */
static oct_status embed_all(save *s)
{
    for (size_t i = 0; i < s->n_tensor; i++)
        if (oct_tensor_is_external(s->tensor[i]))
            OCT_TRY(embed(s, s->tensor[i]));
    return OCT_OK;
}

static oct_status refuse_inputs(const save *s, const char *path)
{
    for (size_t i = 0; i < s->m->n_maps; i++)
        if (oct_same_file(path, s->m->maps[i].path))
            return oct_fail(s->err, OCT_EUSAGE, "%s: the output would replace an input file", path);
    return OCT_OK;
}

static bool spills(const Onnx__TensorProto *t)
{
    return t->has_raw_data && t->raw_data.len >= SPILL_BYTES;
}

static oct_status name_data_file(save *s, const char **base)
{
    uint64_t h = OCT_HASH_INIT;
    for (size_t i = 0; i < s->n_tensor; i++)
        if (spills(s->tensor[i]))
            h = oct_hash(h, s->tensor[i]->raw_data.data, s->tensor[i]->raw_data.len);
    s->data_path = oct_arena_printf(s->msg.arena, "%s.%016llx.data", s->path, (unsigned long long)h);
    if (!s->data_path)
        return oct_nomem(s->err);
    const char *slash = strrchr(s->data_path, '/');
    *base = slash ? slash + 1 : s->data_path;
    return OCT_OK;
}

static Onnx__StringStringEntryProto *entry(oct_arena *a, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = value ? oct_arena_alloc(a, sizeof *e) : NULL;
    if (!e)
        return NULL;
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)(uintptr_t)key;
    e->value = (char *)(uintptr_t)value;
    return e;
}

static oct_status refer(save *s, Onnx__TensorProto *t, const char *base, uint64_t offset)
{
    oct_arena *a = s->msg.arena;
    OCT_TRY(change(s, t));
    Onnx__StringStringEntryProto **list = oct_arena_calloc(a, 3, sizeof *list);
    if (!list)
        return oct_nomem(s->err);
    list[0] = entry(a, "location", base);
    list[1] = entry(a, "offset", oct_arena_printf(a, "%llu", (unsigned long long)offset));
    list[2] = entry(a, "length", oct_arena_printf(a, "%zu", t->raw_data.len));
    if (!list[0] || !list[1] || !list[2])
        return oct_nomem(s->err);
    t->has_raw_data = false;
    t->external_data = list;
    t->n_external_data = 3;
    t->has_data_location = true;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    return OCT_OK;
}

/* Moves large tensors to a data file that will lie beside the output. */
static oct_status spill(save *s)
{
    static const uint8_t zeros[SPILL_ALIGN];
    oct_out *out = &s->out->data;
    const char *base = NULL;
    if (oct_path_is_stream(s->path))
        return oct_fail(s->err, OCT_EUNSUPPORTED, "the model is too large for one message; give it a file name");
    OCT_TRY(name_data_file(s, &base));
    OCT_TRY(refuse_inputs(s, s->data_path));
    if (!(s->out->location = oct_strdup(base)))
        return oct_nomem(s->err);
    OCT_TRY(oct_out_open(out, s->data_path, s->err));
    for (size_t i = 0; i < s->n_tensor; i++) {
        Onnx__TensorProto *t = s->tensor[i];
        if (!spills(t))
            continue;
        oct_out_write(out, zeros, (size_t)(-out->written % SPILL_ALIGN));
        uint64_t offset = out->written;
        oct_out_write(out, t->raw_data.data, t->raw_data.len);
        oct_spill_forget(t->raw_data.data, t->raw_data.len);
        OCT_TRY(refer(s, t, base, offset));
    }
    return oct_out_seal(out, s->err);
}

/* Moves large tensors to a file that other models share. */
static oct_status spill_to_pool(save *s)
{
    for (size_t i = 0; i < s->n_tensor; i++) {
        Onnx__TensorProto *t = s->tensor[i];
        uint64_t offset;
        if (!spills(t))
            continue;
        OCT_TRY(oct_data_pool_add(s->pool, t->raw_data.data, t->raw_data.len, &offset, s->err));
        OCT_TRY(refer(s, t, oct_data_pool_name(s->pool), offset));
    }
    return OCT_OK;
}

/* ---- writing ---- */

static oct_status write_message(save *s)
{
    OCT_TRY(oct_out_open(&s->out->model, s->path, s->err));
    OCT_TRY(oct_message_write(&s->msg.model.base, &s->out->model, s->err));
    return oct_out_seal(&s->out->model, s->err);
}

static oct_status run(save *s)
{
    OCT_TRY(oct_message_make(s->m, &s->msg, s->err));
    OCT_TRY(oct_proto_tensors(&s->msg.model.base, collect, s, s->err));
    OCT_TRY(embed_all(s));
    OCT_TRY(refuse_inputs(s, strcmp(s->path, "-") == 0 ? "/dev/stdout" : s->path));
    if (s->pool || protobuf_c_message_get_packed_size(&s->msg.model.base) > s->limit) {
        OCT_TRY((s->pool ? spill_to_pool : spill)(s));
        if (protobuf_c_message_get_packed_size(&s->msg.model.base) > INT_MAX)
            return oct_fail(s->err, OCT_EUNSUPPORTED, "%s: larger than 2 GB even without its weights", s->path);
    }
    return write_message(s);
}

/* ---- the size ---- */

/* Bytes of the data file that spill would write; the tensors refer to it afterwards. Its name has the same length. */
static oct_status count_spilled(save *s, uint64_t *bytes)
{
    const char *path = oct_arena_printf(s->msg.arena, "%s.%016llx.data", s->path, 0ull);
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path)
        return oct_nomem(s->err);
    for (size_t i = 0; i < s->n_tensor; i++) {
        if (!spills(s->tensor[i]))
            continue;
        const uint64_t offset = *bytes + (-*bytes % SPILL_ALIGN);
        *bytes = offset + s->tensor[i]->raw_data.len;
        OCT_TRY(refer(s, s->tensor[i], slash ? slash + 1 : path, offset));
    }
    return OCT_OK;
}

static oct_status measure(save *s, uint64_t *bytes)
{
    OCT_TRY(oct_message_make(s->m, &s->msg, s->err));
    OCT_TRY(oct_proto_tensors(&s->msg.model.base, collect, s, s->err));
    OCT_TRY(embed_all(s));
    *bytes = protobuf_c_message_get_packed_size(&s->msg.model.base);
    if (*bytes <= s->limit)
        return OCT_OK;
    uint64_t spilled = 0;
    OCT_TRY(count_spilled(s, &spilled));
    *bytes = spilled + protobuf_c_message_get_packed_size(&s->msg.model.base);
    return OCT_OK;
}

oct_status oct_model_size(oct_model *m, const char *path, const oct_save_options *options, uint64_t *bytes,
                          oct_err *err)
{
    save s = { .m = m, .path = path, .err = err, .limit = INT_MAX };
    if (options && options->max_bytes && options->max_bytes < INT_MAX)
        s.limit = options->max_bytes;
    if (!(s.msg.arena = oct_arena_create()))
        return oct_nomem(err);
    oct_status r = measure(&s, bytes);
    while (s.n_undo--)
        *s.undo[s.n_undo].tensor = s.undo[s.n_undo].was;
    oct_arena_destroy(s.msg.arena);
    return r;
}

oct_status oct_model_write(oct_model *m, const char *path, const oct_save_options *options, oct_model_draft **d,
                           oct_err *err)
{
    save s = { .m = m, .path = path, .err = err, .limit = INT_MAX, .pool = options ? options->pool : NULL };
    *d = NULL;
    if (options && options->max_bytes && options->max_bytes < INT_MAX)
        s.limit = options->max_bytes;
    if (!(s.msg.arena = oct_arena_create()) || !(s.out = oct_calloc(1, sizeof *s.out))) {
        oct_arena_destroy(s.msg.arena);
        return oct_nomem(err);
    }
    s.out->model.fd = s.out->data.fd = -1;
    oct_status r = run(&s);
    while (s.n_undo--)
        *s.undo[s.n_undo].tensor = s.undo[s.n_undo].was;
    oct_arena_destroy(s.msg.arena);
    if (r == OCT_OK)
        *d = s.out;
    else
        oct_model_draft_abort(s.out);
    return r;
}

oct_status oct_model_draft_load(const oct_model_draft *d, oct_model **m, oct_err *err)
{
    *m = NULL;
    return d->model.file ? oct_model_load_written(&d->model, d->location ? &d->data : NULL, d->location, m, err)
                         : OCT_OK;
}

oct_status oct_model_draft_commit(oct_model_draft *d, oct_err *err)
{
    oct_status r = d->location ? oct_out_commit_both(&d->data, &d->model, err) : oct_out_commit(&d->model, err);
    oct_model_draft_abort(d);
    return r;
}

void oct_model_draft_abort(oct_model_draft *d)
{
    if (!d)
        return;
    oct_out_abort(&d->model);
    oct_out_abort(&d->data);
    oct_free(d->location);
    oct_free(d);
}

oct_status oct_model_save(oct_model *m, const char *path, const oct_save_options *options, oct_err *err)
{
    oct_model_draft *d;
    OCT_TRY(oct_model_write(m, path, options, &d, err));
    return oct_model_draft_commit(d, err);
}
