/* lib/onnx/load_int.h -- what the files of loading share: load.c (graphs), load_function.c (functions). */
#ifndef OCT_ONNX_LOAD_INT_H
#define OCT_ONNX_LOAD_INT_H

#include "onnx/index.h"

#include <string.h>

/* The state of loading one graph; that of a nested graph refers to that of the graph around it. */
typedef struct load_graph {
    oct_model *m;
    oct_graph *g;
    const Onnx__GraphProto *p;
    oct_graph_record *x;
    const struct load_graph *outer;
    oct_err *err;
} load_graph;

static inline const char *load_text(const char *s)
{
    return s ? s : "";
}

static inline const char *load_domain(const char *s)
{
    return s && strcmp(s, "ai.onnx") != 0 ? s : "";
}

/* Fills b->g from b->p. */
oct_status load_build(load_graph *b);
oct_status load_opsets(oct_graph *g, Onnx__OperatorSetIdProto *const *list, size_t n, oct_err *err);
/* b: the state of the graph whose arena gets the attribute's lists. */
oct_status load_attr(load_graph *b, const Onnx__AttributeProto *p, oct_attr *a);
/* The model's functions, for its graph b->g. */
oct_status load_functions(load_graph *b, const Onnx__ModelProto *p);

#endif
