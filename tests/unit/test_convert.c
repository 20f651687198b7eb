/* lib/quant/convert/convert.h: whole conversions without a tool, against what stands in the files and sums written out
 * here. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "folder.h"
#include "unit.h"

#include "net.h"
#include "onnx/model.h"
#include "quant/convert/convert.h"
#include "quant/job/placed.h"
#include "quant/weights/constants.h"

TEST_GROUP(folder_make, folder_remove);

/* What a conversion said. */
typedef struct heard {
    char notes[4000];
    int chosen, taken;
    int64_t done, total; /* of the last report of "calibrating" */
    bool backwards;
    oct_conversion *c;
    const char *lost; /* a value whose statistics are lost when they were gathered, as if there had been none; NULL:
                         none, or done */
} heard;

static void lose(heard *h)
{
    oct_calib_tensor *t = oct_calib_find(h->c->calib, h->lost);
    assert_non_null(t);
    oct_stats_free(&t->stats);
    oct_stats_init(&t->stats);
    h->lost = NULL;
}

static void on_progress(void *arg, const char *what, int64_t done, int64_t total)
{
    heard *h = arg;
    if (strcmp(what, "calibrating") != 0)
        return;
    h->backwards |= done < h->done;
    h->done = done;
    h->total = total;
}

static void on_note(void *arg, int level, const char *text)
{
    heard *h = arg;
    const size_t n = strlen(h->notes);
    snprintf(h->notes + n, sizeof h->notes - n, "%d %s\n", level, text);
}

static void on_chosen(void *arg, const oct_source *src)
{
    ((heard *)arg)->chosen++;
}

static void on_taken(void *arg, const oct_source *src)
{
    heard *h = arg;
    h->taken++;
    if (h->lost && h->c->gathered)
        lose(h);
}

typedef struct work {
    char name[300], output[300];
    heard heard;
    oct_target *target;
    oct_convert_opts o;
    oct_model *m;
    oct_source *src;
    oct_conversion c;
} work;

static const char *data(char path[300], const char *name)
{
    snprintf(path, 300, "%s/testdata/%s", getenv("OCT_SOURCE"), name);
    return path;
}

/* Options for a model of testdata, loaded. */
static void set_up_for(work *w, const char *model, const char *target)
{
    memset(w, 0, sizeof *w);
    snprintf(w->output, sizeof w->output, "%s/q.onnx", folder);
    GOOD(oct_model_load(data(w->name, model), &w->m, err));
    GOOD(oct_target_open(target, &w->target, err));
    w->o = (oct_convert_opts){ .name = w->name,
                               .job = { .target = w->target },
                               .methods = oct_methods_default(),
                               .listener = { .progress = on_progress,
                                             .note = on_note,
                                             .chosen = on_chosen,
                                             .taken = on_taken,
                                             .arg = &w->heard } };
}

static void set_up(work *w, const char *model)
{
    set_up_for(w, model, "octet");
}

static void open_samples(work *w, const char *spec, const char *steps, int64_t n)
{
    oct_arena *a = oct_arena_create();
    oct_input_desc *in;
    size_t n_in;
    GOOD(oct_eval_inputs(&(oct_eval_model){ w->name, w->m->graph, 0 }, 1, a, &in, &n_in, err));
    oct_source_options o = { .specs = &spec,
                             .n_specs = 1,
                             .preprocess = &steps,
                             .n_preprocess = steps != NULL,
                             .inputs = in,
                             .n_inputs = n_in,
                             .samples = n,
                             .hold = true };
    GOOD(oct_source_open(&o, &w->src, err));
    oct_arena_destroy(a);
}

static oct_status decide(work *w, oct_err *err)
{
    OCT_TRY(oct_conversion_open(&w->c, &w->o, err));
    oct_conversion_take(&w->c, w->m);
    return oct_conversion_decide(&w->c, w->src, err);
}

static void tear_down(work *w)
{
    oct_conversion_close(&w->c);
    oct_target_close(w->target);
    oct_source_close(w->src);
    oct_model_free(w->m);
}

static const oct_method_result *method(const work *w, const char *name)
{
    for (size_t i = 0; i < w->c.n_methods; i++)
        if (strcmp(w->c.methods[i].method->name, name) == 0)
            return &w->c.methods[i];
    fail_msg("no method '%s'", name);
    return NULL;
}

