/* Computes boxes from outputs: finds rows and columns, and from each row a box and its scores. */
#include "eval/sets/boxes.h"

#include "base/mem.h"
#include "kernels/math.h"

#include <string.h>

/* ---- columns of outputs ---- */

/* An output as rows and columns. `inner` rows are adjacent, followed by the same rows of the next column; if columns
 * are last, inner is 1. */
typedef struct part {
    const float *v;
    size_t rows, columns, inner;
} part;

/* Outputs that belong together, the largest first. Row numbers continue from one to the next. */
typedef struct table {
    part p[OCT_DECODE_LEVELS];
    int n;
    size_t rows, columns;
} table;

/* The rows and columns of dims, by the rows of a pattern, or without one, by all dimensions but the last. False: the
 * shape does not match. */
static bool shape_part(const oct_decode_output *o, int rank, const int64_t *dims, part *p)
{
    int changes = 0;
    bool in_rows = true;
    p->rows = p->columns = p->inner = 1;
    for (int i = 0; i < rank; i++) {
        const bool is_row = o->rank ? o->dims[i] == OCT_OUTPUT_ROWS : rank == 1 || i < rank - 1;
        if (o->rank && o->dims[i] >= 0 && o->dims[i] != dims[i])
            return false;
        *(is_row ? &p->rows : &p->columns) *= (size_t)dims[i];
        if (dims[i] == 1)
            continue;
        changes += is_row != in_rows;
        in_rows = is_row;
        p->inner *= is_row && changes ? (size_t)dims[i] : 1;
    }
    return changes <= 2;
}

/* If the pattern says 9x4, splits a dimension of 36 into 9 and 4. dims[*rank]. */
static bool split_dimension(const oct_decode_output *o, int *rank, int64_t *dims)
{
    const int at = o->joined + *rank - (o->rank - 1); /* for dimensions counted from the last */
    if (!o->boxes)
        return true;
    if (at < 0 || at >= *rank || dims[at] % o->boxes)
        return false;
    memmove(dims + at + 1, dims + at, (size_t)(*rank - at) * sizeof *dims);
    dims[at] = o->boxes;
    dims[at + 1] /= o->boxes;
    ++*rank;
    return true;
}

/* The pattern may have a leading dimension of 1 that a sample's output does not have, or the other way round. */
static bool fit_part(const oct_decode_output *o, const oct_set_tensor *t, part *p)
{
    int64_t dims[OCT_DECODE_RANK + 2] = { 1 };
    int rank = t->rank;
    if ((o->name && strcmp(o->name, t->name) != 0) || t->rank > OCT_DECODE_RANK)
        return false;
    if (t->rank)
        memcpy(dims + 1, t->dims, (size_t)t->rank * sizeof *dims);
    if (!split_dimension(o, &rank, dims + 1))
        return false;
    const int want = o->rank ? o->rank : rank;
    p->v = t->v;
    if (want == rank)
        return shape_part(o, want, dims + 1, p);
    if (want == rank + 1)
        return shape_part(o, want, dims, p);
    return want == rank - 1 && dims[1] == 1 && shape_part(o, want, dims + 2, p);
}

static void insert_part(table *t, const part *p)
{
    int at = t->n++;
    for (; at > 0 && t->p[at - 1].rows < p->rows; at--)
        t->p[at] = t->p[at - 1];
    t->p[at] = *p;
    t->rows += p->rows;
}

static bool is_whole(const oct_decode_output *o)
{
    return o->first == 0 && o->last == -1;
}

static bool has_part(const table *t, const float *v)
{
    for (int i = 0; t && i < t->n; i++)
        if (t->p[i].v == v)
            return true;
    return false;
}

/* taken: outputs that are already used completely for something else (NULL: none). Keys that ask for a whole output
 * skip these. */
