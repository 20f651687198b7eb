/* lib/graph: editing keeps uses exact, order and names right; the check finds what is broken. */
#include "unit.h"

#include "net.h"

/* x -> Relu a -> Add(a, a) b -> Neg c (output) */
static oct_graph *chain(int *x, int *a, int *b, int *c)
{
    oct_graph *g = net_graph(13);
    *x = net_input(g, "x", OCT_F32, "2,3");
    *a = NET_NODE(g, "Relu", "relu", "a", *x);
    *b = NET_NODE(g, "Add", "add", "b", *a, *a);
    *c = NET_NODE(g, "Neg", "neg", "c", *b);
    net_output(g, *c);
    GOOD(oct_graph_check(g, err));
    return g;
}

static bool has_use(const oct_graph *g, int v, int node, int slot)
{
    size_t n = 0;
    for (size_t i = 0; i < g->value[v].n_uses; i++)
        n += g->value[v].uses[i].node == node && g->value[v].uses[i].slot == slot;
    return n == 1;
}

static void broken(const oct_graph *g, const char *part)
{
    oct_err e = OCT_ERR_INIT;
    assert_int_equal(oct_graph_check(g, &e), OCT_EINTERNAL);
    if (!strstr(e.text, part))
        fail_msg("'%s' lacks '%s'", e.text, part);
}

TEST(inputs)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int add = g->value[b].producer;
    assert_int_equal(g->value[a].n_uses, 2);
    assert_true(has_use(g, a, add, 0) && has_use(g, a, add, 1));
    GOOD(oct_graph_set_input(g, add, 1, x, err));
    assert_int_equal(g->value[a].n_uses, 1);
    assert_int_equal(g->value[x].n_uses, 2);
    assert_true(has_use(g, x, add, 1));
    GOOD(oct_graph_set_input(g, add, 1, x, err)); /* again: nothing */
    assert_int_equal(g->value[x].n_uses, 2);
    GOOD(oct_graph_set_input(g, add, 4, a, err)); /* a gap: slots 2 and 3 are absent */
    assert_int_equal(g->node[add].n_in, 5);
    assert_int_equal(g->node[add].in[2], -1);
    assert_int_equal(g->node[add].in[3], -1);
    assert_int_equal(g->value[a].n_uses, 2);
    GOOD(oct_graph_check(g, err));
    oct_graph_cut_inputs(g, add, 2);
    assert_int_equal(g->node[add].n_in, 2);
    assert_int_equal(g->value[a].n_uses, 1);
    GOOD(oct_graph_set_input(g, add, 0, -1, err));
    assert_int_equal(g->value[a].n_uses, 0);
    GOOD(oct_graph_check(g, err));
    oct_graph_destroy(g);
}

TEST(outputs)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int relu = g->value[a].producer, neg = g->value[c].producer;
    /* The Relu takes over what the Neg made. */
    GOOD(oct_graph_set_output(g, relu, 0, c, err));
    assert_int_equal(g->value[c].producer, relu);
    assert_int_equal(g->value[a].producer, -1);
    assert_int_equal(g->node[neg].out[0], -1);
    assert_true(g->node[neg].changed);
    GOOD(oct_graph_set_output(g, neg, 2, a, err)); /* grows */
    assert_int_equal(g->node[neg].n_out, 3);
    assert_int_equal(g->node[neg].out[1], -1);
    assert_int_equal(g->value[a].producer, neg);
    oct_graph_destroy(g);
}

TEST(names)
{
    oct_graph *g = net_graph(13);
    oct_err e = OCT_ERR_INIT;
    int v, w;
    assert_int_equal(oct_graph_find(g, "x"), -1);
    GOOD(oct_graph_add_value(g, "x", OCT_F32, &v, err));
    assert_int_equal(oct_graph_add_value(g, "x", OCT_F32, &w, &e), OCT_EMALFORMED);
    assert_non_null(strstr(e.text, "'x'"));
    GOOD(oct_graph_new_value(g, "x", OCT_F32, &w, err));
    assert_string_equal(g->value[w].name, "x_1");
    oct_graph_remove_value(g, v);
    assert_int_equal(oct_graph_find(g, "x"), -1);
    GOOD(oct_graph_new_value(g, "x", OCT_F32, &w, err)); /* free again */
    assert_string_equal(g->value[w].name, "x");
    assert_int_equal(oct_graph_find(g, "x"), w);
    char text[20];
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "v%d", i);
        GOOD(oct_graph_add_value(g, text, OCT_F32, &v, err));
        if (i % 3 == 0)
            oct_graph_remove_value(g, v);
    }
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "v%d", i);
        v = oct_graph_find(g, text);
        assert_int_equal(v >= 0, i % 3 != 0);
        if (v >= 0)
            assert_string_equal(g->value[v].name, text);
    }
    oct_graph_destroy(g);
}

