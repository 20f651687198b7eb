/* The page of lib/eval, and what CI is told of times, on a made-up evaluation of which every number is known. With
 * OCT_TEST_PAGE=FILE it is also written there, to be looked at. */
#include "eval/report/page_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { LAYERS = 24, CHANNELS = 200 };

/* Two quantized models beside a float one. */
typedef struct made {
    oct_eval_model_result model[3];
    oct_eval_score score[3][2];
    oct_eval_output output[3][2];
    oct_eval_layer layer[2][LAYERS];
    oct_eval_cost_row cost[2][LAYERS];
    oct_eval_channel channel[CHANNELS];
    oct_class_row class_row[2], float_row[2];
    oct_confused cell[3];
    oct_gate gate;
    oct_gate_result judged[2];
    char name[LAYERS][80];
    oct_report_context context;
    oct_eval_result result;
    oct_document *document;
} made;

static const char evil[] = "a</script><b>&\"'x";

static void make_scores(made *m)
{
    static const double top1[] = { 0.80, 0.78, 0.60 };
    for (int k = 0; k < 3; k++) {
        oct_eval_score *s = m->score[k];
        s[0] = (oct_eval_score){ .value = top1[k],
                                 .reference = 0.80,
                                 .drop = k ? 0.80 - top1[k] : NAN,
                                 .lo = k ? 0.80 - top1[k] - 0.03 : NAN,
                                 .hi = k ? 0.80 - top1[k] + 0.05 : NAN,
                                 .method = "Tango's score interval",
                                 .within_noise = k == 1,
                                 .n = 400 };
        s[1] = (oct_eval_score){ .value = k ? 30.5 : NAN, .reference = NAN, .drop = NAN, .lo = NAN, .hi = NAN };
        assert_int_equal(oct_metric_find("top1", &s[0].metric, NULL), OCT_OK);
        assert_int_equal(oct_metric_find("sqnr", &s[1].metric, NULL), OCT_OK);
        m->model[k] =
            (oct_eval_model_result){ .name = k == 0   ? "in/float.onnx"
                                             : k == 1 ? "out/int8.onnx"
                                                      : evil,
                                     .scores = s,
                                     .outputs = m->output[k],
                                     .sqnr_db = 30.5,
                                     .agreement = NAN,
                                     .size_bytes = k ? 2500000 : 10000000,
                                     .peak_bytes = k ? 3000000 : 12000000,
                                     .latency = { .median = k ? 2e-3 : 5e-3, .q1 = 1.9e-3, .q3 = 5.2e-3, .runs = 20 },
                                     .speed = { .median = k ? 2.5 : NAN, .q1 = 2.4, .q3 = 2.6, .runs = k ? 20 : 0 },
                                     .integer_steps = k ? 20 : 0,
                                     .weighted_steps = 22 };
        m->output[k][0] = (oct_eval_output){ "last_hidden_state", OCT_HOLDS_NUMBERS, 30.5, 0.999, 0.1 };
        m->output[k][1] = (oct_eval_output){ "sentence_embedding", OCT_HOLDS_NUMBERS, 31.5, 0.9999, 0.01 };
    }
}

/* Layers come worst first, and the page shows them in the network's order. Of the values 1 % lie below the range. */
static void make_layer(made *m, int k, int i)
{
    oct_eval_layer *l = &m->layer[k][LAYERS - 1 - i];
    snprintf(m->name[i], sizeof m->name[i], "%s%d", i == 5 ? evil : "block/conv_", i);
    *l = (oct_eval_layer){ .value = m->name[i],
                           .other = m->name[i],
                           .order = (size_t)i,
                           .name = m->name[i],
                           .op = "Conv",
                           .scheme = i == 7 ? "float"
                                     : k    ? "fp16"
                                            : "int8",
                           .sqnr_db = 40 - i,
                           .own_sqnr_db = i == 3 ? INFINITY : 45 - i / 2.0,
                           .has_own = true,
                           .clipped = 0.01,
                           .saturated = 0.005,
                           .used = 0.75,
                           .range = { OCT_U8, 0.02, 100, -2, 3.1 } };
    l->histogram = (oct_eval_histogram){ .n = 6400, .min = -3, .max = 3.2, .lo = -3.2, .hi = 3.2 };
    for (int b = 0; b < OCT_LAYER_BINS; b++)
        l->histogram.bin[b] = (uint64_t)(1000 / (1 + abs(b - 32)));
    l->weights = (oct_eval_weights){ .name = "w",
                                     .dtype = OCT_S8,
                                     .count = 1000,
                                     .per_channel = true,
                                     .sqnr_db = 38.5,
                                     .clipped = 0.0001,
                                     .channel = m->channel,
                                     .n_channel = CHANNELS };
}