static oct_status open_table(const oct_decode_output *o, const char *what, const table *taken,
                             const oct_set_tensor *out, size_t n_out, table *t, oct_err *err)
{
    part p;
    *t = (table){ 0 };
    for (size_t i = 0; i < n_out && t->n < OCT_DECODE_LEVELS; i++)
        if (!(is_whole(o) && has_part(taken, out[i].v)) && fit_part(o, &out[i], &p)) {
            if (t->n && t->columns != p.columns)
                return oct_fail(err, OCT_EUSAGE, "--decode: %s: outputs of %zu and of %zu columns fit", what,
                                t->columns, p.columns);
            t->columns = p.columns;
            insert_part(t, &p);
        }
    const oct_set_tensor *near;
    if (!t->n) {
        OCT_TRY(oct_output_find(o, 0, out, n_out, &near, err));
        return oct_fail(err, OCT_EUSAGE, "--decode: %s: the rows of output '%s' are not contiguous", what, near->name);
    }
    const int64_t n = (int64_t)t->columns, first = o->first < 0 ? n + o->first : o->first,
                  last = o->last < 0 ? n + o->last : o->last;
    if (first < 0 || first > last || last >= n)
        return oct_fail(err, OCT_EUSAGE, "--decode: %s: there are %zu columns, counted from 0", what, t->columns);
    for (int i = 0; i < t->n; i++)
        t->p[i].v += (size_t)first * t->p[i].inner;
    t->columns = (size_t)(last - first + 1);
    return OCT_OK;
}

/* The first element of row `row`, and the distance between its columns. */
static const float *row_at(const table *t, size_t row, size_t *step)
{
    int i = 0;
    while (row >= t->p[i].rows)
        row -= t->p[i++].rows;
    const part *p = &t->p[i];
    *step = p->inner;
    return p->v + row / p->inner * p->columns * p->inner + row % p->inner;
}

static double at(const table *t, size_t row, size_t column)
{
    size_t step;
    const float *v = row_at(t, row, &step);
    return v[column * step];
}

/* ---- cells ---- */

/* What a row belongs to: a cell of a grid with an anchor, or a prior. */
typedef struct cell {
    double x, y, stride;   /* the position in the grid */
    double cx, cy, aw, ah; /* the centre of the cell or prior, and the size of the anchor or prior */
} cell;

static size_t cells_across(double side, double stride)
{
    const double n = ceil(side / stride);
    return n < 1 ? 1 : (size_t)n;
}

static size_t rows_of_cell(const oct_box_rule *b, int level)
{
    return b->n_per_cell ? (size_t)b->per_cell[level] : b->n_anchors ? (size_t)b->n_anchors : 1;
}

static cell cell_of(const oct_box_rule *b, double w, double h, size_t row)
{
    int level = 0;
    size_t across, down, anchors;
    for (;; level++) {
        anchors = rows_of_cell(b, level);
        across = cells_across(w, b->stride[level]);
        down = cells_across(h, b->stride[level]);
        if (row < across * down * anchors || level + 1 == b->n_strides)
            break;
        row -= across * down * anchors;
    }
    const size_t anchor = b->anchor_major ? row / (across * down) % anchors : row % anchors;
    const size_t place = b->anchor_major ? row % (across * down) : row / anchors;
    cell c = { .x = (double)(place % across), .y = (double)(place / across), .stride = b->stride[level] };
    c.cx = (c.x + b->offset) * c.stride + b->shift;
    c.cy = (c.y + b->offset) * c.stride + b->shift;
    if (b->n_anchors) {
        c.aw = b->anchor[level][2 * anchor];
        c.ah = b->anchor[level][2 * anchor + 1];
    }
    return c;
}

static size_t count_cells(const oct_box_rule *b, double w, double h)
{
    size_t n = 0;
    for (int i = 0; i < b->n_strides; i++)
        n += cells_across(w, b->stride[i]) * cells_across(h, b->stride[i]) * rows_of_cell(b, i);
    return n;
}

/* ---- one row ---- */

static double sigmoid(double x)
{
    return 1 / (1 + oct_exp(-x));
}

/* The four numbers of a row. With bins, each is the expectation under the softmax of a side's bins. */
static void read_sides(const oct_box_rule *b, const table *boxes, size_t row, double d[4])
{
    size_t step;
    const float *v = row_at(boxes, row, &step);
    for (int k = 0; k < 4; k++) {
        if (!b->bins) {
            d[k] = v[(size_t)k * step];
            continue;
        }
        const float *side = v + (size_t)(k * b->bins) * step;
        double most = side[0], sum = 0, weighted = 0;
        for (int i = 1; i < b->bins; i++)
            most = side[(size_t)i * step] > most ? side[(size_t)i * step] : most;
        for (int i = 0; i < b->bins; i++) {
            const double e = oct_exp((double)side[(size_t)i * step] - most);
            sum += e;
            weighted += e * i;
        }
        d[k] = weighted / sum;
    }
}

