/* lib/quant: placement, parameters, weights, biases, the saturation proof and the rewritten graph, against sums written
 * out here. */
#include "unit.h"

#include "decision.h"
#include "job_work.h"
#include "net.h"
#include "quant/job/job.h"
#include "quant/weights/constants.h"
#include "quant/weights/saturate.h"
#include "targets.h"

/* A job on g with statistics made by running the float graph on the fixed random inputs of net.h. */
static work start_on(oct_graph *g, const char *rules, const oct_target *target, bool correct)
{
    work w = { NULL };
    GOOD(oct_policy_create(NULL, &w.policy, err));
    if (rules)
        GOOD(oct_policy_add(w.policy, rules, "test", err));
    oct_qjob_opts o = { .policy = w.policy, .target = target, .have_data = true, .bias_weights = correct };
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    w.calib = oct_calib_create();
    int64_t dims[OCT_MAX_RANK], count;
    assert_true(oct_shape_known(&g->value[g->input[0]].shape, dims));
    assert_true(oct_count(dims, g->value[g->input[0]].shape.rank, &count));
    float *x = oct_alloc((size_t)count * sizeof *x);
    net_fill(x, (size_t)count, 1);
    take_statistics(&w, g, x);
    oct_free(x);
    return w;
}

static work start(oct_graph *g, const char *rules, const char *target, bool correct)
{
    return start_on(g, rules, target_named(target), correct);
}

static const oct_layer_decision *layer(const work *w, const char *name)
{
    return decision_of(w->job, name);
}

/* x[2,3,6,6] -> Conv 4 -> Relu -> Conv 2 -> output */
static oct_graph *two_convs(void)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "2,3,6,6");
    int c = NET_NODE(g, "Conv", "first", "a", x, net_random(g, "w1", "4,3,3,3", 3), net_random(g, "b1", "4", 4));
    int r = NET_NODE(g, "Relu", "relu", "r", c);
    int y = NET_NODE(g, "Conv", "second", "y", r, net_random(g, "w2", "2,4,3,3", 5), net_random(g, "b2", "2", 6));
    net_output(g, y);
    return g;
}

static work dynamic(oct_graph *g, const char *rules, const char *target, oct_scheme scheme)
{
    work w = { NULL };
    GOOD(oct_policy_create(NULL, &w.policy, err));
    if (rules)
        GOOD(oct_policy_add(w.policy, rules, "test", err));
    oct_qjob_opts o = { .policy = w.policy, .target = target_named(target), .scheme = scheme, .safe_pairs = true };
    GOOD(oct_qjob_create(g, &o, &w.job, err));
    GOOD(oct_qjob_decide(w.job, NULL, err));
    return w;
}

/* y = mean x > 100 ? -x W : Relu(x V); W is a constant outside, V one of the branch; both branches call their product
 * p. */
static oct_graph *two_branches(void)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "4,8"), w = net_random(g, "W", "8,6", 7);
    int mean = NET_NODE(g, "ReduceMean", "mean", "m", x);
    net_int(g, "keepdims", 0);
    int y = NET_NODE(g, "If", "if", "y", NET_NODE(g, "Greater", "high", "c", mean, NET_F32(g, "most", "", 100))),
        at = net_last;
    oct_graph *then = net_nested(g), *other = net_nested(g);
    net_output(then, NET_NODE(then, "MatMul", "p", "t", NET_NODE(then, "Neg", "neg", "n", net_take(then, x)),
                              net_take(then, w)));
    int v = NET_NODE(other, "MatMul", "p", "e", net_take(other, x), net_random(other, "V", "8,6", 8));
    net_output(other, NET_NODE(other, "Relu", "relu", "r", v));
    net_give(g, at, "then_branch", then);
    net_give(g, at, "else_branch", other);
    net_output(g, y);
    return g;
}

static const oct_layer_decision *inside(const work *w, const char *where, const char *name)
{
    for (size_t i = 0; i < oct_qjob_n_layers(w->job); i++) {
        const oct_layer_decision *d = oct_qjob_layer(w->job, i);
        if (strcmp(d->where, where) == 0 && strcmp(d->name, name) == 0)
            return d;
    }
    fail_msg("no layer '%s%s'", where, name);
    return NULL;
}

TEST(branches_are_quantized)
{
    oct_graph *g = two_branches();
    work w = dynamic(g, NULL, "octet", OCT_SCHEME_DYNAMIC);
    const oct_layer_decision *then = inside(&w, "if/then_branch/", "p"), *other = inside(&w, "if/else_branch/", "p");
    assert_true(then->integer && other->integer);
    assert_ptr_not_equal(then->graph, other->graph);
    assert_non_null(strstr(inside(&w, "", "if")->why, "one by one"));
    assert_false(inside(&w, "if/else_branch/", "relu")->integer);
    /* Quantized values of W, a constant of the graph around, by column. */
    float column[6] = { 0 };
    const float *from = g->value[oct_graph_find(g, "W")].constant->data;
    for (int i = 0; i < 48; i++)
        column[i % 6] = fmaxf(column[i % 6], fabsf(from[i]));
    oct_graph *body = (oct_graph *)(uintptr_t)then->graph;
    GOOD(oct_qjob_rewrite(w.job, err));
    assert_int_equal(net_count(body, "MatMul"), 0);
    assert_int_equal(net_count(body, "MatMulInteger"), 1);
    assert_int_equal(net_count(g, "If"), 1);
    const oct_tensor *qvals = NULL, *scale = NULL;
    for (size_t i = 0; i < body->n_order; i++) {
        const oct_node *n = &body->node[body->order[i]];
        if (strcmp(n->op, "MatMulInteger") == 0)
            qvals = body->value[n->in[1]].constant;
        if (strcmp(n->op, "Mul") == 0 && !scale)
            scale = body->value[n->in[1]].constant;
    }
    assert_int_equal(qvals->count, 48);
    for (int i = 0; i < 48; i++)
        assert_int_equal(((const int8_t *)qvals->data)[i], (int)rintf(from[i] / ((const float *)scale->data)[i % 6]));
    for (int i = 0; i < 6; i++)
        assert_float_equal(((const float *)scale->data)[i], column[i] / 127, 0);
    const oct_node *n = net_producer(g, "y");
    assert_int_equal(n->n_captured, 1); /* x alone: nothing takes W any more */
    assert_string_equal(g->value[n->captured[0]].name, "x");
    assert_int_equal(oct_graph_find(g, "W"), -1);
    stop(&w, g);
}