TEST(replacing_uses)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int add = g->value[b].producer;
    int neg = g->value[c].producer;
    oct_graph *nested = net_nested(g);
    int t = net_take(nested, a);
    assert_int_equal(net_take(nested, a), t); /* once */
    net_output(nested, NET_NODE(nested, "Add", "inner", "t", t, net_take(nested, x)));
    net_give(g, neg, "body", nested);
    assert_int_equal(g->node[neg].n_captured, 2);
    assert_int_equal(g->value[a].n_uses, 3);
    GOOD(oct_graph_check(g, err));
    GOOD(oct_graph_replace_uses(g, a, x, err));
    assert_int_equal(g->node[add].in[0], x);
    assert_int_equal(g->node[add].in[1], x);
    assert_int_equal(g->value[a].n_uses, 0); /* the capture follows */
    assert_int_equal(nested->value[t].outer, x);
    assert_string_equal(oct_value_name(nested, t), "x");
    assert_int_equal(g->node[neg].n_captured, 1);
    assert_int_equal(g->value[x].n_uses, 4);
    GOOD(oct_graph_replace_uses(g, x, x, err)); /* nothing, and it ends */
    GOOD(oct_graph_replace_uses(g, c, x, err)); /* a graph output keeps its name */
    assert_true(g->value[c].is_output && g->output[0] == c);
    GOOD(oct_graph_check(g, err));
    assert_int_equal(oct_graph_prune(g), 1); /* the Relu */
    oct_graph_destroy(g);
}

TEST(removing)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int d = NET_NODE(g, "Exp", "", "d", a), e2 = NET_NODE(g, "Log", "", "e", d);
    int k = NET_F32(g, "k", "1", 1.0f);
    assert_int_equal(oct_graph_prune(g), 2); /* nobody looks at e */
    assert_true(g->value[d].dead && g->value[e2].dead && g->value[k].dead);
    assert_false(g->value[x].dead);
    assert_int_equal(g->value[a].n_uses, 2);
    assert_int_equal(net_count(g, NULL), 3);
    GOOD(oct_graph_check(g, err));
    assert_int_equal(oct_graph_prune(g), 0);
    int add = g->value[b].producer;
    oct_graph_remove_node(g, add);
    assert_int_equal(g->value[a].n_uses, 0);
    assert_int_equal(g->value[b].producer, -1);
    assert_int_equal(g->n_order, 2);
    oct_graph_destroy(g);
}

TEST(inserting)
{
    int x, a, b, c, id, v;
    oct_graph *g = chain(&x, &a, &b, &c);
    int add = g->value[b].producer;
    GOOD(oct_graph_add_node(g, "Abs", "", "abs", 1, 1, add, &id, err));
    GOOD(oct_graph_set_input(g, id, 0, a, err));
    GOOD(oct_graph_new_value(g, "a", OCT_F32, &v, err));
    GOOD(oct_graph_set_output(g, id, 0, v, err));
    GOOD(oct_graph_set_input(g, add, 0, v, err));
    assert_int_equal(g->order[1], id);
    assert_int_equal(g->order[2], add);
    GOOD(oct_graph_check(g, err));
    oct_graph_destroy(g);
}

TEST(sorting)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int d = NET_NODE(g, "Exp", "exp", "d", x);
    net_output(g, d);
    int relu = g->value[a].producer, add = g->value[b].producer, neg = g->value[c].producer, ex = g->value[d].producer;
    int mixed[] = { neg, ex, add, relu };
    memcpy(g->order, mixed, sizeof mixed);
    broken(g, "stands before");
    GOOD(oct_graph_sort(g, err));
    int want[] = { ex, relu, add, neg }; /* ready ones in their old order */
    assert_memory_equal(g->order, want, sizeof want);
    GOOD(oct_graph_sort(g, err));
    assert_memory_equal(g->order, want, sizeof want);
    GOOD(oct_graph_check(g, err));
    oct_graph_destroy(g);
}

