/* lib/ops/vision/op_nms.c -- NonMaxSuppression: of boxes in descending order of score those that no kept one overlaps
 * too much. */
#include "ops/core/args.h"
#include "ops/core/elem.h"

#include "kernels/rows.h"

#include <string.h>

enum { BOXES, SCORES, MOST, IOU, LEAST };

static oct_status nms_infer(const oct_infer *c, oct_err *err)
{
    oct_shape b = oct_in_shape(c, BOXES), s = oct_in_shape(c, SCORES);
    oct_out_dtype(c, 0, OCT_S64);
    bool ok = (b.rank < 0 || (b.rank == 3 && (b.d[2].n < 0 || b.d[2].n == 4))) && (s.rank < 0 || s.rank == 3);
    if (ok && b.rank == 3 && s.rank == 3)
        ok = (b.d[0].n < 0 || s.d[0].n < 0 || b.d[0].n == s.d[0].n) &&
             (b.d[1].n < 0 || s.d[2].n < 0 || b.d[1].n == s.d[2].n);
    if (!ok)
        return oct_fail(err, OCT_EMALFORMED, "boxes and scores are not batch x boxes x 4 and batch x classes x boxes");
    return oct_out_shape(c, 0, 2, (oct_dim[]){ { -1, NULL }, oct_dim_of(3) }, err);
}

/* A box by its corners. */
typedef struct box {
    float x0, y0, x1, y1;
} box;

/* Boxes kept of a class, side by side: [room] corners and areas, in whole groups of WIDE. */
enum { WIDE = 8, SIDES = 5 };

typedef struct nms {
    int64_t batch, classes, boxes;
    int64_t room; /* most boxes kept of a class */
    bool centred;
    int threads;
    const float *box, *score;
    int64_t most;
    float iou, least;
    int32_t *kept;   /* [batch][classes][room] */
    int64_t *n_kept; /* [batch][classes] */
    int32_t *heap;   /* [threads][boxes] */
    float *side;     /* [threads][SIDES][oct_round_up(room, WIDE)]: x0, y0, x1, y1, area */
} nms;

static const oct_operand *input(const oct_step *s, int slot)
{
    return slot < s->n_in && s->in[slot] != NULL && s->in[slot]->count > 0 ? s->in[slot] : NULL;
}

static int64_t most_of(const oct_step *s, int64_t boxes)
{
    const oct_operand *t = input(s, MOST);
    const int64_t v = t != NULL ? ((const int64_t *)t->data)[0] : 0;
    return v < 0 ? 0 : v < boxes ? v : boxes;
}

static oct_status nms_prepare(oct_step *s, const oct_prep *p, oct_err *err)
{
    const oct_operand *b = s->in[BOXES], *c = s->in[SCORES], *most = input(s, MOST);
    nms *t = oct_arena_calloc(p->arena, 1, sizeof *t);
    if (t == NULL)
        return oct_nomem(err);
    s->state = t;
    *t = (nms){ .batch = b->dims[0], .classes = c->dims[1], .boxes = b->dims[1], .threads = p->threads };
    const int64_t form = oct_node_int(s->node, "center_point_box", 0);
    if (b->dtype != OCT_F32 || c->dtype != OCT_F32 || (most != NULL && most->dtype != OCT_S64))
        return oct_fail(err, OCT_EUNSUPPORTED, "types %s and %s", oct_dtype_name(b->dtype), oct_dtype_name(c->dtype));
    for (int i = IOU; i <= LEAST; i++)
        if (input(s, i) != NULL && input(s, i)->dtype != OCT_F32)
            return oct_fail(err, OCT_EMALFORMED, "threshold %d is %s, expected float32", i,
                            oct_dtype_name(input(s, i)->dtype));
    if (form != 0 && form != 1)
        return oct_fail(err, OCT_EMALFORMED, "attribute 'center_point_box' is %lld", (long long)form);
    if (b->rank != 3 || c->rank != 3 || c->dims[0] != t->batch || c->dims[2] != t->boxes || b->dims[2] != 4 ||
        t->boxes > INT32_MAX)
        return oct_fail(err, OCT_EMALFORMED, "boxes and scores do not fit each other");
    t->centred = form == 1;
    t->room = most != NULL && !most->constant ? t->boxes : most_of(s, t->boxes);
    int64_t groups;
    size_t kept, heap, counts, sides;
    if (!oct_count((const int64_t[]){ t->batch, t->classes }, 2, &groups) ||
        !oct_mul_size((size_t)groups, sizeof(int64_t), &counts) ||
        !oct_mul_size((size_t)groups, (size_t)t->room * sizeof(int32_t), &kept) ||
        !oct_mul_size((size_t)t->boxes * sizeof(int32_t), (size_t)p->threads, &heap) ||
        !oct_mul_size(oct_round_up((size_t)t->room, WIDE) * SIDES * sizeof(float), (size_t)p->threads, &sides) ||
        !oct_add_size(counts, kept, &s->scratch) || !oct_add_size(s->scratch, heap, &s->scratch) ||
        !oct_add_size(s->scratch, sides, &s->scratch))
        return oct_nomem(err);
    return OCT_OK;
}

