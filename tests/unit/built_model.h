/* tests/unit/built_model.h -- models of several nodes, written as protobuf messages of any size. */
#ifndef OCT_TESTS_BUILT_MODEL_H
#define OCT_TESTS_BUILT_MODEL_H

#include "octet/octet.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A message. `v` is released by message_free, or when the message becomes a part of another. */
typedef struct message {
    unsigned char *v;
    size_t n, cap;
} message;

static inline void message_free(message *m)
{
    free(m->v);
    *m = (message){ 0 };
}

static inline void put_bytes(message *m, const void *v, size_t n)
{
    if (m->n + n > m->cap) {
        m->cap = 2 * (m->n + n) + 64;
        if (!(m->v = realloc(m->v, m->cap)))
            abort();
    }
    if (n)
        memcpy(m->v + m->n, v, n);
    m->n += n;
}

static inline void put_number(message *m, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        put_bytes(m, &(unsigned char){ (unsigned char)(x | 0x80) }, 1);
    put_bytes(m, &(unsigned char){ (unsigned char)x }, 1);
}

static inline void put_int(message *m, int field, int64_t x)
{
    put_number(m, (uint64_t)field << 3);
    put_number(m, (uint64_t)x);
}

static inline void put_field(message *m, int field, const void *v, size_t n)
{
    put_number(m, (uint64_t)field << 3 | 2);
    put_number(m, n);
    put_bytes(m, v, n);
}

static inline void put_text(message *m, int field, const char *s)
{
    put_field(m, field, s, strlen(s));
}

static inline void put_part(message *m, int field, message part)
{
    put_field(m, field, part.v, part.n);
    message_free(&part);
}

/* A ValueInfoProto; a dimension of -1 is the symbol N, a rank of -1 declares no shape. */
static inline message value_info(const char *name, octet_type type, int rank, const int64_t *dims)
{
    message shape = { 0 }, tensor = { 0 }, kind = { 0 }, value = { 0 };
    for (int i = 0; i < rank; i++) {
        message dim = { 0 };
        if (dims[i] < 0)
            put_text(&dim, 2, "N");
        else
            put_int(&dim, 1, dims[i]);
        put_part(&shape, 1, dim);
    }
    put_int(&tensor, 1, type);
    if (rank >= 0)
        put_part(&tensor, 2, shape);
    put_part(&kind, 1, tensor);
    put_text(&value, 1, name);
    put_part(&value, 2, kind);
    return value;
}

/* A TensorProto with raw data. */
static inline message tensor_message(const octet_array *a, size_t bytes)
{
    message t = { 0 };
    for (int i = 0; i < a->rank; i++)
        put_int(&t, 1, a->dims[i]);
    put_int(&t, 2, a->type);
    put_text(&t, 8, a->name);
    put_field(&t, 9, a->data, bytes);
    return t;
}

enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 }; /* fields of GraphProto */

/* Writes names that are separated by blanks into a repeated field; "-" is an absent one. */
static inline void put_names(message *m, int field, const char *names)
{
    while (*names) {
        const size_t n = strcspn(names, " ");
        put_field(m, field, names, n == 1 && *names == '-' ? 0 : n);
        names += n + (names[n] == ' ');
    }
}

/* A NodeProto, for attributes to be added. */
static inline message node_message(const char *op, const char *in, const char *out)
{
    message n = { 0 };
    put_names(&n, 1, in);
    put_names(&n, 2, out);
    put_text(&n, 4, op);
    return n;
}

static inline void put_attr_int(message *node, const char *name, int64_t v)
{
    message a = { 0 };
    put_text(&a, 1, name);
    put_int(&a, 3, v);
    put_int(&a, 20, 2);
    put_part(node, 5, a);
}

static inline void put_attr_graph(message *node, const char *name, message graph)
{
    message a = { 0 };
    put_text(&a, 1, name);
    put_part(&a, 6, graph);
    put_int(&a, 20, 5);
    put_part(node, 5, a);
}

static inline void put_node(message *graph, const char *op, const char *in, const char *out)
{
    put_part(graph, GRAPH_NODE, node_message(op, in, out));
}

/* A constant of a graph: an initializer, or a graph input, for which the array is to be given. */
static inline void put_constant(message *graph, const octet_array *a, size_t bytes, bool embedded)
{
    put_part(graph, embedded ? GRAPH_INITIALIZER : GRAPH_INPUT,
             embedded ? tensor_message(a, bytes) : value_info(a->name, a->type, a->rank, a->dims));
}

/* A ModelProto. */
static inline message model_message(message graph, int opset)
{
    message model = { 0 }, set = { 0 };
    put_int(&set, 2, opset);
    put_int(&model, 1, 10);
    put_part(&model, 8, set);
    put_text(&graph, 2, "g");
    put_part(&model, 7, graph);
    return model;
}

#endif
