/* lib/quant/methods/methods.h -- methods that recover accuracy. They stand in the table of a conversion's steps
 * (quant/convert/steps.inc), and are switched on and off by name. */
#ifndef OCT_QUANT_METHODS_H
#define OCT_QUANT_METHODS_H

#include "base/buf.h"
#include "base/status.h"

struct oct_conversion;
struct oct_qjob_opts;

/* What a method changes. The order is that of the steps of a conversion. */
typedef enum oct_method_step {
    OCT_STEP_GRAPH,   /* the prepared float graph, before ranges are known; the function that it computes stays the same
                       */
    OCT_STEP_RANGES,  /* how ranges are chosen from statistics */
    OCT_STEP_CHOICE,  /* which scheme or number of bits a layer gets */
    OCT_STEP_WEIGHTS, /* the scales of weights */
    OCT_STEP_ROUNDING, /* the quantized values of weights */
    OCT_STEP_BIASES,   /* the corrections that are added to biases */
    OCT_STEP_COUNT
} oct_method_step;
const char *oct_method_step_name(oct_method_step s); /* The name of a step, such as "ranges". */

typedef enum oct_method_needs {
    OCT_NEEDS_NOTHING,
    OCT_NEEDS_STATISTICS, /* statistics, from samples or from a table */
    OCT_NEEDS_SAMPLES     /* samples that can be run through the model again */
} oct_method_needs;
const char *oct_method_needs_name(oct_method_needs n); /* The name of a need, such as "samples". */

/* The result of a method in a conversion. */
typedef struct oct_method_result {
    const struct oct_method *method;
    bool ran;
    const char *why;     /* the reason why it did not run, as one clause; NULL: it ran */
    char choice[64];     /* what it chose; "" if it has nothing to choose */
    const char *measure; /* what `before` and `after` measure, such as "output SQNR"; NULL: nothing was measured */
    const char *unit;
    double before, after; /* the measurement without the method, and with it */
    const char *next;     /* the best of what was not chosen; NULL: there was nothing else to choose */
    double next_value;    /* the measurement with that */
    const char *although; /* the reason why it was kept although `after` is worse, as one clause; NULL: it is not */
} oct_method_result;
/* Whether the measurement with the method is worse than that without it: a smaller number, or of errors in steps a
 * larger one. */
bool oct_method_is_worse(const oct_method_result *r);
/* Appends what the method did, for every report: "minmax, output SQNR 32.9 dB (without: 32.7 dB; next best: hist-mse=4
 * with 32.8 dB)"; or, if it did nothing but run, its summary. A number that is worse than without the method comes with
 * the reason. */
void oct_method_text(const oct_method_result *r, oct_buf *out);

typedef struct oct_method {
    const char *name, *summary; /* one line, for --list-methods */
    oct_method_step step;
    oct_method_needs needs;
    bool by_default;
    bool of_blocks;  /* it works on weights in blocks, which need no ranges */
    bool of_dynamic; /* it also works on layers that quantize their inputs when they run, which need no ranges */
    bool high;       /* it takes so long that it is used only with --effort high */
    /* Sets what the job must know from the start. NULL: nothing. */
    void (*prepare)(struct oct_qjob_opts *o);
    /* Runs the method in its step; what the method needs is there (convert_int.h). A method of ranges may gather
     * statistics itself, in parts of its choice. It calls oct_conversion_reopen after changing the graph, and
     * oct_conversion_changed after changing anything that decisions depend on. If there is nothing to do, it sets
     * r->why. NULL: `prepare` has done everything. */
    oct_status (*run)(struct oct_conversion *c, oct_method_result *r, oct_err *err);
    /* Sets the gain of the method from the final decisions. NULL: `run` has set it, or it is not measured. */
    void (*gain)(const struct oct_conversion *c, oct_method_result *r);
} oct_method;

/* The methods of the table, in its order, in which they run. */
const oct_method *const *oct_method_all(size_t *n);

enum { OCT_METHODS_MAX = 32 };
/* Which methods of the table are on. A method that was asked for by name must have what it needs. */
typedef struct oct_method_set {
    bool on[OCT_METHODS_MAX], asked[OCT_METHODS_MAX];
} oct_method_set;
oct_method_set oct_methods_default(void);
/* The same with those that take long (--effort high). */
oct_method_set oct_methods_high(void);
/* Switches a method by name. OCT_EUSAGE: the name is unknown, or was switched the other way before. */
oct_status oct_methods_switch(oct_method_set *s, const char *name, bool on, oct_err *err);
/* Switches all methods that need samples, or all that change biases. Options of older versions did this. */
void oct_methods_drop_needing(oct_method_set *s, oct_method_needs needs);
void oct_methods_drop_step(oct_method_set *s, oct_method_step step);
/* Whether a method that is on has this need. */
bool oct_methods_any_needing(const oct_method_set *s, oct_method_needs needs);

#endif
