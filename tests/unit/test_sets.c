/* Metrics of sets against numbers computed elsewhere (NumPy, scikit-learn's definitions), rules for outputs, and
 * truths. */
#include "eval/metrics/bootstrap.h"
#include "eval/sets/classes.h"
#include "eval/metrics/correlation.h"
#include "eval/sets/decode.h"
#include "eval/sets/judging.h"
#include "eval/sets/maps.h"
#include "eval/sets/similarity.h"
#include "eval/metrics/summary.h"
#include "eval/sets/value_set.h"

#include "base/io.h"
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

/* ---- helpers ---- */

typedef struct judged {
    oct_decode rule;
    oct_judging j;
    oct_set *set;
    int64_t next; /* position of the next sample */
} judged;

static void begin(judged *x, oct_set_kind kind)
{
    x->rule = (oct_decode){ 0 };
    oct_decode_defaults(&x->rule);
    x->j = (oct_judging){ .rule = &x->rule };
    x->next = 0;
    assert_int_equal(oct_set_create(kind, &x->j, &x->set, NULL), OCT_OK);
}

/* A sample whose only output is v[n]. */
static void add(judged *x, int64_t label, const float *v, int64_t n)
{
    const oct_set_tensor t = { "y", 1, &n, v, (size_t)n };
    const oct_set_view view = { .name = "s", .index = x->next++, .label = label, .out = &t, .ref = &t, .n_out = 1 };
    assert_int_equal(x->set->type->add(x->set, &view, NULL), OCT_OK);
}

/* A sample of `classes` that was taken for one of them. */
static void add_class(judged *x, int64_t label, size_t found, size_t classes)
{
    float v[8] = { 0 };
    v[found] = 1;
    add(x, label, v, (int64_t)classes);
}

static double value(judged *x, oct_set_value fn)
{
    double v;
    assert_int_equal(oct_set_finish(x->set, NULL), OCT_OK);
    assert_int_equal(oct_set_value_of(x->set, fn, &v, NULL), OCT_OK);
    return v;
}

/* ---- classes ---- */

/* labels 0 0 1 1 2 2 2, found 0 1 1 1 2 0 3: of class 0 P 1/2 R 1/2, of 1 P 2/3 R 1, of 2 P 1 R 1/3, of 3 (found alone)
 * 0. */
TEST(shares_of_classes)
{
    static const int label[] = { 0, 0, 1, 1, 2, 2, 2 }, found[] = { 0, 1, 1, 1, 2, 0, 3 };
    judged x;
    begin(&x, OCT_SET_CLASSES);
    for (size_t i = 0; i < OCT_COUNT(label); i++)
        add_class(&x, label[i], (size_t)found[i], 5);
    add_class(&x, -1, 0, 5); /* has no label */
    assert_int_equal(x.set->n, 7);
    NEAR(value(&x, oct_classes_precision), (0.5 + 2.0 / 3 + 1 + 0) / 4, 1e-15);
    NEAR(value(&x, oct_classes_recall), (0.5 + 1 + 1.0 / 3 + 0) / 4, 1e-15);
    NEAR(value(&x, oct_classes_f1), (0.5 + 0.8 + 0.5 + 0) / 4, 1e-15);
    /* Drawn twice, or left out: as if the samples were so. */
    const double draws[] = { 2, 0, 1, 1, 0, 0, 0 };
    double scratch[15];
    NEAR(oct_classes_f1(x.set, draws, scratch), 1, 0);
    oct_arena *a = oct_arena_create();
    oct_class_table t;
    assert_int_equal(oct_classes_table(x.set, a, &t, NULL), OCT_OK);
    assert_int_equal(t.n_rows, 4);
    assert_true(t.row[3].class_number == 3 && t.row[3].samples == 0 && t.row[2].samples == 3);
    assert_int_equal(t.n_cells, 6);
    assert_true(t.cell[2].label == 1 && t.cell[2].taken_for == 1 && t.cell[2].samples == 2);
    oct_arena_destroy(a);
    oct_set_free(x.set);
}

