/* lib/quant/budget/size_choice_int.h -- the bytes and the noise of each part of a model in each form, among which
 * size_choice.c chooses. */
#ifndef OCT_QUANT_SIZE_CHOICE_INT_H
#define OCT_QUANT_SIZE_CHOICE_INT_H

#include "quant/convert/convert_int.h"
#include "quant/job/decisions.h"

/* The forms that a layer's weights can have. */
typedef struct oct_size_form {
    const char *name;
    oct_scheme scheme; /* OCT_SCHEME_AUTO: as the policy says */
    oct_weight_type weights;
    int block; /* type of the weights, and block size, for OCT_SCHEME_WEIGHT_ONLY */
} oct_size_form;
enum { OCT_SIZE_FLOAT, OCT_SIZE_HALF, OCT_SIZE_FORMS = 12 };
extern const oct_size_form oct_size_forms[OCT_SIZE_FORMS];

/* A unit in one of the forms. */
typedef struct oct_size_option {
    bool there;   /* the target runs this form, and it differs from float */
    double bytes; /* approximate bytes in the file */
    double error; /* noise of the rounded weights relative to the weights */
    double noise; /* expected noise at the outputs relative to the signal */
} oct_size_option;

/* A unit: layers that share their weights, and so have the same form. */
typedef struct oct_size_unit {
    int *node; /* nodes of the job's graph */
    size_t n;
    int first;       /* one of the nodes, for its name */
    double elements; /* the number of elements of all constants */
    bool told;       /* the noise from its weights was measured by running samples */
    bool aside;      /* another unit contains its nodes */
    oct_size_option option[OCT_SIZE_FORMS];
    int at; /* the form that is chosen at present */
} oct_size_unit;

/* What happens to nodes that are not layers: as the policy says (on integers if there are samples), float, or 16-bit
 * floats. */
typedef enum oct_size_others { OCT_SIZE_OTHERS_POLICY, OCT_SIZE_OTHERS_FLOAT, OCT_SIZE_OTHERS_HALF } oct_size_others;

typedef struct oct_size_units {
    oct_conversion *c;
    oct_qjob *j;
    oct_arena *a;
    oct_size_unit *unit;
    size_t n;
    oct_decisions first;           /* as the policy has them */
    uint64_t file[OCT_SIZE_FORMS]; /* bytes of the file if all units have this form */
    oct_size_others others;
    bool measured; /* the noise was measured by running samples */
} oct_size_units;

/* size_units.c: finds the units of the outermost graph that the user has left to choose, with their bytes and noise. In
 * a. Decisions do not change. */
oct_status oct_size_list(oct_conversion *c, oct_arena *a, oct_size_units *u, oct_err *err);
/* Decides with the present form of each unit. */
oct_status oct_size_apply(oct_size_units *u, oct_err *err);

/* size_inputs.c: the noise of a layer relative to the signal that comes from rounding its inputs. For a static layer
 * whose output no layer reads, rounding the output counts as well. It is estimated from statistics if there are any,
 * else from the operators that compute the values. 0 for schemes that round no inputs. */
double oct_size_input_noise(const oct_size_units *u, int node, oct_scheme scheme);

/* size_choice.c: the expected noise of all units in their present forms; the same in dB. */
double oct_size_noise(const oct_size_units *u);
double oct_size_decibels(double noise);
double oct_size_ratio(double decibels); /* the inverse */

/* size_rivals.c: compares the choice unit by unit with one form for all units, and decides with the best. own[0]: forms
 * of the units, where other nodes are as the policy says. own[1], or NULL: the same with other nodes float. own[0] or
 * own[1] is within the limit. */
oct_status oct_size_compare(oct_size_units *u, int *const own[2], oct_err *err);

#endif