/* Products of g that take quantized values, and all that have weights. */
static void count_products(const oct_graph *g, size_t *integer, size_t *all)
{
    *integer = *all = 0;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        if (strcmp(n->op, "Conv") != 0 && strcmp(n->op, "Gemm") != 0 && strcmp(n->op, "MatMul") != 0)
            continue;
        const int from = g->value[n->in[0]].producer;
        *integer += from >= 0 && strcmp(g->node[from].op, "DequantizeLinear") == 0;
        ++*all;
    }
}

/* What is put is read back; the length does not depend on the number of samples; what is no record is refused. */
TEST(records_are_read_back)
{
    oct_record r = { 0 }, q;
    oct_buf b = OCT_BUF_INIT;
    oct_err e = OCT_ERR_INIT;
    memset(r.part[OCT_RECORD_SOURCE].sha256, 'a', OCT_SHA256_TEXT - 1);
    memset(r.part[OCT_RECORD_SAMPLES].sha256, '7', OCT_SHA256_TEXT - 1);
    r.part[OCT_RECORD_SOURCE].there = r.part[OCT_RECORD_SAMPLES].there = true;
    oct_record_file(&r, OCT_RECORD_POLICY, "/dev/null"); /* no file that can be read again */
    oct_record_put(&r, &b);
    const size_t n = b.len;
    oct_buf_cut(&b, 0);
    r.part[OCT_RECORD_SAMPLES].n = 123456;
    oct_record_put(&r, &b);
    assert_int_equal(b.len, n);
    GOOD(oct_record_read(oct_buf_str(&b), &q, err));
    assert_memory_equal(&q, &r, sizeof q);
#define A16 "aaaaaaaaaaaaaaaa"
#define SOURCE "source sha256:" A16 A16 A16 A16
    static const char *const bad[] = {
        "",          "source",           "source -",          "source sha256:12",   SOURCE "a",
        SOURCE "\n", SOURCE "\n" SOURCE, SOURCE "\norigin -", SOURCE "\nsamples -", SOURCE "\nsource-data -"
    };
    GOOD(oct_record_read(SOURCE "\npolicy -", &q, err));
    for (size_t i = 0; i < OCT_COUNT(bad); i++)
        assert_int_equal(oct_record_read(bad[i], &q, &e), OCT_EMALFORMED);
    oct_buf_free(&b);
}

/* 40 of 64 pictures calibrate and 24 judge; the file holds what the record says. */
TEST(goes_all_the_way)
{
    char images[300];
    struct stat st;
    work w;
    set_up(&w, "demo.onnx");
    open_samples(&w, data(images, "images/calib.csv"), "mean=127.5:std=127.5", 40);
    GOOD(decide(&w, err));
    assert_int_equal(w.c.calib->samples, 40);
    assert_int_equal(w.heard.chosen, 1);
    assert_true(w.heard.done == 40 && w.heard.total == 40 && !w.heard.backwards);
    assert_non_null(strstr(w.heard.notes, "0 preprocessing: "));
    GOOD(oct_conversion_make(&w.c, w.output, "convert it", true, err));
    GOOD(oct_conversion_judge(&w.c, w.output, err));
    assert_int_equal(w.c.judged, OCT_JUDGED_OTHERS);
    assert_int_equal(w.c.verdict->samples, 24);
    assert_true(w.c.sqnr > 20 && !w.c.missed && !w.c.unjudged && w.heard.taken == 2);
    GOOD(oct_conversion_write(&w.c, w.output, err));
    assert_int_equal(stat(w.output, &st), 0);
    assert_true((uint64_t)st.st_size == w.c.size_after && w.c.size_before == w.m->size);
    oct_model *q;
    size_t integer, all;
    GOOD(oct_model_load(w.output, &q, err));
    assert_string_equal(oct_model_meta(q, "octet.command"), "convert it");
    count_products(q->graph, &integer, &all);
    const oct_layer_count n = oct_layers_count(w.c.layers, w.c.n_layers);
    assert_true(all == 12 && n.products == all && n.integer == integer);
    oct_model_free(q);
    tear_down(&w);
}

/* With labels, evaluations on half of the 40 pictures decide what methods keep, and the other 24 judge. All of them
 * together run the float model once on a picture. */
