/* Reading operator cases. */
#include "op_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1 << 20 };

static int hex(int ch)
{
    return ch >= 'a' ? ch - 'a' + 10 : ch - '0';
}

/* "<dtype> <rank> <dims...> <bytes in hex or -> [q <scale> <zp>]" */
static bool read_tensor(char *text, op_tensor *t)
{
    char *save = NULL, *tok = strtok_r(text, " \n", &save);
    memset(t, 0, sizeof *t);
    if (tok == NULL || strcmp(tok, "absent") == 0)
        return true;
    t->present = true;
    t->dtype = (oct_dtype)atoi(tok);
    t->rank = atoi(strtok_r(NULL, " \n", &save));
    for (int i = 0; i < t->rank; i++)
        t->dims[i] = atoll(strtok_r(NULL, " \n", &save));
    if (!oct_count(t->dims, t->rank, &t->count) || !oct_dtype_bytes(t->dtype, t->count, &t->bytes))
        return false;
    t->data = oct_calloc(t->bytes + 1, 1);
    tok = strtok_r(NULL, " \n", &save);
    if (t->data == NULL || tok == NULL || (t->bytes > 0 && strlen(tok) != 2 * t->bytes))
        return false;
    for (size_t i = 0; i < t->bytes; i++)
        t->data[i] = (uint8_t)(hex(tok[2 * i]) << 4 | hex(tok[2 * i + 1]));
    if ((tok = strtok_r(NULL, " \n", &save)) != NULL && strcmp(tok, "q") == 0) {
        t->quantized = true;
        t->scale = strtof(strtok_r(NULL, " \n", &save), NULL);
        t->zp = atoi(strtok_r(NULL, " \n", &save));
    }
    return true;
}

/* A list of floats or strings: the graph has no call that sets these. */
static bool read_list(op_case *c, const char *name, bool real, char *save)
{
    oct_err err = OCT_ERR_INIT;
    const char **strings = oct_arena_calloc(c->g->arena, 64, sizeof *strings);
    float *floats = oct_arena_calloc(c->g->arena, 64, sizeof *floats);
    int n = 0;
    for (char *t; n < 64 && (t = strtok_r(NULL, " \n", &save)) != NULL; n++) {
        strings[n] = oct_arena_strdup(c->g->arena, t);
        floats[n] = strtof(t, NULL);
    }
    if (oct_node_set_int(c->g, c->node, name, 0, &err) != OCT_OK)
        return false;
    oct_attr *a = (oct_attr *)(uintptr_t)oct_node_attr(&c->g->node[c->node], name);
    a->type = real ? OCT_ATTR_FLOATS : OCT_ATTR_STRINGS;
    a->floats = floats;
    a->strings = strings;
    a->n = n;
    return true;
}

static bool read_attr(op_case *c, char *text)
{
    char *save = NULL;
    const char *name = strtok_r(text, " \n", &save), *type = strtok_r(NULL, " \n", &save);
    oct_err err = OCT_ERR_INIT;
    if (strcmp(type, "int") == 0)
        return oct_node_set_int(c->g, c->node, name, atoll(strtok_r(NULL, " \n", &save)), &err) == OCT_OK;
    if (strcmp(type, "float") == 0)
        return oct_node_set_float(c->g, c->node, name, strtof(strtok_r(NULL, " \n", &save), NULL), &err) == OCT_OK;
    if (strcmp(type, "string") == 0) {
        const char *v = strtok_r(NULL, " \n", &save);
        return oct_node_set_str(c->g, c->node, name, v ? v : "", &err) == OCT_OK;
    }
    if (strcmp(type, "ints") == 0) {
        int64_t v[64];
        int n = 0;
        for (char *t; n < 64 && (t = strtok_r(NULL, " \n", &save)) != NULL;)
            v[n++] = atoll(t);
        return oct_node_set_ints(c->g, c->node, name, v, n, &err) == OCT_OK;
    }
    if (strcmp(type, "floats") == 0 || strcmp(type, "strings") == 0)
        return read_list(c, name, type[0] == 'f', save);
    op_tensor t;
    oct_tensor *k;
    if (strcmp(type, "tensor") != 0 || !read_tensor(save, &t) ||
        oct_tensor_new(c->g->arena, t.dtype, t.rank, t.dims, &k, &err) != OCT_OK)
        return false;
    memcpy((void *)(uintptr_t)k->data, t.data, t.bytes);
    oct_free(t.data);
    return oct_node_set_tensor(c->g, c->node, name, k, &err) == OCT_OK;
}