TEST(two_classes)
{
    judged x;
    begin(&x, OCT_SET_CLASSES);
    static const float v[] = { 0.9f, 0.4f, 0.6f, 0.1f, 0.5f }; /* 1 0 1 0 0: what is above one half */
    static const int label[] = { 1, 1, 0, 0, 0 };
    for (size_t i = 0; i < OCT_COUNT(v); i++)
        add(&x, label[i], &v[i], 1);
    NEAR(value(&x, oct_classes_precision), 0.5, 0);
    NEAR(value(&x, oct_classes_recall), 0.5, 0);
    x.rule.macro = true; /* class 0: P 2/3 R 2/3 */
    NEAR(value(&x, oct_classes_f1), (0.5 + 2.0 / 3) / 2, 1e-15);
    oct_set_free(x.set);
    begin(&x, OCT_SET_CLASSES);
    x.rule.threshold = 0.3;
    for (size_t i = 0; i < OCT_COUNT(v); i++)
        add(&x, label[i], &v[i], 1); /* 1 1 1 0 1 */
    NEAR(value(&x, oct_classes_f1), 2.0 * 2 / (2 * 2 + 2), 1e-15);
    oct_set_free(x.set);
}

/* ---- correlations ---- */

TEST(correlations)
{
    const double x[] = { 1, 2, 2, 4 }, y[] = { 3, 1, 2, 5 }, w[] = { 2, 1, 0, 3 };
    uint32_t by_x[4], by_y[4];
    double rx[4], ry[4];
    assert_int_equal(oct_order_of(x, 4, by_x, NULL), OCT_OK);
    assert_int_equal(oct_order_of(y, 4, by_y, NULL), OCT_OK);
    NEAR(oct_pearson(x, y, NULL, 4), 0.659231724180059, 1e-15);
    NEAR(oct_pearson(x, y, w, 4), 0.7592566023652967, 1e-15);
    oct_ranks(x, by_x, NULL, 4, rx);
    oct_ranks(y, by_y, NULL, 4, ry);
    assert_true(rx[0] == 1 && rx[1] == 2.5 && rx[2] == 2.5 && rx[3] == 4);
    NEAR(oct_pearson(rx, ry, NULL, 4), 0.316227766016838, 1e-15);
    oct_ranks(x, by_x, w, 4, rx);
    oct_ranks(y, by_y, w, 4, ry);
    NEAR(oct_pearson(rx, ry, w, 4), 0.8, 1e-15);
    assert_true(isnan(oct_pearson(w, x, NULL, 1)));
}

/* Embeddings whose cosines are 1, 0, -1, 0.6 and 0.8, beside scores 5 1 0 2 3: one pair is out of order. */
TEST(pairs)
{
    static const float v[][2] = { { 2, 0 },  { 3, 0 }, { 0, 1 }, { 1, 0 }, { 1, 0 },
                                  { -2, 0 }, { 5, 0 }, { 3, 4 }, { 0, 1 }, { 3, 4 } };
    static const char *const truths[] = { "score\n5\n1\n0\n3\n2\n", "a,b,score\n0,1,5\n2,3,1\n8,9,2\n4,5,0\n6,7,3\n" };
    for (size_t k = 0; k < OCT_COUNT(truths); k++) {
        judged x;
        oct_truth *t;
        begin(&x, OCT_SET_PAIRS);
        assert_int_equal(oct_truth_open(folder_text("t.csv", truths[k]), 0, &t, NULL), OCT_OK);
        x.j.truth = t;
        for (size_t i = 0; i < OCT_COUNT(v); i++)
            add(&x, -1, v[i], 2);
        NEAR(value(&x, oct_pairs_spearman), 0.9, 1e-15);
        assert_int_equal(x.set->n, 5);
        oct_set_free(x.set);
        oct_truth_close(t);
    }
}

/* ---- maps ---- */

/* [2,2,4] of u8, in the form of NumPy. */
static void write_maps(const uint8_t v[16])
{
    char text[80 + 16];
    memset(text, ' ', 80);
    memcpy(text, "\x93NUMPY\x01\x00\x46\x00", 10);
    memcpy(text + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 4), }", 62);
    text[79] = '\n';
    memcpy(text + 80, v, 16);
    write_file(folder_path("t.npy"), text, sizeof text);
}