TEST(the_float_model_runs_once)
{
    char images[300];
    work w;
    set_up(&w, "demo.onnx");
    open_samples(&w, data(images, "images/calib.csv"), "mean=127.5:std=127.5", 40);
    GOOD(decide(&w, err));
    const oct_kept_count *n = oct_kept_counted(w.c.kept);
    assert_true(n->runs == 20 && n->taken > 0 && n->taken % 20 == 0);
    GOOD(oct_conversion_make(&w.c, w.output, "convert it", true, err));
    GOOD(oct_conversion_judge(&w.c, w.output, err));
    assert_int_equal(n->runs, 20 + 24);
    tear_down(&w);
}

/* Converts demo.onnx by rules, without the statistics of `lost` (NULL: with all); what was decided is in `decisions`,
 * the model's bytes, to be freed, in *bytes. */
static void convert_by(const char *rules, const char *lost, oct_buf *decisions, char **bytes, size_t *n)
{
    char images[300];
    work w;
    set_up(&w, "demo.onnx");
    open_samples(&w, data(images, "images/calib.csv"), "mean=127.5:std=127.5", 24);
    w.o.policy = folder_text("policy", rules);
    w.heard.c = &w.c;
    w.heard.lost = lost;
    GOOD(decide(&w, err));
    assert_null(w.heard.lost);
    oct_conversion_put_policy(&w.c, decisions);
    GOOD(oct_conversion_make(&w.c, w.output, "by a policy", true, err));
    GOOD(oct_conversion_judge(&w.c, w.output, err));
    GOOD(oct_conversion_write(&w.c, w.output, err));
    FILE *f = fopen(w.output, "r");
    assert_non_null(f);
    *n = (size_t)w.c.size_after;
    assert_non_null(*bytes = oct_alloc(*n));
    assert_int_equal(fread(*bytes, 1, *n, f), *n);
    fclose(f);
    tear_down(&w);
}

/* The decisions of a conversion say these words, and read back they give the same bytes. lost: as in convert_by. */
static void reads_back(const char *rules, const char *lost, const char *words)
{
    oct_buf decisions = OCT_BUF_INIT, again = OCT_BUF_INIT;
    char *bytes[2];
    size_t n[2];
    convert_by(rules, lost, &decisions, &bytes[0], &n[0]);
    assert_non_null(strstr(oct_buf_str(&decisions), words));
    convert_by(oct_buf_str(&decisions), NULL, &again, &bytes[1], &n[1]);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    for (int i = 0; i < 2; i++)
        oct_free(bytes[i]);
    oct_buf_free(&decisions);
    oct_buf_free(&again);
}

/* Decisions read again make the same model. The input has an observer of its own, which no layer's row tells; so has a
 * value that a float node makes. */
TEST(decisions_are_made_again)
{
    static const char rules[] =
        "value:image - - - hist-percentile=97\nname:conv1 - - - minmax\nname:add1 float\nvalue:add1_out - - - hist-percentile=98\n";
    reads_back(rules, NULL, "\nvalue:image & late  -  -  -  hist-percentile=97\n");
}

/* Layers that were given up for want of statistics, after the methods had changed the graph with them, are given up
 * then again, not before: the same bytes. */
TEST(late_decisions_are_made_again)
{
    static const char *const lost[] = { "clip2_out", "bn4_out", "relu2_out" };
    for (size_t i = 0; i < OCT_COUNT(lost); i++) {
        reads_back("name:softmax float\n", lost[i], "a tensor has no statistics");
        reads_back("name:softmax float\n", lost[i], " & late  float");
    }
}

/* The observer that the record names gives the scale that it has, where the table's tensor alone decides. */
static void layer_is_by_its_observer(const work *w, const oct_layer_decision *d)
{
    const oct_calib_tensor *t =
        d->observer ? oct_calib_find(w->c.calib, oct_value_name(d->graph, d->graph->node[d->node].out[0])) : NULL;
    oct_observer_spec spec;
    oct_selection s;
    if (!t || strcmp(d->op, "Conv") != 0)
        return;
    GOOD(oct_observer_parse(d->observer, &spec, err));
    GOOD(oct_observe(&t->stats, spec, (oct_qrange){ 0, 255, false }, &s, err));
    assert_float_equal(d->scale, s.q.scale, 1e-6f * s.q.scale);
}

/* The choice is by the smallest error that was measured, but for a margin; the record says what the default would
 * give. */
