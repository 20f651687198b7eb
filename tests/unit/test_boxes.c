/* Boxes from outputs, their suppression, matching and average precision, against numbers worked out by hand. */
#include "eval/sets/boxes.h"
#include "eval/sets/average_precision.h"
#include "eval/sets/match_boxes.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"
#include "unit.h"

TEST_GROUP(folder_make, folder_remove);

#define NEAR(a, b, tol) assert_true(fabs((a) - (b)) <= (tol))

/* ---- decoding ---- */

typedef struct out {
    const char *name;
    int rank;
    int64_t dims[4];
    const float *v;
} out;

/* Decodes with a rule of these lines, for an input of 32 x 16. */
static oct_status decode(const char *lines, const out *o, size_t n, const float *priors, size_t n_priors, oct_boxes *b,
                         oct_err *err)
{
    oct_set_tensor t[4];
    char text[512];
    snprintf(text, sizeof text, "judges boxes\n%s", lines);
    oct_decode *r;
    if (oct_decode_parse(text, "r", "", &r, err) != OCT_OK)
        fail_msg("%s", err->text);
    const oct_judging j = { .rule = r };
    for (size_t i = 0; i < n; i++) {
        size_t count = 1;
        for (int k = 0; k < o[i].rank; k++)
            count *= (size_t)o[i].dims[k];
        t[i] = (oct_set_tensor){ o[i].name, o[i].rank, o[i].dims, o[i].v, count };
    }
    const oct_status s = oct_boxes_decode(&j, t, n, 32, 16, priors, n_priors, b, err);
    oct_decode_close(r);
    return s;
}

static void expect_box(const oct_boxes *b, size_t i, const double want[4], double score, int64_t class_place)
{
    assert_true(i < b->n);
    NEAR(b->v[i].x1, want[0], 1e-6);
    NEAR(b->v[i].y1, want[1], 1e-6);
    NEAR(b->v[i].x2, want[2], 1e-6);
    NEAR(b->v[i].y2, want[3], 1e-6);
    NEAR(b->v[i].score, score, 1e-7);
    assert_int_equal(b->v[i].class_place, class_place);
}

/* One box each, given in the form, which is 4 2 12 8 in corners. */
TEST(plain_forms)
{
    static const struct {
        const char *lines;
        float v[4];
    } cases[] = {
        { "form xyxy", { 4, 2, 12, 8 } },
        { "form yxyx\nunit input", { 0.125f, 0.125f, 0.5f, 0.375f } },
        { "form xywh", { 4, 2, 8, 6 } },
        { "form cxcywh", { 8, 5, 8, 6 } },
        { "form cxcywh\nunit input", { 0.25f, 0.3125f, 0.25f, 0.375f } },
    };
    const float score[] = { 0.25f, 0.75f };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char lines[256];
        oct_boxes b = { 0 };
        oct_err err = OCT_ERR_INIT;
        snprintf(lines, sizeof lines, "boxes [n,4]\nscores [n,2]\nlabels best\n%s", cases[i].lines);
        const out o[] = { { "s", 2, { 1, 2 }, score }, { "b", 2, { 1, 4 }, cases[i].v } };
        if (decode(lines, o, 2, NULL, 0, &b, &err) != OCT_OK)
            fail_msg("%s", err.text);
        assert_int_equal(b.n, 1);
        expect_box(&b, 0, (const double[]){ 4, 2, 12, 8 }, 0.75, 1);
        oct_boxes_free(&b);
    }
}