static void make_costs(made *m, int k, int i)
{
    const oct_eval_cost was = { .scheme = "float",
                                .steps = 1,
                                .seconds = 1e-4 * (1 + i % 5),
                                .scattered = i == 4,
                                .macs = 1000000,
                                .weights = 40000,
                                .roof = 0.4 };
    oct_eval_cost is = was;
    is.scheme = i == 7 ? "float" : k ? "fp16" : "int8";
    is.seconds /= i == 7 ? 1 : 3;
    is.weights /= 4;
    m->cost[k][i] = (oct_eval_cost_row){ m->name[i], "Conv", was, is };
}

static void put_text(oct_json *j, const char *key, const char *value)
{
    if (value)
        oct_json_str(j, key, value);
}

/* An object of three texts, named by the first three words; count: 0 is left out. */
static void put_line(oct_json *j, const char *const *word, const char *a, const char *b, const char *c, int count)
{
    const char *const text[] = { a, b, c };
    oct_json_open(j, NULL, '{');
    for (int i = 0; i < 3; i++)
        put_text(j, word[i], text[i]);
    if (count)
        oct_json_int(j, "count", count);
    oct_json_close(j);
}

static void put_point(oct_json *j, double bytes, double sqnr, bool taken, const char *layer, const char *form)
{
    oct_json_open(j, NULL, '{');
    oct_json_num(j, "bytes", bytes);
    oct_json_num(j, "sqnr_db", sqnr);
    oct_json_bool(j, "taken", taken);
    oct_json_str(j, "layer", layer);
    oct_json_str(j, "form", form);
    oct_json_close(j);
}

/* What is told of the first quantized model. */
static void put_notes(oct_json *j, size_t k, const void *notes)
{
    static const char *const passes[] = { "pass", "node", "change" }, *const findings[] = { "kind", "node", "text" };
    const made *m = notes;
    if (k != 1)
        return;
    oct_json_open(j, "nodes", '[');
    for (int i = 0; i < LAYERS; i++) {
        oct_json_open(j, NULL, '{');
        oct_json_str(j, "name", m->name[i]);
        oct_json_str(j, "op", "Conv");
        oct_json_str(j, "scheme", i == 7 ? "float" : "int8");
        oct_json_str(j, "why", i == 7 ? "the rule op:Odd" : "quantized");
        oct_json_close(j);
    }
    oct_json_close(j);
    oct_json_open(j, "passes", '[');
    put_line(j, passes, "batchnorm", "bn1", "BatchNormalization", 0);
    put_line(j, passes, "batchnorm", "bn2", "BatchNormalization", 0);
    put_line(j, passes, "Clip", NULL, "35 in the float model, 0 in this one", 35);
    oct_json_close(j);
    oct_json_open(j, "methods", '[');
    oct_json_open(j, NULL, '{');
    oct_json_str(j, "name", "bias");
    oct_json_bool(j, "ran", true);
    oct_json_str(j, "text", "output SQNR 40.0 dB");
    oct_json_close(j);
    oct_json_close(j);
    oct_json_open(j, "findings", '[');
    put_line(j, findings, "trap", evil, "is not loaded", 0);
    oct_json_close(j);
    oct_json_str(j, "made_by", "qconvert float.onnx --data 'a --b' -q");
    oct_json_open(j, "size", '{');
    oct_json_num(j, "limit", 3e6);
    oct_json_open(j, "curve", '[');
    put_point(j, 1e6, 10, true, "", "");
    put_point(j, 2e6, 30, true, "conv", "8 bits");
    put_point(j, 5e6, 40, false, "fc<", "float");
    oct_json_close(j);
    oct_json_close(j);
}

