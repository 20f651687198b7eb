/* The boxes and the objects of each picture. */
#include "eval/sets/average_precision.h"

#include "data/arrays/array_files.h"
#include "eval/metrics/correlation.h"
#include "eval/sets/object_overlaps.h"
#include "base/bytes.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_OF_CLASS = 100,
    MOST_WITH_POINTS = 20
}; /* how many boxes of a class count for average precision in a picture */

typedef struct found {
    double score;
    uint32_t sample, at; /* at: the position in the original order */
    int32_t class_place;
    oct_match match[OCT_MATCHED_KINDS]; /* zeros where the rule does not say how to compare */
    bool beyond, beyond_points;         /* its picture has MOST_OF_CLASS, MOST_WITH_POINTS better boxes of this class */
} found;

typedef struct wanted {
    uint32_t sample;
    int32_t class_place;
    uint32_t count[OCT_MATCHED_KINDS];
} wanted;

typedef struct detections {
    oct_set base;
    found *f;           /* after finish: by class, and within a class the best first */
    wanted *w;          /* after finish: by class */
    uint32_t *by_score; /* [n_f] */
    size_t n_f, cap_f, n_w, cap_w;
    oct_boxes boxes, truth; /* of the current sample */
    oct_object *objects;    /* those of one class */
    oct_match *match[OCT_MATCHED_KINDS];
    size_t cap_objects, cap_match[OCT_MATCHED_KINDS];
    oct_array priors;
    size_t most; /* the largest number of boxes of a class */
} detections;

/* ---- a sample ---- */

static oct_status load_priors(detections *d, oct_err *err)
{
    const char *path = d->base.judging->rule->box.priors;
    if (!path || d->priors.data)
        return OCT_OK;
    OCT_TRY(oct_npy_load(path, &d->priors, err));
    if (d->priors.rank == 2 && d->priors.dims[1] == 4 && d->priors.dtype == OCT_F32)
        return OCT_OK;
    return oct_fail(err, OCT_EMALFORMED,
                    "%s: priors are float32 of shape [n,4]: centre x, centre y, width, height as shares of the input",
                    path);
}

/* Converts pixels of the input to pixels of the picture. */
static void to_picture(const oct_set_view *v, oct_boxes *b)
{
    if (!v->source)
        return;
    const oct_placing p = oct_source_placing(v->source, v->batch->pictures[v->row]);
    for (size_t i = 0; i < b->n; i++) {
        b->v[i].x1 = (b->v[i].x1 - p.tx) / p.sx;
        b->v[i].x2 = (b->v[i].x2 - p.tx) / p.sx;
        b->v[i].y1 = (b->v[i].y1 - p.ty) / p.sy;
        b->v[i].y2 = (b->v[i].y2 - p.ty) / p.sy;
    }
}

/* Takes the float model's boxes as objects. */
static oct_status objects_of_float(detections *d, const oct_set_view *v, double w, double h, const oct_object **o,
                                   size_t *n, oct_err *err)
{
    const oct_judging *j = d->base.judging;
    oct_boxes *b = &d->truth;
    OCT_TRY(oct_boxes_decode(j, v->ref, v->n_out, w, h, d->priors.data, d->priors.rank ? (size_t)d->priors.dims[0] : 0,
                             b, err));
    *n = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->v[i].score < j->rule->box.f1_score)
            continue;
        if (!OCT_SET_GROW(d->objects, *n, d->cap_objects))
            return oct_nomem(err);
        d->objects[(*n)++] = (oct_object){
            .class_place = b->v[i].class_place, .x1 = b->v[i].x1, .y1 = b->v[i].y1, .x2 = b->v[i].x2, .y2 = b->v[i].y2
        };
    }
    *o = d->objects;
    return OCT_OK;
}