static nms nms_state(const oct_step *s, const oct_run *r)
{
    nms t = *(const nms *)s->state;
    t.box = s->in[BOXES]->data;
    t.score = s->in[SCORES]->data;
    t.most = most_of(s, t.room);
    t.iou = input(s, IOU) != NULL ? ((const float *)s->in[IOU]->data)[0] : 0.0f;
    t.least = input(s, LEAST) != NULL ? ((const float *)s->in[LEAST]->data)[0] : -__builtin_inff();
    t.n_kept = r->scratch;
    t.kept = (int32_t *)(void *)(t.n_kept + t.batch * t.classes);
    t.heap = t.kept + t.batch * t.classes * t.room;
    t.side = (float *)(void *)(t.heap + (int64_t)t.threads * t.boxes);
    return t;
}

static box box_at(const nms *t, int64_t image, int32_t i)
{
    const float *v = t->box + (image * t->boxes + i) * 4;
    if (t->centred) {
        const float w = v[2] / 2.0f, h = v[3] / 2.0f;
        return (box){ v[0] - w, v[1] - h, v[0] + w, v[1] + h };
    }
    const bool down = v[0] < v[2], right = v[1] < v[3]; /* y1, x1, y2, x2 of any two corners */
    return (box){ right ? v[1] : v[3], down ? v[0] : v[2], right ? v[3] : v[1], down ? v[2] : v[0] };
}

static inline float common(float a0, float a1, float b0, float b1)
{
    return (a1 < b1 ? a1 : b1) - (a0 > b0 ? a0 : b0);
}

/* Whether a box overlaps one of WIDE boxes more than the limit. Without branches in the loops, for the compiler to
 * compute them side by side; where the area of one is not above 0, it is not. Most boxes are apart along one axis. */
static bool overlaps_one(box a, float area, const float *side, size_t room, float limit)
{
    const float *x0 = side, *y0 = side + room, *x1 = side + 2 * room, *y1 = side + 3 * room, *areas = side + 4 * room;
    int some = 0;
    for (int i = 0; i < WIDE; i++)
        some |= common(a.x0, a.x1, x0[i], x1[i]) > 0.0f;
    if (!some)
        return false;
    some = 0;
    for (int i = 0; i < WIDE; i++) {
        const float w = common(a.x0, a.x1, x0[i], x1[i]), h = common(a.y0, a.y1, y0[i], y1[i]);
        const float both = w * h, either = area + areas[i] - both;
        some |= (w > 0.0f) & (h > 0.0f) & (areas[i] > 0.0f) & (either > 0.0f) & (both / either > limit);
    }
    return some;
}

static float area_of(box a)
{
    return (a.x1 - a.x0) * (a.y1 - a.y0);
}

/* Whether a box overlaps one of n boxes too much. */
static bool overlaps_any(const nms *t, box a, const float *side, size_t room, int64_t n)
{
    const float area = area_of(a);
    for (int64_t k = 0; area > 0.0f && k < n; k += WIDE)
        if (overlaps_one(a, area, side + k, room, t->iou))
            return true;
    return false;
}