static void make_rest(made *m)
{
    m->class_row[0] = (oct_class_row){ 3, 10, 0.9, 0.8, 0.847 };
    m->class_row[1] = (oct_class_row){ 7, 5, 1, 0.6, 0.75 };
    m->float_row[0] = (oct_class_row){ 3, 10, 0.9, 0.9, 0.9 };
    m->float_row[1] = (oct_class_row){ 7, 5, 0.7, 0.7, 0.7 };
    m->model[0].classes = (oct_class_table){ m->float_row, 2, m->cell, 0 };
    m->cell[0] = (oct_confused){ 3, 3, 8 };
    m->cell[1] = (oct_confused){ 3, 7, 2 };
    m->cell[2] = (oct_confused){ 7, 7, 3 };
    m->model[1].classes = (oct_class_table){ m->class_row, 2, m->cell, 3 };
    m->model[2].runner = "onnxruntime 1";
    m->gate =
        (oct_gate){ .kind = OCT_GATE_DROP, .metric = m->score[0][0].metric, .limit = { 0.04, false }, .text = "4%" };
    for (int k = 0; k < 2; k++)
        m->judged[k] = (oct_gate_result){ .gate = &m->gate,
                                          .model = (size_t)k + 1,
                                          .score = &m->score[k + 1][0],
                                          .estimate = m->score[k + 1][0].drop,
                                          .limit = 0.04,
                                          .lo = m->score[k + 1][0].lo,
                                          .hi = m->score[k + 1][0].hi,
                                          .met = k == 0,
                                          .unsure = k == 0,
                                          .samples_needed = k ? 0 : 900 };
    m->context = (oct_report_context){ .gates = m->judged,
                                       .n_gates = 2,
                                       .title = "Evaluation",
                                       .command = "qeval float.onnx \\\n    --data 'a\nb'",
                                       .put_notes = put_notes,
                                       .notes = m };
    m->result = (oct_eval_result){
        .models = m->model,
        .n_models = 3,
        .n_scores = 2,
        .n_outputs = 2,
        .samples = 400,
        .layer_samples = 16,
        .threads = 2,
        .isa = "avx2",
        .environment = { .cpu = "A & B", .processors = 4, .available = "avx512", .used = "avx2", .load = 1.25 },
        .machine = { .float_macs = 28.15e9, .int8_macs = 113e9, .bytes = 42.14e9 }
    };
}

static made *make(void)
{
    made *m = calloc(1, sizeof *m);
    assert_non_null(m);
    make_scores(m);
    for (int i = 0; i < CHANNELS; i++)
        m->channel[i] = (oct_eval_channel){ 0.001 * (1 + i % 50), i == 9 ? 12 : 40, 0 };
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < LAYERS; i++) {
            make_layer(m, k, i);
            make_costs(m, k, i);
        }
        m->model[k + 1].layers = m->layer[k];
        m->model[k + 1].costs = m->cost[k];
        m->model[k + 1].n_layers = m->model[k + 1].n_costs = LAYERS;
    }
    make_rest(m);
    return m;
}

/* The report of what stands in m now. */
static const oct_item *report_of(made *m)
{
    oct_document_destroy(m->document);
    m->document = oct_document_create();
    assert_non_null(m->document);
    oct_report_document(&m->result, &m->context, m->document);
    return oct_document_root(m->document);
}

static void end(made *m)
{
    oct_document_destroy(m->document);
    free(m);
}