/* Rules name nodes of bodies as reports do; both branches call their product p. */
TEST(rules_reach_into_branches)
{
    static const struct {
        const char *rule;
        bool then, other;
    } cases[] = {
        { "name:if/then_branch/p float - - -", false, true },
        { "name:if/*/p float - - -", false, false },
        { "name:p float - - -", false, false },
        { "name:then_branch/p float - - -", true, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        oct_graph *g = two_branches();
        work w = dynamic(g, cases[i].rule, "octet", OCT_SCHEME_DYNAMIC);
        assert_int_equal(inside(&w, "if/then_branch/", "p")->integer, cases[i].then);
        assert_int_equal(inside(&w, "if/else_branch/", "p")->integer, cases[i].other);
        GOOD(oct_policy_note(w.policy, g, err));
        assert_int_equal(oct_policy_check(w.policy, g, NULL, NULL, NULL),
                         cases[i].then && cases[i].other ? OCT_EUSAGE : OCT_OK);
        stop(&w, g);
    }
}

/* y = x > 0 ? x W : (if x > 0 then x W else -x W), all of one W outside. */
static oct_graph *one_matrix(void)
{
    oct_graph *g = net_graph(13), *inner[4];
    int x = net_input(g, "x", OCT_F32, "1,16"), w = net_random(g, "W", "16,32", 7);
    int mean = NET_NODE(g, "ReduceMean", "mean", "m", x);
    net_int(g, "keepdims", 0);
    int c = NET_NODE(g, "Greater", "high", "c", mean, NET_F32(g, "most", "", 0)), y = NET_NODE(g, "If", "if", "y", c),
        at = net_last;
    inner[0] = net_nested(g);
    inner[1] = net_nested(g);
    net_output(inner[0], NET_NODE(inner[0], "MatMul", "p", "y0", net_take(inner[0], x), net_take(inner[0], w)));
    int deep = NET_NODE(inner[1], "If", "deep", "y1", net_take(inner[1], c)), there = net_last;
    for (int k = 2; k < 4; k++) {
        oct_graph *b = inner[k] = net_nested(inner[1]);
        int in = net_take(b, net_take(inner[1], x));
        in = k == 2 ? in : NET_NODE(b, "Neg", "neg", "n", in);
        net_output(b, NET_NODE(b, "MatMul", "p", k == 2 ? "y2" : "y3", in, net_take(b, net_take(inner[1], w))));
    }
    net_give(inner[1], there, "then_branch", inner[2]);
    net_give(inner[1], there, "else_branch", inner[3]);
    net_output(inner[1], deep);
    net_give(g, at, "then_branch", inner[0]);
    net_give(g, at, "else_branch", inner[1]);
    net_output(g, y);
    return g;
}

/* What bodies quantize each for itself is written once. */
TEST(bodies_share_a_matrix)
{
    oct_graph *g = one_matrix();
    work w = dynamic(g, NULL, "octet", OCT_SCHEME_DYNAMIC);
    const oct_graph *body[3] = { inside(&w, "if/then_branch/", "p")->graph,
                                 inside(&w, "if/else_branch/deep/then_branch/", "p")->graph,
                                 inside(&w, "if/else_branch/deep/else_branch/", "p")->graph };
    GOOD(oct_qjob_rewrite(w.job, err));
    const char *name = NULL;
    for (int k = 0; k < 3; k++) {
        const oct_node *n = NULL;
        for (size_t i = 0; i < body[k]->n_order; i++)
            if (strcmp(body[k]->node[body[k]->order[i]].op, "MatMulInteger") == 0)
                n = &body[k]->node[body[k]->order[i]];
        assert_non_null(n);
        assert_true(body[k]->value[n->in[1]].outer >= 0 && body[k]->value[n->in[1]].constant);
        name = name ? name : oct_value_name(body[k], n->in[1]);
        assert_string_equal(oct_value_name(body[k], n->in[1]), name);
    }
    const int v = oct_graph_find(g, name);
    assert_true(v >= 0 && g->value[v].constant->bytes == 512 && g->value[v].producer < 0);
    assert_int_equal(oct_graph_find(g, "W"), -1);
    stop(&w, g);
}

/* What no run has shown has no range: its product quantizes its input when it runs. The one that ran has the parameters
 * of what it takes from outside. */
TEST(branch_that_never_ran_is_dynamic)
{
    oct_graph *g = two_branches();
    work w = start(g, NULL, "octet", false);
    GOOD(oct_qjob_decide(w.job, w.calib, err));
    const oct_layer_decision *then = inside(&w, "if/then_branch/", "p"), *other = inside(&w, "if/else_branch/", "p");
    assert_int_equal(then->scheme, OCT_SCHEME_DYNAMIC);
    assert_non_null(strstr(then->why, "no statistics of its values"));
    assert_int_equal(other->scheme, OCT_SCHEME_STATIC);
    oct_graph *ran = (oct_graph *)(uintptr_t)other->graph, *never = (oct_graph *)(uintptr_t)then->graph;
    GOOD(oct_qjob_rewrite(w.job, err));
    assert_int_equal(net_count(never, "QuantizeLinear"), 0);
    assert_int_equal(net_count(never, "MatMulInteger"), 1);
    assert_int_equal(net_count(ran, "QuantizeLinear"), 1);
    assert_int_equal(net_count(ran, "DequantizeLinear"), 2);
    float x[32], lo = 0, hi = 0;
    net_fill(x, 32, 1);
    for (int i = 0; i < 32; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    for (size_t i = 0; i < ran->n_order; i++) {
        const oct_node *n = &ran->node[ran->order[i]];
        if (strcmp(n->op, "QuantizeLinear") != 0)
            continue;
        assert_string_equal(oct_value_name(ran, n->in[0]), "x");
        const float scale = *(const float *)ran->value[n->in[1]].constant->data;
        assert_in_range((int)(1000 * scale * 255 / (hi - lo)), 800, 1001); /* the observer may clip some */
    }
    stop(&w, g);
}

/* x[2,4] * w[4,3]; steps grow to the largest pair of one sign, of 127 of them, where that is 2 dB at most over all
 * channels. */
TEST(steps_grow_for_safe_pairs)
{
    static const struct {
        float w[12]; /* by input, pairs of which follow each other */
        float reach[3];
        oct_dtype type;
    } each[] = { { { 1, 1, -1, 0.2f, 0.1f, 1, -0.5f, 0.5f, 0.3f, 0.9f, 0.25f, 0.6f }, { 1.2f, 1.1f, 1 }, OCT_S8 },
                 { { 1, 1, 1, 0.8f, 0.7f, 0.3f, -0.5f, 0.5f, 0.5f, -0.1f, 0.25f, 0.6f }, { 1, 1, 1 }, OCT_U8 },
                 { { 1, 1, -1, -1, -1, 1, -0.5f, 0.5f, 0.3f, 0.9f, -0.25f, 0.6f }, { 1, 1, 1 }, OCT_S8 } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int w = net_random(g, "w", "4,3", 1);
        memcpy((void *)(uintptr_t)g->value[w].constant->data, each[i].w, sizeof each[i].w);
        net_output(g, NET_NODE(g, "MatMul", "layer", "y", net_input(g, "x", OCT_F32, "2,4"), w));
        work k = dynamic(g, NULL, "onnxruntime-x86", OCT_SCHEME_DYNAMIC);
        const oct_layer_decision *d = layer(&k, "layer");
        const qweights *q = k.job->constants[d->node].weights[0];
        assert_int_equal(d->weights, each[i].type);
        for (int c = 0; c < 3; c++)
            assert_float_equal(q->quant.scale[c], each[i].reach[c] / 127, 1e-8);
        for (int e = 0; e < 12; e++)
            assert_int_equal(((const int8_t *)q->qvals->data)[e], (int)rintf(each[i].w[e] / q->quant.scale[e % 3]));
        const char *remedy = i == 0 ? "made safe" : i == 1 ? "u8 weights" : "proved safe";
        assert_non_null(strstr(d->remedy, remedy));
        stop(&k, g);
    }
}

/* Beside s8 activations the target takes no u8 weights: steps grow as far as they must. */
TEST(signed_activations_widen_all_steps)
{
    static const float worst[12] = { 1, -1, 0.5f, 1, -1, 0.5f, 0.3f, 0.1f, 0.2f, -0.1f, 0.25f, 0.6f };
    oct_graph *g = net_graph(13);
    const int w = net_random(g, "w", "4,3", 1);
    memcpy((void *)(uintptr_t)g->value[w].constant->data, worst, sizeof worst);
    net_output(g, NET_NODE(g, "MatMul", "layer", "y", net_input(g, "x", OCT_F32, "2,4"), w));
    work k = start(g, "any - - s8/tensor/asym -\n", "onnxruntime-x86", false);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    const oct_layer_decision *d = layer(&k, "layer");
    const oct_quant *q = &k.job->constants[d->node].weights[0]->quant;
    assert_int_equal(d->weights, OCT_S8);
    assert_float_equal(q->scale[0], 2.0f / 127, 1e-8);
    assert_float_equal(q->scale[1], 2.0f / 127, 1e-8);
    assert_float_equal(q->scale[2], 1.0f / 127, 1e-8); /* 0.5 + 0.5, and not the largest, 0.6 */
    stop(&k, g);
}

enum { DIRS = 2, INPUTS = 9, HIDDEN = 5, ROWS = 4 * HIDDEN };

/* x[7,1,9] -> LSTM both ways with peepholes and given states -> y and y_h; a GRU beside it, and two products of y_h. */
static oct_graph *recurrent(void)
{
    oct_graph *g = net_graph(14);
    int v, x = net_input(g, "x", OCT_F32, "7,1,9");
    int y =
        NET_NODE(g, "LSTM", "lstm", "y", x, net_random(g, "w", "2,20,9", 1), net_random(g, "r", "2,20,5", 2),
                 net_random(g, "b", "2,40", 3), -1, net_random(g, "h", "2,1,5", 4), -1, net_random(g, "p", "2,15", 5));
    net_int(g, "hidden_size", HIDDEN);
    net_int(g, "layout", 0);
    net_str(g, "direction", "bidirectional");
    net_float(g, "clip", 3.0f);
    GOOD(oct_graph_add_value(g, "y_h", OCT_UNDEFINED, &v, err));
    GOOD(oct_graph_set_output(g, net_last, 1, v, err));
    net_output(g, y);
    net_output(g, NET_NODE(g, "GRU", "gru", "z", x, net_random(g, "gw", "1,9,9", 6), net_random(g, "gr", "1,9,3", 7)));
    net_int(g, "hidden_size", 3);
    net_output(g, NET_NODE(g, "MatMul", "first", "first_y", v, net_random(g, "m", "5,6", 8)));
    net_output(g, NET_NODE(g, "MatMul", "second", "second_y", v, net_random(g, "n", "5,4", 9)));
    return g;
}

/* Quantized values of one matrix, transposed, against scales by row; flip: of unsigned quantized values. */
static void same_qvals(const oct_graph *g, const oct_node *n, int slot, int qparams, const float *w, int k, int limit,
                       int flip)
{
    const uint8_t *qvals = g->value[n->in[slot]].constant->data;
    const float *scale = g->value[n->in[qparams]].constant->data;
    const oct_tensor *zero = g->value[n->in[qparams + 1]].constant;
    assert_int_equal(zero->count, DIRS * ROWS);
    for (int r = 0; r < DIRS * ROWS; r++) {
        float top = 0;
        for (int i = 0; i < k; i++)
            top = fmaxf(top, fabsf(w[r * k + i]));
        assert_float_equal(scale[r], top / (float)limit, 0);
        assert_int_equal(((const uint8_t *)zero->data)[r], flip);
        for (int i = 0; i < k; i++) {
            const int qval = qvals[r / ROWS * ROWS * k + i * ROWS + r % ROWS] ^ flip;
            assert_int_equal((int8_t)qval, (int)rintf(w[r * k + i] / scale[r]));
        }
    }
}

TEST(lstm_becomes_dynamic)
{
    static const struct {
        const char *rules, *target;
        int limit, flip;
        const char *remedy;
    } each[] = { { NULL, "onnxruntime-x86", 127, 128, "u8 weights: s8 could saturate" },
                 { NULL, "onnxruntime-vnni", 127, 0, NULL },
                 { "op:LSTM - s7 - -\n", "onnxruntime-x86", 64, 0, "proved safe" },
                 { "op:LSTM - u8 - -\n", "octet", 127, 128, "as the policy says" } };
    static float want[2000], got[2000], w[DIRS * ROWS * INPUTS], r[DIRS * ROWS * HIDDEN];
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = recurrent();
        const size_t n = net_run(g, want, OCT_COUNT(want));
        memcpy(w, g->value[oct_graph_find(g, "w")].constant->data, sizeof w);
        memcpy(r, g->value[oct_graph_find(g, "r")].constant->data, sizeof r);
        work k = dynamic(g, each[i].rules, each[i].target, OCT_SCHEME_DYNAMIC);
        const oct_layer_decision *d = layer(&k, "lstm");
        assert_int_equal(d->scheme, OCT_SCHEME_DYNAMIC);
        assert_int_equal(d->weights, each[i].flip ? OCT_U8 : OCT_S8);
        assert_int_equal(oct_layer_weight_count(d->graph, d->node), DIRS * ROWS * (INPUTS + HIDDEN));
        assert_true(d->sqnr_weights > 35);
        each[i].remedy ? assert_non_null(strstr(d->remedy, each[i].remedy)) : assert_null(d->remedy);
        assert_int_equal(layer(&k, "gru")->scheme, OCT_SCHEME_FLOAT);
        GOOD(oct_qjob_rewrite(k.job, err));
        const oct_node *node = net_producer(g, "y");
        assert_string_equal(node->op, "DynamicQuantizeLSTM");
        assert_string_equal(node->domain, "com.microsoft");
        assert_string_equal(node->name, "lstm");
        assert_ptr_equal(node, net_producer(g, "y_h"));
        assert_int_equal(node->n_in, 12);
        assert_int_equal(node->in[4], -1);
        assert_int_equal(node->in[5], oct_graph_find(g, "h"));
        assert_int_equal(node->in[7], oct_graph_find(g, "p"));
        assert_null(oct_node_attr(node, "layout"));
        assert_string_equal(oct_node_str(node, "direction", ""), "bidirectional");
        assert_float_equal(oct_node_float(node, "clip", 0), 3.0f, 0);
        same_qvals(g, node, 1, 8, w, INPUTS, each[i].limit, each[i].flip);
        same_qvals(g, node, 2, 10, r, HIDDEN, each[i].limit, each[i].flip);
        assert_int_equal(net_run(g, got, OCT_COUNT(got)), n);
        assert_true(net_error(want, got, n) < 0.03);
        assert_true(net_error(want, got, n) > 0);
        stop(&k, g);
    }
}

/* Both products read the same quantized values. */
TEST(products_share_qvals)
{
    oct_graph *g = recurrent();
    work k = dynamic(g, NULL, "onnxruntime-x86", OCT_SCHEME_AUTO);
    assert_int_equal(layer(&k, "lstm")->scheme, OCT_SCHEME_DYNAMIC);
    GOOD(oct_qjob_rewrite(k.job, err));
    assert_int_equal(net_count(g, "DynamicQuantizeLinear"), 1);
    assert_int_equal(net_count(g, "MatMulInteger"), 2);
    stop(&k, g);
}

/* Other schemes leave recurrent layers alone, and so does a state that batches come first in. */
TEST(lstm_stays_float)
{
    oct_graph *g = recurrent();
    work k = dynamic(g, NULL, "onnxruntime-x86", OCT_SCHEME_WEIGHT_ONLY);
    assert_int_equal(layer(&k, "lstm")->scheme, OCT_SCHEME_FLOAT);
    stop(&k, g);
    g = recurrent();
    k = dynamic(g, "op:LSTM static\n", "onnxruntime-x86", OCT_SCHEME_AUTO);
    assert_non_null(strstr(layer(&k, "lstm")->why, "dynamically or not at all"));
    stop(&k, g);
    g = net_graph(14);
    net_output(g, NET_NODE(g, "LSTM", "lstm", "y", net_input(g, "x", OCT_F32, "1,7,9"), net_random(g, "w", "1,20,9", 1),
                           net_random(g, "r", "1,20,5", 2)));
    net_int(g, "hidden_size", HIDDEN);
    net_int(g, "layout", 1);
    k = dynamic(g, NULL, "onnxruntime-x86", OCT_SCHEME_DYNAMIC);
    assert_non_null(strstr(layer(&k, "lstm")->why, "batch in front"));
    stop(&k, g);
}

/* Where the target computes it between quantizers, its input and its state are rounded, and its matrices by gate. */
TEST(lstm_between_quantizers)
{
    oct_graph *g = net_graph(14);
    int last, x = net_input(g, "x", OCT_F32, "7,1,9");
    NET_NODE(g, "LSTM", "lstm", "steps", x, net_random(g, "w", "1,20,9", 1), net_random(g, "r", "1,20,5", 2));
    net_int(g, "hidden_size", HIDDEN);
    GOOD(oct_graph_add_value(g, "last", OCT_UNDEFINED, &last, err));
    GOOD(oct_graph_set_output(g, net_last, 1, last, err));
    net_output(g, last);
    work k = start(g, NULL, "litert", false);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    assert_non_null(strstr(layer(&k, "lstm")->why, "between quantizers"));
    GOOD(oct_qjob_rewrite(k.job, err));
    const oct_node *n = net_producer(g, "steps"), *dq = &g->node[g->value[n->in[2]].producer];
    assert_string_equal(n->op, "LSTM");
    assert_string_equal(dq->op, "DequantizeLinear");
    assert_int_equal(oct_node_int(dq, "axis", 0), 1);
    const float *scale = g->value[dq->in[1]].constant->data;
    float own[20 * 5];
    net_fill(own, OCT_COUNT(own), 2);
    for (int gate = 0; gate < 4; gate++) {
        float largest = 0;
        for (int i = 0; i < 25; i++)
            largest = fmaxf(largest, fabsf(own[25 * gate + i]));
        for (int u = 0; u < HIDDEN; u++)
            assert_true(scale[HIDDEN * gate + u] == largest / 127.0f);
    }
    const oct_node *q = &g->node[g->value[oct_graph_find(g, "last_quantized")].producer];
    assert_true(*(const float *)g->value[q->in[1]].constant->data == 1.0f / 128);
    stop(&k, g);
}

/* The first output of a node may be absent. */
TEST(first_output_absent)
{
    oct_graph *g = net_graph(14);
    int last, node, x = net_input(g, "x", OCT_F32, "7,1,9");
    const int in[] = { x, net_random(g, "w", "1,20,9", 1), net_random(g, "r", "1,20,5", 2) };
    GOOD(oct_graph_add_node(g, "LSTM", "", "lstm", 3, 2, -1, &node, err));
    for (int i = 0; i < 3; i++)
        GOOD(oct_graph_set_input(g, node, i, in[i], err));
    GOOD(oct_node_set_int(g, node, "hidden_size", HIDDEN, err));
    GOOD(oct_graph_add_value(g, "last", OCT_UNDEFINED, &last, err));
    GOOD(oct_graph_set_output(g, node, 1, last, err));
    net_output(g, last);
    work k = dynamic(g, NULL, "onnxruntime-x86", OCT_SCHEME_AUTO);
    assert_int_equal(layer(&k, "lstm")->scheme, OCT_SCHEME_DYNAMIC);
    stop(&k, g);
}

/* What the policy asks for gives way to what the target takes. */
TEST(targets_choose_types_and_granularity)
{
    static const struct {
        const char *text, *rules, *why, *remedy;
        oct_dtype activations, weights;
        bool per_channel;
    } each[] = {
        { "types u8*s8 u8*u8\nop Conv static\n", NULL, "any (built-in:7)", NULL, OCT_U8, OCT_S8, true },
        { "types s8*s8\nop Conv static\n", NULL, "any (built-in:7); the target takes s8 activations", NULL, OCT_S8,
          OCT_S8, true },
        { "types u8*s8\nop Conv static per-tensor\n", "any - u8 s8 -\n",
          "any (built-in:7); the target takes u8 activations; the target takes one scale for all weights", NULL, OCT_U8,
          OCT_S8, false },
        { "types u8*u8\nop Conv static\n", NULL, "any (built-in:7)", "u8 weights: the target takes no others", OCT_U8,
          OCT_U8, true },
        { "types u8*u8 s8*s8\nop Conv static\n", "any - - s8 -\n", "any (built-in:7)", NULL, OCT_S8, OCT_S8, true },
        { "types u8*s8\nop Conv static\n", "any - - u16 -\n", "any (built-in:7); the target takes u8 activations", NULL,
          OCT_U8, OCT_S8, true },
        { "types u8*s8 s16*s8\nop Conv static\n", "any - - u16 -\n",
          "any (built-in:7); the target takes s16 activations", NULL, OCT_S16, OCT_S8, true },
        { "types u8*u8 u8*s8 u16*s8\npair-sums saturate\nop Conv static\n", "any - - u16 -\n", "any (built-in:7)", NULL,
          OCT_U16, OCT_S8, true },
        { "types u8*s8 s8*u8\nop Conv static\n", "any - - s8 -\n", "any (built-in:7)",
          "u8 weights: the target takes no others", OCT_S8, OCT_U8, true },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        char text[200];
        oct_target *t = NULL;
        snprintf(text, sizeof text, "name t\nsummary t\n%s", each[i].text);
        GOOD(oct_target_parse(text, "t", &t, err));
        oct_graph *g = two_convs();
        work k = start_on(g, each[i].rules, t, false);
        GOOD(oct_qjob_decide(k.job, k.calib, err));
        const oct_layer_decision *d = layer(&k, "first");
        assert_true(d->integer);
        assert_string_equal(d->why, each[i].why);
        assert_int_equal(d->weights, each[i].weights);
        assert_int_equal(d->per_channel, each[i].per_channel);
        assert_int_equal(oct_quant_of(k.job, oct_graph_find(g, "x"))->dtype, each[i].activations);
        each[i].remedy ? assert_string_equal(d->remedy, each[i].remedy) : assert_null(d->remedy);
        stop(&k, g);
        oct_target_close(t);
    }
}

TEST(weights_and_bias_follow_the_formula)
{
    oct_graph *g = two_convs();
    float w[4 * 27], b[4];
    memcpy(w, g->value[oct_graph_find(g, "w1")].constant->data, sizeof w);
    memcpy(b, g->value[oct_graph_find(g, "b1")].constant->data, sizeof b);
    work k = start(g, NULL, "octet", false);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    const oct_quant *q = &k.job->constants[0].weights[0]->quant;
    const int32_t *bias = k.job->constants[0].bias->qvals->data;
    float sx = oct_quant_of(k.job, oct_graph_find(g, "x"))->scale[0];
    assert_int_equal(q->n, 4);
    for (int o = 0; o < 4; o++) {
        float top = 0;
        for (int i = 0; i < 27; i++)
            top = fmaxf(top, fabsf(w[o * 27 + i]));
        assert_float_equal(q->scale[o], top / 127, 0);
        for (int i = 0; i < 27; i++)
            assert_int_equal(((const int8_t *)q->qvals->data)[o * 27 + i], (int)rintf(w[o * 27 + i] / q->scale[o]));
        assert_int_equal(bias[o], (int)rint((double)b[o] / (double)(sx * q->scale[o])));
    }
    stop(&k, g);
}

/* The corrected bias gives back the mean: sum w E[x] + b against sum wq E[x] + b', within half a step of the bias. */
/* Two convolutions by one kernel, the second with a bias that needs wider steps: they have the weights in common, and
 * each a bias of its own. */
TEST(a_kernel_is_quantized_once)
{
    oct_graph *g = net_graph(13);
    const float large[2] = { 0, 4e6f };
    int x = net_input(g, "x", OCT_F32, "1,2,5,5"), w = net_random(g, "w", "2,2,3,3", 1);
    int a = NET_NODE(g, "Conv", "a", "ya", x, w, net_random(g, "b", "2", 2));
    net_output(g, NET_NODE(g, "Conv", "b", "yb", NET_NODE(g, "Tanh", "t", "yt", a), w,
                           net_const(g, "c", OCT_F32, "2", large)));
    work k = start(g, NULL, "onnxruntime-vnni", false);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    GOOD(oct_qjob_rewrite(k.job, err));
    const oct_node *ca = NULL, *cb = NULL;
    for (size_t i = 0; i < g->n_order; i++) {
        const oct_node *n = &g->node[g->order[i]];
        ca = strcmp(n->name, "a") == 0 ? n : ca;
        cb = strcmp(n->name, "b") == 0 ? n : cb;
    }
    assert_non_null(ca);
    assert_non_null(cb);
    assert_int_equal(ca->in[1], cb->in[1]);
    assert_int_not_equal(ca->in[2], cb->in[2]);
    const oct_node *dq = &g->node[g->value[cb->in[1]].producer], *bias = &g->node[g->value[cb->in[2]].producer];
    const float *scale = g->value[dq->in[1]].constant->data;
    assert_int_equal(g->value[dq->in[1]].constant->count, 2);
    assert_true(scale[1] > 0.1f); /* far wider than weights below 1 ask for: the bias fits */
    const int32_t *q = g->value[bias->in[0]].constant->data;
    const float *step = g->value[bias->in[1]].constant->data;
    assert_true(fabs((double)q[1] * (double)step[1] - 4e6) < 1.0);
    stop(&k, g);
}

TEST(bias_correction_restores_the_mean)
{
    oct_graph *g = two_convs();
    float w[4 * 27], b[4];
    memcpy(w, g->value[oct_graph_find(g, "w1")].constant->data, sizeof w);
    memcpy(b, g->value[oct_graph_find(g, "b1")].constant->data, sizeof b);
    work k = start(g, "any - s7/tensor/sym - -\n", "octet", true);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    const oct_quant *q = &k.job->constants[0].weights[0]->quant;
    const int32_t *bias = k.job->constants[0].bias->qvals->data;
    float sx = oct_quant_of(k.job, oct_graph_find(g, "x"))->scale[0];
    const oct_chan_stats *chan = &oct_calib_find(k.calib, "x")->chan;
    assert_int_equal(chan->channels, 3);
    for (int o = 0; o < 4; o++) {
        double want = b[o], have = (double)bias[o] * (double)(sx * q->scale[0]), raw = b[o];
        for (int i = 0; i < 27; i++) {
            double mean = oct_chan_mean(&chan->c[i / 9]),
                   wq = ((const int8_t *)q->qvals->data)[o * 27 + i] * (double)q->scale[0];
            want += (double)w[o * 27 + i] * mean;
            have += wq * mean;
            raw += wq * mean;
        }
        assert_true(fabs(want - have) <= 0.51 * (double)(sx * q->scale[0]));
        assert_true(fabs(want - have) <= fabs(want - raw) + 0.51 * (double)(sx * q->scale[0]));
    }
    stop(&k, g);
}

TEST(quantizer_does_the_relu)
{
    static const char *const rules[] = { NULL, "any - - s8/tensor/sym -\n", "any - - s8/tensor/asym -\n" };
    for (size_t i = 0; i < OCT_COUNT(rules); i++) {
        oct_graph *g = two_convs();
        float want[200], have[200];
        size_t n = net_run_with(g, NULL, NULL, want, 200);
        work k = start(g, rules[i], "onnxruntime-x86", true);
        GOOD(oct_qjob_decide(k.job, k.calib, err));
        const oct_layer_decision *d = layer(&k, "first");
        assert_true(d->integer);
        const bool around_zero = i == 1; /* then the Relu stays, as the range does not begin where it does */
        assert_int_equal(d->zero_point, i == 2 ? -128 : 0);
        if (i)
            assert_int_equal(d->weights, OCT_S8); /* u8 would leave the layer float */
        GOOD(oct_qjob_rewrite(k.job, err));
        GOOD(oct_infer_shapes(g, err));
        assert_int_equal(net_count(g, "Relu"), around_zero);
        if (!around_zero)
            assert_string_equal(net_producer(g, "r")->name, "first");
        assert_int_equal(net_run_with(g, NULL, NULL, have, 200), n);
        double signal = 0, noise = 0;
        for (size_t e = 0; e < n; e++) {
            signal += (double)want[e] * want[e];
            noise += (double)(want[e] - have[e]) * (want[e] - have[e]);
        }
        assert_true(10 * log10(signal / noise) > 30);
        stop(&k, g);
    }
}

/* Concat of two Relu branches shares parameters; of a Relu and a plain branch does not, for the clamp would be lost. */
TEST(concat_shares_where_clamps_agree)
{
    for (int mixed = 0; mixed < 2; mixed++) {
        oct_graph *g = net_graph(13);
        int x = net_input(g, "x", OCT_F32, "1,2,5,5");
        int a = NET_NODE(g, "Relu", "ra", "a", NET_NODE(g, "Conv", "ca", "a0", x, net_random(g, "wa", "3,2,1,1", 3)));
        int b = NET_NODE(g, "Conv", "cb", "b0", x, net_random(g, "wb", "3,2,1,1", 4));
        if (!mixed)
            b = NET_NODE(g, "Relu", "rb", "b", b);
        int c = NET_NODE(g, "Concat", "cat", "c", a, b);
        net_int(g, "axis", 1);
        net_output(g, NET_NODE(g, "Conv", "last", "y", c, net_random(g, "wc", "2,6,1,1", 5)));
        work k = start(g, NULL, "onnxruntime-x86", false);
        GOOD(oct_qjob_decide(k.job, k.calib, err));
        float sa = oct_quant_of(k.job, a)->scale[0], sb = oct_quant_of(k.job, b)->scale[0],
              sc = oct_quant_of(k.job, c)->scale[0];
        if (mixed)
            assert_true(oct_quant_of(k.job, a)->zp[0] == 0 && oct_quant_of(k.job, b)->zp[0] != 0);
        else
            assert_true(sa == sc && sb == sc);
        stop(&k, g);
    }
}

/* A Conv of 1x1 whose results are `size` times as large as with weights up to 1. */
static int sized_conv(oct_graph *g, const char *name, const char *y, int x, int ins, float size, uint32_t seed)
{
    char wname[20], dims[20];
    snprintf(wname, sizeof wname, "w_%s", name);
    snprintf(dims, sizeof dims, "3,%d,1,1", ins);
    const int w = net_random(g, wname, dims, seed);
    float *v = (float *)(uintptr_t)g->value[w].constant->data;
    for (int64_t i = 0; i < g->value[w].constant->count; i++)
        v[i] *= size;
    return NET_NODE(g, "Conv", name, y, x, w);
}

static float scale_of(const work *k, int value)
{
    return oct_quant_of(k->job, oct_params_root(k->job, value))->scale[0];
}

/* A Concat whose result leaves the integers joins no part that would keep fewer than 32 quantized values; what moves
 * the result stays float with it. A result that layers alone read is joined as before. */
TEST(concat_keeps_parts_of_outputs)
{
    static const struct {
        const char *target;
        float size; /* of the smaller part */
        int reader; /* 0: an output; 1: an output, behind a Transpose; 2: a layer and Exp; 3: a layer */
        bool real;
    } each[] = { { "qnn", 0.01f, 0, true },
                 { "qnn", 0.5f, 0, false },
                 { "qnn", 0.01f, 1, true },
                 { "st-neuralart", 0.1f, 1, true },
                 { "litert", 0.01f, 0, true },
                 { "litert", 0.5f, 0, false },
                 { "onnxruntime-x86", 0.01f, 2, true },
                 { "onnxruntime-x86", 0.5f, 2, false },
                 { "qnn", 0.01f, 3, false },
                 { "onnxruntime-x86", 0.01f, 3, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_F32, "1,2,5,5");
        const int a = sized_conv(g, "ca", "a", x, 2, each[i].size, 3), b = sized_conv(g, "cb", "b", x, 2, 1, 3),
                  c = NET_NODE(g, "Concat", "cat", "c", a, b);
        net_int(g, "axis", 1);
        if (each[i].reader >= 2)
            net_output(g, sized_conv(g, "cy", "y", c, 6, 1, 5));
        if (each[i].reader == 2)
            net_output(g, NET_NODE(g, "Exp", "exp", "e", c));
        if (each[i].reader == 1) {
            net_output(g, NET_NODE(g, "Transpose", "turn", "t", c));
            NET_INTS(g, "perm", 0, 2, 3, 1);
        }
        if (each[i].reader == 0)
            net_output(g, c);
        work k = start(g, NULL, each[i].target, false);
        GOOD(oct_qjob_decide(k.job, k.calib, err));
        if (layer(&k, "cat")->integer == each[i].real)
            print_error("case %zu, %s: Concat on integers: %d, wanted %d\n", i, each[i].target,
                        layer(&k, "cat")->integer, !each[i].real);
        assert_int_equal(layer(&k, "cat")->integer, !each[i].real);
        if (each[i].reader == 1)
            assert_int_equal(layer(&k, "turn")->integer, !each[i].real);
        if (each[i].real && each[i].reader < 2) /* each part keeps its own numbers */
            assert_true(scale_of(&k, a) < 1.01f * each[i].size * scale_of(&k, b));
        stop(&k, g);
    }
}

/* The same of a product with a constant that gives rows of the output very different sizes; elements of 0 need no
 * numbers. */
TEST(products_keep_parts_of_outputs)
{
    static const struct {
        float by[3];
        bool real;
    } each[] = { { { 640, 1, 640 }, true }, { { 640, 640, 320 }, false }, { { 640, 0, 640 }, false } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int s = NET_NODE(g, "Sigmoid", "sigmoid", "s",
                               sized_conv(g, "ca", "a", net_input(g, "x", OCT_F32, "1,2,5,5"), 2, 1, 3));
        net_output(g, NET_NODE(g, "Mul", "size", "y", s, net_const(g, "by", OCT_F32, "3,1,1", each[i].by)));
        work k = start(g, NULL, "qnn", false);
        GOOD(oct_qjob_decide(k.job, k.calib, err));
        if (layer(&k, "size")->integer == each[i].real)
            print_error("case %zu: Mul on integers: %d, wanted %d\n", i, layer(&k, "size")->integer, !each[i].real);
        assert_int_equal(layer(&k, "size")->integer, !each[i].real);
        stop(&k, g);
    }
}

/* What a Concat joins has its own scale where it is read elsewhere, too, and would lose two bits; where the target
 * needs one scale, the Concat stays float if four are lost. */
TEST(concat_parts_what_would_be_lost)
{
    static const struct {
        const char *target;
        float size;
        bool read, parted, real;
    } each[] = { { "onnxruntime-x86", 0.01f, true, true, false }, { "onnxruntime-x86", 0.01f, false, false, false },
                 { "onnxruntime-x86", 0.5f, true, false, false }, { "onnxruntime-x86", 0.15f, true, true, false },
                 { "openvino", 0.01f, true, false, true },        { "openvino", 0.15f, true, false, false },
                 { "openvino", 0.01f, false, false, false },      { "litert", 0.01f, true, false, true } };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = net_graph(13);
        const int x = net_input(g, "x", OCT_F32, "1,2,5,5");
        const int a = sized_conv(g, "ca", "a", x, 2, each[i].size, 3), b = sized_conv(g, "cb", "b", x, 2, 1, 3),
                  c = NET_NODE(g, "Concat", "cat", "c", a, b);
        net_int(g, "axis", 1);
        net_output(g, sized_conv(g, "cy", "y", c, 6, 1, 5));
        if (each[i].read)
            net_output(g, sized_conv(g, "cz", "z", a, 3, 1, 6));
        work k = start(g, NULL, each[i].target, false);
        GOOD(oct_qjob_decide(k.job, k.calib, err));
        assert_int_equal(layer(&k, "cat")->integer, !each[i].real);
        if (each[i].real)
            assert_string_equal(layer(&k, "cat")->why, "its inputs have ranges that are too far apart for one scale");
        if (!each[i].real)
            assert_true(scale_of(&k, b) == scale_of(&k, c));
        if (each[i].parted)
            assert_true(scale_of(&k, a) < 1.01f * each[i].size * scale_of(&k, c));
        else
            assert_int_equal(scale_of(&k, a) == scale_of(&k, c), !each[i].real);
        stop(&k, g);
    }
}

