/* lib/quant/job/records.h -- what is decided for nodes and values. The steps of a placement and the choice of ranges
 * write it; all others ask placed.h. */
#ifndef OCT_QUANT_RECORDS_H
#define OCT_QUANT_RECORDS_H

#include "quant/job/placed.h"

typedef struct qnode {
    oct_policy_row policy; /* what the policy asks for */
    oct_policy_row row;    /* that, as the constraints change it (place.c) */
    bool widened;          /* they gave `row` 16-bit activations */
    oct_scheme scheme;     /* the scheme that was decided */
    bool absorbed; /* a clamp that is removed, because the quantizer of the integer node before it clamps as well */
    const char *why;
    oct_counting counting;
    uint32_t rounds;       /* bit i: input i passes a quantizer, although the node computes in float (place_around.c) */
    bool rounds_outputs;   /* the same of its outputs */
    oct_dtype activations; /* the decided type of the activations that it computes on (types_meet.c) */
    oct_layer_decision decision;
} qnode;

typedef struct qvalue {
    bool wanted; /* a quantizer is placed on it */
    bool ranged; /* its range decides whether it fits 16-bit floats */
    bool asked;  /* a rule may ask for its statistics, or may make a node static that needs them */
    int axis;    /* for per-channel moments, the dimension that holds the channels; -1: the last; 0: no moments */
    int same;    /* a value with the same parameters (the parent in a union-find forest); the root refers to itself */
    int group;   /* the root of the values that share parameters for another reason than a Concat */
    int next;    /* a list that starts at the root: the next wanted value with the same parameters, or -1 */
    float clamp_lo,
        clamp_hi; /* at the root: the bounds of the clamp that the quantizers perform; -inf and inf if there is none */
    /* set at the root: */
    bool symmetric; /* a rule asks for symmetric parameters for one of these values; then their quantizers perform no
                       clamp */
    bool apart;     /* the target needs one scale for values that have different clamps */
    bool made;      /* an integer node computes one of these values */
    const oct_policy_row *row; /* the policy row that decides for all of them; or NULL */
    /* results: */
    const oct_quant *quant;              /* the parameters, the same for all that share them; NULL: not decided yet */
    const oct_quant *as[OCT_READ_TYPES]; /* by type (u8, s8, u16, s16): the parameters for readers that compute on that
                               type; NULL: there is no such reader */
    const char *observer;
    const char *misfit; /* the reason why parameters of the table were not used as they are; NULL: they were, or the
                           table has none */
    double sqnr;        /* expected SQNR of rounding and clipping in dB */
} qvalue;

#endif
