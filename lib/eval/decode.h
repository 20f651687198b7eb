/* lib/eval/decode.h -- rules that declare what a model's outputs mean, so that metrics of its task can be computed: --decode.
 *
 * A rule is a text of lines, `key value...`, with `#` before a word for a comment; those of share/decode are built in. docs/formats.md has the keys:
 *
 *     judges   boxes
 *     boxes    [n,32]          # distances, in bins
 *     scores   [n,80]
 *     form     ltrb
 *     strides  8 16 32
 */
#ifndef OCT_EVAL_DECODE_H
#define OCT_EVAL_DECODE_H

#include "base/mem.h"
#include "eval/sample_set.h"

enum { OCT_DECODE_RANK = 6, OCT_DECODE_LEVELS = 16, OCT_DECODE_ANCHORS = 32 };

/* An output, or several that belong together, and columns of it: by name, by a pattern of its dimensions without the batch, or by both. */
typedef struct oct_decode_output {
    bool given;
    const char *name;            /* NULL: any */
    int rank;                    /* of the pattern; 0: none */
    int64_t dims[OCT_DECODE_RANK]; /* OCT_OUTPUT_ANY, OCT_OUTPUT_ROWS: along it lie boxes, or a number */
    int64_t boxes;               /* of a pattern's "9x4": so many boxes along dims[joined], which is one dimension of the output with the next; 0: none */
    int joined;
    int64_t first, last;         /* columns; last -1: to the end */
} oct_decode_output;
enum { OCT_OUTPUT_ANY = -1, OCT_OUTPUT_ROWS = -2 };

typedef enum oct_decode_scores { OCT_SCORES_AUTO, OCT_SCORES_PROBABILITIES, OCT_SCORES_LOGITS } oct_decode_scores;
typedef enum oct_pooling { OCT_POOL_NONE, OCT_POOL_MEAN, OCT_POOL_CLS } oct_pooling;
typedef enum oct_activation { OCT_ACT_NONE, OCT_ACT_SIGMOID, OCT_ACT_SOFTMAX } oct_activation;
typedef enum oct_box_form {
    OCT_FORM_XYXY,
    OCT_FORM_YXYX,
    OCT_FORM_XYWH,
    OCT_FORM_CXCYWH,
    OCT_FORM_LTRB,  /* distances from a cell's point to the sides */
    OCT_FORM_GRID,  /* centre from a cell's corner, logarithms of the size, in strides (YOLOX) */
    OCT_FORM_YOLO,  /* sigmoids against a cell and an anchor (YOLOv5, v7) */
    OCT_FORM_DELTAS /* shifts against a prior and logarithms of its factors (SSD, RetinaNet) */
} oct_box_form;
typedef enum oct_box_unit { OCT_UNIT_PIXELS, OCT_UNIT_INPUT, OCT_UNIT_STRIDE } oct_box_unit;

typedef struct oct_box_rule {
    oct_decode_output boxes, scores, objectness, classes, count;
    oct_box_form form;
    oct_box_unit unit;
    double stride[OCT_DECODE_LEVELS];
    int n_strides;
    double anchor[OCT_DECODE_LEVELS][2 * OCT_DECODE_ANCHORS]; /* width and height in pixels, of each stride */
    int n_anchors;       /* of a cell, the same for all strides; 0: none */
    bool anchor_major;   /* all cells of the first anchor, then those of the next */
    const char *priors;  /* an .npy of [n,4]: centre and size as shares of the input; NULL: none */
    double offset, shift; /* a cell's point: (i + offset) * stride + shift */
    double variance[4];
    int bins;            /* of a distribution over distances; 0: distances as they are */
    oct_activation activation;
    int background;      /* 0: none; 1: the first column of scores, -1: the last */
    int64_t first_class; /* what class numbers of the model begin with */
    bool ids;            /* classes are category ids of the truth, not places in its list */
    bool best_alone;     /* a box has its best class alone, not each whose score is enough */
    double score;        /* least */
    double nms;          /* overlap; above 1: none */
    bool nms_all;        /* across classes */
    int64_t most;        /* boxes of a picture, or of a class of it */
    bool most_of_class;
    double f1_score;     /* least score that counts for f1, precision and recall; below 0: where f1 is best */
} oct_box_rule;

typedef struct oct_decode {
    oct_arena *arena;
    oct_set_kind judges;
    oct_decode_output output;        /* of classes, maps and pairs */
    double peak;             /* of psnr; 0: what the values span */
    double threshold;        /* of one score for two classes; above it: class 1 */
    bool has_threshold;
    bool macro;              /* also of two classes */
    oct_decode_scores scores;  /* what divergences take the output for */
    bool classes_last;       /* of maps: dimension of classes */
    int64_t ignore;          /* label of pixels that do not count */
    bool bilinear;           /* of maps: scores are interpolated to the truth's size; else the nearest pixel counts */
    oct_pooling pooling;
    oct_box_rule box;
} oct_decode;

/* The i-th built-in rule's name and summary (may be NULL); NULL beyond the last. */
const char *oct_decode_builtin(size_t i, const char **summary);

/* A built-in rule or, where the word has a '/' in it, that of a file; `:key=value` behind a built-in one's name adds lines: "nanodet:score=0.3:nms=0.5".
 * OCT_EUSAGE: there is none of that name. OCT_EMALFORMED with file, line and column. To be released with oct_decode_close. */
oct_status oct_decode_open(const char *word, oct_decode **r, oct_err *err);
/* The rule that a text describes; label names it in messages; folder: where its files are, "" or ending in '/'. */
oct_status oct_decode_parse(const char *text, const char *label, const char *folder, oct_decode **r, oct_err *err);
/* What counts where nothing is declared. */
void oct_decode_defaults(oct_decode *r);
void oct_decode_close(oct_decode *r); /* NULL allowed */

#endif