/* Parts of one value share its scale, whichever of them is read elsewhere. */
TEST(concat_parts_all_that_was_split)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "1,2,5,5");
    const int a = sized_conv(g, "ca", "a", x, 2, 0.01f, 3), turned = NET_NODE(g, "Transpose", "turn", "t", a);
    NET_INTS(g, "perm", 0, 1, 3, 2);
    const int large = sized_conv(g, "cl", "l", x, 2, 1, 3), all = NET_NODE(g, "Concat", "all", "c", a, turned, large);
    net_int(g, "axis", 1);
    net_output(g, sized_conv(g, "cy", "y", all, 9, 1, 5));
    net_output(g, sized_conv(g, "cz", "z", turned, 3, 1, 6));
    work k = start(g, NULL, "onnxruntime-x86", false);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    assert_true(layer(&k, "all")->integer && layer(&k, "turn")->integer);
    assert_true(scale_of(&k, large) == scale_of(&k, all) && scale_of(&k, a) == scale_of(&k, turned));
    assert_true(scale_of(&k, turned) < 0.02f * scale_of(&k, all));
    stop(&k, g);
}

/* A small result of a Concat whose input is joined with something large elsewhere. */
TEST(concat_parts_its_result)
{
    oct_graph *g = net_graph(13);
    const int x = net_input(g, "x", OCT_F32, "1,2,5,5");
    const int a = sized_conv(g, "ca", "a", x, 2, 0.01f, 3), b = sized_conv(g, "cb", "b", x, 2, 0.01f, 4),
              large = sized_conv(g, "cl", "l", x, 2, 1, 3);
    const int near = NET_NODE(g, "Concat", "near", "n", a, b);
    net_int(g, "axis", 1);
    const int far = NET_NODE(g, "Concat", "far", "f", a, large);
    net_int(g, "axis", 1);
    net_output(g, sized_conv(g, "cy", "y", near, 6, 1, 5));
    net_output(g, sized_conv(g, "cz", "z", far, 6, 1, 6));
    work k = start(g, NULL, "onnxruntime-x86", false);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    assert_true(layer(&k, "near")->integer && layer(&k, "far")->integer);
    assert_true(scale_of(&k, large) == scale_of(&k, far));
    assert_true(scale_of(&k, near) < 0.02f * scale_of(&k, far) && scale_of(&k, a) < 0.02f * scale_of(&k, far));
    stop(&k, g);
}