/* Makes a box the k-th; behind the last one are boxes without area. */
static void keep_box(box a, float *side, size_t room, int64_t k)
{
    const float v[SIDES] = { a.x0, a.y0, a.x1, a.y1, area_of(a) };
    for (size_t i = 0; i < SIDES; i++) {
        if (k % WIDE == 0)
            memset(side + i * room + k, 0, WIDE * sizeof *side);
        side[i * room + (size_t)k] = v[i];
    }
}

/* Whether box a comes before b. */
static bool before(const float *score, int32_t a, int32_t b)
{
    return score[a] != score[b] ? score[a] > score[b] : a < b;
}

static void sift_down(const float *score, int32_t *v, int64_t at, int64_t n)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= n)
            return;
        if (child + 1 < n && before(score, v[child + 1], v[child]))
            child++;
        if (!before(score, v[child], v[at]))
            return;
        const int32_t x = v[at];
        v[at] = v[child];
        v[child] = x;
        at = child;
    }
}

/* Items: pairs of image and class. Candidates come off a heap, so that few are sorted when few are kept. */
static void suppress(void *arg, size_t begin, size_t end, size_t thread)
{
    const nms *t = arg;
    const size_t room = oct_round_up((size_t)t->room, WIDE);
    int32_t *heap = t->heap + (int64_t)thread * t->boxes;
    float *side = t->side + thread * SIDES * room;
    for (size_t item = begin; item < end; item++) {
        const float *score = t->score + (int64_t)item * t->boxes;
        const int64_t image = (int64_t)item / t->classes;
        int32_t *kept = t->kept + (int64_t)item * t->room;
        int64_t n = 0, found = 0;
        for (int32_t i = 0; i < t->boxes; i++)
            if (score[i] > t->least)
                heap[n++] = i;
        for (int64_t i = n / 2 - 1; i >= 0; i--)
            sift_down(score, heap, i, n);
        while (n > 0 && found < t->most) {
            const int32_t next = heap[0];
            const box b = box_at(t, image, next);
            heap[0] = heap[--n];
            sift_down(score, heap, 0, n);
            if (overlaps_any(t, b, side, room, found))
                continue;
            keep_box(b, side, room, found);
            kept[found++] = next;
        }
        t->n_kept[item] = found;
    }
}

static oct_status nms_measure(const oct_step *s, const oct_run *r, oct_err *err)
{
    nms t = nms_state(s, r);
    int64_t total = 0;
    if (s->in[SCORES]->count > 0)
        oct_pool_for(oct_pool_threads(r->pool) > t.threads ? NULL : r->pool, (size_t)(t.batch * t.classes), 1, suppress,
                     &t);
    for (int64_t i = 0; s->in[SCORES]->count > 0 && i < t.batch * t.classes; i++)
        total += t.n_kept[i];
    s->out[0]->rank = 2;
    s->out[0]->dims[0] = total;
    s->out[0]->dims[1] = 3;
    return OCT_OK;
}

static oct_status nms_run(const oct_step *s, const oct_run *r, oct_err *err)
{
    const nms t = nms_state(s, r);
    int64_t *y = s->out[0]->data;
    for (int64_t i = 0; s->out[0]->count > 0 && i < t.batch * t.classes; i++)
        for (int64_t k = 0; k < t.n_kept[i]; k++, y += 3) {
            y[0] = i / t.classes;
            y[1] = i % t.classes;
            y[2] = t.kept[i * t.room + k];
        }
    return OCT_OK;
}

const oct_op oct_op_non_max_suppression = {
    OCT_SCHEMA("NonMaxSuppression", "", 10, 2, 5, 1, 1),
    .work = OCT_WORK_PAIRS,
    .infer = nms_infer,
    .prepare = nms_prepare,
    .measure = nms_measure,
    .run = nms_run,
    .f16 = -1,
    .bf16 = -1,
    .decision = OCT_LISTS,
};