static void set_centred(oct_box *x, double cx, double cy, double w, double h)
{
    x->x1 = cx - w / 2;
    x->y1 = cy - h / 2;
    x->x2 = cx + w / 2;
    x->y2 = cy + h / 2;
}

/* d is in units of ux and uy pixels. */
static void set_plain(oct_box *x, oct_box_form form, const double d[4], double ux, double uy)
{
    switch (form) {
    case OCT_FORM_XYXY: *x = (oct_box){ .x1 = d[0] * ux, .y1 = d[1] * uy, .x2 = d[2] * ux, .y2 = d[3] * uy }; break;
    case OCT_FORM_YXYX: *x = (oct_box){ .x1 = d[1] * ux, .y1 = d[0] * uy, .x2 = d[3] * ux, .y2 = d[2] * uy }; break;
    case OCT_FORM_XYWH:
        *x = (oct_box){ .x1 = d[0] * ux, .y1 = d[1] * uy, .x2 = (d[0] + d[2]) * ux, .y2 = (d[1] + d[3]) * uy };
        break;
    default: set_centred(x, d[0] * ux, d[1] * uy, d[2] * ux, d[3] * uy);
    }
}

static void set_box(const oct_box_rule *b, const cell *c, double w, double h, const double d[4], oct_box *x)
{
    const double ux = b->unit == OCT_UNIT_INPUT ? w : b->unit == OCT_UNIT_STRIDE ? c->stride : 1;
    const double uy = b->unit == OCT_UNIT_INPUT ? h : b->unit == OCT_UNIT_STRIDE ? c->stride : 1;
    double s[4];
    switch (b->form) {
    case OCT_FORM_LTRB:
        *x = (oct_box){
            .x1 = c->cx - d[0] * ux, .y1 = c->cy - d[1] * uy, .x2 = c->cx + d[2] * ux, .y2 = c->cy + d[3] * uy
        };
        return;
    case OCT_FORM_GRID:
        set_centred(x, (d[0] + c->x) * c->stride, (d[1] + c->y) * c->stride, oct_exp(d[2]) * c->stride,
                    oct_exp(d[3]) * c->stride);
        return;
    case OCT_FORM_YOLO:
        for (int k = 0; k < 4; k++)
            s[k] = 2 * (b->activation == OCT_ACT_SIGMOID ? sigmoid(d[k]) : d[k]);
        set_centred(x, (s[0] - 0.5 + c->x) * c->stride, (s[1] - 0.5 + c->y) * c->stride, s[2] * s[2] * c->aw,
                    s[3] * s[3] * c->ah);
        return;
    case OCT_FORM_OFFSETS: set_centred(x, c->cx + d[0] * ux, c->cy + d[1] * uy, d[2] * ux, d[3] * uy); return;
    case OCT_FORM_DELTAS:
        set_centred(x, c->cx + d[0] * b->variance[0] * c->aw, c->cy + d[1] * b->variance[1] * c->ah,
                    c->aw * oct_exp(d[2] * b->variance[2]), c->ah * oct_exp(d[3] * b->variance[3]));
        return;
    default: set_plain(x, b->form, d, ux, uy);
    }
}

/* ---- all rows ---- */

typedef struct decoding {
    const oct_judging *j;
    const oct_box_rule *b;
    double w, h;
    const float *priors;
    table boxes, scores, objectness, classes;
    size_t rows;
    double *score; /* [columns]: the scores of a row */
    oct_boxes *out;
} decoding;

static void read_scores(const decoding *d, size_t row)
{
    size_t step;
    const float *v = row_at(&d->scores, row, &step);
    const size_t n = d->scores.columns;
    double most = v[0], sum = 0, times = 1;
    for (size_t i = 0; i < n; i++)
        most = v[i * step] > most ? v[i * step] : most;
    for (size_t i = 0; i < n; i++) {
        const double x = v[i * step];
        d->score[i] = d->b->activation == OCT_ACT_SIGMOID   ? sigmoid(x)
                      : d->b->activation == OCT_ACT_SOFTMAX ? oct_exp(x - most)
                                                            : x;
        sum += d->score[i];
    }
    if (d->b->activation == OCT_ACT_SOFTMAX)
        times = 1 / sum;
    if (d->objectness.n)
        times *= d->b->activation == OCT_ACT_SIGMOID ? sigmoid(at(&d->objectness, row, 0)) : at(&d->objectness, row, 0);
    for (size_t i = 0; i < n && times != 1; i++)
        d->score[i] *= times;
}