/* A page of which model k is in the loop, and the value of a path in it. */
static ev_page page_of(made *m, oct_buf *b, size_t k, const char *path)
{
    const oct_item *report = report_of(m), *models = oct_item_at(report, "models"), *model = oct_item_of(models, k);
    return (
        ev_page){ .report = report, .models = models, .b = b, .model = model, .k = k, .x = oct_item_at(model, path) };
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* Each word stands in the text, one behind the other. */
static void in_order(const char *text, const char *const *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = strstr(text, word[i]);
        if (!at)
            print_error("not there, or before the others: %s\n", word[i]);
        assert_non_null(at);
        text = at + strlen(word[i]);
    }
}

TEST(a_page)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    oct_report_html(report_of(m), &b);
    assert_false(b.failed);
    const char *page = oct_buf_str(&b), *out = getenv("OCT_TEST_PAGE");
    static const char *const story[] = {
        "2 models against ",
        "<h2>int8.onnx</h2>",
        "mark mid\">Meets its gate, but the measurement does not suffice to be certain.</span>",
        "4.00 times smaller",
        "2.50 times faster",
        "-2.00 points",
        "Misses 1 of 1 gate.",
        "id=\"accuracy\"",
        "78.00 %",
        "class=\"limit\"",
        "60.00 %",
        "class=\"limit\"",
        "id=\"gates\"",
        "met?",
        "missed",
        "id=\"classes\"",
        "<td class=\"n\" data-v=\"0.7\">",
        "F1 is less than the float model's for 1 of 2 classes, and more for 1.",
        "change, points",
        "bad\" data-v=\"-0.053\">-5.30<",
        "7 (2)",
        "good\" data-v=\"0.05\">+5.00<",
        "id=\"costs\"",
        "25.0 % of float",
        "runs in onnxruntime 1",
        "id=\"float\"",
        "1 of 24 nodes.",
        "the rule op:<wbr>Odd",
        "id=\"layers\"",
        "id=\"m1-0\"",
        "id=\"m1-23\"",
        "id=\"m2-0\"",
        "id=\"time\"",
        "id=\"sizes\"",
        "25.0 %",
        "id=\"curve\"",
        "x1=\"320.0\"",
        "M0.0 156.0L160.0 54.7L640.0 4.0",
        "M160.0 54.7h0",
        "2.00 MB and 30.0 dB",
        "what was allowed, 3.00 MB",
        "all in the fewest bytes",
        "fc&lt;",
        "id=\"changes\"",
        "<td class=\"count\">2</td><td>batchnorm",
        "bn1",
        "<td class=\"count\">35</td><td>Clip",
        "id=\"methods\"",
        "<th scope=\"col\" class=\"key\">method",
        "<tr><td class=\"key\">bias",
        "id=\"findings\"",
        "is not loaded",
        "id=\"reproduce\"",
        "qconvert float.onnx \\\n    --data 'a --b' \\\n    -q<",
        "qeval float.onnx \\\n    --data 'a\\x0ab'<",
        "A &amp; B, 4 processors, avx2 of avx512, 2 threads, load 1.2; octet " OCT_VERSION
        "; at its best 56.3 GFLOP/s in float, 226 GOP/s in int8, 42.1 GB/s<",
        "</html>",
    };
    in_order(page, story, OCT_COUNT(story));
    FILE *f = out ? fopen(out, "w") : NULL;
    if (f) {
        fputs(page, f);
        fclose(f);
    }
    oct_buf_free(&b);
    end(m);
}

/* Classes of boxes have their AP50, which what is gained or lost is of, and are taken for nothing. */
TEST(classes_of_boxes)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    for (int k = 0; k < 2; k++)
        m->model[k].classes = (oct_class_table){
            .row = k ? m->class_row : m->float_row, .n_rows = 2, .counts = "objects", .own = "ap50"
        };
    m->float_row[0].own = 0.5;
    m->class_row[0].own = 0.25;
    m->float_row[1].own = m->class_row[1].own = NAN;
    oct_report_html(report_of(m), &b);
    static const char *const words[] = {
        "id=\"classes\"",        "ap50 is less than the float model's for 1 of 2 classes, and more for 0.",
        ">objects</th>",         ">ap50</th>",
        "25.00&nbsp;%",          ">-25.00<",
        "<td class=\"n\"></td>", "id=\"costs\""
    };
    in_order(oct_buf_str(&b), words, OCT_COUNT(words));
    assert_null(strstr(oct_buf_str(&b), "taken for"));
    oct_buf_free(&b);
    end(m);
}

