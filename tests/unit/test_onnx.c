/* lib/onnx: loading and saving keep everything, and no damaged file does harm. */
#include "unit.h"

#include "base/buf.h"
#include "onnx/differ.h"
#include "onnx/model.h"
#include "onnx/proto.h"
#include "onnx/wire.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char source[512]; /* the source tree */
static char dir[64];     /* a temporary folder */

static const char *fixture(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/testdata/onnx/%s", source, name);
    return path;
}

static const char *temp(const char *name)
{
    static char path[4][400];
    static int round;
    char *p = path[round = (round + 1) % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static char *read_file(const char *path, size_t *size)
{
    char *data = NULL;
    oct_err err = OCT_ERR_INIT;
    if (oct_read_all(path, 1u << 30, &data, size, &err) != OCT_OK)
        fail_msg("%s", err.text);
    return data;
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static oct_model *load(const char *path)
{
    oct_model *m = NULL;
    oct_err err = OCT_ERR_INIT;
    if (oct_model_load(path, &m, &err) != OCT_OK)
        fail_msg("%s", err.text);
    if (oct_graph_check(m->graph, &err) != OCT_OK)
        fail_msg("%s: %s", path, err.text);
    return m;
}

static void save_as(oct_model *m, const char *path, uint64_t max_bytes)
{
    oct_err err = OCT_ERR_INIT;
    uint64_t said = 0, bytes;
    if (oct_model_size(m, path, &(oct_save_options){ max_bytes }, &said, &err) != OCT_OK)
        fail_msg("%s", err.text);
    if (oct_model_save(m, path, &(oct_save_options){ max_bytes }, &err) != OCT_OK)
        fail_msg("%s", err.text);
    oct_model *saved; /* with all files that it refers to */
    assert_int_equal(oct_model_load(path, &saved, &err), OCT_OK);
    bytes = saved->size;
    for (size_t i = 1; i < saved->n_maps; i++)
        bytes += saved->maps[i].size;
    oct_model_free(saved);
    assert_true(said == bytes);
}

static void same_files(const char *a, const char *b)
{
    size_t n, k;
    char *x = read_file(a, &n), *y = read_file(b, &k);
    if (n != k || memcmp(x, y, n) != 0)
        fail_msg("%s and %s differ", a, b);
    oct_free(x);
    oct_free(y);
}

/* Marks everything as changed, so that every node and list is written anew. */
static void touch(oct_graph *g)
{
    g->changed = true;
    for (size_t i = 0; i < g->n_node; i++)
        g->node[i].changed = true;
    for (size_t i = 0; i < g->n_nested; i++)
        touch(g->nested[i]);
}

static void round_trip(const char *path)
{
    oct_model *m = load(path);
    save_as(m, temp("same.onnx"), 0);
    same_files(path, temp("same.onnx"));
    oct_model_free(m);
}

TEST(fixtures_come_back_equal)
{
    const char *names[] = { "types.onnx", "sparse.onnx", "everything.onnx",
                            "small.onnx", "ir3.onnx",    "subgraph_unsorted.onnx" };
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        round_trip(fixture(names[i]));
}

/* Every node and list written anew says the same, but where a graph that is in order differs from the file. */
TEST(rewritten_is_equal_too)
{
    const char *names[] = { "types.onnx", "sparse.onnx", "everything.onnx", "small.onnx" };
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        oct_model *m = load(fixture(names[i]));
        touch(m->graph);
        save_as(m, temp("new.onnx"), 0);
        same_files(fixture(names[i]), temp("new.onnx"));
        oct_model_free(m);
    }
}

/* Every model of a folder; how many there were. */
static size_t each_model(const char *folder)
{
    DIR *d = opendir(folder);
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (len < 6 || strcmp(e->d_name + len - 5, ".onnx") != 0 || strstr(e->d_name, "external"))
            continue;
        round_trip(path);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

TEST(test_models_come_back_equal)
{
    char folder[600];
    snprintf(folder, sizeof folder, "%s/testdata/models", source);
    assert_true(each_model(folder) > 10);
}

TEST(real_models_come_back_equal)
{
    char folder[600];
    snprintf(folder, sizeof folder, "%s/../shared/models", source);
    if (each_model(folder) == 0)
        print_message("# skipped: no folder ../shared/models with real models\n");
}

static uint8_t hex(const char *s)
{
    char two[3] = { s[0], s[1], 0 };
    return (uint8_t)strtoul(two, NULL, 16);
}

static void check_type_line(const oct_graph *g, char *line)
{
    char name[64], dims[64], bytes[512];
    int type;
    assert_int_equal(sscanf(line, "%63s %d %63s %511s", name, &type, dims, bytes), 4);
    int v = oct_graph_find(g, name);
    assert_true(v >= 0);
    const oct_tensor *t = g->value[v].constant;
    assert_non_null(t);
    assert_int_equal(t->dtype, type);
    assert_int_equal(g->value[v].dtype, type);
    char text[64] = "-";
    for (int i = 0, n = 0; i < t->rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i ? "x" : "", (int)t->dims[i]);
    assert_string_equal(text, dims);
    size_t n = bytes[0] == '-' ? 0 : strlen(bytes) / 2;
    assert_int_equal(t->bytes, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(((const uint8_t *)t->data)[i], hex(bytes + 2 * i));
    int bits = oct_dtype_bits(t->dtype);
    assert_int_equal((uintptr_t)t->data % (bits < 8              ? 1u
                                           : bits > 64           ? 8u
                                           : t->dtype == OCT_C64 ? 4u
                                                                 : (unsigned)bits / 8),
                     0);
}

TEST(every_element_type_is_decoded)
{
    oct_model *m = load(fixture("types.onnx"));
    FILE *f = fopen(fixture("types.txt"), "r");
    assert_non_null(f);
    char line[1024];
    int n = 0;
    for (; fgets(line, sizeof line, f); n++)
        check_type_line(m->graph, line);
    fclose(f);
    assert_int_equal(n, 60);
    const oct_value *s = &m->graph->value[oct_graph_find(m->graph, "STRING")];
    assert_true(s->constant && s->constant->count == 2);
    const oct_str *str = s->constant->data;
    assert_true(str[0].n == 3 && memcmp(str[0].s, "a\0b", 3) == 0 && str[1].n == 1 && str[1].s[0] == '\xff');
    const oct_value *later = &m->graph->value[oct_graph_find(m->graph, "future")];
    assert_true(!later->constant && later->dtype == OCT_UNDEFINED && later->shape.rank == 1 &&
                later->shape.d[0].n == 4);
    oct_model_free(m);
}

TEST(a_graph_is_built)
{
    oct_model *m = load(fixture("everything.onnx"));
    oct_graph *g = m->graph;
    assert_string_equal(g->name, "everything");
    assert_string_equal(m->producer, "fixtures 1");
    assert_int_equal(m->ir_version, 11);
    assert_int_equal(oct_graph_opset(g, ""), 21);
    assert_int_equal(oct_graph_opset(g, "ai.example"), 2);
    assert_int_equal(g->n_input, 6);
    assert_int_equal(g->n_output, 2);
    char text[100];
    const oct_value *x = &g->value[g->input[0]];
    assert_string_equal(oct_shape_text(&x->shape, text, sizeof text), "[N,3,?]");
    assert_int_equal(x->dtype, OCT_F32);
    const oct_value *t = &g->value[oct_graph_find(g, "t")];
    assert_string_equal(oct_shape_text(&t->shape, text, sizeof text), "[N,3]");
    assert_int_equal(oct_graph_find(g, "nowhere"), -1);

    const oct_node *c = &g->node[1];
    assert_string_equal(c->domain, "ai.example");
    assert_int_equal(c->in[1], -1);
    assert_int_equal(c->out[1], -1);
    assert_true(oct_node_float(c, "f", 0) == 1.5f);
    assert_int_equal(oct_node_int(c, "i", 0), -7);
    assert_string_equal(oct_node_str(c, "s", ""), "text");
    int n;
    const int64_t *ints = oct_node_ints(c, "ints", &n);
    assert_true(n == 3 && ints[1] == -4 && ints[2] == (int64_t)1 << 40);
    const float *floats = oct_node_floats(c, "floats", &n);
    assert_true(n == 2 && floats[1] == -2.0f);
    const oct_attr *strings = oct_node_attr(c, "strings");
    assert_true(strings->n == 2 && strcmp(strings->strings[1], "b") == 0);
    const oct_attr *tensor = oct_node_attr(c, "t");
    assert_true(tensor->type == OCT_ATTR_TENSOR && tensor->t->count == 4);
    assert_int_equal(oct_node_attr(c, "g")->type, OCT_ATTR_GRAPH);
    assert_int_equal(oct_node_attr(c, "sp")->type, OCT_ATTR_OTHER);
    oct_node_ints(c, "old_untyped", &n);
    assert_int_equal(n, 2);
    assert_int_equal(c->n_captured, 1); /* the subgraph's x */
    assert_string_equal(g->value[c->captured[0]].name, "x");
    assert_string_equal(g->node[2].domain, "");
    assert_false(g->changed);
    oct_model_free(m);
}

static void *differ_from(oct_model *m, const oct_model *was, const char *says)
{
    oct_buf b = OCT_BUF_INIT;
    save_as(m, temp("other.onnx"), 0);
    oct_model_free(m);
    m = load(temp("other.onnx"));
    assert_true(oct_model_differs(m, was, &b));
    assert_string_equal(oct_buf_str(&b), says);
    oct_buf_free(&b);
    oct_model_free(m);
    return load(temp("was.onnx"));
}

/* One change at a time, each named by what holds it. */
TEST(differences_are_named)
{
    oct_err err = OCT_ERR_INIT;
    oct_buf b = OCT_BUF_INIT;
    oct_model *m = load(fixture("ir3.onnx"));
    m->graph->changed = true;
    assert_int_equal(oct_node_set_float(m->graph, 0, "alpha", 0.5f, &err), OCT_OK);
    assert_int_equal(oct_model_set_meta(m, "octet", "1", &err), OCT_OK);
    save_as(m, temp("was.onnx"), 0);
    oct_model_free(m);
    oct_model *was = load(temp("was.onnx"));
    m = load(temp("was.onnx"));
    assert_false(oct_model_differs(m, was, &b));
    Onnx__ModelProto *p = m->proto;
    Onnx__GraphProto *g = p->graph;
    oct_model_set_meta(m, "octet", "2", &err);
    m = differ_from(m, was, "metadata_props 'octet': value: '2', should be '1'");
    oct_model_set_meta(m, "more", "2", &err);
    m = differ_from(m, was, "metadata_props: 2, should be 1");
    p = m->proto;
    p->graph->node[0]->attribute[p->graph->node[0]->n_attribute - 1]->f = 0.25f;
    oct_buf_printf(&b, "graph '%s', node '%s' (%s), attribute 'alpha': f: 0.25, should be 0.5", p->graph->name,
                   p->graph->node[0]->name, p->graph->node[0]->op_type);
    m = differ_from(m, was, oct_buf_str(&b));
    g = ((Onnx__ModelProto *)m->proto)->graph;
    oct_buf_cut(&b, 0);
    oct_buf_printf(&b, "graph '%s', node '%s' (%s): op_type: 'Other', should be '%s'", g->name, g->node[0]->name,
                   "Other", g->node[0]->op_type);
    g->node[0]->op_type = (char *)(uintptr_t) "Other";
    m = differ_from(m, was, oct_buf_str(&b));
    oct_model_free(m);
    oct_model_free(was);
    oct_buf_free(&b);
}

static void copy_to(const char *from, const char *to)
{
    size_t n;
    char *p = read_file(fixture(from), &n);
    write_file(temp(to), p, n);
    oct_free(p);
}

static void external_weights(const oct_graph *g)
{
    const float *w = g->value[oct_graph_find(g, "w")].constant->data;
    assert_true(w[0] == 0 && w[1] == 1 && w[2] == 2);
    const float *c = oct_node_attr(&g->node[0], "value")->t->data;
    assert_true(c[0] == 8 && c[2] == 10);
}

/* A copy is saved as the model would be, and neither sees what is changed in the other. */
TEST(copies_stand_alone)
{
    oct_err err = OCT_ERR_INIT;
    copy_to("external/model.onnx", "ext.onnx");
    copy_to("external/weights.bin", "weights.bin");
    oct_model *m = load(temp("ext.onnx")), *copy;
    assert_int_equal(oct_model_set_meta(m, "octet", "1", &err), OCT_OK);
    save_as(m, temp("ext2.onnx"), 0);
    assert_int_equal(oct_model_copy(m, &copy, &err), OCT_OK);
    save_as(copy, temp("embedded.onnx"), 0);
    same_files(temp("embedded.onnx"), temp("ext2.onnx"));
    assert_int_equal(oct_model_set_meta(copy, "octet", "2", &err), OCT_OK);
    assert_int_equal(oct_model_set_meta(copy, "more", "3", &err), OCT_OK);
    assert_int_equal(oct_graph_set_opset(copy->graph, "", 14, &err), OCT_OK);
    assert_int_equal(oct_model_save(copy, temp("weights.bin"), NULL, &err), OCT_EUSAGE);
    assert_string_equal(oct_model_meta(m, "octet"), "1");
    assert_null(oct_model_meta(m, "more"));
    assert_int_not_equal(oct_graph_opset(m->graph, ""), 14);
    oct_model_drop_meta(m, "octet");
    assert_string_equal(oct_model_meta(copy, "octet"), "2");
    oct_model_free(copy);
    external_weights(m->graph);
    oct_model_free(m);
    assert_int_equal(unlink(temp("weights.bin")), 0);
}

TEST(captures_and_order)
{
    oct_model *m = load(fixture("subgraph_unsorted.onnx"));
    const oct_graph *g = m->graph;
    const oct_node *loop = &g->node[0];
    assert_string_equal(loop->op, "Loop");
    bool w = false, far = false;
    for (int i = 0; i < loop->n_captured; i++) {
        w |= strcmp(g->value[loop->captured[i]].name, "w") == 0;
        far |= strcmp(g->value[loop->captured[i]].name, "far") == 0;
    }
    assert_true(loop->n_captured == 2 && w && far); /* not acc, go, b: those are the body's own */
    assert_int_equal(g->order[0], 1);
    oct_model_free(m);
}

TEST(old_initializers_leave_the_inputs)
{
    oct_model *m = load(fixture("ir3.onnx"));
    oct_graph *g = m->graph;
    assert_int_equal(g->n_input, 1);
    assert_non_null(g->value[oct_graph_find(g, "w")].constant);
    g->changed = true;
    save_as(m, temp("ir4.onnx"), 0);
    oct_model_free(m);
    m = load(temp("ir4.onnx"));
    const Onnx__ModelProto *p = m->proto;
    assert_int_equal(m->ir_version, 4);
    assert_int_equal(p->graph->n_input, 1);
    assert_int_equal(p->graph->n_initializer, 1);
    oct_model_free(m);
}

/* A pass's work: a node changed, one replaced, constants added, an opset raised, metadata set. */
TEST(changes_are_written)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = load(fixture("ir3.onnx"));
    oct_graph *g = m->graph;
    int c, node, y = oct_graph_find(g, "y"), a = oct_graph_find(g, "a");
    oct_graph_remove_node(g, 1);
    assert_int_equal(oct_graph_add_node(g, "Clip", "", "clip", 3, 1, -1, &node, &err), OCT_OK);
    const float lo = -1.5f;
    const int64_t v3[3] = { 1, 2, 3 };
    assert_int_equal(oct_graph_new_const_f32(g, "low", 0, NULL, &lo, &c, &err), OCT_OK);
    oct_graph_set_input(g, node, 0, a, &err);
    oct_graph_set_input(g, node, 1, c, &err);
    oct_graph_set_output(g, node, 0, y, &err);
    oct_node_set_ints(g, 0, "axes", v3, 3, &err);
    oct_node_set_str(g, 0, "mode", "x", &err);
    oct_node_set_float(g, 0, "alpha", 0.5f, &err);
    oct_node_set_tensor(g, 0, "t", g->value[c].constant, &err);
    const float w2[2] = { 7, 8 };
    oct_tensor *t;
    assert_int_equal(oct_tensor_new(g->arena, OCT_F32, 1, &(int64_t){ 2 }, &t, &err), OCT_OK);
    memcpy((void *)(uintptr_t)t->data, w2, sizeof w2);
    oct_graph_set_const(g, oct_graph_find(g, "w"), t);
    oct_graph_set_opset(g, "", 13, &err);
    oct_graph_set_opset(g, "com.microsoft", 1, &err);
    assert_int_equal(oct_model_set_meta(m, "octet", "1", &err), OCT_OK);
    assert_int_equal(oct_model_set_meta(m, "octet", "2", &err), OCT_OK);
    save_as(m, temp("changed.onnx"), 0);
    oct_model_free(m);

    m = load(temp("changed.onnx"));
    g = m->graph;
    assert_string_equal(oct_model_meta(m, "octet"), "2");
    assert_null(oct_model_meta(m, "none"));
    assert_int_equal(((Onnx__ModelProto *)m->proto)->n_metadata_props, 1);
    assert_int_equal(oct_graph_opset(g, ""), 13);
    assert_int_equal(oct_graph_opset(g, "com.microsoft"), 1);
    assert_int_equal(g->n_node, 2);
    const oct_node *clip = &g->node[1];
    assert_string_equal(clip->op, "Clip");
    assert_int_equal(clip->n_in, 3);
    assert_int_equal(clip->in[2], -1);
    const oct_tensor *low = g->value[clip->in[1]].constant;
    assert_true(low && low->rank == 0 && *(const float *)low->data == -1.5f);
    const oct_tensor *w = g->value[oct_graph_find(g, "w")].constant;
    assert_true(w->count == 2 && ((const float *)w->data)[1] == 8);
    int n;
    assert_true(oct_node_ints(&g->node[0], "axes", &n)[2] == 3 && n == 3);
    assert_true(oct_node_float(&g->node[0], "alpha", 0) == 0.5f);
    assert_string_equal(oct_node_str(&g->node[0], "mode", ""), "x");
    assert_int_equal(oct_node_attr(&g->node[0], "t")->t->count, 1);
    assert_string_equal(g->node[0].name, "add");
    oct_model_free(m);
}

/* ---- external data ---- */

/* What is saved beside the source has the bytes of what is saved elsewhere, and depends on no file of the source. */
TEST(external_data_in_the_same_folder_are_embedded)
{
    oct_err err = OCT_ERR_INIT;
    copy_to("external/model.onnx", "ext.onnx");
    copy_to("external/weights.bin", "weights.bin");
    oct_model *m = load(temp("ext.onnx"));
    external_weights(m->graph);
    mkdir(temp("away"), 0700);
    save_as(m, temp("ext2.onnx"), 0);
    save_as(m, temp("away/ext2.onnx"), 0);
    same_files(temp("away/ext2.onnx"), temp("ext2.onnx"));
    assert_int_equal(oct_model_save(m, temp("ext.onnx"), NULL, &err), OCT_EUSAGE);
    assert_int_equal(oct_model_save(m, temp("weights.bin"), NULL, &err), OCT_EUSAGE);
    oct_model_free(m);
    assert_int_equal(unlink(temp("weights.bin")), 0);
    m = load(temp("ext2.onnx"));
    assert_int_equal(m->n_maps, 1);
    external_weights(m->graph);
    oct_model_free(m);
    unlink(temp("away/ext2.onnx"));
    assert_int_equal(rmdir(temp("away")), 0);
}

TEST(external_data_elsewhere_are_embedded)
{
    oct_model *m = load(fixture("external/model.onnx"));
    save_as(m, temp("embedded.onnx"), 0);
    save_as(m, temp("embedded2.onnx"), 0); /* saving left the model as it was */
    same_files(temp("embedded.onnx"), temp("embedded2.onnx"));
    assert_true(((Onnx__ModelProto *)m->proto)->graph->initializer[0]->n_external_data == 3);
    oct_model_free(m);
    m = load(temp("embedded.onnx"));
    assert_int_equal(m->n_maps, 1);
    external_weights(m->graph);
    oct_model_free(m);
}

/* Tensors that nothing decodes have files, too: they count as the model's, and an absent one is found when the model is
 * read. */
TEST(external_data_of_unknown_types)
{
    oct_err err = OCT_ERR_INIT;
    enum { UNKNOWN = 999 };
    oct_model *m = load(fixture("external/model.onnx"));
    Onnx__TensorProto *t = ((Onnx__ModelProto *)m->proto)->graph->initializer[0], was = *t;
    copy_to("external/weights.bin", "rest.bin");
    struct stat st;
    assert_int_equal(stat(temp("rest.bin"), &st), 0);
    Onnx__StringStringEntryProto location = ONNX__STRING_STRING_ENTRY_PROTO__INIT, offset = location;
    location.key = (char *)(uintptr_t) "location";
    location.value = (char *)(uintptr_t) "rest.bin";
    offset.key = (char *)(uintptr_t) "offset";
    offset.value = (char *)(uintptr_t) "4";
    Onnx__StringStringEntryProto *list[] = { &location, &offset };
    t->data_type = UNKNOWN;
    t->external_data = list;
    t->n_external_data = 2;
    const Onnx__ModelProto *p = m->proto;
    const size_t n = onnx__model_proto__get_packed_size(p);
    uint8_t *bytes = oct_alloc(n);
    onnx__model_proto__pack(p, bytes);
    *t = was;
    oct_model_free(m);
    write_file(temp("unknown.onnx"), bytes, n);
    oct_free(bytes);
    copy_to("external/weights.bin", "weights.bin"); /* of the other tensor */
    m = load(temp("unknown.onnx"));
    assert_int_equal(m->n_maps, 3);
    save_as(m, temp("whole.onnx"), 0);
    oct_model_free(m);
    m = load(temp("whole.onnx"));
    assert_int_equal(m->n_maps, 1);
    t = ((Onnx__ModelProto *)m->proto)->graph->initializer[0];
    assert_int_equal(t->data_type, UNKNOWN);
    assert_int_equal(t->raw_data.len, st.st_size - 4); /* no length is stated: all that follows */
    oct_model_free(m);
    assert_int_equal(unlink(temp("rest.bin")), 0);
    assert_int_equal(oct_model_load(temp("unknown.onnx"), &m, &err), OCT_EIO);
    assert_non_null(strstr(err.text, "rest.bin"));
}

static size_t data_files(char *name, size_t size)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, "big.onnx.") && strstr(e->d_name, ".data")) {
            snprintf(name, size, "%s", e->d_name);
            n++;
        }
    closedir(d);
    return n;
}