TEST(tensor_without_statistics_stays_float)
{
    oct_graph *g = two_convs();
    work k = start(g, NULL, "onnxruntime-x86", true);
    oct_calib_find(k.calib, "r")->off = true;
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    assert_false(layer(&k, "first")->integer);
    assert_false(layer(&k, "second")->integer);
    assert_non_null(strstr(layer(&k, "second")->why, "calibration table"));
    GOOD(oct_qjob_rewrite(k.job, err));
    assert_int_equal(net_count(g, "QuantizeLinear"), 0);
    assert_int_equal(net_count(g, "Relu"), 1);
    stop(&k, g);
}

/* Ranges without statistics, and parameters that are taken as they are where the type, the policy and the clamp allow
 * it; else the range is. */
TEST(pins_give_ranges_and_parameters)
{
    static const struct {
        const char *rules, *value;
        oct_calib_exact exact;
        float lo, hi;
        const char *misfit; /* NULL: exact */
        float scale;
        int zero;
    } each[] = {
        { NULL, "x", { 8, 100, 0.02f }, -2, 3.1f, NULL, 0.02f, 100 },
        { NULL, "x", { 0 }, -1, 1.55f, NULL, 0.01f, 100 },
        { NULL, "x", { 16, 100, 0.02f }, -1, 1.55f, "number of bits", 0.01f, 100 },
        { NULL, "r", { 8, 0, 0.03f }, 0, 7.65f, NULL, 0.03f, 0 },
        { NULL, "r", { 8, 128, 0.03f }, -3.84f, 2.55f, "at other limits", 0.01f, 0 },
        { NULL, "r", { 0 }, -2.55f, 2.55f, NULL, 0.01f, 0 },
        { "any - - s8/tensor/sym -\n", "x", { 8, 128, 0.02f }, -2.54f, 2.54f, NULL, 0.02f, 0 },
        { "any - - s8/tensor/sym -\n", "r", { 8, 128, 0.03f }, -3.81f, 3.81f, NULL, 0.03f, 0 },
        { "any - - s8/tensor/sym -\n", "x", { 8, 100, 0.02f }, -1.27f, 0.5f, "symmetric", 0.01f, 0 },
        { "any - - s8/tensor/asym -\n", "x", { 8, 100, 0.02f }, -2, 3.1f, NULL, 0.02f, -28 },
    };
    for (size_t i = 0; i < OCT_COUNT(each); i++) {
        oct_graph *g = two_convs();
        work k = start(g, each[i].rules, "octet", false);
        oct_calib *c = oct_calib_create();
        for (size_t t = 0; t < k.calib->n_tensors; t++) {
            oct_calib_tensor *x;
            GOOD(oct_calib_add(c, k.calib->tensors[t]->name, &x, err));
            x->pinned = true;
            x->pin = strcmp(x->name, each[i].value) == 0 ? (oct_range){ each[i].lo, each[i].hi } : (oct_range){ -1, 1 };
            x->exact = strcmp(x->name, each[i].value) == 0 ? each[i].exact : (oct_calib_exact){ 0 };
        }
        GOOD(oct_qjob_decide(k.job, c, err));
        const int v = oct_graph_find(g, each[i].value);
        const char *misfit = oct_misfit_of(k.job, v);
        assert_true(layer(&k, "first")->integer && layer(&k, "second")->integer);
        assert_float_equal(oct_quant_of(k.job, v)->scale[0], each[i].scale,
                           each[i].exact.bits && !each[i].misfit ? 0 : 1e-9);
        assert_int_equal(oct_quant_of(k.job, v)->zp[0], each[i].zero);
        assert_string_equal(oct_observer_of(k.job, v), "pinned");
        each[i].misfit ? assert_non_null(strstr(misfit, each[i].misfit)) : assert_null(misfit);
        assert_true(isnan(oct_value_sqnr(k.job, v)));
        oct_calib_destroy(c);
        stop(&k, g);
    }
}