/* 2e6 operations in 0.2 ms are 10 GOP/s; of a time that spreads widely no rate is said, and of a step's neither. */
TEST(rates)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    oct_report_html(report_of(m), &b);
    static const char *const rows[] = { "id=\"time\"",
                                        "float, GOP/s",
                                        "conv_<wbr>1",
                                        "<td class=\"n wide\">10.0</td>",
                                        "conv_<wbr>4",
                                        "spread widely",
                                        "<td class=\"n wide\"></td>",
                                        "conv_<wbr>6",
                                        "<td class=\"n wide\">10.0</td>" };
    in_order(oct_buf_str(&b), rows, OCT_COUNT(rows));
    oct_buf_free(&b);
    oct_eval_step steps[] = { { "steady", "Conv", "int8", "", "", 2e-4, 1000000, 0, false },
                              { "restless", "Conv", "int8", "", "", 2e-4, 1000000, 0, true } };
    for (int k = 0; k < 3; k++)
        m->model[k].n_costs = 0;
    m->model[1].steps = steps;
    m->model[1].n_steps = 2;
    oct_report_html(report_of(m), &b);
    static const char *const list[] = {
        "id=\"time\"",          ">GOP/s<", "steady", "<td class=\"n\">10.0</td>", "restless", "spread widely",
        "<td class=\"n\"></td>"
    };
    in_order(oct_buf_str(&b), list, OCT_COUNT(list));
    oct_buf_free(&b);
    end(m);
}

/* How many of several gates are uncertain. */
TEST(uncertain_gates)
{
    static const struct {
        bool met[2], unsure[2];
        const char *said;
    } each[] = {
        { { true, true }, { false, false }, "mark good\">Meets all 2 gates.</span>" },
        { { true, true },
          { true, false },
          "mark mid\">Meets all 2 gates; for 1 the measurement does not suffice to be certain.</span>" },
        { { true, false },
          { true, true },
          "mark mid\">Misses 1 of 2 gates; for 2 the measurement does not suffice to be certain.</span>" },
        { { false, false },
          { false, true },
          "mark bad\">Misses 2 of 2 gates; for 1 the measurement does not suffice to be certain.</span>" }, /* the other
                                                                                                               is
                                                                                                               certain
                                                                                                             */
        { { false, true },
          { false, true },
          "mark bad\">Misses 1 of 2 gates; for 1 the measurement does not suffice to be certain.</span>" },
        { { true, false }, { false, false }, "mark bad\">Misses 1 of 2 gates.</span>" },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        made *m = make();
        for (int k = 0; k < 2; k++) {
            m->judged[k].model = 1;
            m->judged[k].met = each[i].met[k];
            m->judged[k].unsure = each[i].unsure[k];
        }
        oct_buf b = OCT_BUF_INIT;
        oct_report_html(report_of(m), &b);
        in_order(oct_buf_str(&b), &each[i].said, 1);
        oct_buf_free(&b);
        end(m);
    }
}

/* A layer whose weights are stored in blocks is counted as such, and a model of these does not read as a failure. What
 * samples cannot tell has no colour. */
TEST(weights_in_blocks)
{
    static const char *const said[] = { "<span class=\"soft\">within noise</span>",
                                        "<dt>Layers in 4 bits</dt><dd>19<small>of 22",
                                        "<dt>Layers in 8 bits</dt><dd>3<small>of 22" };
    made *m = make();
    m->model[1].integer_steps = 0;
    m->model[1].block_steps[4] = 19;
    m->model[1].block_steps[8] = 3;
    m->result.n_models = 2;
    m->context.n_gates = 0;
    oct_buf b = OCT_BUF_INIT;
    oct_report_html(report_of(m), &b);
    in_order(oct_buf_str(&b), said, OCT_COUNT(said));
    assert_null(strstr(oct_buf_str(&b), "Layers on integers"));
    oct_buf_free(&b);
    end(m);
}