/* A model with two constants that the data file holds: floats, of which the first is `of`. */
static void save_pooled(const char *path, float of, oct_data_pool *pool)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = load(fixture("ir3.onnx"));
    float big[2][3000] = { { 1 }, { of } };
    int v;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(oct_graph_new_const_f32(m->graph, "big", 1, &(int64_t){ 3000 }, big[i], &v, &err), OCT_OK);
        oct_graph_set_input(m->graph, 0, 1 + i, v, &err);
    }
    assert_int_equal(oct_model_save(m, path, &(oct_save_options){ .pool = pool }, &err), OCT_OK);
    oct_model_free(m);
}

/* What two models have is in their data file once; without it they do not load. */
TEST(models_share_a_data_file)
{
    oct_err err = OCT_ERR_INIT;
    oct_data_pool *pool;
    oct_model *m;
    struct stat st;
    assert_int_equal(oct_data_pool_open(temp("shared.bin"), &pool, &err), OCT_OK);
    save_pooled(temp("one.onnx"), 2, pool);
    save_pooled(temp("two.onnx"), 3, pool);
    assert_int_equal(oct_model_load(temp("one.onnx"), &m, &err), OCT_EIO);
    assert_int_equal(oct_data_pool_commit(pool, &err), OCT_OK);
    stat(temp("shared.bin"), &st);
    assert_int_equal(st.st_size, 2 * 12288 + 12000); /* three of the four constants differ */
    for (int i = 0; i < 2; i++) {
        m = load(temp(i ? "two.onnx" : "one.onnx"));
        assert_int_equal(m->n_maps, 2);
        float sum = 0;
        for (size_t k = 0; k < m->graph->n_value; k++)
            if (m->graph->value[k].constant && m->graph->value[k].constant->bytes == 12000)
                sum += *(const float *)m->graph->value[k].constant->data;
        assert_true(sum == (float)(3 + i));
        oct_model_free(m);
    }
    assert_int_equal(oct_data_pool_open(temp("shared.bin"), &pool, &err), OCT_OK);
    oct_data_pool_abort(pool); /* the old one stays */
    assert_int_equal(stat(temp("shared.bin"), &st), 0);
    unlink(temp("shared.bin"));
    unlink(temp("one.onnx"));
    unlink(temp("two.onnx"));
}

