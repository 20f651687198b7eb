/* lib/forms/read_int.h -- what readers of forms share (inside lib/forms only). */
#ifndef OCT_FORMS_READ_INT_H
#define OCT_FORMS_READ_INT_H

#include "forms/forms.h"
#include "ops/core/quantized.h"

/* A value that carries what the quantized values of another stand for. */
typedef struct forms_annotated {
    int value;
    struct forms_annotated *next;
} forms_annotated;

/* What is known of a value while reading. */
typedef struct forms_value {
    forms_annotated *annotated; /* of an integer value */
    int now;                    /* the value that stands in its place; -1: itself */
    const oct_quant *qparams;   /* of scales: what was last read with them; values that have the same share it */
} forms_value;

typedef struct forms_reader {
    oct_graph *g;
    const oct_read_opts *opts;
    forms_value *value;
    size_t n_value, cap_value;
} forms_reader;

/* Whether a node is this operator, of the default domain or com.microsoft. */
bool forms_is(const oct_node *n, const char *op);
/* Whether somebody looks at a value inside of a spelled product. */
bool forms_seen(const forms_reader *r, int v);
/* Value `to`, which nothing makes or which has the same numbers, takes the place of `from`, which goes. */
oct_status forms_replace(forms_reader *r, int from, int to, oct_err *err);

/* Where parameters stand: values, zero -1: all 0. axis -1: the last; block 0: none. count: so many scales and zero points, or one for all, of
 * any shape; 0: of the shape that QuantizeLinear asks for. */
typedef struct forms_qparams {
    int scale, zero;
    int64_t axis, block, count;
} forms_qparams;
/* What an integer value stands for; *q is NULL when the parameters are no constants, or none that such quantized values can have. */
oct_status forms_params(forms_reader *r, const forms_qparams *qparams, int qvals, const oct_quant **q, oct_err *err);
/* The same of the quantized values that a QuantizeLinear makes or a DequantizeLinear reads. */
oct_status forms_params_of(forms_reader *r, const oct_node *n, int qvals, const oct_quant **q, oct_err *err);
/* A copy in the graph's arena. */
oct_status forms_quant(forms_reader *r, const oct_quant *like, const oct_quant **q, oct_err *err);

/* A value of reals of type `real` that carries what `qvals` stands for: found, or made before node `before`. into (-1: none): a value without
 * producer that shall be it, if one must be made. */
oct_status forms_annotated_of(forms_reader *r, int qvals, const oct_quant *q, oct_dtype real, int into, int before, int *v, oct_err *err);
/* An annotated value that there is, or can be made since the quantized values are a quantizer's; -1: none. */
oct_status forms_known(forms_reader *r, int qvals, int before, int *v, oct_err *err);
/* A new value with q beside the integer value that output `slot` of a node makes: the node makes it, and the quantized values are its numbers. */
oct_status forms_take_output(forms_reader *r, int node, int slot, const oct_quant *q, oct_err *err);

/* A name without the suffix that writing puts behind it; `absent` where it has none. */
oct_status forms_stem(forms_reader *r, const char *name, const char *suffix, const char *absent, const char **stem, oct_err *err);
/* Value v carries what the quantized values stand for. */
oct_status forms_add_annotated(forms_reader *r, int qvals, int v, oct_err *err);

/* The forms: each reads a node if it is of its kind. */
oct_status forms_read_dequantize(forms_reader *r, int node, oct_err *err);
oct_status forms_read_qlinear(forms_reader *r, int node, bool *done, oct_err *err);
oct_status forms_read_move(forms_reader *r, int node, oct_err *err);
oct_status forms_read_blocks(forms_reader *r, int node, oct_err *err);
oct_status forms_read_dynamic(forms_reader *r, int node, oct_err *err);
oct_status forms_read_lstm(forms_reader *r, int node, oct_err *err);
/* A quantizer that none of the above has asked for. */
oct_status forms_read_quantize(forms_reader *r, int node, oct_err *err);
/* Quantizers behind nodes that run on quantized values go: these make the quantized values. */
oct_status forms_absorb(forms_reader *r, int node, oct_err *err);

#endif