/* Two maps of 2 x 4 against scores of 3 classes on half as many columns, or class numbers. */
TEST(maps)
{
    static const uint8_t truth[16] = { 0, 0, 1, 1, 0, 2, 255, 1, 2, 2, 2, 2, 0, 0, 0, 0 };
    /* Taken for: 0 1 / 2 1, each over two columns; then 2 2 / 2 2. */
    static const float scores[2][3][4] = { { { 5, 0, 0, 0 }, { 1, 5, 0, 3 }, { 0, 0, 5, 0 } },
                                           { { 0 }, { 0 }, { 1, 1, 1, 1 } } };
    write_maps(truth);
    oct_truth *t;
    assert_int_equal(oct_truth_open(folder_path("t.npy"), 0, &t, NULL), OCT_OK);
    assert_int_equal(oct_truth_kind(t), OCT_SET_MAPS);
    judged x;
    begin(&x, OCT_SET_MAPS);
    x.j.truth = t;
    const int64_t dims[] = { 3, 2, 2 };
    for (int i = 0; i < 2; i++) {
        const oct_set_tensor o = { "y", 3, dims, &scores[i][0][0], 12 };
        const oct_set_view v = { .name = "s", .index = i, .out = &o, .ref = &o, .n_out = 1 };
        assert_int_equal(x.set->type->add(x.set, &v, NULL), OCT_OK);
    }
    /* Class 0: 2 right of 7; class 1: 3 of 3; class 2: 1 + 4 right, 1 + 4 where it is not. */
    NEAR(value(&x, oct_maps_miou), (2.0 / 7 + 1 + 5.0 / 10) / 3, 1e-15);
    const double second[] = { 0, 1 };
    double scratch[9];
    NEAR(oct_maps_miou(x.set, second, scratch), (0 + 0.5) / 2, 1e-15);
    oct_set_free(x.set);
    begin(&x, OCT_SET_MAPS);
    x.j.truth = t;
    const int64_t flat[] = { 2, 4 };
    const float numbers[] = { 0, 0, 1, 1, 0, 2, 7, 3 };
    const oct_set_tensor o = { "y", 2, flat, numbers, 8 };
    const oct_set_view v = { .name = "s", .index = 0, .out = &o, .ref = &o, .n_out = 1 };
    assert_int_equal(x.set->type->add(x.set, &v, NULL), OCT_OK);
    NEAR(value(&x, oct_maps_miou), (1 + 2.0 / 3 + 1 + 0) / 4,
         1e-15); /* 3 was found, and is not there; 7 does not count */
    oct_set_free(x.set);
    oct_truth_close(t);
}

/* Squares 0.01 and 0.04 of four values each, in a span of 2. */
TEST(peak_noise)
{
    judged x;
    begin(&x, OCT_SET_VALUES);
    const float ref[2][4] = { { 0, 1, 2, 1 }, { 1, 1, 1, 1 } }, out[2][4] = { { 0, 1.1f, 2, 1 }, { 1.2f, 1, 1, 1 } };
    const int64_t n = 4;
    for (int i = 0; i < 2; i++) {
        const oct_set_tensor a = { "y", 1, &n, ref[i], 4 }, b = { "y", 1, &n, out[i], 4 };
        const oct_set_view v = { .out = &b, .ref = &a, .n_out = 1 };
        assert_int_equal(x.set->type->add(x.set, &v, NULL), OCT_OK);
    }
    NEAR(value(&x, oct_values_share), 0.05 / 8 / 4, 1e-9);
    NEAR(value(&x, oct_values_psnr), 10 * log10(4 / (0.05 / 8)), 1e-5);
    x.rule.peak = 1;
    NEAR(value(&x, oct_values_psnr), 10 * log10(1 / (0.05 / 8)), 1e-5);
    oct_set_free(x.set);
}

/* ---- intervals ---- */

static double share_right(const oct_set *s, const double *draws, double *scratch)
{
    return oct_classes_recall(s, draws, scratch);
}

/* Recall of class 1, all of whose samples count, is a mean; so the interval of its difference is about that of
 * means. */