/* The name of a new data file may be that of one that the source refers to. */
TEST(a_data_file_replaces_no_input)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = load(fixture("ir3.onnx"));
    char name[300], was[300];
    static float big[3000];
    int v;
    assert_int_equal(oct_graph_new_const_f32(m->graph, "big", 1, &(int64_t){ 3000 }, big, &v, &err), OCT_OK);
    oct_graph_set_input(m->graph, 0, 2, v, &err);
    mkdir(temp("named"), 0700);
    snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "/named");
    save_as(m, temp("big.onnx"), 10000);
    oct_model_free(m);
    assert_int_equal(data_files(name, sizeof name), 1);
    assert_int_equal(rename(temp("big.onnx"), temp("source.onnx")), 0);
    m = load(temp("source.onnx"));
    assert_int_equal(oct_model_save(m, temp("big.onnx"), &(oct_save_options){ 10000 }, &err), OCT_EUSAGE);
    assert_non_null(strstr(err.text, name));
    oct_model_free(m);
    assert_int_equal(data_files(was, sizeof was), 1);
    assert_string_equal(was, name);
    unlink(temp("source.onnx"));
    unlink(temp(name));
    assert_int_equal(rmdir(dir), 0); /* nothing else was left */
    *strrchr(dir, '/') = 0;
}