TEST(captures_order)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int d = NET_NODE(g, "If", "if", "d", x);
    int id = net_last, neg = g->value[c].producer;
    net_output(g, d);
    net_capture(g, id, c);
    int order[4] = { id, g->value[a].producer, g->value[b].producer, neg };
    memcpy(g->order, order, sizeof order);
    broken(g, "stands before");
    GOOD(oct_graph_sort(g, err));
    assert_int_equal(g->order[3], id);
    oct_graph_remove_node(g, id);
    assert_int_equal(g->value[c].n_uses, 0);
    oct_graph_destroy(g);
}

/* c is the Neg's, and a graph inside takes a: nested values, names, pruning, cloning. */
TEST(nesting)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c), *copy;
    int neg = g->value[c].producer, inner, v;
    oct_graph *body = net_nested(g), *deep = net_nested(body);
    int first = NET_NODE(body, "If", "if", "d", net_take(body, b)), at = net_last;
    net_output(body, first);
    net_output(deep, NET_NODE(deep, "Relu", "r", "e", net_take(deep, net_take(body, a))));
    NET_NODE(deep, "Exp", "unused", "f", net_take(deep, net_take(body, x)));
    net_give(body, at, "then_branch", deep);
    net_give(g, neg, "body", body);
    GOOD(oct_graph_check(g, err));
    assert_int_equal(g->node[neg].n_captured, 3);
    assert_ptr_equal(oct_node_graph_at(&g->node[neg], 0), body);
    assert_null(oct_node_graph_at(&g->node[neg], 1));
    assert_null(oct_node_graph(&g->node[neg], "other"));
    assert_int_equal(oct_graph_opset(deep, ""), 13);
    /* A name that any graph of the nest has is taken in all of them. */
    GOOD(oct_graph_new_value(g, "e", OCT_F32, &v, err));
    assert_string_equal(g->value[v].name, "e_1");
    GOOD(oct_graph_new_value(deep, "b", OCT_F32, &v, err));
    assert_string_equal(deep->value[v].name, "b_1");
    /* What the inner graph does not need is no capture any more. */
    assert_int_equal(oct_graph_prune(g), 1);
    assert_int_equal(g->node[neg].n_captured, 2);
    assert_int_equal(g->value[x].n_uses, 1);
    GOOD(oct_graph_check(g, err));
    /* Facts go down one level at a time. */
    GOOD(oct_graph_set_dims(g, a, 2, (int64_t[]){ 2, 3 }, err));
    g->value[a].dtype = OCT_F32;
    GOOD(oct_graph_pass_on(g, neg, err));
    GOOD(oct_graph_pass_on(body, at, err));
    inner = deep->node[deep->order[0]].in[0];
    assert_true(deep->value[inner].dtype == OCT_F32 && oct_shape_known(&deep->value[inner].shape, NULL));
    /* A copy has its own; a copy of a nested graph stands alone. */
    GOOD(oct_graph_clone(g, &copy, err));
    GOOD(oct_graph_check(copy, err));
    oct_graph *body2 = oct_node_graph(&copy->node[neg], "body");
    assert_true(body2 != body && body2->outer == copy);
    GOOD(oct_graph_new_value(body2, "fresh", OCT_F32, &v, err));
    assert_int_equal(oct_graph_find(body, "fresh"), -1);
    oct_graph_destroy(copy);
    GOOD(oct_graph_clone(body, &copy, err));
    GOOD(oct_graph_check(copy, err));
    assert_null(copy->outer);
    assert_int_equal(oct_graph_opset(copy, ""), 13);
    assert_int_equal(copy->n_input, 2);
    assert_string_equal(copy->value[copy->input[0]].name, "b");
    assert_string_equal(copy->value[copy->input[1]].name, "a");
    oct_graph_destroy(copy);
    /* The check finds captures that are not listed. */
    g->node[neg].n_captured = 1;
    broken(g, "is no capture");
    oct_graph_destroy(g);
}

