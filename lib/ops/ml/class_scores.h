/* lib/ops/ml/class_scores.h -- what the classifiers and regressors of ai.onnx.ml share: the labels of classes, and what
 * is done to scores at the end. */
#ifndef OCT_OPS_CLASS_SCORES_H
#define OCT_OPS_CLASS_SCORES_H

#include "ops/core/infer.h"

typedef enum oct_ml_transform {
    OCT_ML_NONE,
    OCT_ML_SOFTMAX,
    OCT_ML_LOGISTIC,
    OCT_ML_SOFTMAX_ZERO, /* zeros stay zeros */
    OCT_ML_TRANSFORMS
} oct_ml_transform;

/* The transform that attribute post_transform names. OCT_EUNSUPPORTED: PROBIT; OCT_EMALFORMED: another word. */
oct_status oct_ml_transform_of(const oct_node *n, oct_ml_transform *t, oct_err *err);
/* Transforms the scores v[n] of a sample in place. */
void oct_ml_transform_scores(oct_ml_transform t, double *v, int64_t n);

/* The labels of a classifier: strings, or integers where strings is NULL. */
typedef struct oct_ml_labels {
    const char *const *strings;
    const int64_t *ints;
    int64_t n;
} oct_ml_labels;

/* Reads classlabels_strings, or the integers of the attribute `ints`. OCT_EMALFORMED: neither is there, or both. */
oct_status oct_ml_labels_read(const oct_node *n, const char *ints, oct_ml_labels *l, oct_err *err);
/* Rows and features of an input of one or two dimensions, which is of numbers. OCT_EMALFORMED, OCT_EUNSUPPORTED. */
oct_status oct_ml_rows(const oct_operand *x, int64_t *rows, int64_t *features, oct_err *err);
/* The float32 output [rows, targets] of a regressor; count: the attribute that has the number of targets. */
oct_status oct_ml_targets_infer(const oct_infer *c, const char *count, oct_err *err);
/* Sets the outputs of a classifier: labels [rows] and scores [rows, n_scores]. */
oct_status oct_ml_classes_infer(const oct_infer *c, const oct_ml_labels *l, int64_t n_scores, oct_err *err);

/* A classifier's own part of a run: the scores v[n_scores] of a row, and the place of its label. */
typedef oct_status (*oct_ml_score_fn)(const void *state, const oct_operand *x, int64_t row, double *v, int64_t *label,
                                      oct_err *err);
/* The number of features of a classifier's input. OCT_EMALFORMED: it has none. */
oct_status oct_ml_features_of(const oct_exec *x, int64_t *features, oct_err *err);
/* Runs a classifier on every row of input 0 and makes both outputs. */
oct_status oct_ml_classify(oct_exec *x, const oct_ml_labels *l, int64_t n_scores, oct_ml_score_fn score,
                           const void *state, oct_err *err);

#endif