TEST(large_models_get_a_data_file)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = load(fixture("ir3.onnx"));
    int v;
    float *big = oct_calloc(3000, sizeof *big);
    for (int i = 0; i < 3000; i++)
        big[i] = (float)i;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(oct_graph_new_const_f32(m->graph, "big", 1, &(int64_t){ 3000 }, big, &v, &err), OCT_OK);
        oct_graph_set_input(m->graph, 0, 2 + i, v, &err);
    }
    save_as(m, temp("big.onnx"), 10000);
    oct_model_free(m);
    char name[300], again[300];
    assert_int_equal(data_files(name, sizeof name), 1);
    struct stat st;
    stat(temp(name), &st);
    assert_int_equal(st.st_size, 12288 + 12000);
    m = load(temp("big.onnx"));
    assert_int_equal(m->n_maps, 2);
    const oct_tensor *t = m->graph->value[oct_graph_find(m->graph, "big_1")].constant;
    assert_memory_equal(t->data, big, 12000);
    assert_int_equal(oct_model_save(m, "-", &(oct_save_options){ 100 }, &err), OCT_EUNSUPPORTED);
    /* A save that fails after its data file was written takes that back. */
    mkdir(temp("sub"), 0700);
    mkdir(temp("sub/big.onnx"), 0700);
    assert_int_equal(oct_model_save(m, temp("sub/big.onnx"), &(oct_save_options){ 10000 }, &err), OCT_EIO);
    rmdir(temp("sub/big.onnx"));
    assert_int_equal(rmdir(temp("sub")), 0);
    oct_model_free(m);
    assert_int_equal(data_files(again, sizeof again), 1);
    oct_free(big);
}