/* Columns of one output, transposed: centre, size, objectness and two scores of each of three boxes. */
TEST(columns)
{
    static const float v[7][3] = { { 8, 20, 8 },      { 5, 8, 5 },          { 8, 4, 8 },         { 6, 4, 6 },
                                   { 0.5f, 1, 0.1f }, { 0.8f, 0.1f, 0.2f }, { 0.2f, 0.9f, 0.3f } };
    const out o = { "y", 2, { 7, 3 }, &v[0][0] };
    oct_boxes b = { 0 };
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(decode("boxes [*,n] 0..3\nobjectness [*,n] 4\nscores [*,n] 5..\nform cxcywh\nscore 0.15\n", &o, 1,
                            NULL, 0, &b, &err),
                     OCT_OK);
    assert_int_equal(b.n, 2);
    expect_box(&b, 0, (const double[]){ 18, 6, 22, 10 }, 0.9f, 1);
    expect_box(&b, 1, (const double[]){ 4, 2, 12, 8 }, 0.5 * 0.8f, 0);
    /* the same columns, counted from the last */
    assert_int_equal(decode("boxes [*,n] -7..-4\nobjectness [*,n] 4..-3\nscores [*,n] -2..\nform cxcywh\nscore 0.15\n",
                            &o, 1, NULL, 0, &b, &err),
                     OCT_OK);
    assert_int_equal(b.n, 2);
    expect_box(&b, 0, (const double[]){ 18, 6, 22, 10 }, 0.9f, 1);
    expect_box(&b, 1, (const double[]){ 4, 2, 12, 8 }, 0.5 * 0.8f, 0);
    assert_int_equal(decode("boxes [*,n] 0..3\nscores [*,n] -8..\nform cxcywh", &o, 1, NULL, 0, &b, &err), OCT_EUSAGE);
    assert_int_equal(decode("boxes [*,n] 0..3\nscores [*,n] 4..-4\nform cxcywh", &o, 1, NULL, 0, &b, &err), OCT_EUSAGE);
    assert_int_equal(decode("boxes [*,n] 0..3\nscores [*,n] 5..7\nform cxcywh", &o, 1, NULL, 0, &b, &err), OCT_EUSAGE);
    assert_int_equal(decode("boxes x [*,n] 0..3\nscores [*,n] 5..\nform cxcywh", &o, 1, NULL, 0, &b, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.text, "'x'"));
    assert_non_null(strstr(err.hint, "'y' [7,3]"));
    oct_boxes_free(&b);
}

/* Distances in bins, an output for each stride: 8 has 4 x 2 cells, 16 has 2 x 1. The smaller output stands first in the
 * model. */
TEST(distances)
{
    float s8[8] = { 0 }, s16[2] = { 0 }, d8[8 * 8] = { 0 }, d16[2 * 8] = { 0 };
    s8[6] = 0.5f;  /* column 2, row 1 */
    s16[1] = 0.9f; /* column 1, row 0 */
    for (int k = 0; k < 4; k++)
        d8[6 * 8 + 2 * k + 1] = k == 0 ? 100 : -100; /* of bins 0 and 1 the left side is at 1, others at 0 */
    const out o[] = {
        { "s16", 2, { 2, 1 }, s16 }, { "d16", 2, { 2, 8 }, d16 }, { "s8", 2, { 8, 1 }, s8 }, { "d8", 2, { 8, 8 }, d8 }
    };
    oct_boxes b = { 0 };
    oct_err err = OCT_ERR_INIT;
    const char *lines = "boxes [n,8]\nscores [n,1]\nform ltrb\nunit stride\nbins 2\nstrides 8 16\nshift -0.5";
    if (decode(lines, o, 4, NULL, 0, &b, &err) != OCT_OK)
        fail_msg("%s", err.text);
    assert_int_equal(b.n, 2);
    expect_box(&b, 0, (const double[]){ 23.5 - 8, 7.5 - 8, 23.5 + 8, 7.5 + 8 }, 0.9f,
               0); /* both bins alike: half a stride */
    expect_box(&b, 1, (const double[]){ 19.5 - 8, 11.5, 19.5, 11.5 }, 0.5, 0);
    assert_int_equal(decode("boxes [n,8]\nscores [n,1]\nform ltrb\nbins 2\nstrides 8 32", o, 4, NULL, 0, &b, &err),
                     OCT_EUSAGE);
    oct_boxes_free(&b);
}

