/* lib/quant/methods.h -- methods that win accuracy back: one table (methods.inc), switched by name. */
#ifndef OCT_QUANT_METHODS_H
#define OCT_QUANT_METHODS_H

#include "base/status.h"

struct oct_conversion;
struct oct_qjob_opts;

/* What a method works on, in the order in which a conversion comes to it. */
typedef enum oct_method_step {
    OCT_STEP_GRAPH,    /* the prepared float graph, before ranges are known: the function it computes stays */
    OCT_STEP_RANGES,   /* how statistics become ranges */
    OCT_STEP_CHOICE,   /* which layers get which scheme or bits */
    OCT_STEP_WEIGHTS,  /* scales of weights */
    OCT_STEP_ROUNDING, /* quantized values of weights */
    OCT_STEP_BIASES,   /* what biases make up for */
    OCT_STEP_COUNT
} oct_method_step;
const char *oct_method_step_name(oct_method_step s); /* "ranges" */

typedef enum oct_method_needs {
    OCT_NEEDS_NOTHING,
    OCT_NEEDS_STATISTICS, /* from samples or a table */
    OCT_NEEDS_SAMPLES     /* that can be run through the model again */
} oct_method_needs;
const char *oct_method_needs_name(oct_method_needs n); /* "samples" */

/* What became of a method in a conversion. */
typedef struct oct_method_result {
    const struct oct_method *method;
    bool ran;
    const char *why;       /* why it did not run: one clause; NULL when it did */
    char choice[64];       /* what it chose; "" where it has nothing to choose */
    const char *measure;   /* what before and after are: "output SQNR"; NULL: not measured */
    const char *unit;
    double before, after;  /* without it and with it */
} oct_method_result;

typedef struct oct_method {
    const char *name, *summary; /* one line, for --list-methods */
    oct_method_step step;
    oct_method_needs needs;
    bool by_default;
    bool of_blocks; /* works on weights in blocks, for which nothing has a range */
    bool high; /* costs so much that it is used with --effort high only */
    /* Sets what the job must know from its start. NULL: nothing. */
    void (*prepare)(struct oct_qjob_opts *o);
    /* Does the work when its step comes; what it needs is there (convert_int.h). A method of ranges may gather the statistics itself, in
     * the parts that it wants; one that changed the graph calls oct_conversion_reopen, one that changed what decisions rest on
     * oct_conversion_changed. One that has nothing to do here sets r->why. NULL: prepare was all. */
    oct_status (*run)(struct oct_conversion *c, oct_method_result *r, oct_err *err);
    /* Fills what it gained from the final decisions. NULL: run did, or nothing is measured. */
    void (*gain)(const struct oct_conversion *c, oct_method_result *r);
} oct_method;

/* The table, in the order in which methods of one step run. */
const oct_method *const *oct_method_all(size_t *n);

enum { OCT_METHODS_MAX = 32 };
/* Which of the table are on; those asked for by name must not lack what they need. */
typedef struct oct_method_set {
    bool on[OCT_METHODS_MAX], asked[OCT_METHODS_MAX];
} oct_method_set;
oct_method_set oct_methods_default(void);
/* The same with those that cost more (--effort high). */
oct_method_set oct_methods_high(void);
/* Switches one by its name; an unknown name and one that was switched the other way by name are OCT_EUSAGE. */
oct_status oct_methods_switch(oct_method_set *s, const char *name, bool on, oct_err *err);
/* The same for all that need samples, or that work on biases: what options of older versions meant. */
void oct_methods_drop_needing(oct_method_set *s, oct_method_needs needs);
void oct_methods_drop_step(oct_method_set *s, oct_method_step step);
/* Whether one that is on needs as much. */
bool oct_methods_any_needing(const oct_method_set *s, oct_method_needs needs);
/* Whether one that is on works in that step. */
bool oct_methods_any_in(const oct_method_set *s, oct_method_step step);

#endif