/* A value that is a graph output and read by a layer: its name stays with the output, dequantized. */
TEST(output_that_is_read_keeps_its_name)
{
    oct_graph *g = two_convs();
    net_output(g, oct_graph_find(g, "r"));
    work k = start(g, NULL, "onnxruntime-x86", true);
    GOOD(oct_qjob_decide(k.job, k.calib, err));
    GOOD(oct_qjob_rewrite(k.job, err));
    assert_string_equal(net_producer(g, "r")->op, "DequantizeLinear");
    assert_string_equal(net_producer(g, "y")->op, "DequantizeLinear");
    GOOD(oct_graph_check(g, err));
    stop(&k, g);
}

/* The largest 16-bit sum of a pair over all quantized values 0..255 is reached at 0 and 255. */
static bool pair_overflows(int a, int b)
{
    int hi = (a > 0 ? a : 0) + (b > 0 ? b : 0), lo = (a < 0 ? a : 0) + (b < 0 ? b : 0);
    return 255 * hi > 32767 || 255 * lo < -32768;
}

/* The layout of weights dims[rank] of an operator with `group` groups. */
static oct_weight_layout layout_of(const char *op, int64_t group, int rank, const int64_t *dims)
{
    oct_attr attr = { .name = "group", .type = OCT_ATTR_INT, .i = group };
    const oct_node n = { .op = op, .domain = "", .attr = &attr, .n_attr = 1 };
    oct_weight_layout l;
    assert_true(oct_weight_layout_of(oct_op_find("", op, 13), &n, 1, rank, dims, &l));
    return l;
}