TEST(cycles)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    oct_err e = OCT_ERR_INIT;
    int add = g->value[b].producer, relu = g->value[a].producer, neg = g->value[c].producer;
    /* relu and add read each other; neg stands first and only follows them. */
    GOOD(oct_graph_set_input(g, relu, 0, b, err));
    int order[3] = { neg, add, relu };
    memcpy(g->order, order, sizeof order);
    assert_int_equal(oct_graph_sort(g, &e), OCT_EMALFORMED);
    assert_null(strstr(e.text, "'neg'"));
    if (!strstr(e.text, "'relu'") && !strstr(e.text, "'add'"))
        fail_msg("%s", e.text);
    oct_graph_destroy(g);
}

TEST(cloning)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c), *copy;
    int k = NET_F32(g, "k", "3", 1, 2, 3), dead = NET_F32(g, "dead", "1", 1), add = g->value[b].producer;
    oct_graph_remove_value(g, dead);
    GOOD(oct_graph_set_input(g, add, 1, k, err));
    GOOD(oct_node_set_ints(g, add, "list", (int64_t[]){ 4, 5 }, 2, err));
    GOOD(oct_graph_clone(g, &copy, err));
    GOOD(oct_graph_check(copy, err));
    assert_int_equal(copy->n_value, g->n_value);
    assert_true(copy->value[dead].dead);
    assert_int_equal(oct_graph_find(copy, "k"), k);
    assert_ptr_equal(copy->value[k].constant->data, g->value[k].constant->data);
    /* Changing the copy leaves the original. */
    GOOD(oct_graph_set_input(copy, add, 0, x, err));
    GOOD(oct_graph_set_dims(copy, x, 2, (int64_t[]){ 9, 9 }, err));
    GOOD(oct_node_set_int(copy, add, "list", 1, err));
    oct_graph_remove_node(copy, copy->value[c].producer);
    int fresh;
    GOOD(oct_graph_add_value(copy, "fresh", OCT_F32, &fresh, err));
    GOOD(oct_graph_set_opset(copy, "", 20, err));
    GOOD(oct_graph_set_opset(copy, "com.microsoft", 1, err));
    assert_int_equal(g->node[add].in[0], a);
    assert_int_equal(g->value[a].n_uses, 1);
    assert_int_equal(g->value[x].shape.d[0].n, 2);
    int n;
    const int64_t *list = oct_node_ints(&g->node[add], "list", &n);
    assert_int_equal(n, 2);
    assert_int_equal(list[1], 5);
    assert_int_equal(oct_graph_find(g, "fresh"), -1);
    assert_int_equal(oct_graph_opset(g, ""), 13);
    assert_int_equal(oct_graph_opset(g, "com.microsoft"), 0);
    assert_int_equal(g->n_order, 3);
    oct_graph_destroy(copy);
    GOOD(oct_graph_check(g, err));
    oct_graph_destroy(g);
    oct_graph *empty = oct_graph_create();
    GOOD(oct_graph_clone(empty, &copy, err));
    assert_int_equal(oct_graph_find(copy, "x"), -1);
    GOOD(oct_graph_add_value(copy, "x", OCT_F32, &x, err));
    oct_graph_destroy(copy);
    oct_graph_destroy(empty);
}

TEST(check_finds)
{
    int x, a, b, c;
    oct_graph *g = chain(&x, &a, &b, &c);
    int add = g->value[b].producer;
    g->node[add].in[0] = 1000;
    broken(g, "no value");
    g->node[add].in[0] = a;
    GOOD(oct_graph_check(g, err));
    g->value[a].n_uses = 1; /* of the two of the Add */
    broken(g, "not recorded once");
    g->value[a].n_uses = 2;
    g->value[a].uses[1].slot = 0; /* twice the same */
    broken(g, "not recorded once");
    g->value[a].uses[1].slot = 1;
    GOOD(oct_graph_check(g, err));
    g->value[x].uses[0].node = add;
    broken(g, "'x'");
    g->value[x].uses[0].node = g->value[a].producer;
    g->value[a].dead = true;
    broken(g, "removed");
    g->value[a].dead = false;
    g->value[b].producer = -1;
    broken(g, "another producer");
    g->value[b].producer = add;
    g->value[b].is_input = true;
    broken(g, "constant or input");
    g->value[b].is_input = false;
    g->value[c].is_output = false;
    broken(g, "graph output");
    g->value[c].is_output = true;
    g->n_order = 2; /* a live node that does not stand in the order */
    broken(g, "order");
    g->n_order = 3;
    GOOD(oct_graph_check(g, err));
    oct_graph_destroy(g);
}