TEST(intervals)
{
    judged a, b;
    oct_paired p = { 0 };
    begin(&a, OCT_SET_CLASSES);
    begin(&b, OCT_SET_CLASSES);
    for (int i = 0; i < 300; i++) {
        const size_t ours = i % 7 != 0, theirs = i % 5 != 0 && i % 11 != 0;
        add_class(&a, 1, ours, 2);
        add_class(&b, 1, theirs, 2);
        oct_paired_add(&p, (double)ours, (double)theirs);
    }
    double lo, hi, again_lo, again_hi;
    oct_pool *pool = oct_pool_create(3);
    assert_int_equal(oct_set_interval(a.set, b.set, share_right, NULL, &lo, &hi, NULL), OCT_OK);
    assert_int_equal(oct_set_interval(a.set, b.set, share_right, pool, &again_lo, &again_hi, NULL), OCT_OK);
    assert_memory_equal(&lo, &again_lo, sizeof lo); /* threads change nothing */
    assert_memory_equal(&hi, &again_hi, sizeof hi);
    const oct_interval mean = oct_paired_mean(&p);
    NEAR(lo, mean.lo, 0.006);
    NEAR(hi, mean.hi, 0.006);
    assert_true(lo < mean.mean && mean.mean < hi);
    assert_int_equal(oct_set_interval(a.set, a.set, share_right, NULL, &lo, &hi, NULL), OCT_OK);
    assert_true(lo == 0 && hi == 0);
    oct_pool_destroy(pool);
    oct_set_free(a.set);
    begin(&a, OCT_SET_CLASSES);
    add_class(&a, 1, 1, 2);
    assert_int_equal(oct_set_interval(NULL, a.set, share_right, NULL, &lo, &hi, NULL), OCT_OK);
    assert_true(isnan(lo)); /* too few */
    oct_set_free(a.set);
    oct_set_free(b.set);
}

/* ---- rules ---- */

TEST(rules)
{
    oct_decode *r;
    const char *name, *summary;
    oct_err err = OCT_ERR_INIT;
    for (size_t i = 0; (name = oct_decode_builtin(i, &summary)); i++) {
        if (oct_decode_open(name, &r, &err) != OCT_OK)
            fail_msg("%s", err.text);
        assert_true(r->judges != OCT_SET_NONE && *summary);
        oct_decode_close(r);
    }
    assert_int_equal(oct_decode_open("binary:threshold=0.25:output=a:0", &r, &err), OCT_OK);
    assert_true(r->threshold == 0.25 && strcmp(r->output.name, "a:0") == 0);
    oct_decode_close(r);
    assert_int_equal(oct_decode_open("binari", &r, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.hint, "binary"));
    const char *text = "judges boxes\nboxes [n,85] 0..3 # sides\nscores out[0] [85,n] 5..\nform cxcywh\nnms 0.6 all\n";
    assert_int_equal(oct_decode_parse(text, "r", "", &r, &err), OCT_OK);
    assert_true(r->box.boxes.rank == 2 && r->box.boxes.dims[0] == OCT_OUTPUT_ROWS && r->box.boxes.dims[1] == 85 &&
                r->box.boxes.last == 3);
    assert_true(r->box.scores.first == 5 && r->box.scores.last == -1 && strcmp(r->box.scores.name, "out[0]") == 0);
    assert_true(r->box.nms == 0.6 && r->box.nms_all);
    oct_decode_close(r);
    text =
        "judges boxes\nboxes b\nscores s\nbackground first\nbackground last\nmost 7 class\nf1-score 0.5\nf1-score best\n"
        "bins 16\nids category\nlabels best\norder anchor\n";
    assert_int_equal(oct_decode_parse(text, "r", "", &r, &err), OCT_OK);
    assert_true(r->judges == OCT_SET_BOXES && r->box.background == -1 && r->box.most == 7 && r->box.most_of_class);
    assert_true(r->box.f1_score == -1 && r->box.bins == 16 && r->box.ids && r->box.best_alone && r->box.anchor_major);
    oct_decode_close(r);
    static const struct {
        const char *text, *place, *words;
    } bad[] = {
        { "boxes [n,4]", "r:1:1: ", "what the rule judges" },
        { "judges boxs", "r:1:8: ", "no judges 'boxs'" },
        { "judges boxes\nboxe [n,4]", "r:2:1: ", "no key 'boxe'" },
        { "judges classes\nnms 0.5", "r:2:1: ", "says nothing" },
        { "judges boxes\nboxes [n,4", "r:2:7: ", "no pattern" },
        { "judges boxes\nboxes [n,4] 3..1", "r:2:13: ", "no columns" },
        { "judges boxes\nscore 2", "r:2:7: ", "from 0 to 1" },
        { "judges boxes\nscore", "r:2:6: ", "missing" },
        { "judges boxes\nanchors 8 1 2", "r:2:9: ", "none of the strides" },
        { "judges boxes\nboxes [n,4]\nscores [n,80]\nform ltrb", "r: ", "strides" },
        { "# none", "r: ", "judges" },
        { "judges boxes\nboxes", "r:2:6: ", "a name or a pattern" },
        { "judges boxes\nnms 0.5 each", "r:2:9: ", "no extent 'each'" },
        { "judges boxes\nnms", "r:2:4: ", "missing" },
        { "judges boxes\nmost 10 class class", "r:2:15: ", "end of the line" },
        { "judges boxes\nstrides", "r:2:8: ", "missing" },
        { "judges boxes\nstrides 8 x", "r:2:11: ", "'x' is no number from 1 to 4096" },
        { "judges boxes\nstrides 8\nanchors 8 1 2 3", "r:3:9: ", "pairs" },
        { "judges boxes\nvariances 1 1 1 1 1", "r:2:19: ", "after 4 numbers" },
        { "judges boxes\nvariances 1 1 1", "r:2:16: ", "missing" },
        { "judges boxes\nbins 2.5", "r:2:6: ", "no whole number from 2 to 1024" },
        { "judges boxes\nbackground middle", "r:2:12: ", "no background 'middle'" },
        { "judges boxes\npriors", "r:2:7: ", "a path is missing" },
    };
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        err = (oct_err)OCT_ERR_INIT;
        assert_int_equal(oct_decode_parse(bad[i].text, "r", "", &r, &err), OCT_EMALFORMED);
        assert_int_equal(strncmp(err.text, bad[i].place, strlen(bad[i].place)), 0);
        assert_non_null(strstr(err.text, bad[i].words));
    }
}