TEST(saturation_proof_equals_trying)
{
    uint32_t seed = 9;
    int safe = 0;
    const oct_weight_layout l = layout_of("Gemm", 1, 2, (const int64_t[]){ 6, 2 });
    for (int t = 0; t < 4000; t++) {
        int8_t w[12];
        int range = 20 + t % 109;
        for (int i = 0; i < 12; i++)
            w[i] = (int8_t)((int)(net_next(&seed) % (uint32_t)(2 * range + 1)) - range);
        bool bad = false;
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 6; k += 2)
                bad |= pair_overflows(w[k * 2 + j], w[(k + 1) * 2 + j]);
        assert_int_equal(oct_pairs_safe(OCT_SUMS_ALONG_K, &l, w), !bad);
        safe += !bad;
    }
    assert_true(safe > 500 && safe < 3500); /* both answers were tried */
    const oct_weight_layout pair = layout_of("Gemm", 1, 2, (const int64_t[]){ 2, 1 });
    assert_true(oct_pairs_safe(OCT_SUMS_ALONG_K, &pair, (const int8_t[]){ 127, 1 }));
    assert_false(oct_pairs_safe(OCT_SUMS_ALONG_K, &pair, (const int8_t[]){ 127, 2 }));
    assert_true(oct_pairs_safe(OCT_SUMS_ALONG_K, &pair, (const int8_t[]){ -128, 0 }));
    assert_false(oct_pairs_safe(OCT_SUMS_ALONG_K, &pair, (const int8_t[]){ -128, -1 }));
}