/* Parameters must fit the value; copies have them. */
TEST(quantization)
{
    static const float scale[3] = { 1, 2, 3 };
    static const int32_t zp[3];
    static const int8_t qval[6];
    int64_t dims[2] = { 2, 3 };
    const oct_tensor qvals = { OCT_S8, 2, dims, 6, 6, qval };
    const oct_quant fine = { .n = 3, .axis = 1, .scale = scale, .zp = zp, .dtype = OCT_S8 };
    int x, a, b, c, w;
    oct_graph *g = chain(&x, &a, &b, &c), *copy;
    for (int v = 0; v < (int)g->n_value; v++)
        g->value[v].dtype = OCT_F32;
    GOOD(oct_graph_set_dims(g, a, 2, dims, err));
    oct_quant q = fine, constant = fine;
    g->value[a].quant = &q;
    GOOD(oct_graph_check(g, err));
    GOOD(oct_graph_clone(g, &copy, err));
    assert_ptr_equal(copy->value[a].quant, &q);
    assert_true(oct_quant_same(&q, &fine));
    oct_graph_destroy(copy);
    q.axis = 0;
    assert_false(oct_quant_same(&q, &fine));
    broken(g, "do not fit its shape");
    q = fine;
    q.zp = NULL;
    broken(g, "do not fit its shape");
    q = (oct_quant){ .n = 4, .axis = 1, .block = 2, .scale = scale, .zp = zp, .dtype = OCT_S8 };
    GOOD(oct_graph_check(g, err)); /* two rows of two blocks */
    q.block = 4;
    broken(g, "do not fit its shape");
    q = (oct_quant){ .dtype = OCT_U8 };
    GOOD(oct_graph_check(g, err)); /* found when run */
    q = fine;
    q.dtype = OCT_F16;
    broken(g, "quantized values of float16");
    q = fine;
    g->value[a].dtype = OCT_U8;
    broken(g, "stand for uint8");
    g->value[a].dtype = OCT_F32;
    q.qvals = &qvals; /* what a node makes has none */
    broken(g, "its quantized values are another tensor's");
    q.qvals = NULL;
    GOOD(oct_graph_add_value(g, "w", OCT_F32, &w, err));
    GOOD(oct_graph_set_dims(g, w, 2, dims, err));
    constant.qvals = &qvals;
    g->value[w].quant = &constant;
    GOOD(oct_graph_check(g, err));
    assert_true(oct_value_is_constant(&g->value[w]) && !oct_value_is_constant(&g->value[a]));
    constant.dtype = OCT_U8;
    broken(g, "its quantized values are another tensor's");
    oct_graph_destroy(g);
}

TEST(attributes)
{
    oct_graph *g = net_graph(13);
    int x = net_input(g, "x", OCT_F32, "1");
    NET_NODE(g, "Op", "", "y", x);
    oct_node *n = &g->node[net_last];
    n->changed = false;
    assert_int_equal(oct_node_int(n, "i", 7), 7);
    net_int(g, "i", 3);
    assert_true(n->changed);
    assert_int_equal(oct_node_int(n, "i", 7), 3);
    assert_true(oct_node_float(n, "i", 0.5f) == 0.5f); /* another type: as if absent */
    net_float(g, "i", 1.5f);
    assert_true(oct_node_float(n, "i", 0.0f) == 1.5f);
    assert_int_equal(oct_node_int(n, "i", 7), 7);
    char local[] = "text";
    net_str(g, "s", local);
    local[0] = 'n';
    assert_string_equal(oct_node_str(n, "s", ""), "text");
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        net_int(g, name, i);
    }
    oct_node_drop_attr(g, net_last, "a3");
    assert_null(oct_node_attr(n, "a3"));
    assert_int_equal(oct_node_int(n, "a19", -1), 19);
    assert_int_equal(n->n_attr, 21);
    char text[100];
    assert_string_equal(oct_node_text(g, net_last, text, sizeof text), "node #0 (Op, output 'y')");
    assert_string_equal(oct_node_text(g, net_last, text, 8), "node #0");
    oct_graph_destroy(g);
}