/* ---- truths ---- */

TEST(boxes_of_csv)
{
    oct_truth *t;
    oct_err err = OCT_ERR_INIT;
    const oct_object *o;
    size_t n;
    const char *text =
        "file,class,x1,y1,x2,y2,crowd\nb.png,2,1,2,3,4,\nx/a.png,0,0,0,5,5,1\nb.png,1,9,9,10,10,0\nempty.png,,,,,,\n";
    assert_int_equal(oct_truth_open(folder_text("t.csv", text), 0, &t, &err), OCT_OK);
    assert_int_equal(oct_truth_kind(t), OCT_SET_BOXES);
    assert_int_equal(oct_truth_classes(t), 3);
    assert_true(oct_truth_objects(t, "data/b.png", 0, &o, &n) && n == 2 && o[0].class_place == 2 && o[1].x1 == 9 &&
                !o[1].crowd);
    assert_true(oct_truth_objects(t, "x/a.png", 0, &o, &n) && n == 1 && o[0].crowd);
    assert_true(oct_truth_objects(t, "empty.png", 0, &o, &n) && n == 0);
    assert_true(oct_truth_objects(t, "other.png", 0, &o, &n) && n == 0); /* has none */
    oct_truth_close(t);
    assert_int_equal(oct_truth_open(folder_text("t.csv", "sample,class,x1,y1,x2,y2\n3,0,1,1,2,2\n"), 0, &t, &err),
                     OCT_OK);
    assert_true(oct_truth_objects(t, "?", 3, &o, &n) && n == 1 && oct_truth_objects(t, "?", 2, &o, &n) && n == 0);
    oct_truth_close(t);
    assert_int_equal(oct_truth_open(folder_text("t.csv", "file,class,x1,y1,x2,y2\na,0.5,1,1,2,2\n"), 0, &t, &err),
                     OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "t.csv:2: "));
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "file,label\na,0\n", "t.csv:1: the header has neither" },
        { "", "t.csv: empty" },
        { "\n\n", "t.csv: empty" },
        { "file,x1\n", "t.csv:1: no column 'class'" },
        { "class,x1,y1,x2,y2\n", "t.csv:1: no column 'file' or 'sample'" },
        { "file,class,x1,y1,x2,y2\n\"a\nb\",0,1,1,2,2\na,0,1\n", "t.csv:4: 3 fields, the header has 6" },
        { "file,class,x1,y1,x2,y2\na,0,1,1,2,inf\n", "t.csv:2: y2 'inf' is no number" },
        { "file,class,x1,y1,x2,y2\na,-1,1,1,2,2\n", "t.csv:2: class '-1' is no whole number from 0 to 1e+06" },
        { "sample,class,x1,y1,x2,y2\n0.5,0,1,1,2,2\n", "t.csv:2: sample '0.5' is no whole number" },
        { "file,class,x1,y1,x2,y2\n\"a,0,1,1,2,2\n", "t.csv:2: a quote that does not close" },
        { "score,a,b\n1,0,x\n", "t.csv:2: sample 'x' is no number" },
    };
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        err = (oct_err)OCT_ERR_INIT;
        assert_int_equal(oct_truth_open(folder_text("t.csv", bad[i].text), 0, &t, &err), OCT_EMALFORMED);
        if (!strstr(err.text, bad[i].says))
            fail_msg("'%s' lacks '%s'", err.text, bad[i].says);
    }
}