/* Pairs of a convolution are along k = (ky, kx, ic): with an odd number of channels some are of two taps. */
TEST(saturation_proof_has_channels_innermost)
{
    const oct_weight_layout even = layout_of("Conv", 1, 4, (const int64_t[]){ 1, 2, 1, 2 });
    assert_false(oct_pairs_safe(OCT_SUMS_ALONG_K, &even, (const int8_t[]){ 127, 0, 127, 0 })); /* along the channels */
    assert_true(oct_pairs_safe(OCT_SUMS_ALONG_K, &even, (const int8_t[]){ 127, 127, 0, 0 }));  /* along the taps */
    const oct_weight_layout odd = layout_of("Conv", 1, 4, (const int64_t[]){ 1, 3, 1, 3 });
    static const int k[9] = { 0, 3, 6, 1, 4, 7, 2, 5, 8 }; /* where the elements stand in that order */
    for (int a = 0; a < 9; a++)
        for (int b = a + 1; b < 9; b++) {
            int8_t w[9] = { 0 };
            w[a] = w[b] = -127;
            assert_int_equal(oct_pairs_safe(OCT_SUMS_ALONG_K, &odd, w), k[a] / 2 != k[b] / 2);
        }
}

/* Pairs within a tap: channels 2i and 2i + 1 of a convolution without groups; the last of an odd number has none.
 * Groups have pairs along k. */