/* The position in the truth of a class: that of a column of scores (begin: the first class), or that of a number in an
 * output; -1: the truth does not have it. */
static int64_t place_of_column(const decoding *d, size_t column, size_t begin)
{
    if (d->b->ids)
        return d->j->truth ? oct_truth_place(d->j->truth, (int64_t)column) : (int64_t)column;
    return (int64_t)(column - begin);
}

static int64_t place_of_number(const decoding *d, double number)
{
    if (!(number >= 0) || number > 1e9)
        return -1;
    const int64_t c = (int64_t)rint(number);
    if (d->b->ids && d->j->truth)
        return oct_truth_place(d->j->truth, c);
    return c - d->b->first_class;
}

static oct_status take(const decoding *d, size_t row, int64_t place, double score, oct_err *err)
{
    double sides[4];
    const oct_box_rule *b = d->b;
    cell c = { 0 };
    oct_box x = { 0 };
    if (place < 0 || !(score >= b->score))
        return OCT_OK;
    read_sides(b, &d->boxes, row, sides);
    if (d->priors) {
        const float *p = d->priors + 4 * row;
        c = (cell){ .cx = p[0] * d->w, .cy = p[1] * d->h, .aw = p[2] * d->w, .ah = p[3] * d->h };
    } else if (b->n_strides) {
        c = cell_of(b, d->w, d->h, row);
    }
    set_box(b, &c, d->w, d->h, sides, &x);
    if (!isfinite(x.x1 + x.y1 + x.x2 + x.y2))
        return OCT_OK;
    x.score = score;
    x.class_place = place;
    x.row = row;
    if (!OCT_SET_GROW(d->out->v, d->out->n, d->out->cap))
        return oct_nomem(err);
    d->out->v[d->out->n++] = x;
    return OCT_OK;
}

static oct_status take_row(const decoding *d, size_t row, oct_err *err)
{
    const size_t begin = d->b->background > 0, end = d->scores.columns - (d->b->background < 0);
    size_t best = begin;
    read_scores(d, row);
    if (d->classes.n)
        return take(d, row, place_of_number(d, at(&d->classes, row, 0)), d->score[0], err);
    for (size_t i = begin; i < end && d->b->best_alone; i++)
        best = d->score[i] > d->score[best] ? i : best;
    for (size_t i = begin; i < end; i++)
        if (!d->b->best_alone || i == best)
            OCT_TRY(take(d, row, place_of_column(d, i, begin), d->score[i], err));
    return OCT_OK;
}

/* ---- opening ---- */

static oct_status want_rows(const decoding *d, const table *t, const char *what, oct_err *err)
{
    if (!t->n || t->rows == d->boxes.rows)
        return OCT_OK;
    return oct_fail(err, OCT_EUSAGE, "--decode: there are %zu boxes, and %s of %zu", d->boxes.rows, what, t->rows);
}

static oct_status open_tables(decoding *d, const oct_set_tensor *out, size_t n_out, oct_err *err)
{
    const oct_box_rule *b = d->b;
    const table *taken = is_whole(&b->boxes) ? &d->boxes : NULL;
    table count;
    OCT_TRY(open_table(&b->boxes, "boxes", NULL, out, n_out, &d->boxes, err));
    OCT_TRY(open_table(&b->scores, "scores", taken, out, n_out, &d->scores, err));
    if (b->objectness.given)
        OCT_TRY(open_table(&b->objectness, "objectness", taken, out, n_out, &d->objectness, err));
    if (b->classes.given)
        OCT_TRY(open_table(&b->classes, "classes", taken, out, n_out, &d->classes, err));
    OCT_TRY(want_rows(d, &d->scores, "scores", err));
    OCT_TRY(want_rows(d, &d->objectness, "objectness", err));
    OCT_TRY(want_rows(d, &d->classes, "classes", err));
    const size_t sides = b->bins ? 4 * (size_t)b->bins : 4;
    if (d->boxes.columns != sides)
        return oct_fail(err, OCT_EUSAGE, "--decode: boxes have %zu columns, and %zu are expected", d->boxes.columns,
                        sides);
    d->rows = d->boxes.rows;
    if (!b->count.given)
        return OCT_OK;
    OCT_TRY(open_table(&b->count, "count", taken, out, n_out, &count, err));
    const double n = count.rows ? at(&count, 0, 0) : 0;
    d->rows = n >= 0 && n < (double)d->rows ? (size_t)n : d->rows;
    return OCT_OK;
}