/* Names from models make no element, and the page's script is its only one. */
TEST(hostile_names)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    oct_report_html(report_of(m), &b);
    assert_int_equal(count(oct_buf_str(&b), "<script>"), 1);
    assert_int_equal(count(oct_buf_str(&b), "</script>"), 1);
    assert_int_equal(count(oct_buf_str(&b), "<b>"), 0);
    assert_true(count(oct_buf_str(&b), "script&gt;&lt;b&gt;&amp;&quot;'x5") >= 4); /* charts, tables, costs */
    oct_buf_free(&b);
    end(m);
}

/* A bin counts as clipped where its middle lies beyond the range; with edges 0.1 apart from -3.2, 12 bins lie below -2,
 * and 1 above 3.1. */
TEST(what_is_clipped)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    const ev_page p = page_of(m, &b, 1, "layers");
    const oct_item *layer = oct_item_of(p.x, 0);
    ev_page_draw_values(&p, oct_item_at(layer, "histogram"), oct_item_at(layer, "range"));
    const char *cut = strstr(oct_buf_str(&b), "class=\"cut\""), *held = strstr(oct_buf_str(&b), "class=\"held\"");
    assert_non_null(cut);
    assert_non_null(held);
    assert_true(held < cut);
    assert_int_equal(count(cut, "H"), 13);
    assert_int_equal(count(held, "H") - count(cut, "H"), OCT_LAYER_BINS - 13);
    static const char *const words[] = {
        "x=\"12.00\" width=\"51.00\"", ">-3.2<", ">3.2<", "-3 to 3.2", "holds -2 to 3.1", "clips 1.0 %"
    };
    in_order(oct_buf_str(&b), words, OCT_COUNT(words));
    oct_buf_free(&b);
    end(m);
}

/* 200 channels share 96 columns, of which each shows its largest scale and its worst channel. */
TEST(weights_by_channel)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    const ev_page p = page_of(m, &b, 1, "layers");
    ev_page_draw_weights(&p, oct_item_at(oct_item_of(p.x, 0), "weights"));
    static const char *const words[] = { "viewBox=\"0 0 96 96\"", "channel 0", ">199<", "0.001 to 0.05",
                                         "12.0 dB to 40.0 dB" };
    in_order(oct_buf_str(&b), words, OCT_COUNT(words));
    /* Channel 9 of 12 dB is in column 9 * 96 / 200 = 4: 12 of 60 dB is a fifth of the height of 96. */
    assert_non_null(strstr(oct_buf_str(&b), "L4 77L5 32"));
    oct_buf_free(&b);
    end(m);
}

/* Layers that were not compared stand behind the compared one before them. */
TEST(rows_in_order)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    ev_page_row *rows;
    size_t n;
    m->model[1].n_layers = LAYERS - 1; /* the first of the network is the last of the list */
    m->layer[0][10].name = "other";    /* layer 13 has another name than what was told */
    const ev_page p = page_of(m, &b, 1, "nodes");
    ev_page_rows(&p, p.model, &rows, &n);
    assert_int_equal(n, LAYERS + 1);
    assert_null(rows[0].e);
    assert_ptr_equal(rows[0].n, oct_item_of(p.x, 0));
    for (size_t i = 1; i < 13; i++) {
        assert_int_equal(oct_item_whole(rows[i].e, "order"), i);
        assert_ptr_equal(rows[i].n, oct_item_of(p.x, i));
    }
    assert_ptr_equal(rows[13].n, oct_item_of(p.x, 13));
    assert_null(rows[13].e);
    assert_string_equal(ev_page_row_name(rows[14].e, rows[14].n), "other");
    assert_null(rows[14].n);
    oct_free(rows);
    end(m);
}