/* Against cells: the second of 2 x 1 cells of stride 16. */
TEST(grids)
{
    const float v[2][5] = { { 0 }, { 0.5f, 0.25f, 0, -0.69314718f, 0.6f } };
    const out o = { "y", 2, { 2, 5 }, &v[0][0] };
    oct_boxes b = { 0 };
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(decode("boxes [n,5] 0..3\nscores [n,5] 4\nform grid\nstrides 16", &o, 1, NULL, 0, &b, &err),
                     OCT_OK);
    assert_int_equal(b.n, 1);
    expect_box(&b, 0, (const double[]){ 24 - 8, 4 - 4, 24 + 8, 4 + 4 }, 0.6f, 0);
    /* Logits of 0: sigmoid one half, so centre (0.5 + x) * 16 and the anchor itself; the second anchor of the second
     * cell. */
    float raw[4][5] = { { 0 } };
    for (int i = 0; i < 4; i++)
        raw[i][4] = -9;
    raw[3][4] = 2;
    const out r = { "y", 4, { 2, 1, 2, 5 }, &raw[0][0] };
    const char *lines =
        "boxes [n,n,n,5] 0..3\nscores [n,n,n,5] 4\nform yolo\nactivation sigmoid\nstrides 16\nanchors 16 4 6 8 10\norder anchor";
    assert_int_equal(decode(lines, &r, 1, NULL, 0, &b, &err), OCT_OK);
    assert_int_equal(b.n, 1);
    expect_box(&b, 0, (const double[]){ 24 - 4, 8 - 5, 24 + 4, 8 + 5 }, 1 / (1 + exp(-2.0)), 0);
    /* Against a prior: centre moved by a tenth of its size times 1 and 2, width twice as large. */
    const float deltas[] = { 1, 2, 3.4657359f, 0 }, prior[] = { 0.5f, 0.5f, 0.25f, 0.5f }, two[] = { 0, 1 };
    const out d[] = { { "l", 2, { 1, 4 }, deltas }, { "c", 2, { 1, 2 }, two } };
    lines =
        "boxes [n,4]\nscores [n,2]\nform deltas\nvariances 0.1 0.1 0.2 0.2\npriors p.npy\nactivation softmax\nbackground first";
    assert_int_equal(decode(lines, d, 2, prior, 1, &b, &err), OCT_OK);
    expect_box(&b, 0, (const double[]){ 16.8 - 8, 9.6 - 4, 16.8 + 8, 9.6 + 4 }, 1 / (1 + exp(-1.0)), 0);
    assert_int_equal(decode(lines, d, 2, prior, 2, &b, &err), OCT_EUSAGE);
    oct_boxes_free(&b);
}

/* Two anchors of a cell in one dimension of channels, or behind cells; boxes of the second anchor in the second of 2 x
 * 1 cells. */
TEST(joined)
{
    float shifts[8][2] = { { 0 } }, scores[2][2] = { { 0 } }, last[2][8] = { { 0 } }, of_last[2][2] = { { 0 } };
    shifts[4][1] = last[1][4] = 0.5f; /* by half of its width */
    scores[1][1] = of_last[1][1] = 0.75f;
    const out o[] = { { "b", 3, { 8, 1, 2 }, &shifts[0][0] }, { "s", 3, { 2, 1, 2 }, &scores[0][0] } };
    const out z[] = { { "b", 3, { 1, 2, 8 }, &last[0][0] }, { "s", 3, { 1, 2, 2 }, &of_last[0][0] } };
    oct_boxes b = { 0 };
    oct_err err = OCT_ERR_INIT;
#define ANCHORS "form deltas\nstrides 16\nanchors 16 4 6 8 10\n"
    assert_int_equal(decode("boxes [2x4,n,n]\nscores [2x*,n,n]\norder anchor\n" ANCHORS, o, 2, NULL, 0, &b, &err),
                     OCT_OK);
    assert_int_equal(b.n, 1);
    expect_box(&b, 0, (const double[]){ 24, 3, 32, 13 }, 0.75, 0);
    assert_int_equal(decode("boxes b [n,n,2x4]\nscores s [n,n,2x*]\n" ANCHORS, z, 2, NULL, 0, &b, &err), OCT_OK);
    assert_int_equal(b.n, 1);
    expect_box(&b, 0, (const double[]){ 24, 3, 32, 13 }, 0.75, 0);
    assert_int_equal(decode("boxes [3x4,n,n]\nscores [2x*,n,n]\n" ANCHORS, o, 2, NULL, 0, &b, &err), OCT_EUSAGE);
    for (size_t i = 0; i < 4; i++) {
        oct_decode *r;
        const char *const lines[] = { "boxes [2x4,2xn]", "boxes [0x4,n]", "boxes [2x3x4,n]", "output [2x4,n]" };
        char text[64];
        snprintf(text, sizeof text, "judges %s\n%s\n", i == 3 ? "classes" : "boxes", lines[i]);
        assert_int_equal(oct_decode_parse(text, "r", "", &r, &err), OCT_EMALFORMED);
    }
#undef ANCHORS
    oct_boxes_free(&b);
}