TEST(shapes)
{
    oct_graph *g = net_graph(13);
    char text[40];
    int64_t dims[OCT_MAX_RANK];
    int x = net_input(g, "x", OCT_F32, "1,3,N,?"), s = net_input(g, "s", OCT_F32, "");
    assert_string_equal(oct_shape_text(&g->value[x].shape, text, sizeof text), "[1,3,N,?]");
    assert_string_equal(oct_shape_text(&g->value[x].shape, text, 5), "[1,3");
    assert_string_equal(oct_shape_text(&g->value[s].shape, text, sizeof text), "[]");
    assert_false(oct_shape_known(&g->value[x].shape, dims));
    assert_true(oct_shape_known(&g->value[s].shape, dims));
    GOOD(oct_graph_set_dims(g, x, 4, (int64_t[]){ 1, 2, 3, 4 }, err));
    assert_true(oct_shape_known(&g->value[x].shape, dims));
    assert_int_equal(dims[3], 4);
    GOOD(oct_graph_set_shape(g, x, -1, NULL, err));
    assert_false(oct_shape_known(&g->value[x].shape, dims));
    oct_tensor *t;
    oct_err e = OCT_ERR_INIT;
    int64_t huge[2] = { INT64_MAX, 2 }, negative[1] = { -1 };
    assert_int_equal(oct_tensor_new(g->arena, OCT_F32, 2, huge, &t, &e), OCT_EMALFORMED);
    assert_int_equal(oct_tensor_new(g->arena, OCT_F32, 1, negative, &t, &e), OCT_EMALFORMED);
    GOOD(oct_tensor_new(g->arena, OCT_S4, 1, (int64_t[]){ 5 }, &t, err));
    assert_int_equal(t->bytes, 3);
    oct_graph_destroy(g);
}

/* Thousands of values that ask for one name, in a nest of thousands of graphs; what goes is free again. Trying each
 * number, or asking each graph, would take minutes. */
TEST(many_names)
{
    enum { MANY = 30000 };
    oct_graph *g = net_graph(13), *nested;
    int v = -1;
    for (int i = 0; i < MANY; i++) {
        GOOD(oct_graph_new_nested(g, &nested, err));
        GOOD(oct_graph_add_value(nested, "inside", OCT_F32, &v, err));
    }
    GOOD(oct_graph_new_value(g, "inside", OCT_F32, &v, err));
    assert_string_equal(g->value[v].name, "inside_1");
    for (int i = 0; i < MANY; i++)
        GOOD(oct_graph_new_value(i % 2 ? nested : g, "x", OCT_F32, &v, err));
    assert_string_equal(nested->value[v].name, "x_29999");
    oct_graph_remove_value(nested, v);
    GOOD(oct_graph_new_value(nested, "x", OCT_F32, &v, err));
    assert_string_equal(nested->value[v].name, "x_29999");
    oct_graph *copy;
    GOOD(oct_graph_clone(g, &copy, err));
    GOOD(oct_graph_new_value(copy, "x", OCT_F32, &v, err));
    assert_string_equal(copy->value[v].name, "x_1"); /* what was in no node's graph has not been copied */
    oct_graph_destroy(copy);
    oct_graph_destroy(g);
}

/* Sides that are no multiples of what is moved at once, and a stack of matrices. */
TEST(transposing)
{
    enum { SIDES = 75 };
    oct_arena *a = oct_arena_create();
    static const int64_t sides[] = { 1, 2, 7, 8, 9, 16, 31, 64, 65, SIDES };
    for (size_t i = 0; i < OCT_COUNT(sides); i++)
        for (size_t k = 0; k < OCT_COUNT(sides); k++) {
            oct_tensor *t;
            const oct_tensor *x;
            const int64_t rows = sides[i], columns = sides[k];
            GOOD(oct_tensor_new(a, OCT_U8, 3, (const int64_t[]){ 2, rows, columns }, &t, err));
            uint8_t *data = (uint8_t *)(uintptr_t)t->data;
            for (int64_t at = 0; at < t->count; at++)
                data[at] = (uint8_t)(at * 37 + at / 251);
            GOOD(oct_tensor_transposed(a, t, &x, err));
            assert_int_equal(x->dims[0], 2);
            assert_int_equal(x->dims[1], columns);
            assert_int_equal(x->dims[2], rows);
            for (int64_t at = 0; at < t->count; at++) {
                const int64_t m = at / (rows * columns), row = at / columns % rows, column = at % columns;
                assert_int_equal(((const uint8_t *)x->data)[(m * columns + column) * rows + row], data[at]);
            }
        }
    oct_arena_destroy(a);
}