/* What was written can be read with its external data before either has taken its place, and given up without a
 * trace. */
TEST(a_draft_changes_nothing)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = load(fixture("ir3.onnx")), *q;
    oct_model_draft *d;
    const oct_save_options small = { 10000 };
    static float big[3000];
    char name[300];
    int v;
    mkdir(temp("draft"), 0700);
    snprintf(dir + strlen(dir), sizeof dir - strlen(dir), "/draft"); /* a folder of its own */
    for (int round = 0; round < 3; round++) {
        big[0] = (float)round;
        assert_int_equal(oct_graph_new_const_f32(m->graph, "big", 1, &(int64_t){ 3000 }, big, &v, &err), OCT_OK);
        oct_graph_set_input(m->graph, 0, 2, v, &err);
        if (round == 0) {
            save_as(m, temp("big.onnx"), 10000);
            continue;
        }
        assert_int_equal(oct_model_write(m, temp("big.onnx"), &small, &d, &err), OCT_OK);
        assert_int_equal(data_files(name, sizeof name), 1); /* the old one */
        assert_int_equal(oct_model_draft_load(d, &q, &err), OCT_OK);
        assert_int_equal(q->n_maps, 2);
        const oct_tensor *t = q->graph->value[q->graph->node[0].in[2]].constant;
        assert_memory_equal(t->data, big, sizeof big);
        oct_model_free(q);
        if (round == 1) {
            oct_model_draft_abort(d);
        } else { /* the last step fails when the data file is in its place */
            assert_int_equal(rename(temp("big.onnx"), temp("kept.onnx")), 0);
            assert_int_equal(mkdir(temp("big.onnx"), 0700), 0);
            assert_int_equal(oct_model_draft_commit(d, &err), OCT_EIO);
            assert_int_equal(rmdir(temp("big.onnx")), 0);
            assert_int_equal(rename(temp("kept.onnx"), temp("big.onnx")), 0);
        }
        assert_int_equal(data_files(name, sizeof name), 1);
        q = load(temp("big.onnx"));
        assert_int_equal(((const float *)q->graph->value[q->graph->node[0].in[2]].constant->data)[0], 0);
        oct_model_free(q);
    }
    oct_model_free(m);
    unlink(temp("big.onnx"));
    unlink(temp(name));
    assert_int_equal(rmdir(dir), 0); /* nothing else was left */
    *strrchr(dir, '/') = 0;
}