TEST(saturation_proof_knows_pairs_in_taps)
{
    const oct_weight_layout odd = layout_of("Conv", 1, 4, (const int64_t[]){ 1, 3, 1, 3 });
    const oct_weight_layout groups = layout_of("Conv", 2, 4, (const int64_t[]){ 2, 3, 1, 3 });
    for (int a = 0; a < 9; a++)
        for (int b = a + 1; b < 9; b++) {
            int8_t w[18] = { 0 };
            w[a] = w[b] = 127;
            assert_int_equal(oct_pairs_safe(OCT_SUMS_IN_TAPS, &odd, w), !(a < 3 && b == a + 3));
            assert_int_equal(oct_pairs_safe(OCT_SUMS_IN_TAPS, &groups, w),
                             oct_pairs_safe(OCT_SUMS_ALONG_K, &groups, w));
            assert_true(oct_pairs_safe(OCT_SUMS_EXACT, &odd, w));
        }
    const oct_weight_layout matrix = layout_of("Gemm", 1, 2, (const int64_t[]){ 4, 1 });
    assert_false(oct_pairs_safe(OCT_SUMS_IN_TAPS, &matrix, (const int8_t[]){ 0, 0, 127, 127 }));
    assert_true(oct_pairs_safe(OCT_SUMS_IN_TAPS, &matrix, (const int8_t[]){ 0, 127, 127, 0 }));
}

/* Groups of one input and one output are added wider; with two outputs they are a matrix product, in pairs of taps. */
TEST(saturation_proof_knows_depthwise)
{
    const int8_t w[8] = { 127, 127, 0, 0, 0, 0, 0, 0 };
    const oct_weight_layout one = layout_of("Conv", 2, 4, (const int64_t[]){ 2, 1, 1, 2 });
    const oct_weight_layout two = layout_of("Conv", 2, 4, (const int64_t[]){ 4, 1, 1, 2 });
    assert_true(oct_pairs_safe(OCT_SUMS_ALONG_K, &one, w));
    assert_false(oct_pairs_safe(OCT_SUMS_ALONG_K, &two, w));
}

/* Output channels of a transposed convolution are dimension 1: pairs are of different rows. */
TEST(saturation_proof_knows_transposed)
{
    const oct_weight_layout l = layout_of("ConvTranspose", 1, 4, (const int64_t[]){ 2, 2, 1, 1 });
    assert_true(oct_pairs_safe(OCT_SUMS_ALONG_K, &l, (const int8_t[]){ 127, 127, 0, 0 }));
    assert_false(oct_pairs_safe(OCT_SUMS_ALONG_K, &l, (const int8_t[]){ 127, 0, 127, 0 }));
}

/* ------------------------------------------------------------------ dynamic */

/* Where the data's shape is not known, inference leaves groups alone that do not divide the weights. */
TEST(odd_groups_stay_float)
{
    static const char *const op[2] = { "Conv", "ConvTranspose" };
    for (int i = 0; i < 2; i++) {
        oct_graph *g = net_graph(13);
        int x;
        GOOD(oct_graph_add_value(g, "x", OCT_F32, &x, err));
        g->value[x].is_input = true;
        net_output(g, NET_NODE(g, op[i], "conv", "y", x, net_random(g, "w", "4,2,1,1", 1)));
        net_int(g, "group", 3);
        work w = dynamic(g, NULL, "octet", OCT_SCHEME_DYNAMIC);
        const oct_layer_decision *p = oct_qjob_layer(w.job, 0);
        assert_false(p->integer);
        assert_string_equal(p->why, "its groups do not divide its weights");
        stop(&w, g);
    }
}

/* As the adapters of a model are before any is given: x * [3, 0] * [0, 4]. */
TEST(empty_weights_stay_float)
{
    oct_graph *g = net_graph(13);
    int x;
    GOOD(oct_graph_add_value(g, "x", OCT_F32, &x, err));
    g->value[x].is_input = true;
    const int none = NET_NODE(g, "MatMul", "down", "n", x, net_random(g, "w", "3,0", 1));
    net_output(g, NET_NODE(g, "MatMul", "up", "y", none, net_random(g, "v", "0,4", 1)));
    work w = dynamic(g, NULL, "octet", OCT_SCHEME_DYNAMIC);
    for (int i = 0; i < 2; i++) {
        const oct_layer_decision *p = oct_qjob_layer(w.job, i);
        assert_false(p->integer);
        assert_string_equal(p->why, "its weights are empty");
    }
    stop(&w, g);
}

/* ---- bodies ---- */

/* Two convolutions, the first of which halves height and width, and a product; sizes as in dims. */
static oct_qjob *halving(const char *dims, oct_graph **g, oct_policy *policy)
{
    *g = net_graph(17);
    const int x = net_input(*g, "x", OCT_F32, dims);
    const int a = NET_NODE(*g, "Conv", "first", "a", x, net_random(*g, "w1", "8,3,3,3", 1));
    NET_INTS(*g, "strides", 2, 2);
    NET_INTS(*g, "pads", 1, 1, 1, 1);
    const int b = NET_NODE(*g, "Conv", "second", "b", a, net_random(*g, "w2", "16,8,3,3", 2));
    NET_INTS(*g, "pads", 1, 1, 1, 1);
    const int c = NET_NODE(*g, "Flatten", "flat", "c", NET_NODE(*g, "GlobalAveragePool", "pool", "p", b));
    net_output(*g, NET_NODE(*g, "MatMul", "last", "y", c, net_random(*g, "w3", "16,10", 3)));
    oct_qjob *job;
    GOOD(oct_qjob_create(
        *g, &(oct_qjob_opts){ .policy = policy, .target = target_named("onnxruntime-x86"), .have_data = true }, &job,
        err));
    return job;
}

/* Where height and width are open, layers have the shares of the work that they have for fixed sizes: of 128 positions
 * in each direction, 64 are left behind the first convolution. If the rank is unknown too, every weight counts once. */
TEST(open_sizes_have_shares)
{
    const double first = 64 * 64 * 8 * 27, second = 64 * 64 * 16 * 72, last = 160, all = first + second + last;
    const double weights = 216 + 1152 + 160;
    static const char *const dims[] = { "1,3,128,128", "1,3,h,w", "n,3,h,w", "" };
    oct_policy *policy;
    GOOD(oct_policy_create(NULL, &policy, err));
    for (size_t i = 0; i < OCT_COUNT(dims); i++) {
        oct_graph *g;
        oct_qjob *job = halving(*dims[i] ? dims[i] : "1,3,h,w", &g, policy);
        if (!*dims[i]) {
            for (size_t v = 0; v < g->n_value; v++)
                g->value[v].shape.rank = g->value[v].constant ? g->value[v].shape.rank : -1;
            GOOD(oct_job_count_work(job, err));
        }
        const double want[] = { *dims[i] ? first / all : 216 / weights, *dims[i] ? second / all : 1152 / weights,
                                *dims[i] ? last / all : 160 / weights };
        static const char *const names[] = { "first", "second", "last" };
        for (size_t k = 0; k < OCT_COUNT(want); k++) {
            const double got = oct_work_share(job, decision_of(job, names[k])->node);
            if (fabs(got - want[k]) > 1e-9)
                fail_msg("sizes '%s', layer '%s': share %.6f, want %.6f", dims[i], names[k], got, want[k]);
        }
        oct_qjob_destroy(job);
        oct_graph_destroy(g);
    }
    oct_policy_destroy(policy);
}
