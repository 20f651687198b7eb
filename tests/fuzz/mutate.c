/* Mutations of protobuf messages as trees, so that lengths stay right and what a model is made of gets mixed: what
 * bytes alone seldom do. The target names the message's type (fuzz_message). */
#include "base/mem.h"
#include "onnx/proto.h"
#include "ops/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t max_out,
                                 unsigned seed);
extern const ProtobufCMessageDescriptor *const fuzz_message;

enum { MOST_NODES = 4096, MOST_WORDS = 1024, MOST_BYTES = 4096, LONGEST = 1 << 16 };

typedef struct tree {
    oct_arena *arena;
    ProtobufCMessage *root;
    ProtobufCMessage *node[MOST_NODES];
    size_t n_node;
    char *word[MOST_WORDS]; /* every string of the message */
    size_t n_word;
    uint64_t state; /* of the random numbers */
} tree;

static uint64_t below(tree *t, uint64_t n)
{
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (t->state >> 33) % n;
}

/* ---- fields by their descriptor ---- */

static void *member(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (char *)m + f->offset;
}

static size_t *count_of(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (size_t *)(void *)((char *)m + f->quantifier_offset);
}

static bool is_repeated(const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED;
}

static bool is_chosen(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || *(uint32_t *)(void *)count_of(m, f) == f->id;
}

static void mark_given(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        *(uint32_t *)(void *)count_of(m, f) = f->id;
    else if (f->quantifier_offset)
        *(protobuf_c_boolean *)(void *)count_of(m, f) = 1;
}

static size_t width(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return 8;
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return 4;
    }
}

/* ---- the tree ---- */

static void gather(tree *t, ProtobufCMessage *m)
{
    if (t->n_node == MOST_NODES)
        return;
    t->node[t->n_node++] = m;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        bool many = is_repeated(f);
        void **at = many ? *(void ***)member(m, f) : member(m, f);
        size_t n = many ? *count_of(m, f) : is_chosen(m, f);
        if (f->type == PROTOBUF_C_TYPE_MESSAGE)
            for (size_t k = 0; k < n; k++)
                if (at[k])
                    gather(t, at[k]);
        if (f->type == PROTOBUF_C_TYPE_STRING)
            for (size_t k = 0; k < n && t->n_word < MOST_WORDS; k++)
                if (at[k])
                    t->word[t->n_word++] = at[k];
    }
}

static bool open_tree(tree *t, const uint8_t *data, size_t size, unsigned seed)
{
    void *m;
    t->n_node = t->n_word = 0;
    t->state = seed;
    t->arena = oct_arena_create();
    if (!t->arena || oct_proto_unpack(data, size, fuzz_message, t->arena, &m, NULL) != OCT_OK) {
        oct_arena_destroy(t->arena);
        return false;
    }
    t->root = m;
    gather(t, t->root);
    return true;
}

/* Packs the tree; 0 when it became too large. */
static size_t close_tree(tree *t, uint8_t *out, size_t max)
{
    size_t n = protobuf_c_message_get_packed_size(t->root);
    uint8_t *packed = n <= max ? oct_arena_alloc(t->arena, n + 1) : NULL;
    if (packed) { /* not into out at once: raw data are views of it */
        protobuf_c_message_pack(t->root, packed);
        memcpy(out, packed, n);
    }
    oct_arena_destroy(t->arena);
    return packed ? n : 0;
}

/* ---- new values ---- */

static int64_t number(tree *t, int64_t now)
{
    static const int64_t odd[] = { 0,         1,         2,         3,           4,         7,
                                   8,         16,        -1,        -2,          127,       255,
                                   1 << 16,   1 << 24,   INT32_MAX, INT32_MIN,   INT64_MAX, INT64_MIN,
                                   1ll << 32, 1ll << 40, 1ll << 62, -(1ll << 33) };
    switch (below(t, 4)) {
    case 0: return (int64_t)((uint64_t)now + 1);
    case 1: return (int64_t)((uint64_t)now - 1);
    case 2: return (int64_t)below(t, 32);
    default: return odd[below(t, OCT_COUNT(odd))];
    }
}

static double real(tree *t)
{
    static const double odd[] = { 0, -0.0, 1, -1, 0.5, 1e-45, 1e38, -1e38, NAN, INFINITY, -INFINITY, 3, 1e-3 };
    return odd[below(t, OCT_COUNT(odd))];
}

static char *word(tree *t)
{
    size_t n;
    const oct_op *const *all = oct_op_all(&n);
    if (t->n_word == 0 || below(t, 4) == 0)
        return oct_arena_strdup(t->arena, all[below(t, n)]->type);
    return t->word[below(t, t->n_word)];
}

static void new_bytes(tree *t, ProtobufCBinaryData *b)
{
    uint8_t *p = oct_arena_alloc(t->arena, MOST_BYTES);
    size_t n = b->len < MOST_BYTES ? b->len : MOST_BYTES;
    if (!p)
        return;
    if (n)
        memcpy(p, b->data, n);
    if (n > 1 && below(t, 2)) /* of the same length: a shape says how long it has to be */
        LLVMFuzzerMutate(p, n, n);
    else
        n = LLVMFuzzerMutate(p, n, MOST_BYTES);
    *b = (ProtobufCBinaryData){ n, p };
}