TEST(external_data_stay_inside)
{
    const struct {
        const char *name, *says;
        oct_status status;
    } cases[] = {
        { "bad_dots", "outside the model's folder", OCT_EMALFORMED },
        { "bad_inner_dots", "outside the model's folder", OCT_EMALFORMED },
        { "bad_absolute", "outside the model's folder", OCT_EMALFORMED },
        { "bad_folder", "outside the model's folder", OCT_EMALFORMED },
        { "bad_link", "outside the model's folder", OCT_EMALFORMED },
        { "bad_missing", "nowhere.bin", OCT_EIO },
        { "bad_range", "run past the end", OCT_EMALFORMED },
        { "bad_offset", "run past the end", OCT_EMALFORMED },
        { "bad_length", "its shape and type need 12", OCT_EMALFORMED },
    };
    copy_to("external/weights.bin", "weights.bin");
    assert_int_equal(symlink("/etc/passwd", temp("link.bin")), 0);
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char from[100];
        oct_err err = OCT_ERR_INIT;
        oct_model *m = NULL;
        snprintf(from, sizeof from, "external/%s.onnx", cases[i].name);
        copy_to(from, "case.onnx");
        assert_int_equal(oct_model_load(temp("case.onnx"), &m, &err), cases[i].status);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, "tensor 'w'") || !strstr(err.text, "case.onnx"))
            fail_msg("%s: %s", cases[i].name, err.text);
        assert_null(m);
    }
}

/* Links in another folder to a model and the data beside it. */
TEST(external_data_beside_the_file_of_a_link)
{
    copy_to("external/model.onnx", "ext.onnx");
    copy_to("external/weights.bin", "weights.bin");
    assert_int_equal(mkdir(temp("links"), 0755), 0);
    assert_int_equal(symlink("../weights.bin", temp("links/weights.bin")), 0);
    copy_to("external/model.onnx", "links/own.onnx");
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    assert_int_equal(oct_model_load(temp("links/own.onnx"), &m, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "outside the model's folder"));
    assert_int_equal(symlink("../ext.onnx", temp("links/model.onnx")), 0);
    m = load(temp("links/model.onnx"));
    external_weights(m->graph);
    oct_model_free(m);
    static const char *const made[] = { "links/own.onnx", "links/model.onnx", "links/weights.bin" };
    for (size_t i = 0; i < OCT_COUNT(made); i++)
        assert_int_equal(unlink(temp(made[i])), 0);
    assert_int_equal(rmdir(temp("links")), 0);
}

TEST(external_data_that_were_not_fetched)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    copy_to("external/bad_range.onnx", "ext.onnx");
    FILE *f = fopen(temp("weights.bin"), "wb");
    assert_true(f && fwrite(pointer, sizeof pointer - 1, 1, f) == 1 && fclose(f) == 0);
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    assert_int_equal(oct_model_load(temp("ext.onnx"), &m, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "run past the end"));
    assert_non_null(strstr(err.hint, "git lfs pull"));
}

/* ---- malformed files ---- */

TEST(bad_graphs_name_the_fault)
{
    const struct {
        const char *name, *says;
        oct_status status;
    } cases[] = {
        { "bad_cycle", "node 'one' (Add)", OCT_EMALFORMED },
        { "bad_undefined_input", "node 'add' (Add): its input 'ghost'", OCT_EMALFORMED },
        { "bad_undefined_output", "graph output 'y'", OCT_EMALFORMED },
        { "bad_two_producers", "'two' (Abs): its output 'y'", OCT_EMALFORMED },
        { "bad_produces_input", "its output 'x'", OCT_EMALFORMED },
        { "bad_twice_initializer", "initializer 'w'", OCT_EMALFORMED },
        { "bad_twice_input", "graph input 'x'", OCT_EMALFORMED },
        { "bad_short_raw", "need 12", OCT_EMALFORMED },
        { "bad_long_raw", "need 4", OCT_EMALFORMED },
        { "bad_short_typed", "needs 3", OCT_EMALFORMED },
        { "bad_no_type", "no element type", OCT_EMALFORMED },
        { "bad_negative_dim", "negative dimension", OCT_EMALFORMED },
        { "bad_huge_dims", "too large", OCT_EMALFORMED },
        { "bad_huge_dims2", "larger than memory", OCT_EMALFORMED },
        { "bad_subgraph_name", "node 'if' (If)", OCT_EMALFORMED },
        { "bad_no_op", "no operator type", OCT_EMALFORMED },
        { "unsupported_ir2", "IR version 2", OCT_EUNSUPPORTED },
        { "unsupported_ir99", "IR version 99", OCT_EUNSUPPORTED },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        char name[100];
        oct_err err = OCT_ERR_INIT;
        oct_model *m = NULL;
        snprintf(name, sizeof name, "%s.onnx", cases[i].name);
        assert_int_equal(oct_model_load(fixture(name), &m, &err), cases[i].status);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, name))
            fail_msg("%s: %s", name, err.text);
    }
}

