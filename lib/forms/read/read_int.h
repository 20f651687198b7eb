/* lib/forms/read/read_int.h -- shared by the files that read forms. Private to lib/forms. */
#ifndef OCT_FORMS_READ_INT_H
#define OCT_FORMS_READ_INT_H

#include "forms/forms.h"
#include "ops/core/quantized.h"

/* A value that carries the quantization of another value. */
typedef struct forms_annotated {
    int value;
    struct forms_annotated *next;
} forms_annotated;

/* What is known about a value while reading. */
typedef struct forms_value {
    forms_annotated *annotated; /* for an integer value */
    int now;                    /* the value that replaces it; -1: it is not replaced */
    const oct_quant
        *qparams; /* for scales: the quantization that was last read with them; values with the same one share it */
} forms_value;

typedef struct forms_reader {
    oct_graph *g;
    const oct_read_opts *opts;
    forms_value *value;
    size_t n_value, cap_value;
} forms_reader;

/* Whether a node has this operator, in the default domain or com.microsoft. */
bool forms_is(const oct_node *n, const char *op);
/* Whether a value inside a dynamically quantized product is looked at. */
bool forms_seen(const forms_reader *r, int v);
/* Replaces `from` by value `to`, which no node computes, or which has the same numbers. `from` is removed. */
oct_status forms_replace(forms_reader *r, int from, int to, oct_err *err);

/* The place of parameters: values; zero is -1 if all are 0. axis -1: the last one; block 0: none. count: there are so
 * many scales and zero points, or one for all, in any shape; 0: they have the shape that QuantizeLinear requires. */
typedef struct forms_qparams {
    int scale, zero;
    int64_t axis, block, count;
} forms_qparams;
/* The quantization of an integer value. *q is NULL if the parameters are not constant, or not valid for such values. */
oct_status forms_params(forms_reader *r, const forms_qparams *qparams, int qvals, const oct_quant **q, oct_err *err);
/* The same for the quantized values that a QuantizeLinear computes or a DequantizeLinear reads. */
oct_status forms_params_of(forms_reader *r, const oct_node *n, int qvals, const oct_quant **q, oct_err *err);
/* Copies it into the graph's arena. */
oct_status forms_quant(forms_reader *r, const oct_quant *like, const oct_quant **q, oct_err *err);

/* Finds or makes a value of type `real` that carries the quantization of `qvals`; it is made before node `before`. into
 * (-1: none): a value that no node computes, to be used if one must be made. */
oct_status forms_annotated_of(forms_reader *r, int qvals, const oct_quant *q, oct_dtype real, int into, int before,
                              int *v, oct_err *err);
/* An annotated value that exists, or can be made because a quantizer computes the quantized values; -1: there is
 * none. */
oct_status forms_known(forms_reader *r, int qvals, int before, int *v, oct_err *err);
/* Makes a value with q for the integer value at output `slot` of a node: the node then computes the new value, and the
 * integers are its numbers. */
oct_status forms_take_output(forms_reader *r, int node, int slot, const oct_quant *q, oct_err *err);

/* A name without the suffix that writing adds; `absent` if it has none. */
oct_status forms_stem(forms_reader *r, const char *name, const char *suffix, const char *absent, const char **stem,
                      oct_err *err);
/* Quantized values that are no longer needed become the value that carries their quantization. When it is written
 * again, it gets their name and their place. */
oct_status forms_settle(forms_reader *r, int qvals, oct_err *err);
/* Makes value v carry the quantization. */
oct_status forms_add_annotated(forms_reader *r, int qvals, int v, oct_err *err);

/* The forms. Each function reads a node if it has its form. */
oct_status forms_read_dequantize(forms_reader *r, int node, oct_err *err);
oct_status forms_read_qlinear(forms_reader *r, int node, bool *done, oct_err *err);
oct_status forms_read_move(forms_reader *r, int node, oct_err *err);
oct_status forms_read_blocks(forms_reader *r, int node, oct_err *err);
oct_status forms_read_dynamic(forms_reader *r, int node, oct_err *err);
oct_status forms_read_lstm(forms_reader *r, int node, oct_err *err);
/* Reads a quantizer that no other form has used. */
oct_status forms_read_quantize(forms_reader *r, int node, oct_err *err);
/* Removes quantizers after nodes that run on quantized values: these nodes then compute the quantized values. */
oct_status forms_absorb(forms_reader *r, int node, oct_err *err);

#endif