/* A copy with nothing in common with m: in its place below itself it would have no end. */
static void *copy_message(tree *t, const ProtobufCMessage *m)
{
    void *copy = NULL;
    const size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = n < LONGEST ? oct_arena_alloc(t->arena, n + 1) : NULL;
    if (bytes)
        protobuf_c_message_pack(m, bytes);
    return bytes && oct_proto_unpack(bytes, n, m->descriptor, t->arena, &copy, NULL) == OCT_OK ? copy : NULL;
}

static void *new_message(tree *t, const ProtobufCMessageDescriptor *d)
{
    for (int tries = 0; tries < 16; tries++) {
        ProtobufCMessage *m = t->node[below(t, t->n_node)];
        void *copy = m->descriptor == d ? copy_message(t, m) : NULL;
        if (copy)
            return copy;
    }
    ProtobufCMessage *m = oct_arena_alloc(t->arena, d->sizeof_message);
    if (m)
        protobuf_c_message_init(d, m);
    return m;
}

/* Another value for one element at p. */
static void change(tree *t, const ProtobufCFieldDescriptor *f, void *p)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_FLOAT: *(float *)p = (float)real(t); break;
    case PROTOBUF_C_TYPE_DOUBLE: *(double *)p = real(t); break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: *(int64_t *)p = number(t, *(int64_t *)p); break;
    case PROTOBUF_C_TYPE_STRING: *(char **)p = word(t); break;
    case PROTOBUF_C_TYPE_BYTES: new_bytes(t, p); break;
    case PROTOBUF_C_TYPE_MESSAGE: *(void **)p = new_message(t, f->descriptor); break;
    default: *(int32_t *)p = (int32_t)number(t, *(int32_t *)p);
    }
}

/* ---- mutations ---- */

/* One element of a list more, fewer, elsewhere or other. */
static void change_list(tree *t, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    size_t w = width(f->type), *n = count_of(m, f);
    char **list = member(m, f);
    if (*n == 0 || below(t, 4) == 0) {
        char *longer = oct_arena_calloc(t->arena, *n + 1, w);
        size_t at = below(t, *n + 1);
        if (!longer)
            return;
        if (*n) {
            memcpy(longer, *list, at * w);
            memcpy(longer + (at + 1) * w, *list + at * w, (*n - at) * w);
            memcpy(longer + at * w, *list + below(t, *n) * w, w);
        }
        if (f->type == PROTOBUF_C_TYPE_MESSAGE || *n == 0)
            change(t, f, longer + at * w);
        *list = longer;
        ++*n;
        return;
    }
    char *p = *list + below(t, *n) * w, *q = *list + below(t, *n) * w, keep[16];
    switch (below(t, 4)) {
    case 0:
        memmove(p, p + w, (size_t)(*list + *n * w - p) - w);
        --*n;
        break;
    case 1:
        memcpy(keep, p, w);
        memcpy(p, q, w);
        memcpy(q, keep, w);
        break;
    default:
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            change(t, f, p);
    }
}

static void change_field(tree *t, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (is_repeated(f)) {
        change_list(t, m, f);
    } else if (below(t, 8) == 0 && !(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) { /* takes it away */
        if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
            *(void **)member(m, f) = NULL;
        else if (f->quantifier_offset)
            *(protobuf_c_boolean *)(void *)count_of(m, f) = 0;
    } else {
        if (!is_chosen(m, f))
            memset(member(m, f), 0, width(f->type));
        change(t, f, member(m, f));
        if (f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
            mark_given(m, f);
        else if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
            mark_given(m, f);
    }
}

static bool is_told(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (is_repeated(f))
        return *count_of(m, f) > 0;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return is_chosen(m, f) && *(void **)member(m, f);
    return f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF
               ? is_chosen(m, f)
               : !f->quantifier_offset || *(protobuf_c_boolean *)(void *)count_of(m, f);
}

/* Fields that hold something are changed more often than others are filled. */
static void mutate_once(tree *t)
{
    ProtobufCMessage *m = t->node[below(t, t->n_node)];
    for (int tries = 0; m->descriptor->n_fields && tries < 8; tries++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[below(t, m->descriptor->n_fields)];
        if (!is_told(m, f) && tries < 7)
            continue;
        change_field(t, m, f);
        return;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static tree t;
    if (seed % 8 == 0 || !open_tree(&t, data, size, seed))
        return LLVMFuzzerMutate(data, size, max_size);
    for (uint64_t n = 1 + below(&t, 4); n > 0; n--)
        mutate_once(&t);
    size_t n = close_tree(&t, data, max_size);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}

/* A message of b in the place of one of a that has its type. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t max_out,
                                 unsigned seed)
{
    static tree t, from;
    if (!open_tree(&t, a, na, seed))
        return 0;
    if (!open_tree(&from, b, nb, seed)) {
        oct_arena_destroy(t.arena);
        return 0;
    }
    for (int tries = 0; tries < 64; tries++) {
        ProtobufCMessage *to = t.node[below(&t, t.n_node)], *m = from.node[below(&t, from.n_node)];
        if (to == t.root || to->descriptor != m->descriptor)
            continue;
        memcpy(to, m, m->descriptor->sizeof_message);
        break;
    }
    size_t n = close_tree(&t, out, max_out);
    oct_arena_destroy(from.arena);
    return n;
}