static int by_class(const void *a, const void *b)
{
    const oct_box *x = a, *y = b;
    if (x->class_place != y->class_place)
        return x->class_place > y->class_place ? 1 : -1;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static int objects_by_class(const void *a, const void *b)
{
    const oct_object *x = a, *y = b;
    if (x->class_place != y->class_place)
        return x->class_place > y->class_place ? 1 : -1;
    if (x->x1 != y->x1)
        return x->x1 > y->x1 ? 1 : -1;
    return (x->y1 > y->y1) - (x->y1 < y->y1);
}

static oct_status add_wanted(detections *d, int64_t class_place, const oct_object *o, size_t n, oct_err *err)
{
    wanted w = { .sample = (uint32_t)d->base.n, .class_place = (int32_t)class_place };
    for (size_t i = 0; i < n; i++)
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            w.count[by] += oct_overlaps_known(d->base.judging, by) && !oct_object_is_ignored(&o[i], by);
    if (!w.count[OCT_MATCHED_BOXES])
        return OCT_OK;
    if (!OCT_SET_GROW(d->w, d->n_w, d->cap_w))
        return oct_nomem(err);
    d->w[d->n_w++] = w;
    return OCT_OK;
}

static oct_status add_found(detections *d, const oct_box *b, size_t n, oct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!OCT_SET_GROW(d->f, d->n_f, d->cap_f))
            return oct_nomem(err);
        found *f = &d->f[d->n_f];
        *f = (found){ .score = b[i].score,
                      .sample = (uint32_t)d->base.n,
                      .at = (uint32_t)d->n_f++,
                      .class_place = (int32_t)b[i].class_place,
                      .beyond = i >= MOST_OF_CLASS,
                      .beyond_points = i >= MOST_WITH_POINTS };
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            f->match[by] = d->match[by][i];
    }
    return OCT_OK;
}

/* Matches the boxes of one class with its objects by what the rule says how to compare. */
static oct_status match_class(detections *d, const oct_overlap_case *c, const oct_box *b, size_t n_b,
                              const oct_object *o, size_t n_o, oct_err *err)
{
    const size_t compared = n_b < MOST_OF_CLASS ? n_b : MOST_OF_CLASS;
    OCT_TRY(oct_match_boxes(b, n_b, o, n_o, d->match[OCT_MATCHED_BOXES], err));
    for (int by = OCT_MATCHED_BOXES + 1; by < OCT_MATCHED_KINDS; by++) {
        if (n_b)
            memset(d->match[by], 0, n_b * sizeof *d->match[by]);
        if (!n_b || !n_o || !oct_overlaps_known(d->base.judging, by))
            continue;
        size_t n;
        double *overlap = oct_mul_size(compared, n_o, &n) ? oct_calloc(n, sizeof *overlap) : NULL;
        oct_status s = overlap ? oct_object_overlaps(c, by, b, compared, o, n_o, overlap, err) : oct_nomem(err);
        if (s == OCT_OK)
            s = oct_match_overlaps(by, overlap, compared, o, n_o, d->match[by], err);
        oct_free(overlap);
        OCT_TRY(s);
    }
    return OCT_OK;
}

/* Class by class. b and o are sorted by class. */
static oct_status add_classes(detections *d, const oct_overlap_case *c, const oct_boxes *b, const oct_object *o,
                              size_t n, oct_err *err)
{
    for (size_t i = 0, k = 0, i_end, k_end; i < b->n || k < n; i = i_end, k = k_end) {
        const int64_t first =
            i == b->n || (k < n && o[k].class_place < b->v[i].class_place) ? o[k].class_place : b->v[i].class_place;
        for (i_end = i; i_end < b->n && b->v[i_end].class_place == first; i_end++)
            ;
        for (k_end = k; k_end < n && o[k_end].class_place == first; k_end++)
            ;
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            while (d->cap_match[by] < i_end - i)
                if (!OCT_SET_GROW(d->match[by], d->cap_match[by], d->cap_match[by]))
                    return oct_nomem(err);
        OCT_TRY(match_class(d, c, b->v + i, i_end - i, o + k, k_end - k, err));
        OCT_TRY(add_found(d, b->v + i, i_end - i, err));
        OCT_TRY(add_wanted(d, first, o + k, k_end - k, err));
    }
    return OCT_OK;
}