TEST(boxes_of_coco)
{
    oct_truth *t;
    oct_err err = OCT_ERR_INIT;
    const oct_object *o;
    size_t n;
    const char *text =
        "{\"images\": [{\"id\": 7, \"file_name\": \"b.jpg\"}, {\"id\": 3, \"file_name\": \"a.jpg\"}],"
        " \"categories\": [{\"id\": 18}, {\"id\": 5}],"
        " \"annotations\": [{\"image_id\": 3, \"category_id\": 18, \"bbox\": [1, 2, 3, 4], \"iscrowd\": 1},"
        " {\"image_id\": 3, \"category_id\": 5, \"bbox\": [0, 0, 1, 1]}]}";
    const oct_status s = oct_truth_open(folder_text("t.json", text), 0, &t, &err);
    if (s == OCT_EUNSUPPORTED) {
        print_message("# skipped: a build without jansson\n");
        return;
    }
    assert_int_equal(s, OCT_OK);
    assert_int_equal(oct_truth_place(t, 18), 1);
    assert_int_equal(oct_truth_place(t, 6), -1);
    assert_true(oct_truth_objects(t, "a.jpg", 0, &o, &n) && n == 2 && o[0].class_place == 1 && o[0].x2 == 4 &&
                o[0].crowd && o[1].class_place == 0);
    assert_true(oct_truth_objects(t, "b.jpg", 0, &o, &n) && n == 0);
    assert_false(oct_truth_objects(t, "c.jpg", 0, &o, &n)); /* does not count */
    oct_truth_close(t);
    static const char *const bad[] = { "[]", "{}",
                                       "{\"images\": [{\"id\": 1}], \"categories\": [], \"annotations\": []}",
                                       "{\"images\": [], \"categories\": [], \"annotations\": [{\"image_id\": 1}]}" };
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_int_equal(oct_truth_open(folder_text("t.json", bad[i]), 0, &t, &err), OCT_EMALFORMED);
}

/* One annotation beside its box: "segmentation": ... */
static oct_status open_annotation(const char *more, oct_truth **t, oct_err *err)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\"}], \"categories\": [{\"id\": 1}], \"annotations\": "
             "[{\"image_id\": 1, \"category_id\": 1, \"bbox\": [1, 1, 2, 2], %s}]}",
             more);
    return oct_truth_open(folder_text("t.json", text), 0, t, err);
}

