/* lib/quant/size_choice_int.h -- what each part of a model takes and costs in each form, from which size_choice.c chooses. */
#ifndef OCT_QUANT_SIZE_CHOICE_INT_H
#define OCT_QUANT_SIZE_CHOICE_INT_H

#include "quant/convert_int.h"
#include "quant/job.h"

/* The forms that a layer's weights may have. */
typedef struct oct_size_form {
    const char *name;
    oct_scheme scheme; /* OCT_SCHEME_AUTO: as the policy has it */
    oct_weight_type weights;
    int block;         /* weights and block: of OCT_SCHEME_WEIGHT_ONLY */
} oct_size_form;
enum { OCT_SIZE_FLOAT, OCT_SIZE_HALF, OCT_SIZE_FORMS = 12 };
extern const oct_size_form oct_size_forms[OCT_SIZE_FORMS];

/* A unit in a form. */
typedef struct oct_size_option {
    bool there;    /* the target runs it, and it differs from float */
    double bytes;  /* in the file, about */
    double error;  /* of its weights' rounding: noise of the signal */
    double noise;  /* expected at the outputs, of the signal */
} oct_size_option;

/* Layers that have their numbers in common, and so one form. */
typedef struct oct_size_unit {
    int *node;             /* of the job's graph */
    size_t n;
    int first;             /* one of them, for its name */
    double elements;       /* of all constants */
    bool told;             /* runs on samples tell what its weights cost */
    bool aside;            /* another unit has its nodes */
    oct_size_option option[OCT_SIZE_FORMS];
    int at;                /* the form that is chosen */
} oct_size_unit;

/* What nodes become that are no layers: as the policy has them (on integers, with samples), float, or 16-bit floats. */
typedef enum oct_size_others { OCT_SIZE_OTHERS_POLICY, OCT_SIZE_OTHERS_FLOAT, OCT_SIZE_OTHERS_HALF } oct_size_others;

typedef struct oct_size_units {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *a;
    oct_size_unit *unit;
    size_t n;
    qnode *node;           /* [n_nodes] and ... */
    qvalue *value;         /* ... [n_values] as the policy has them */
    uint64_t file[OCT_SIZE_FORMS]; /* bytes with all units in one form */
    oct_size_others others;
    bool measured;         /* noise comes from runs on samples */
} oct_size_units;

/* size_units.c: finds the units of the outermost graph that the user has left to choose, and what they take and cost. In a. Decisions stay. */
oct_status oct_size_list(oct_conversion *c, oct_arena *a, oct_size_units *u, oct_err *err);
/* Decides with the form that each unit is at. */
oct_status oct_size_apply(oct_size_units *u, oct_err *err);
/* Back to the policy's decisions. */
void oct_size_restore(oct_size_units *u);

/* size_inputs.c: what a layer costs, of the signal, by the rounding of its inputs (of a static one, of its output, too, if no layer reads that), expected by
 * statistics where there are some, else by what makes the values. 0 for schemes that round none. */
double oct_size_input_noise(const oct_size_units *u, int node, oct_scheme scheme);

/* size_choice.c: expected of all units as they are; the same in dB. */
double oct_size_noise(const oct_size_units *u);
double oct_size_decibels(double noise);
double oct_size_ratio(double decibels); /* and back */

/* size_rivals.c: compares what was chosen unit by unit (own[0]: forms of the units, others as the policy has them; own[1], or NULL: others float) with one
 * form for all of them, and decides with the best. own[0] or own[1] fits. */
oct_status oct_size_compare(oct_size_units *u, int *const own[2], oct_err *err);

#endif