TEST(says_what_methods_did)
{
    char images[300];
    work w;
    set_up(&w, "demo.onnx");
    open_samples(&w, data(images, "images/calib.csv"), "mean=127.5:std=127.5", 0);
    GOOD(decide(&w, err));
    const oct_method_result *r = method(&w, "observer-search");
    assert_true(r->ran && !r->why && r->after >= r->before - 0.3 && r->before > 10 && *r->choice);
    for (size_t i = 0; i < w.c.n_layers; i++)
        layer_is_by_its_observer(&w, &w.c.layers[i].d);
    r = method(&w, "bias-inputs");
    assert_true(r->ran && r->before > r->after && r->after > 0);
    tear_down(&w);

    set_up(&w, "demo.onnx");
    open_samples(&w, data(images, "images/calib.csv"), "mean=127.5:std=127.5", 0);
    w.o.observer = "minmax";
    GOOD(oct_methods_switch(&w.o.methods, "bias-inputs", false, err));
    GOOD(decide(&w, err));
    assert_string_equal(method(&w, "observer-search")->why, "no layer has a choice of observers");
    assert_string_equal(method(&w, "bias-inputs")->why, "switched off");
    assert_true(method(&w, "bias-weights")->ran);
    tear_down(&w);
}

enum { ROWS = 20 };

/* Samples of which channel c has the mean c + 1, whichever are chosen. */
static void write_rows(const char *path, int height, int width)
{
    FILE *f = fopen(path, "wb");
    char head[129];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int n = snprintf(head + 10, 100, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3, %d, %d), }", ROWS,
                           height, width);
    head[10 + n] = ' ';
    head[127] = '\n';
    fwrite(head, 1, 128, f);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < height * width; i++) {
                const float v = (float)(c + 1) + (float)(i / 2 % 5 + r % 3) * (i % 2 ? 0.25f : -0.25f);
                fwrite(&v, sizeof v, 1, f);
            }
    fclose(f);
}

/* before: root of the mean over the outputs of (sum of (w - wq) E[x])^2, in steps of the output; after: what a rounded
 * bias leaves. */
TEST(measures_what_biases_make_up_for)
{
    const char *path = folder_path("x.npy");
    work w;
    write_rows(path, 6, 7);
    set_up_for(&w, "models/conv_valid.onnx", "onnxruntime-x86"); /* it quantizes every output */
    open_samples(&w, path, NULL, 0);
    oct_methods_drop_needing(&w.o.methods, OCT_NEEDS_SAMPLES);
    GOOD(decide(&w, err));
    const oct_graph *g = w.m->graph;
    const int node = g->order[0];
    const float *v = g->value[g->node[node].in[1]].constant->data;
    const qweights *q = w.c.job->constants[node].weights[0];
    const double step = (double)w.c.layers[0].d.scale,
                 sx = (double)oct_quant_of(w.c.job, g->node[node].in[0])->scale[0];
    double sum = 0, most = 0;
    for (int o = 0; o < 4; o++) {
        double off = 0;
        for (int i = 0; i < 27; i++)
            off += ((double)v[o * 27 + i] - ((const int8_t *)q->qvals->data)[o * 27 + i] * (double)q->quant.scale[o]) *
                   (1 + i / 9);
        sum += off * off;
        most = fmax(most, sx * (double)q->quant.scale[o] / 2);
    }
    const oct_method_result *r = method(&w, "bias-weights");
    assert_true(r->ran && r->measure && strcmp(r->unit, "steps") == 0 && step > 0);
    assert_true(fabs(r->before - sqrt(sum / 4) / step) <= 1e-5 * r->before);
    assert_true(r->after <= most / step * 1.0001 && r->after < r->before);
    tear_down(&w);
}

/* A model that runs in stages: what rounding does to the means of its input is seen there, too. */
TEST(measures_inputs_in_stages)
{
    const char *path = folder_path("x.npy");
    work w;
    write_rows(path, 4, 4);
    set_up_for(&w, "models/nested_functions.onnx", "onnxruntime-x86");
    open_samples(&w, path, NULL, 0);
    GOOD(decide(&w, err));
    const oct_method_result *r = method(&w, "bias-inputs");
    assert_true(r->ran && r->measure && r->before > 0);
    assert_non_null(w.c.job->moved[w.m->graph->input[0]]);
    tear_down(&w);
}