/* The pixels of an annotation's mask in a picture of 4 x 3, in rows. */
static void expect_mask(const char *more, const char *want)
{
    oct_truth *t;
    oct_err err = OCT_ERR_INIT;
    const oct_object *o;
    size_t n;
    oct_mask m = { 0 };
    char got[13] = "............";
    if (open_annotation(more, &t, &err) != OCT_OK)
        fail_msg("%s", err.text);
    assert_true(oct_truth_objects(t, "a.jpg", 0, &o, &n) && n == 1 && o->shape);
    if (oct_mask_of_object(o->shape, 1, 1, 4, 3, &m, &err) != OCT_OK)
        fail_msg("%s", err.text);
    uint64_t at = 0, area = 0;
    for (size_t i = 0; i < m.n; i++)
        for (uint32_t k = 0; k < m.run[i]; k++, at++)
            if (i % 2) {
                got[at % 3 * 4 + at / 3] = '#';
                area++;
            }
    assert_int_equal(at, 12);
    assert_int_equal(m.area, area);
    assert_string_equal(got, want);
    oct_mask_free(&m);
    oct_truth_close(t);
}

TEST(masks_of_coco)
{
    oct_truth *t;
    oct_err err = OCT_ERR_INIT;
    if (open_annotation("\"area\": 1", &t, &err) == OCT_EUNSUPPORTED) {
        print_message("# skipped: a build without jansson\n");
        return;
    }
    oct_truth_close(t);
    /* the pixels whose middle is inside, and the union of two */
    expect_mask("\"segmentation\": [[1, 1, 3, 1, 3, 3, 1, 3]]", "...."
                                                                ".##."
                                                                ".##.");
    expect_mask("\"segmentation\": [[0, 0, 1, 0, 1, 3, 0, 3], [3, 0, 9, 0, 9, 2, 3, 2]]", "#..#"
                                                                                          "#..#"
                                                                                          "#...");
    expect_mask("\"segmentation\": [[1, 1, 2, 2]]", "............"); /* a line has no extent */
    expect_mask("\"segmentation\": {\"size\": [3, 4], \"counts\": [1, 2, 3, 1, 5]}", "..#."
                                                                                     "#..."
                                                                                     "#...");
    /* the same as text: from the fourth on differences from the run before the last; 1 and 5 from 2 and 3 */
    expect_mask("\"segmentation\": {\"size\": [3, 4], \"counts\": \"123O2\"}", "..#."
                                                                               "#..."
                                                                               "#...");
    static const char *const bad[] = {
        "\"segmentation\": [[1, 1, 2, 2, 3]]",
        "\"segmentation\": [[1, 1, 2, 2, 3, \"x\"]]",
        "\"segmentation\": [7]",
        "\"segmentation\": 7",
        "\"segmentation\": {\"size\": [3, 4], \"counts\": [1, 2]}",
        "\"segmentation\": {\"size\": [3, 4], \"counts\": [1, -2, 13]}",
        "\"segmentation\": {\"size\": [3, 4], \"counts\": [1, 4294967295, 12]}",
        "\"segmentation\": {\"size\": [3], \"counts\": [12]}",
        "\"segmentation\": {\"size\": [1e9, 1e9], \"counts\": [12]}",
        "\"segmentation\": {\"size\": [3, 4], \"counts\": \"\"}",
        "\"segmentation\": {\"size\": [3, 4], \"counts\": \"123O3\"}",
        "\"segmentation\": {\"size\": [3, 4], \"counts\": \"oooooooooooooooooo\"}", /* a number without end */
        "\"segmentation\": {\"size\": [3, 4], \"counts\": \"@\"}",                  /* below 0 */
        "\"keypoints\": [1, 2]",
        "\"keypoints\": 3",
    };
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        if (open_annotation(bad[i], &t, &err) != OCT_EMALFORMED)
            fail_msg("%s", bad[i]);
    /* corners far away, and runs of another size */
    oct_mask m = { 0 };
    const double far[] = { 0, 0, 1e15, 0, 0, 1e15 };
    const size_t corners = 3;
    const uint32_t run[] = { 12 };
    const oct_object_mask wide = { .xy = far, .corners = &corners, .n_polygons = 1 },
                          other = { .run = run, .n_runs = 1, .w = 3, .h = 4 };
    assert_int_equal(oct_mask_of_object(&wide, 1, 1, 4, 3, &m, &err), OCT_EMALFORMED);
    assert_int_equal(oct_mask_of_object(&other, 1, 1, 4, 3, &m, &err), OCT_EMALFORMED);
    assert_int_equal(oct_mask_of_object(&other, 1, 1, INT64_MAX / 2, 3, &m, &err), OCT_EUNSUPPORTED);
    oct_mask_free(&m);
}