static oct_status check_cells(const decoding *d, size_t n_priors, oct_err *err)
{
    if (d->priors && n_priors != d->boxes.rows)
        return oct_fail(err, OCT_EUSAGE, "--decode: there are %zu boxes, and %zu priors", d->boxes.rows, n_priors);
    if (d->priors || !d->b->n_strides || count_cells(d->b, d->w, d->h) == d->boxes.rows)
        return OCT_OK;
    return oct_fail(err, OCT_EUSAGE,
                    "--decode: there are %zu boxes, and %zu cells and anchors of strides in an input of %gx%g",
                    d->boxes.rows, count_cells(d->b, d->w, d->h), d->w, d->h);
}

oct_status oct_boxes_decode(const oct_judging *j, const oct_set_tensor *out, size_t n_out, double w, double h,
                            const float *priors, size_t n_priors, oct_boxes *boxes, oct_err *err)
{
    decoding d = { .j = j, .b = &j->rule->box, .w = w, .h = h, .priors = priors, .out = boxes };
    boxes->n = 0;
    OCT_TRY(open_tables(&d, out, n_out, err));
    if (!d.rows)
        return OCT_OK;
    OCT_TRY(check_cells(&d, n_priors, err));
    if (!(d.score = oct_calloc(d.scores.columns, sizeof *d.score)))
        return oct_nomem(err);
    oct_status s = OCT_OK;
    for (size_t row = 0; row < d.rows && s == OCT_OK; row++)
        s = take_row(&d, row, err);
    oct_free(d.score);
    if (s == OCT_OK)
        oct_boxes_suppress(boxes, d.b->nms, d.b->nms_all, d.b->most, d.b->most_of_class);
    return s;
}

oct_status oct_boxes_columns(const oct_decode_output *o, const char *what, const oct_set_tensor *out, size_t n_out,
                             const oct_box *boxes, size_t n_boxes, double **v, size_t *columns, oct_err *err)
{
    table t;
    size_t n;
    OCT_TRY(open_table(o, what, NULL, out, n_out, &t, err));
    *columns = t.columns;
    if (!oct_mul_size(t.columns, n_boxes, &n) || !(*v = oct_calloc(n + 1, sizeof **v)))
        return oct_nomem(err);
    for (size_t i = 0; i < n_boxes; i++) {
        if (boxes[i].row >= t.rows) {
            oct_free(*v);
            return oct_fail(err, OCT_EUSAGE, "--decode: a box is in row %zu, and there are %zu rows of %s",
                            boxes[i].row, t.rows, what);
        }
        for (size_t k = 0; k < t.columns; k++)
            (*v)[i * t.columns + k] = at(&t, boxes[i].row, k);
    }
    return OCT_OK;
}

static bool are_channels(int64_t n)
{
    return n == 1 || n == 3 || n == 4;
}

oct_status oct_boxes_input_size(const oct_set_view *v, double *w, double *h, oct_err *err)
{
    const int of = v->source ? oct_source_picture_input(v->source) : -1;
    for (size_t i = of >= 0 ? (size_t)of : 0; i < v->batch->n_tensors; i++) {
        const oct_array *a = &v->batch->tensors[i];
        const int64_t *d = a->dims + (a->rank - 3);
        if (a->rank != 4 && a->rank != 3)
            continue;
        const bool last = are_channels(d[2]) && !are_channels(d[0]);
        *h = (double)(last ? d[0] : d[1]);
        *w = (double)(last ? d[1] : d[2]);
        return OCT_OK;
    }
    return oct_fail(err, OCT_EUSAGE, "--decode: boxes need pictures, and no input takes one");
}