static oct_status load_bytes(const void *p, size_t n, oct_err *err)
{
    *err = (oct_err)OCT_ERR_INIT;
    /* A copy of the exact size, so that the sanitizer sees a read past the end. */
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    oct_model *m = NULL;
    oct_status s = oct_model_load_mem(copy, n, "bytes.onnx", &m, err);
    if (s == OCT_OK) {
        s = oct_graph_check(m->graph, err);
        touch(m->graph);
        if (s == OCT_OK)
            s = oct_model_save(m, "/dev/null", NULL, err);
        if (s == OCT_EINTERNAL)
            fail_msg("%s", err->text);
        oct_model_free(m);
    }
    free(copy);
    return s;
}

TEST(truncation_and_flips_do_no_harm)
{
    const char *names[] = { "everything.onnx", "types.onnx", "sparse.onnx", "subgraph_unsorted.onnx",
                            "external/model.onnx" };
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        size_t n;
        uint8_t *p = (uint8_t *)read_file(fixture(names[i]), &n);
        oct_err err;
        for (size_t k = 0; k < n; k++)
            load_bytes(p, k, &err);
        for (size_t k = 0; k < n; k++)
            for (int bit = (int)(k % 3); bit < 8; bit += 3) {
                p[k] ^= (uint8_t)(1 << bit);
                load_bytes(p, n, &err);
                p[k] ^= (uint8_t)(1 << bit);
            }
        oct_free(p);
    }
}

/* Wraps b in a length-prefixed field. */
static void nest(oct_buf *b, uint8_t field)
{
    oct_buf out = OCT_BUF_INIT;
    uint8_t head[12] = { (uint8_t)(field << 3 | 2) };
    size_t n = 1;
    for (size_t v = b->len; n == 1 || v; v >>= 7)
        head[n++] = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
    oct_buf_add(&out, head, n);
    oct_buf_add(&out, b->data, b->len);
    oct_buf_free(b);
    *b = out;
}

static void expect(const oct_buf *b, oct_status status, const char *says)
{
    oct_err err;
    assert_int_equal(load_bytes(b->data, b->len, &err), status);
    if (!strstr(err.text, says))
        fail_msg("expected '%s', got '%s'", says, err.text);
}

TEST(deep_nesting_is_refused)
{
    /* model 7: graph 11: value 2: type 4: sequence 1: type 4: ... */
    for (int levels = 40; levels <= 6000; levels = levels == 40 ? 60 : levels * 10) {
        oct_buf b = OCT_BUF_INIT;
        for (int i = 0; i < levels; i++) {
            nest(&b, 1);
            nest(&b, 4);
        }
        nest(&b, 2);
        nest(&b, 11);
        nest(&b, 7);
        expect(&b, OCT_EMALFORMED, levels == 40 ? "IR version" : "nested deeper");
        oct_buf_free(&b);
    }
}

TEST(wire_faults_are_named)
{
    const struct {
        const char *bytes;
        size_t n;
        oct_status status;
        const char *says;
    } cases[] = {
        { "", 0, OCT_EMALFORMED, "empty" },
        { "\x08", 1, OCT_EMALFORMED, "no end" },
        { "\x3a\xff\xff\xff\xff\x0f", 6, OCT_EMALFORMED, "past the end" },
        { "\x3a\xff\xff\xff\xff\xff\x01", 7, OCT_EMALFORMED, "no end" },
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, OCT_EMALFORMED, "no end" },
        { "\x12\x03"
          "a\0b",
          5, OCT_EMALFORMED, "NUL" },
        { "\x12\x02\xc3\x28", 4, OCT_EMALFORMED, "UTF-8" },
        { "\x12\x03\xed\xa0\x80", 5, OCT_EMALFORMED, "UTF-8" },
        { "\x0a\x01x", 3, OCT_EMALFORMED, "wire type" },
        { "\x3b\x3c", 2, OCT_EMALFORMED, "wire type" },
        { "\xfb\x7f", 2, OCT_EMALFORMED, "wire type" },
        { "\x02\x00", 2, OCT_EMALFORMED, "out of range" },
        { "\x3a\0\x3a\0", 4, OCT_EUNSUPPORTED, "given twice" },
        { "\x08\x08", 2, OCT_EMALFORMED, "no graph" },
        { "\x3a\0", 2, OCT_EMALFORMED, "no IR version" },
        { "\x08\x08\x3a\x07\x2a\x05\x22\x03"
          "abc",
          11, OCT_EMALFORMED, "whole elements" },
        { "\x08\x08\x3a\x06\x2a\x04\x3a\x02\x01\xff", 10, OCT_EMALFORMED, "inside a number" },
    };
    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        oct_err err;
        assert_int_equal(load_bytes(cases[i].bytes, cases[i].n, &err), cases[i].status);
        if (!strstr(err.text, cases[i].says) || !strstr(err.text, "bytes.onnx"))
            fail_msg("case %zu: %s", i, err.text);
    }
    /* The documentation may be in any encoding. */
    assert_int_equal(load_bytes("\x08\x08\x32\x01\xff\x3a\x00", 7, &(oct_err)OCT_ERR_INIT), OCT_OK);
}

TEST(small_files_cannot_ask_for_much)
{
    /* Empty nodes: two bytes each, hundreds unpacked. */
    oct_buf b = OCT_BUF_INIT;
    for (int i = 0; i < 2000000; i++)
        oct_buf_add(&b, "\x0a", 2);
    nest(&b, 7);
    expect(&b, OCT_EMALFORMED, "far more than its size justifies");
    oct_buf_free(&b);
}

TEST(hints_name_the_real_format)
{
    oct_err err;
    load_bytes("version https://git-lfs.github.com/spec/v1\n", 43, &err);
    assert_non_null(strstr(err.hint, "git lfs pull"));
    load_bytes("PK\003\004abcdefgh", 12, &err);
    assert_non_null(strstr(err.hint, "zip"));
}

TEST(a_missing_file_is_exit_3)
{
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    assert_int_equal(oct_model_load(temp("none.onnx"), &m, &err), OCT_EIO);
    assert_int_equal(oct_model_load(dir, &m, &err), OCT_EIO);
    assert_null(m);
}