/* How the input lies in the picture; w and h: the size of the input. */
static oct_overlap_case case_of(const oct_judging *j, const oct_set_view *v, double w, double h)
{
    const oct_picture_size p = v->batch->pictures ? v->batch->pictures[v->row] : (oct_picture_size){ 0 };
    const bool shares = j->truth && oct_truth_in_shares(j->truth);
    oct_overlap_case c = { .judging = j,
                           .out = v->out,
                           .n_out = v->n_out,
                           .w = w,
                           .h = h,
                           .picture_w = p.w ? p.w : w,
                           .picture_h = p.h ? p.h : h,
                           .placing = { .sx = 1, .sy = 1 } };
    if (v->source)
        c.placing = oct_source_placing(v->source, p);
    c.unit_x = shares ? c.picture_w : 1;
    c.unit_y = shares ? c.picture_h : 1;
    return c;
}

/* Copies the objects of the truth, in pixels of the picture. */
static oct_status objects_of_truth(detections *d, const oct_overlap_case *c, const oct_object *o, size_t n,
                                   oct_err *err)
{
    const double x = c->unit_x, y = c->unit_y;
    for (size_t i = 0; i < n; i++) {
        if (!OCT_SET_GROW(d->objects, i, d->cap_objects))
            return oct_nomem(err);
        d->objects[i] = o[i];
        d->objects[i].x1 *= x;
        d->objects[i].x2 *= x;
        d->objects[i].y1 *= y;
        d->objects[i].y2 *= y;
        d->objects[i].area *= x * y;
    }
    return OCT_OK;
}

static oct_status boxes_add(oct_set *s, const oct_set_view *v, oct_err *err)
{
    detections *d = (detections *)s;
    const oct_judging *j = s->judging;
    const oct_object *o;
    double w, h;
    size_t n;
    if (j->truth && !oct_truth_objects(j->truth, v->name, v->index, &o, &n))
        return OCT_OK;
    if (d->n_f > UINT32_MAX / 2 || s->n == UINT32_MAX)
        return oct_fail(err, OCT_EUNSUPPORTED, "there are too many boxes");
    OCT_TRY(load_priors(d, err));
    OCT_TRY(oct_boxes_input_size(v, &w, &h, err));
    OCT_TRY(oct_boxes_decode(j, v->out, v->n_out, w, h, d->priors.data, d->priors.rank ? (size_t)d->priors.dims[0] : 0,
                             &d->boxes, err));
    const oct_overlap_case c = case_of(j, v, w, h);
    if (j->truth) {
        to_picture(v, &d->boxes);
        OCT_TRY(objects_of_truth(d, &c, o, n, err));
    } else {
        OCT_TRY(objects_of_float(d, v, w, h, &o, &n, err));
    }
    if (d->boxes.n)
        qsort(d->boxes.v, d->boxes.n, sizeof *d->boxes.v, by_class);
    if (n)
        qsort(d->objects, n, sizeof *d->objects, objects_by_class);
    OCT_TRY(add_classes(d, &c, &d->boxes, d->objects, n, err));
    s->n++;
    return OCT_OK;
}

/* ---- the set ---- */

