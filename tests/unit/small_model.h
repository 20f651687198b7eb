/* tests/unit/small_model.h -- models of one node, made in memory: protobuf by hand. */
#ifndef OCT_TESTS_SMALL_MODEL_H
#define OCT_TESTS_SMALL_MODEL_H

#include "octet/octet.h"

#include <stdint.h>
#include <string.h>

typedef struct proto {
    unsigned char v[8192];
    size_t n;
} proto;

static inline void proto_number(proto *p, uint64_t x)
{
    for (; x >= 0x80; x >>= 7)
        p->v[p->n++] = (unsigned char)(x | 0x80);
    p->v[p->n++] = (unsigned char)x;
}

static inline void proto_int(proto *p, int field, uint64_t x)
{
    proto_number(p, (uint64_t)field << 3);
    proto_number(p, x);
}

static inline void proto_bytes(proto *p, int field, const void *v, size_t n)
{
    proto_number(p, (uint64_t)field << 3 | 2);
    proto_number(p, n);
    memcpy(p->v + p->n, v, n);
    p->n += n;
}

static inline void proto_text(proto *p, int field, const char *s)
{
    proto_bytes(p, field, s, strlen(s));
}

/* A ValueInfoProto of shape [N, columns]. */
static inline void proto_matrix(proto *graph, int field, const char *name, octet_type type, uint64_t columns)
{
    proto n = { .n = 0 }, fixed = n, shape = n, tensor = n, kind = n, value = n;
    proto_text(&n, 2, "N");
    proto_int(&fixed, 1, columns);
    proto_bytes(&shape, 1, n.v, n.n);
    proto_bytes(&shape, 1, fixed.v, fixed.n);
    proto_int(&tensor, 1, type);
    proto_bytes(&tensor, 2, shape.v, shape.n);
    proto_bytes(&kind, 1, tensor.v, tensor.n);
    proto_text(&value, 1, name);
    proto_bytes(&value, 2, kind.v, kind.n);
    proto_bytes(graph, field, value.v, value.n);
}

/* The same of shape [N, 4]. */
static inline void proto_value(proto *graph, int field, const char *name, octet_type type)
{
    proto_matrix(graph, field, name, type, 4);
}

/* A ModelProto: y = op(a) or op(a, b), values of shape [N, 4] and one type. */
static inline proto small_model(const char *op, int n_in, octet_type type, const char *node_name)
{
    proto node = { .n = 0 }, graph = node, opset = node, model = node;
    proto_text(&node, 1, "a");
    if (n_in > 1)
        proto_text(&node, 1, "b");
    proto_text(&node, 2, "y");
    proto_text(&node, 3, node_name);
    proto_text(&node, 4, op);
    proto_bytes(&graph, 1, node.v, node.n);
    proto_text(&graph, 2, "g");
    proto_value(&graph, 11, "a", type);
    if (n_in > 1)
        proto_value(&graph, 11, "b", type);
    proto_value(&graph, 12, "y", type);
    proto_int(&opset, 2, 17);
    proto_int(&model, 1, 8);
    proto_bytes(&model, 8, opset.v, opset.n);
    proto_bytes(&model, 7, graph.v, graph.n);
    return model;
}

#endif