/* Suppression inside: the outputs have no batch, and as many boxes as there are. */
TEST(inside)
{
    const float boxes[] = { 1, 1, 5, 5, 2, 2, 9, 9 }, labels[] = { 3, 1 }, scores[] = { 0.5f, 0.75f }, count[] = { 1 };
    const out o[] = {
        { "b", 2, { 2, 4 }, boxes }, { "l", 1, { 2 }, labels }, { "s", 1, { 2 }, scores }, { "n", 0, { 0 }, count }
    };
    oct_boxes b = { 0 };
    oct_err err = OCT_ERR_INIT;
    const char *lines = "boxes b [n,4]\nclasses l [n]\nscores s [n]\nform xyxy\nfirst-class 1\n";
    assert_int_equal(decode(lines, o, 4, NULL, 0, &b, &err), OCT_OK);
    assert_int_equal(b.n, 2);
    expect_box(&b, 0, (const double[]){ 2, 2, 9, 9 }, 0.75, 0);
    expect_box(&b, 1, (const double[]){ 1, 1, 5, 5 }, 0.5, 2);
    assert_int_equal(decode("boxes b [n,4]\nclasses l [n]\nscores s [n]\ncount n\nform xyxy\n", o, 4, NULL, 0, &b,
                            &err),
                     OCT_OK);
    assert_int_equal(b.n, 1);
    const out none[] = { { "b", 2, { 0, 4 }, boxes }, { "l", 1, { 0 }, labels }, { "s", 1, { 0 }, scores } };
    assert_int_equal(decode(lines, none, 3, NULL, 0, &b, &err), OCT_OK);
    assert_int_equal(b.n, 0);
    const out one[] = { { "b", 1, { 4 }, boxes },
                        { "l", 0, { 0 }, labels },
                        { "s", 0, { 0 }, scores } }; /* a 1 in front taken for the batch */
    assert_int_equal(decode(lines, one, 3, NULL, 0, &b, &err), OCT_OK);
    assert_int_equal(b.n, 1);
    expect_box(&b, 0, (const double[]){ 1, 1, 5, 5 }, 0.5, 2);
    oct_boxes_free(&b);
}

/* ---- suppression ---- */

TEST(suppression)
{
    /* The second overlaps the first by 80 / 120, the third by 50 / 150; the fourth is the first, of another class. */
    static const oct_box from[] = { { 0, 0, 10, 10, 0.9, 0, 0 },
                                    { 2, 0, 12, 10, 0.8, 0, 1 },
                                    { 5, 0, 15, 10, 0.95, 0, 2 },
                                    { 0, 0, 10, 10, 0.7, 1, 3 } };
    static const struct {
        double limit;
        bool all;
        int64_t most;
        bool of_class;
        size_t n, rows[4];
    } cases[] = { { 0.6, false, 9, false, 3, { 2, 0, 3 } },
                  { 0.3, false, 9, false, 2, { 2, 3 } },
                  { 0.3, true, 9, false, 1, { 2 } },
                  { 2, false, 9, false, 4, { 2, 0, 1, 3 } },
                  { 2, false, 2, false, 2, { 2, 0 } },
                  { 2, false, 1, true, 2, { 2, 3 } },
                  { 2.0 / 3, false, 9, false, 4, { 2, 0, 1, 3 } } };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_box v[4];
        memcpy(v, from, sizeof v);
        oct_boxes b = { v, 4, 4 };
        oct_boxes_suppress(&b, cases[i].limit, cases[i].all, cases[i].most, cases[i].of_class);
        assert_int_equal(b.n, cases[i].n);
        for (size_t k = 0; k < b.n; k++)
            assert_int_equal(b.v[k].row, cases[i].rows[k]);
    }
}

/* ---- matching ---- */

TEST(matching)
{
    static const oct_object objects[] = { { 0, 0, 0, 100, 100, true },
                                          { 0, 0, 0, 10, 10, false },
                                          { 0, 20, 0, 30, 10, false } };
    /* Best first: on the second object by 0.8; on it again; within the crowd; on the third by 0.5. */
    static const oct_box boxes[] = { { 0, 0, 8, 10, 0.9, 0, 0 },
                                     { 0, 0, 10, 10, 0.8, 0, 1 },
                                     { 50, 50, 60, 60, 0.7, 0, 2 },
                                     { 20, 0, 25, 10, 0.6, 0, 3 },
                                     { 200, 0, 210, 10, 0.5, 0, 4 } };
    oct_match m[OCT_COUNT(boxes)];
    assert_int_equal(oct_match_boxes(boxes, OCT_COUNT(boxes), objects, OCT_COUNT(objects), m, NULL), OCT_OK);
    assert_int_equal(m[0].hit, 0x7f);      /* 0.50 to 0.80 */
    assert_int_equal(m[0].ignored, 0x380); /* above it lies on the crowd alone */
    assert_int_equal(m[1].hit, 0x380);     /* the object is free where the better one did not take it */
    assert_int_equal(m[1].ignored, 0x7f);
    assert_true(m[2].hit == 0 && m[2].ignored == 0x3ff);
    assert_true(m[3].hit == 1 && m[3].ignored == 0x3fe);
    assert_true(m[4].hit == 0 && m[4].ignored == 0);
}