static int by_class_and_score(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->class_place != y->class_place)
        return x->class_place > y->class_place ? 1 : -1;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static int wanted_by_class(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    if (x->class_place != y->class_place)
        return x->class_place > y->class_place ? 1 : -1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

static oct_status boxes_finish(oct_set *s, oct_err *err)
{
    detections *d = (detections *)s;
    if (!s->n)
        return oct_fail(err, OCT_EMALFORMED, "%s: it names none of the samples", oct_truth_path(s->judging->truth));
    double *score = oct_calloc(d->n_f + 1, sizeof *score);
    d->by_score = oct_calloc(d->n_f + 1, sizeof *d->by_score);
    if (!score || !d->by_score) {
        oct_free(score);
        return oct_nomem(err);
    }
    if (d->n_f)
        qsort(d->f, d->n_f, sizeof *d->f, by_class_and_score);
    if (d->n_w)
        qsort(d->w, d->n_w, sizeof *d->w, wanted_by_class);
    for (size_t i = 0, of_class = 0; i < d->n_f; i++) {
        of_class = i && d->f[i].class_place == d->f[i - 1].class_place ? of_class + 1 : 1;
        d->most = of_class > d->most ? of_class : d->most;
        score[i] = -d->f[i].score;
    }
    s->scratch = 3 * (d->most + 1);
    const oct_status st = oct_order_of(score, d->n_f, d->by_score, err);
    oct_free(score);
    return st;
}

static void boxes_release(oct_set *s)
{
    detections *d = (detections *)s;
    oct_boxes_free(&d->boxes);
    oct_boxes_free(&d->truth);
    oct_array_free(&d->priors);
    oct_free(d->f);
    oct_free(d->w);
    oct_free(d->by_score);
    oct_free(d->objects);
    for (int by = 0; by < OCT_MATCHED_KINDS; by++)
        oct_free(d->match[by]);
}

/* Writes the boxes and the objects of the samples, in order. */
static void boxes_save(oct_set *s, oct_buf *b)
{
    detections *d = (detections *)s;
    oct_buf_add_u64(b, s->n);
    oct_buf_add_u64(b, d->n_f);
    for (size_t i = 0; i < d->n_f; i++) {
        const found *f = &d->f[i];
        oct_buf_add_f64(b, f->score);
        oct_buf_add_u32(b, (uint32_t)f->class_place);
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            if (oct_overlaps_known(s->judging, by))
                oct_buf_add_u32(b, f->match[by].hit | (uint32_t)f->match[by].ignored << 16);
        oct_buf_add_u32(b, f->beyond | (uint32_t)f->beyond_points << 1);
    }
    oct_buf_add_u64(b, d->n_w);
    for (size_t i = 0; i < d->n_w; i++) {
        oct_buf_add_u32(b, (uint32_t)d->w[i].class_place);
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            if (oct_overlaps_known(s->judging, by))
                oct_buf_add_u32(b, d->w[i].count[by]);
    }
    s->n = d->n_f = d->n_w = 0;
}

static oct_status load_found(detections *d, oct_bytes *r, oct_err *err)
{
    for (size_t n = oct_bytes_count(r, 20); n > 0; n--) {
        found f = { .sample = (uint32_t)d->base.n, .at = (uint32_t)d->n_f };
        f.score = oct_bytes_f64(r);
        f.class_place = (int32_t)oct_bytes_u32(r);
        for (int by = 0; by < OCT_MATCHED_KINDS; by++) {
            const uint32_t match = oct_overlaps_known(d->base.judging, by) ? oct_bytes_u32(r) : 0;
            f.match[by] = (oct_match){ (uint16_t)match, (uint16_t)(match >> 16) };
        }
        const uint32_t beyond = oct_bytes_u32(r);
        f.beyond = beyond & 1;
        f.beyond_points = beyond >> 1 & 1;
        if (!OCT_SET_GROW(d->f, d->n_f, d->cap_f))
            return oct_nomem(err);
        d->f[d->n_f++] = f;
    }
    return OCT_OK;
}

static oct_status boxes_load(oct_set *s, oct_bytes *r, oct_err *err)
{
    detections *d = (detections *)s;
    const size_t found_before = d->n_f, wanted_before = d->n_w;
    const uint64_t samples = oct_bytes_u64(r);
    r->bad |= samples > 1 || d->n_f > UINT32_MAX / 2 || s->n >= UINT32_MAX;
    OCT_TRY(load_found(d, r, err));
    for (size_t n = oct_bytes_count(r, 8); n > 0; n--) {
        if (!OCT_SET_GROW(d->w, d->n_w, d->cap_w))
            return oct_nomem(err);
        d->w[d->n_w].sample = (uint32_t)s->n;
        d->w[d->n_w].class_place = (int32_t)oct_bytes_u32(r);
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            d->w[d->n_w].count[by] = oct_overlaps_known(s->judging, by) ? oct_bytes_u32(r) : 0;
        d->n_w++;
    }
    r->bad |= !samples && (d->n_f > found_before || d->n_w > wanted_before);
    s->n += r->bad ? 0 : (size_t)samples;
    return OCT_OK;
}

const oct_set_type oct_set_of_boxes = { sizeof(detections), boxes_add,  boxes_finish,
                                        boxes_release,      boxes_save, boxes_load };

/* ---- average precision ---- */

enum { RECALLS = 101 };

static double weight(const double *draws, uint32_t sample)
{
    return draws ? draws[sample] : 1;
}

/* How often each of f[n] counts. */
static void weigh(oct_matched by, const found *f, size_t n, const double *draws, double *w)
{
    for (size_t i = 0; i < n; i++)
        w[i] = (by == OCT_MATCHED_POINTS ? f[i].beyond_points : f[i].beyond) ? 0 : weight(draws, f[i].sample);
}

/* For f[n], which are of one class and best first and count w[n] times, at the t-th overlap, with so many `objects`.
 * recall, precision: [n] each; they hold the boxes that are right alone: others do not raise the recall, and their
 * precision is at most that of the one before. */
static double average_precision(oct_matched by, const found *f, size_t n, int t, double objects, const double *w,
                                double *recall, double *precision)
{
    double right = 0, wrong = 0, sum = 0, most = 0;
    size_t hits = 0;
    for (size_t i = 0; i < n; i++) {
        const oct_match m = f[i].match[by];
        if (!(m.hit >> t & 1)) {
            wrong += m.ignored >> t & 1 ? 0 : w[i];
        } else if (w[i] > 0) {
            right += w[i];
            recall[hits] = right / objects;
            precision[hits++] = right / (right + wrong + 0x1p-52); /* COCO adds np.spacing(1) */
        }
    }
    for (size_t i = hits; i-- > 0;) {
        most = precision[i] > most ? precision[i] : most;
        precision[i] = most;
    }
    for (size_t i = 0, r = 0; r < RECALLS; r++) {
        const double least = r == RECALLS - 1 ? 1 : (double)r * 0.01;
        while (i < hits && recall[i] < least)
            i++;
        sum += i < hits ? precision[i] : 0;
    }
    return sum / RECALLS;
}

/* The boxes and objects of one class after the other: those that are there or were found. */
typedef struct of_class {
    int32_t place;
    const found *f;
    size_t n; /* of f */
    double objects[OCT_MATCHED_KINDS];
    size_t next_f, next_w;
} of_class;

static bool next_class(const detections *d, const double *draws, of_class *c)
{
    size_t f = c->next_f, w = c->next_w;
    if (f == d->n_f && w == d->n_w)
        return false;
    c->place = w == d->n_w || (f < d->n_f && d->f[f].class_place < d->w[w].class_place) ? d->f[f].class_place
                                                                                        : d->w[w].class_place;
    c->f = d->f + f;
    while (f < d->n_f && d->f[f].class_place == c->place)
        f++;
    for (int by = 0; by < OCT_MATCHED_KINDS; by++)
        c->objects[by] = 0;
    for (; w < d->n_w && d->w[w].class_place == c->place; w++)
        for (int by = 0; by < OCT_MATCHED_KINDS; by++)
            c->objects[by] += weight(draws, d->w[w].sample) * d->w[w].count[by];
    c->n = f - c->next_f;
    c->next_f = f;
    c->next_w = w;
    return true;
}

/* The mean over the classes that have objects, for the first n overlaps. */
static double mean_precision(const oct_set *s, oct_matched by, int overlaps, const double *draws, double *scratch)
{
    const detections *d = (const detections *)s;
    double sum = 0, classes = 0;
    for (of_class c = { 0 }; next_class(d, draws, &c);) {
        if (!(c.objects[by] > 0))
            continue;
        double *w = scratch + 2 * d->most;
        weigh(by, c.f, c.n, draws, w);
        for (int t = 0; t < overlaps; t++)
            sum += average_precision(by, c.f, c.n, t, c.objects[by], w, scratch, scratch + d->most);
        classes++;
    }
    return classes > 0 ? sum / (classes * overlaps) : NAN;
}

double oct_boxes_ap50(const oct_set *s, const double *draws, double *scratch)
{
    return mean_precision(s, OCT_MATCHED_BOXES, 1, draws, scratch);
}

double oct_boxes_map(const oct_set *s, const double *draws, double *scratch)
{
    return mean_precision(s, OCT_MATCHED_BOXES, OCT_OVERLAPS, draws, scratch);
}

double oct_masks_ap50(const oct_set *s, const double *draws, double *scratch)
{
    return mean_precision(s, OCT_MATCHED_MASKS, 1, draws, scratch);
}

double oct_masks_map(const oct_set *s, const double *draws, double *scratch)
{
    return mean_precision(s, OCT_MATCHED_MASKS, OCT_OVERLAPS, draws, scratch);
}

double oct_keypoints_ap50(const oct_set *s, const double *draws, double *scratch)
{
    return mean_precision(s, OCT_MATCHED_POINTS, 1, draws, scratch);
}

double oct_keypoints_map(const oct_set *s, const double *draws, double *scratch)
{
    return mean_precision(s, OCT_MATCHED_POINTS, OCT_OVERLAPS, draws, scratch);
}

/* ---- one score for all classes ---- */

typedef struct counts {
    double right, wrong, objects;
} counts;

static double f1_of(const counts *c)
{
    const double whole = c->right + c->wrong + c->objects;
    return whole > 0 ? 2 * c->right / whole : 1;
}

/* The counts at the declared score, or where F1 is best; equal scores are not separated. *at (NULL: not asked for): the
 * least score that counts. */
static counts counts_of(const oct_set *s, const double *draws, double *at)
{
    const detections *d = (const detections *)s;
    const double least = s->judging->rule->box.f1_score;
    counts c = { 0 }, best;
    for (size_t i = 0; i < d->n_w; i++)
        c.objects += weight(draws, d->w[i].sample) * d->w[i].count[OCT_MATCHED_BOXES];
    best = c;
    if (at)
        *at = least >= 0 ? least : INFINITY;
    for (size_t i = 0; i < d->n_f; i++) {
        const found *f = &d->f[d->by_score[i]];
        const double w = weight(draws, f->sample);
        if (f->score < least)
            break;
        c.right += f->match[OCT_MATCHED_BOXES].hit & 1 ? w : 0;
        c.wrong += (f->match[OCT_MATCHED_BOXES].hit | f->match[OCT_MATCHED_BOXES].ignored) & 1 ? 0 : w;
        const bool last = i + 1 == d->n_f || d->f[d->by_score[i + 1]].score < f->score;
        if (!last || (least < 0 && !(f1_of(&c) > f1_of(&best))))
            continue;
        best = c;
        if (at && least < 0)
            *at = f->score;
    }
    return best;
}

double oct_boxes_f1(const oct_set *s, const double *draws, double *scratch)
{
    const counts c = counts_of(s, draws, NULL);
    return f1_of(&c);
}

double oct_boxes_precision(const oct_set *s, const double *draws, double *scratch)
{
    const counts c = counts_of(s, draws, NULL);
    return c.right + c.wrong > 0 ? c.right / (c.right + c.wrong) : 0;
}

double oct_boxes_recall(const oct_set *s, const double *draws, double *scratch)
{
    const counts c = counts_of(s, draws, NULL);
    return c.objects > 0 ? c.right / c.objects : 1;
}

/* ---- tables ---- */

oct_status oct_boxes_table(const oct_set *s, oct_arena *arena, oct_class_table *t, oct_err *err)
{
    const detections *d = (const detections *)s;
    double least;
    counts_of(s, NULL, &least);
    *t = (oct_class_table){ .counts = "objects", .own = "ap50" };
    double *scratch = oct_arena_calloc(arena, s->scratch + 1, sizeof *scratch);
    t->row = oct_arena_calloc(arena, d->n_f + d->n_w + 1, sizeof *t->row);
    if (!scratch || !t->row)
        return oct_nomem(err);
    for (of_class c = { 0 }; next_class(d, NULL, &c);) {
        double right = 0, wrong = 0, *w = scratch + 2 * d->most;
        weigh(OCT_MATCHED_BOXES, c.f, c.n, NULL, w);
        for (size_t i = 0; i < c.n && c.f[i].score >= least; i++) {
            right += c.f[i].match[OCT_MATCHED_BOXES].hit & 1;
            wrong += !((c.f[i].match[OCT_MATCHED_BOXES].hit | c.f[i].match[OCT_MATCHED_BOXES].ignored) & 1);
        }
        oct_class_row_add(t, oct_truth_class_id(s->judging->truth, c.place), right, wrong,
                          c.objects[OCT_MATCHED_BOXES] - right,
                          c.objects[OCT_MATCHED_BOXES] > 0
                              ? average_precision(OCT_MATCHED_BOXES, c.f, c.n, 0, c.objects[OCT_MATCHED_BOXES], w,
                                                  scratch, scratch + d->most)
                              : NAN);
    }
    return OCT_OK;
}
