/* lib/eval/sets/decode.h -- rules that declare what a model's outputs mean, so that metrics of its task can be
 * computed:
 * --decode.
 *
 * A rule is a text of lines, `key value...`, with `#` before a word for a comment; those of share/decode are built in.
 * docs/metrics.md has the keys:
 *
 *     judges   boxes
 *     boxes    [n,32]          # distances, in bins
 *     scores   [n,80]
 *     form     ltrb
 *     strides  8 16
 * 32 */
#ifndef OCT_EVAL_DECODE_H
#define OCT_EVAL_DECODE_H

#include "base/mem.h"
#include "eval/sets/sample_set.h"

enum { OCT_DECODE_RANK = 6, OCT_DECODE_LEVELS = 16, OCT_DECODE_ANCHORS = 32, OCT_DECODE_POINTS = 256 };

/* Selects an output, or several that belong together, and columns of it: by name, by a pattern of its dimensions
 * without the batch, or by both. */
typedef struct oct_decode_output {
    bool given;
    const char *name; /* NULL: any */
    int rank;         /* the number of dimensions in the pattern; 0: there is no pattern */
    int64_t
        dims[OCT_DECODE_RANK]; /* a number, or OCT_OUTPUT_ANY, or OCT_OUTPUT_ROWS: the boxes are along this dimension */
    /* for a pattern such as "9x4": this many boxes along dims[joined], which is joined with the next dimension in the
     * output; 0: none */
    int64_t boxes;
    int joined;
    int64_t first, last; /* columns; negative ones are counted from the end: -1 is the last column */
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
    OCT_FORM_LTRB,    /* distances from a cell's point to the sides of the box */
    OCT_FORM_GRID,    /* the centre from a cell's corner, and logarithms of the size, in strides (YOLOX) */
    OCT_FORM_YOLO,    /* sigmoids, relative to a cell and an anchor (YOLOv5, v7) */
    OCT_FORM_OFFSETS, /* the centre from a cell's point, and the size (BlazeFace) */
    OCT_FORM_DELTAS   /* shifts relative to a prior, and logarithms of the factors on its size (SSD, RetinaNet) */
} oct_box_form;
typedef enum oct_box_unit { OCT_UNIT_PIXELS, OCT_UNIT_INPUT, OCT_UNIT_STRIDE } oct_box_unit;

typedef struct oct_box_rule {
    oct_decode_output boxes, scores, objectness, classes, count;
    oct_decode_output coefficients, prototypes; /* a mask is the sum of prototypes by these coefficients, above 0 */
    oct_decode_output keypoints;                /* in pixels of the input */
    int point_size;                             /* how many numbers each has, of which the first two are x and y */
    double sigma[OCT_DECODE_POINTS];            /* OKS's constants of the keypoints */
    int n_sigmas;                               /* 0: COCO's for 17 keypoints, else one over their number */
    oct_box_form form;
    oct_box_unit unit;
    double stride[OCT_DECODE_LEVELS];
    int n_strides;
    double anchor[OCT_DECODE_LEVELS][2 * OCT_DECODE_ANCHORS]; /* for each stride, widths and heights in pixels */
    int per_cell[OCT_DECODE_LEVELS]; /* how many rows a cell of each stride has without anchors */
    int n_per_cell;                  /* 0: one each */
    int n_anchors;                   /* the number of anchors of a cell, the same for all strides; 0: none */
    bool anchor_major;               /* the order is all cells of the first anchor, then all cells of the next */
    const char *priors;   /* path of an .npy file with [n,4]: centre and size as shares of the input; NULL: none */
    double offset, shift; /* a cell's point: (i + offset) * stride + shift */
    double variance[4];
    int bins; /* how many bins a distribution over distances has; 0: outputs are the distances */
    oct_activation activation;
    int background;      /* the column of scores that means background: 0: none; 1: the first; -1: the last */
    int64_t first_class; /* the number of the model's first class */
    bool ids;            /* classes are category ids of the truth, and not positions in its list */
    bool best_alone;     /* a box gets only its best class, and not each class with a sufficient score */
    double score;        /* the least score */
    double nms;          /* the largest overlap; above 1: no suppression */
    bool nms_all;        /* suppress boxes of all classes together */
    int64_t most;        /* the most boxes of a picture, or of each class in it */
    bool most_of_class;
    double
        f1_score; /* the least score that counts for f1, precision and recall; negative: the score with the best f1 */
} oct_box_rule;

typedef struct oct_decode {
    oct_arena *arena;
    const char *folder; /* while the rule is parsed: of its files */
    oct_set_kind judges;
    oct_decode_output output; /* the output for classes, maps and pairs */
    double peak;              /* for psnr; 0: the range of the values */
    double threshold;         /* for a single score with two classes: above it is class 1 */
    bool has_threshold;
    bool macro;               /* macro averages also for two classes */
    oct_decode_scores scores; /* how divergences interpret the output */
    bool classes_last;        /* for maps: the classes are in the last dimension */
    int64_t ignore;           /* the label of pixels that do not count */
    bool bilinear;            /* for maps: interpolate scores to the size of the truth; false: take the nearest pixel */
    oct_pooling pooling;
    /* for sequences: */
    const char *const *tag; /* [n_tags]: of labels, such as B-PER */
    int n_tags;
    const char *const *symbol; /* [n_symbols]: what labels spell */
    int64_t n_symbols;
    bool ctc;      /* runs of a label are one symbol, and the blank is none */
    int64_t blank; /* -1: the last */
    int64_t end;   /* the label that ends a text; -1: none */
    oct_box_rule box;
} oct_decode;

/* Name and summary (may be NULL) of the i-th built-in rule. NULL after the last. */
const char *oct_decode_builtin(size_t i, const char **summary);

/* Opens a built-in rule, or, if the word contains a '/', the rule in that file. `:key=value` after the name of a
 * built-in rule adds lines: "nanodet:score=0.3:nms=0.5". OCT_EUSAGE: there is no such rule. OCT_EMALFORMED with file,
 * line and column. Release it with oct_decode_close. */
oct_status oct_decode_open(const char *word, oct_decode **r, oct_err *err);
/* Parses the text of a rule. label: its name in messages. folder: the folder of its files, "" or ending in '/'. */
oct_status oct_decode_parse(const char *text, const char *label, const char *folder, oct_decode **r, oct_err *err);
/* The values that hold if nothing is declared. */
void oct_decode_defaults(oct_decode *r);
void oct_decode_close(oct_decode *r); /* NULL allowed */

#endif