/* ---- metrics ---- */

/* Two pictures with two objects and one; scores 0.9 (right), 0.8 (wrong), 0.7 (right). */
TEST(precisions)
{
    const char *truth_file =
        folder_text("t.csv", "sample,class,x1,y1,x2,y2\n0,0,0,0,8,8\n0,0,16,0,24,8\n1,0,8,8,16,16\n");
    oct_truth *t;
    oct_decode *r;
    oct_err err = OCT_ERR_INIT;
    assert_int_equal(oct_truth_open(truth_file, 0, &t, &err), OCT_OK);
    assert_int_equal(oct_decode_parse("judges boxes\nboxes [n,4]\nscores [n,1]\nform xyxy\n", "r", "", &r, &err),
                     OCT_OK);
    const oct_judging j = { .rule = r, .truth = t };
    oct_set *s;
    assert_int_equal(oct_set_create(OCT_SET_BOXES, &j, &s, NULL), OCT_OK);
    static const float boxes[2][2][4] = { { { 0, 0, 8, 8 }, { 0, 8, 8, 16 } }, { { 8, 8, 16, 15 }, { 0, 0, 1, 1 } } };
    static const float scores[2][2] = { { 0.9f, 0.8f }, { 0.7f, 0 } };
    oct_array image = { .dtype = OCT_F32, .rank = 4, .dims = { 1, 3, 16, 32 } };
    oct_picture_size none = { 0, 0 };
    const oct_batch batch = { .n = 1, .tensors = &image, .n_tensors = 1, .pictures = &none };
    for (int i = 0; i < 2; i++) {
        const int64_t b[] = { 2, 4 }, c[] = { 2, 1 };
        const oct_set_tensor o[] = { { "b", 2, b, &boxes[i][0][0], 8 }, { "c", 2, c, scores[i], 2 } };
        const oct_set_view v = { .name = "p", .index = i, .out = o, .ref = o, .n_out = 2, .batch = &batch, .rows = 1 };
        if (s->type->add(s, &v, &err) != OCT_OK)
            fail_msg("%s", err.text);
    }
    assert_int_equal(oct_set_finish(s, NULL), OCT_OK);
    double ap50, map, f1, recall, precision;
    assert_int_equal(oct_set_value_of(s, oct_boxes_ap50, &ap50, NULL), OCT_OK);
    assert_int_equal(oct_set_value_of(s, oct_boxes_map, &map, NULL), OCT_OK);
    assert_int_equal(oct_set_value_of(s, oct_boxes_f1, &f1, NULL), OCT_OK);
    assert_int_equal(oct_set_value_of(s, oct_boxes_recall, &recall, NULL), OCT_OK);
    assert_int_equal(oct_set_value_of(s, oct_boxes_precision, &precision, NULL), OCT_OK);
    /* Precision 1 up to the recall 1/3, 2/3 from there to 2/3: 34 and 33 of the 101 recalls. */
    NEAR(ap50, (34 + 33 * 2.0 / 3) / 101, 1e-14);
    /* The last box overlaps by 7/8: it is right up to 0.85; above that only the first is. */
    NEAR(map, (8 * (34 + 33 * 2.0 / 3) + 2 * 34) / 1010, 1e-14);
    NEAR(f1, 4.0 / 6, 1e-15);
    NEAR(recall, 2.0 / 3, 1e-15);
    NEAR(precision, 2.0 / 3, 1e-15);
    const double draws[] = { 0, 2 };
    double *scratch = oct_calloc(s->scratch + 1, sizeof *scratch);
    NEAR(oct_boxes_ap50(s, draws, scratch), 1, 1e-15); /* the second picture alone */
    oct_free(scratch);
    r->box.f1_score = 0.85;
    assert_int_equal(oct_set_value_of(s, oct_boxes_f1, &f1, NULL), OCT_OK);
    NEAR(f1, 2.0 / 4, 1e-15);
    oct_set_free(s);
    oct_decode_close(r);
    oct_truth_close(t);
}
