/* Values in files of their own: a TensorProto, SequenceProto or OptionalProto. */
#include "onnx/tensor.h"

static oct_status add_tensor(const Onnx__TensorProto *p, oct_arena *a, oct_stored_value *v, oct_err *err)
{
    oct_tensor_kind kind;
    OCT_TRY(oct_tensor_decode(NULL, a, p, true, &v->t[v->n], &kind, err));
    if (kind == OCT_TENSOR_OPAQUE)
        return oct_fail(err, OCT_EUNSUPPORTED, "element type %d", (int)p->data_type);
    v->n++;
    return OCT_OK;
}

static oct_status take_tensor(const Onnx__TensorProto *p, oct_arena *a, oct_stored_value *v, oct_err *err)
{
    if (!(v->t = oct_arena_alloc(a, sizeof *v->t)))
        return oct_nomem(err);
    return add_tensor(p, a, v, err);
}

static oct_status take_sequence(const Onnx__SequenceProto *p, oct_arena *a, oct_stored_value *v, oct_err *err)
{
    if (p->n_sparse_tensor_values || p->n_sequence_values || p->n_optional_values)
        return oct_fail(err, OCT_EUNSUPPORTED, "a sequence of something else than tensors");
    v->sequence = true;
    if (!(v->t = oct_arena_calloc(a, p->n_tensor_values + 1, sizeof *v->t)))
        return oct_nomem(err);
    for (size_t i = 0; i < p->n_tensor_values; i++)
        OCT_TRY_WITHIN(add_tensor(p->tensor_values[i], a, v, err), err, "element %zu", i);
    if (v->n)
        v->elem = v->t[0]->dtype;
    return OCT_OK;
}

static oct_status take_optional(const Onnx__OptionalProto *p, oct_arena *a, oct_stored_value *v, oct_err *err)
{
    if (p->sparse_tensor_value || p->optional_value)
        return oct_fail(err, OCT_EUNSUPPORTED, "an optional of something else than a tensor or a sequence");
    if (p->sequence_value)
        return take_sequence(p->sequence_value, a, v, err);
    return p->tensor_value ? take_tensor(p->tensor_value, a, v, err) : OCT_OK;
}

static const ProtobufCMessageDescriptor *message_of(oct_value_kind kind)
{
    switch (kind) {
    case OCT_VALUE_TENSOR: return &onnx__tensor_proto__descriptor;
    case OCT_VALUE_SEQUENCE: return &onnx__sequence_proto__descriptor;
    case OCT_VALUE_OPTIONAL:
    case OCT_VALUE_OPTIONAL_SEQUENCE: break;
    }
    return &onnx__optional_proto__descriptor;
}

/* The value of a message, whose strings end with `own`. */
static oct_status take(const void *msg, oct_value_kind kind, oct_arena *a, oct_stored_value *v, const char **name,
                       oct_err *err)
{
    switch (kind) {
    case OCT_VALUE_TENSOR: *name = ((const Onnx__TensorProto *)msg)->name; return take_tensor(msg, a, v, err);
    case OCT_VALUE_SEQUENCE: *name = ((const Onnx__SequenceProto *)msg)->name; return take_sequence(msg, a, v, err);
    case OCT_VALUE_OPTIONAL:
    case OCT_VALUE_OPTIONAL_SEQUENCE: break;
    }
    *name = ((const Onnx__OptionalProto *)msg)->name;
    return take_optional(msg, a, v, err);
}

oct_status oct_value_load_pb(const char *path, oct_value_kind kind, oct_arena *a, oct_stored_value *v, oct_err *err)
{
    *v = (oct_stored_value){ .name = "" };
    oct_map map;
    OCT_TRY(oct_map_open(&map, path, err));
    oct_arena *own = oct_arena_create();
    void *msg = NULL;
    const char *name = NULL;
    oct_status s = own ? OCT_OK : oct_nomem(err);
    if (s == OCT_OK && !map.size && kind == OCT_VALUE_TENSOR)
        s = oct_fail(err, OCT_EMALFORMED, "the file is empty");
    if (s == OCT_OK)
        s = oct_proto_unpack(map.data, map.size, message_of(kind), own, &msg, err);
    if (s == OCT_OK)
        s = take(msg, kind, a, v, &name, err);
    if (s == OCT_OK && name && !(v->name = oct_arena_strdup(a, name)))
        s = oct_nomem(err);
    if (s != OCT_OK)
        oct_within(err, "%s", path);
    oct_arena_destroy(own);
    oct_map_close(&map);
    return s;
}