/* Preprocessing that the first layer cannot take over without a loss stays in front, whoever converts. */
TEST(folding_that_loses_is_taken_back)
{
    const oct_end_ask bytes = { .type = OCT_U8 };
    oct_steps steps = {
        .has_order = true, .order = OCT_ORDER_BGR, .n_mean = 3, .mean = { 41, 117, 203 }, .n_std = 1, .std = { 1 }
    };
    char path[300];
    work w;
    set_up(&w, "demo.onnx");
    w.o.ends = &bytes;
    w.o.n_ends = 1;
    const size_t nodes = w.m->graph->n_node;
    GOOD(oct_conversion_open(&w.c, &w.o, err));
    oct_conversion_take(&w.c, w.m);
    GOOD(oct_conversion_take_ends(&w.c, &steps, err));
    assert_true(steps.n_mean == 1 && steps.order == OCT_ORDER_RGB);
    open_samples(&w, data(path, "images/calib.csv"), "mean=115:std=1", 0);
    GOOD(oct_conversion_decide(&w.c, w.src, err));
    assert_non_null(strstr(w.heard.notes, "0 inside the layers preprocessing loses too much"));
    assert_string_equal(oct_source_preprocess(w.src), "order=bgr:mean=41,117,203:std=1");
    GOOD(oct_conversion_make(&w.c, w.output, NULL, true, err));
    assert_true(w.c.end[0].compared && w.c.end[0].close.computed);
    assert_non_null(strstr(w.c.end[0].how, "in front of the model, as layers that do it lose"));
    GOOD(oct_conversion_judge(&w.c, w.output, err));
    assert_true(w.c.sqnr > 25);
    assert_ptr_not_equal(w.c.m, w.m);
    assert_int_equal(w.m->graph->n_node, nodes); /* the model that was given is as it was */
    assert_true(w.m->graph->value[w.m->graph->input[0]].dtype == OCT_F32 && !oct_model_meta(w.m, "octet.command"));
    tear_down(&w);
}

TEST(methods_are_switched_by_name)
{
    oct_method_set s = oct_methods_default();
    oct_err fault = OCT_ERR_INIT;
    size_t n;
    const oct_method *const *all = oct_method_all(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(*all[i]->name && *all[i]->summary && (all[i]->prepare || all[i]->run));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(all[i]->name, all[k]->name);
        assert_true(i == 0 || all[i]->step >= all[i - 1]->step); /* the table's order is that of the steps */
    }
    assert_int_equal(oct_methods_switch(&s, "bias-weigths", false, &fault), OCT_EUSAGE);
    assert_non_null(strstr(fault.hint, "did you mean 'bias-weights'?"));
    GOOD(oct_methods_switch(&s, "bias-weights", false, err));
    assert_int_equal(oct_methods_switch(&s, "bias-weights", true, &fault), OCT_EUSAGE);
    assert_true(oct_methods_any_needing(&s, OCT_NEEDS_SAMPLES) && !oct_methods_any_needing(&s, OCT_NEEDS_STATISTICS));
    oct_methods_drop_needing(&s, OCT_NEEDS_SAMPLES);
    assert_false(oct_methods_any_needing(&s, OCT_NEEDS_SAMPLES));
}

/* Without samples nothing runs that needs them, and what was asked for is an error. */
TEST(needs_are_met_or_said)
{
    oct_err fault = OCT_ERR_INIT;
    work w;
    set_up(&w, "demo.onnx");
    GOOD(decide(&w, err));
    for (size_t i = 0; i < w.c.n_methods; i++)
        assert_true(!w.c.methods[i].ran && w.c.methods[i].why && isnan(w.c.methods[i].after));
    assert_string_equal(method(&w, "bias-inputs")->why, "it needs samples");
    tear_down(&w);
    set_up(&w, "demo.onnx");
    GOOD(oct_methods_switch(&w.o.methods, "bias-inputs", true, err));
    assert_int_equal(decide(&w, &fault), OCT_EUSAGE);
    assert_non_null(strstr(fault.text, "'bias-inputs' needs samples"));
    tear_down(&w);
}