/* Quartiles of 1.9 and 5.2 ms around 2 ms are too far apart to conclude from, around 5 ms too; those of 1.9 and 2.05
 * are not. */
TEST(wide_times)
{
    made *m = make();
    oct_buf b = OCT_BUF_INIT;
    m->model[1].latency.q3 = 2.05e-3;
    oct_report_markdown(report_of(m), &b);
    static const char *const tables[] = { "| latency | &#126;5 ms | 2 ms |", "| latency | &#126;5 ms | &#126;2 ms |",
                                          "avx2 of avx512" };
    in_order(oct_buf_str(&b), tables, OCT_COUNT(tables));
    oct_buf_free(&b);
    oct_report_junit(report_of(m), &b);
    static const char *const suites[] = {
        "\"version\" value=\"octet " OCT_VERSION "\"",
        "\"cpu\" value=\"A &amp; B\"",
        "\"processors\" value=\"4\"",
        "\"isa\" value=\"avx2\"",
        "\"isa-available\" value=\"avx512\"",
        "\"threads\" value=\"2\"",
        "\"load\" value=\"1.25\"",
        "\"latency-ms\" value=\"2 (quartiles 1.9 to 2.05, 20 runs)\"",
        "\"samples\" value=\"400\"",
        "</properties>",
        "\"runner\" value=\"onnxruntime 1\"",
        "\"latency-ms\" value=\"~2 (quartiles 1.9 to 5.2, 20 runs)\"",
    };
    in_order(oct_buf_str(&b), suites, OCT_COUNT(suites));
    oct_buf_free(&b);
    end(m);
}

TEST(shares)
{
    char text[EV_SHARE_TEXT];
    assert_string_equal(ev_page_share(text, 0), "0 %");
    assert_string_equal(ev_page_share(text, 0.00001), "< 0.01 %");
    assert_string_equal(ev_page_share(text, 0.0042), "0.42 %");
    assert_string_equal(ev_page_share(text, 0.5), "50.0 %");
    assert_string_equal(ev_page_share(text, 1), "100 %");
    assert_string_equal(ev_page_share(text, NAN), "");
}

TEST(kinds)
{
    assert_string_equal(ev_page_kind("int8", "uint8"), "int8");
    assert_string_equal(ev_page_kind("int8", "uint16"), "int16");
    assert_string_equal(ev_page_kind("dynamic", NULL), "int8");
    assert_string_equal(ev_page_kind("weight-only", NULL), "blocks");
    assert_string_equal(ev_page_kind("bf16", NULL), "half");
    assert_string_equal(ev_page_kind("float", NULL), "float");
}

/* A name is broken behind its parts, and never within a character. */
TEST(names)
{
    oct_buf b = OCT_BUF_INIT;
    const ev_page p = { .b = &b };
    ev_page_name(&p, "a/b_c.d:1.5:.5,SkipNorm");
    assert_string_equal(oct_buf_str(&b), "a/<wbr>b_<wbr>c.<wbr>d:<wbr>1.5:<wbr>.<wbr>5,<wbr>Skip<wbr>Norm");
    oct_buf_free(&b);
    char wide[3 * 50 + 1] = "";
    for (int i = 0; i < 50; i++)
        strcat(wide, "\xe2\x82\xac");
    ev_page_name(&p, "/model/LeakyRelu");
    assert_string_equal(oct_buf_str(&b), "/model/<wbr>Leaky<wbr>Relu");
    oct_buf_free(&b);
    ev_page_name(&p, wide);
    assert_string_equal(oct_buf_str(&b), wide);
    oct_buf_free(&b);
    char broken[201] = ""; /* middles of characters alone, which are shown as bytes */
    memset(broken, 0x80, sizeof broken - 1);
    ev_page_name(&p, broken);
    assert_int_equal(count(oct_buf_str(&b), "\\x80"), 200);
    oct_buf_free(&b);
}