/* raw_data stays where it is: the unpacked message is small, whatever the weights. */
TEST(large_raw_data_are_views)
{
    const size_t bytes = (size_t)4 << 20;
    oct_err err = OCT_ERR_INIT;
    oct_model *m = load(fixture("small.onnx")), *again;
    int v;
    float *big = oct_calloc(bytes, 1);
    big[77] = 5;
    assert_int_equal(oct_graph_new_const_f32(m->graph, "big", 1, &(int64_t){ 1 << 20 }, big, &v, &err), OCT_OK);
    oct_graph_set_input(m->graph, 0, 1, v, &err);
    save_as(m, temp("weights.onnx"), 0);
    again = load(temp("weights.onnx"));
    assert_true(oct_arena_bytes(again->arena) < 10000);
    const Onnx__ModelProto *p = again->proto;
    const uint8_t *raw = p->graph->initializer[1]->raw_data.data, *file = again->data;
    assert_true(raw > file && raw + bytes <= file + again->size);
    assert_memory_equal(again->graph->value[oct_graph_find(again->graph, "big")].constant->data, big, bytes);
    oct_free(big);
    oct_model_free(m);
    oct_model_free(again);
}

TEST(tensor_files_are_read)
{
    oct_err err = OCT_ERR_INIT;
    oct_arena *a = oct_arena_create();
    oct_stored_value v;
    assert_int_equal(oct_value_load_pb(fixture("tensor.pb"), OCT_VALUE_TENSOR, a, &v, &err), OCT_OK);
    assert_true(v.n == 1 && !v.sequence);
    const oct_tensor *t = v.t[0];
    assert_true(t->dtype == OCT_F32 && t->rank == 2 && t->dims[1] == 3 && t->bytes == 24);
    size_t n;
    char *file = read_file(fixture("tensor.pb"), &n);
    assert_memory_equal(t->data, file + n - 24, 24); /* raw_data is the file's last field */
    write_file(temp("cut.pb"), file, n - 5);
    assert_int_equal(oct_value_load_pb(temp("cut.pb"), OCT_VALUE_TENSOR, a, &v, &err), OCT_EMALFORMED);
    assert_non_null(strstr(err.text, "cut.pb"));
    oct_free(file);
    oct_arena_destroy(a);
}

/* Of int32 [2]: SequenceProto and OptionalProto around TensorProto, by the wire format. */
#define INTS "\x08\x02\x10\x06\x4a\x08\x05\0\0\0\xfe\xff\xff\xff" /* dims 2, data_type 6, raw_data 5 and -2 */

TEST(stored_values_are_read)
{
    static const char sequence[] = "\x0a\x01s\x10\x01\x1a\x0e" INTS "\x1a\x0e" INTS,
                      some[] = "\x0a\x01o\x10\x01\x1a\x0e" INTS;
    static const char nested[] = "\x10\x02\x2a\x02\x10\x01", filled[] = "\x10\x02\x2a\x12\x10\x01\x1a\x0e" INTS;
    oct_arena *a = oct_arena_create();
    oct_err err = OCT_ERR_INIT;
    oct_stored_value v;
    const char *file = temp("value.pb");
    write_file(file, sequence, sizeof sequence - 1);
    assert_int_equal(oct_value_load_pb(file, OCT_VALUE_SEQUENCE, a, &v, &err), OCT_OK);
    assert_string_equal(v.name, "s");
    assert_true(v.sequence && v.n == 2 && v.elem == OCT_S32);
    assert_int_equal(((const int32_t *)v.t[1]->data)[1], -2);
    write_file(file, some, sizeof some - 1);
    assert_int_equal(oct_value_load_pb(file, OCT_VALUE_OPTIONAL, a, &v, &err), OCT_OK);
    assert_true(!v.sequence && v.n == 1 && ((const int32_t *)v.t[0]->data)[0] == 5);
    write_file(file, filled, sizeof filled - 1);
    assert_int_equal(oct_value_load_pb(file, OCT_VALUE_OPTIONAL_SEQUENCE, a, &v, &err), OCT_OK);
    assert_true(v.sequence && v.n == 1);
    write_file(file, "", 0);
    assert_int_equal(oct_value_load_pb(file, OCT_VALUE_OPTIONAL, a, &v, &err), OCT_OK);
    assert_true(!v.sequence && v.n == 0);
    for (size_t n = 1; n < sizeof sequence - 1; n++) { /* cut short: what is left, or an error that names the file */
        write_file(file, sequence, n);
        err = (oct_err)OCT_ERR_INIT;
        assert_true(oct_value_load_pb(file, OCT_VALUE_SEQUENCE, a, &v, &err) == OCT_OK
                        ? v.n < 2
                        : strstr(err.text, "value.pb") != NULL);
    }
    write_file(file, nested, sizeof nested - 1); /* a sequence of sequences */
    assert_int_equal(oct_value_load_pb(file, OCT_VALUE_SEQUENCE, a, &v, &err), OCT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "value.pb"));
    oct_arena_destroy(a);
}

/* Each allocation made to fail in turn: an error, and nothing lost. */
TEST(allocations_may_fail)
{
    for (size_t k = 1;; k++) {
        oct_err err = OCT_ERR_INIT;
        oct_model *m = NULL;
        oct_alloc_fail_at(k);
        oct_status s = oct_model_load(fixture("everything.onnx"), &m, &err);
        if (s == OCT_OK) {
            touch(m->graph);
            s = oct_model_save(m, temp("oom.onnx"), NULL, &err);
            oct_model_free(m);
        }
        size_t used = oct_alloc_fail_at(0);
        if (used < k) {
            assert_int_equal(s, OCT_OK);
            break;
        }
        assert_int_equal(s, OCT_ENOMEM);
        unlink(temp("oom.onnx"));
    }
}

static int set_up(void **state)
{
    const char *root = getenv("OCT_SOURCE");
    snprintf(source, sizeof source, "%s", root ? root : ".");
    strcpy(dir, "/tmp/oct_onnx_XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlink(temp(e->d_name));
    closedir(d);
    return rmdir(dir);
}

TEST_GROUP(set_up, tear_down);