/* ------------------------------------------------------------------ files */

static void begin(op_case *c, char *text)
{
    oct_err err = OCT_ERR_INIT;
    char *save = NULL;
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", strtok_r(text, " \n", &save));
    snprintf(c->op, sizeof c->op, "%s", strtok_r(NULL, " \n", &save));
    c->opset = atoll(strtok_r(NULL, " \n", &save));
    char *domain = strtok_r(NULL, " \n", &save);
    snprintf(c->domain, sizeof c->domain, "%s", domain != NULL ? domain : "");
    c->rtol = 1e-5;
    c->atol = 1e-6;
    c->g = oct_graph_create();
    if (c->g == NULL || oct_graph_set_opset(c->g, c->domain, c->opset, &err) != OCT_OK ||
        oct_graph_add_node(c->g, c->op, c->domain, c->name, 0, 0, -1, &c->node, &err) != OCT_OK)
        abort();
}

static void add_io(op_case *c, char *text, bool is_in)
{
    oct_err err = OCT_ERR_INIT;
    int slot = is_in ? c->n_in++ : c->n_out++, value = -1;
    op_tensor *t = is_in ? &c->in[slot] : &c->out[slot];
    char name[32];
    snprintf(name, sizeof name, "%s%d", is_in ? "x" : "y", slot);
    if (slot >= OP_CASE_IO || !read_tensor(text, t)) {
        printf("bad tensor in case %s\n", c->name);
        abort();
    }
    if (is_in && t->present &&
        oct_graph_new_const(c->g, name, t->dtype, t->rank, t->dims, t->data, &value, &err) != OCT_OK)
        abort();
    if (!is_in && t->present && oct_graph_add_value(c->g, name, OCT_UNDEFINED, &value, &err) != OCT_OK)
        abort();
    if (is_in ? oct_graph_set_input(c->g, c->node, slot, value, &err) : 0)
        abort();
    oct_node *n = &c->g->node[c->node];
    if (!is_in) {
        int *out = oct_arena_alloc(c->g->arena, sizeof *out * (size_t)(slot + 1));
        if (out == NULL)
            abort();
        if (slot > 0)
            memcpy(out, n->out, sizeof *out * (size_t)slot);
        out[slot] = value;
        n->out = out;
        n->n_out = slot + 1;
        if (value >= 0)
            c->g->value[value].producer = c->node;
    }
}

static void end(op_case *c)
{
    for (int i = 0; i < OP_CASE_IO; i++) {
        oct_free(c->in[i].data);
        oct_free(c->out[i].data);
    }
    oct_graph_destroy(c->g);
}

bool op_cases_read(const char *path, void (*fn)(op_case *c, void *arg), void *arg)
{
    static char line[LINE];
    static op_case c;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        printf("%s: %s\n", path, strerror(errno));
        return false;
    }
    while (fgets(line, sizeof line, f) != NULL) {
        char *space = strchr(line, ' '), *rest = space != NULL ? space + 1 : line;
        if (strncmp(line, "case ", 5) == 0)
            begin(&c, rest);
        else if (strncmp(line, "attr ", 5) == 0 && !read_attr(&c, rest))
            printf("bad attribute in case %s\n", c.name);
        else if (strncmp(line, "in ", 3) == 0)
            add_io(&c, rest, true);
        else if (strncmp(line, "out ", 4) == 0)
            add_io(&c, rest, false);
        else if (strncmp(line, "tol ", 4) == 0)
            sscanf(rest, "%lf %lf", &c.rtol, &c.atol);
        else if (strncmp(line, "refuses", 7) == 0)
            c.refuses = true;
        else if (strncmp(line, "free_shape", 10) == 0)
            c.free_shape = true;
        else if (strncmp(line, "end", 3) == 0) {
            fn(&c, arg);
            end(&c);
        }
    }
    fclose(f);
    return true;
}