TEST(sizes_are_read)
{
    static const struct {
        const char *text;
        double share;
        uint64_t bytes;
    } good[] = { { "25%", 0.25, 0 },   { "12.5%", 0.125, 0 }, { "12MB", 0, 12000000 },
                 { "1.5kB", 0, 1500 }, { "2KiB", 0, 2048 },   { "80000", 0, 80000 } };
    static const char *const bad[] = { "",      "x",    "0",     "-3MB", "25 %", "3TB", "nan%",
                                       "1e300", "0.5B", "2000%", "25",   "100",  "25B" };
    oct_size_limit l;
    for (size_t i = 0; i < OCT_COUNT(good); i++) {
        GOOD(oct_size_limit_parse("--target-size", good[i].text, &l, err));
        assert_true(l.share == good[i].share && l.bytes == good[i].bytes && l.bits == 0);
    }
    for (size_t i = 0; i < OCT_COUNT(bad); i++) {
        oct_err err = OCT_ERR_INIT;
        if (oct_size_limit_parse("--target-size", bad[i], &l, &err) != OCT_EUSAGE)
            fail_msg("'%s'", bad[i]);
        assert_non_null(strstr(err.text, "--target-size"));
    }
    oct_err few = OCT_ERR_INIT;
    assert_int_equal(oct_size_limit_parse("--target-size", "25", &l, &few), OCT_EUSAGE);
    assert_string_equal(few.hint, "did you mean 25%?");
}

/* Of what fits, that which loses least on samples that did not choose is taken. */
static void best_is_taken(const oct_size_choice *x)
{
    assert_true(x->n_rivals == 0 || (!*x->rival[0].form && x->taken < x->n_rivals && x->samples > 0));
    for (size_t i = 0; i < x->n_rivals; i++) {
        assert_true(x->rival[i].bytes <= x->limit && x->rival[i].sqnr <= x->rival[x->taken].sqnr);
        assert_true(*x->rival[i].form ? i > 0 : i == 0 || x->rival[i].between);
    }
}

/* Bytes of the file that is written within a share of the float one; 0: none is so small. */
static uint64_t size_within(double share, double *sqnr)
{
    char images[300];
    struct stat st = { 0 };
    work w;
    set_up_for(&w, "demo.onnx", "onnxruntime-x86");
    w.o.size.share = share;
    w.o.made_by = "convert it";
    w.o.job.may_block = true;
    open_samples(&w, data(images, "images/calib.csv"), "mean=127.5:std=127.5", 8);
    GOOD(decide(&w, err));
    const oct_size_choice *x = &w.c.size;
    assert_true(x->measured && x->n > 1 && x->point[0].taken && !*x->point[0].layer);
    for (size_t i = 1; i < x->n; i++)
        assert_true(x->point[i].bytes > x->point[i - 1].bytes && x->point[i].sqnr > x->point[i - 1].sqnr);
    *sqnr = x->sqnr;
    best_is_taken(x);
    assert_true((share > 0.3 && share < 1) == (x->n_rivals > 1)); /* all in 8 bits takes so much; float loses nothing */
    assert_true(x->missed == (x->least > x->limit));
    if (!x->missed) {
        GOOD(oct_conversion_make(&w.c, w.output, "convert it", false, err));
        GOOD(oct_conversion_write(&w.c, w.output, err));
        assert_int_equal(stat(w.output, &st), 0);
        assert_true((double)st.st_size <= share * (double)w.c.size_before);
    }
    tear_down(&w);
    return (uint64_t)st.st_size;
}

/* More bytes lose less; all float is the end of the curve. */
TEST(sizes_are_kept)
{
    double sqnr[4];
    assert_int_equal(size_within(0.02, &sqnr[0]), 0);
    const uint64_t small = size_within(0.5, &sqnr[1]), large = size_within(0.8, &sqnr[2]);
    assert_true(small > 0 && small < large && sqnr[1] < sqnr[2]);
    size_within(3, &sqnr[3]);
    assert_true(sqnr[3] > 1e9);
}

TEST(warns_of_a_quantized_model)
{
    work w;
    set_up(&w, "models/demo_qdq.onnx");
    GOOD(decide(&w, err));
    assert_non_null(strstr(w.heard.notes, "-1 "));
    assert_non_null(strstr(w.heard.notes, "is quantized already ("));
    assert_int_equal(w.c.n_warnings, 1);
    assert_non_null(strstr(w.c.warnings[0], "is quantized already ("));
    tear_down(&w);
}
