#include "context.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64, SUMMED = 32 /* the sum is of what follows it */ };
static const char magic[16] = "octet context 1\n"; /* without a zero */
#define OP "EPContext"
#define AGAIN "make the model again with ep.context_enable"

typedef struct head {
    char magic[16];
    uint64_t size, sum, message_size, n_constants, unused[2];
} head;
_Static_assert(sizeof(head) == ALIGN, "a head has no padding");

typedef struct constant {
    uint64_t name_at, data_at;
    uint32_t type, rank;
    int64_t dims[OCTET_MAX_RANK];
} constant;
_Static_assert(sizeof(constant) == 88, "a constant has no padding");

/* Four sums side by side, as fast as memory: it finds accidents, and everything is checked all the same. n is a
 * multiple of 32. */
static uint64_t sum_of(const uint8_t *b, size_t n)
{
    uint64_t h[4] = { 1, 2, 3, n }, w[4];
    for (size_t i = 0; i < n; i += sizeof w) {
        memcpy(w, b + i, sizeof w);
        for (int k = 0; k < 4; k++) {
            h[k] = (h[k] ^ w[k]) * 0x9e3779b97f4a7c15u;
            h[k] ^= h[k] >> 29;
        }
    }
    for (int k = 1; k < 4; k++)
        h[0] = (h[0] ^ h[k]) * 0x9e3779b97f4a7c15u, h[0] ^= h[0] >> 32;
    return h[0];
}

/* ---- making ---- */

static size_t padded(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Constants are in memory, or mapped: the sum of their sizes cannot overflow. */
ort_status *context_make(const ort_api *api, const graph_bytes *b, bytes *out)
{
    const size_t message_at = sizeof(head) + b->n_constants * sizeof(constant);
    size_t names_at = message_at + b->message.n, size, data_at = names_at;
    *out = (bytes){ 0 };
    for (size_t i = 0; i < b->n_constants; i++)
        data_at += strlen(b->constants[i].name) + 1;
    data_at = padded(data_at);
    out->n = data_at;
    for (size_t i = 0; i < b->n_constants; i++)
        out->n += array_size(&b->constants[i], &size) ? padded(size) : 0;
    if (!(out->at = calloc(out->n, 1)))
        return no_memory(api);
    memcpy(out->at + message_at, b->message.at, b->message.n);
    for (size_t i = 0; i < b->n_constants; i++) {
        const octet_array *a = &b->constants[i];
        constant c = { .name_at = names_at, .data_at = data_at, .type = (uint32_t)a->type, .rank = (uint32_t)a->rank };
        memcpy(c.dims, a->dims, (size_t)a->rank * sizeof *c.dims);
        memcpy(out->at + sizeof(head) + i * sizeof c, &c, sizeof c);
        memcpy(out->at + names_at, a->name, strlen(a->name));
        names_at += strlen(a->name) + 1;
        if (!array_size(a, &size))
            return fail(api, "constant '%s' has no size", a->name);
        if (size)
            memcpy(out->at + data_at, a->data, size);
        data_at += padded(size);
    }
    head h = { .size = out->n, .message_size = b->message.n, .n_constants = b->n_constants };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(out->at, &h, sizeof h);
    h.sum = sum_of(out->at + SUMMED, out->n - SUMMED);
    memcpy(out->at, &h, sizeof h);
    return NULL;
}

/* Nobody ever sees half a file. */
static ort_status *write_file(const ort_api *api, const char *path, const bytes *b)
{
    const size_t length = strlen(path);
    char *beside = malloc(length + sizeof ".tmp");
    if (!beside)
        return no_memory(api);
    memcpy(beside, path, length);
    memcpy(beside + length, ".tmp", sizeof ".tmp");
    FILE *f = fopen(beside, "we");
    bool written = f && fwrite(b->at, 1, b->n, f) == b->n;
    written = (!f || fclose(f) == 0) && written;
    written = written && rename(beside, path) == 0;
    ort_status *s = written ? NULL : fail(api, "'%s' cannot be written: %s", path, strerror(errno));
    if (!written && f)
        unlink(beside);
    free(beside);
    return s;
}

/* The path of a part's file: that of the new model without its ending, and the name of the node. *name: its last
 * component. */
static ort_status *file_path(const provider *p, const ort_graph *g, const char *node, char **path, const char **name)
{
    const char *model = p->options.context_path, *middle = "_";
    if (!model) { /* as ONNX Runtime names the new model then */
        TRY(p->api->Graph_GetModelPath(g, &model));
        middle = "_ctx_";
    }
    if (!model || !*model)
        return fail(p->api, "there is no place for the file of a context; set ep.context_file_path, or "
                            "ep.context_embed_mode to 1");
    size_t stem = strlen(model);
    if (stem > 5 && strcmp(model + stem - 5, ".onnx") == 0)
        stem -= 5;
    if (!(*path = malloc(stem + strlen(middle) + strlen(node) + sizeof ".octet")))
        return no_memory(p->api);
    char *end = *path + stem;
    memcpy(*path, model, stem);
    end += sprintf(end, "%s", middle);
    for (; *node; node++)
        *end++ = (*node >= '0' && *node <= '9') || ((*node | 32) >= 'a' && (*node | 32) <= 'z') ? *node : '_';
    memcpy(end, ".octet", sizeof ".octet");
    const char *slash = strrchr(*path, '/');
    *name = slash ? slash + 1 : *path;
    return NULL;
}

static ort_status *names_of(const ort_api *api, const ort_value_info **list, size_t n, const char **names)
{
    for (size_t i = 0; i < n; i++)
        TRY(api->GetValueInfoName(list[i], &names[i]));
    return NULL;
}

enum { SOURCE, PARTITION, MAIN, EMBED, CACHE, N_ATTRS };

static ort_status *make_node(const ort_api *api, const ort_node *fused, const char *name, ort_attr **attrs,
                             ort_node **node)
{
    size_t n_in, n_out;
    TRY(api->Node_GetNumInputs(fused, &n_in));
    TRY(api->Node_GetNumOutputs(fused, &n_out));
    const ort_value_info **list = calloc(n_in + n_out + 1, sizeof *list);
    const char **names = calloc(n_in + n_out + 1, sizeof *names);
    ort_status *s = list && names ? api->Node_GetInputs(fused, list, n_in) : no_memory(api);
    s = s ? s : api->Node_GetOutputs(fused, list + n_in, n_out);
    s = s ? s : names_of(api, list, n_in + n_out, names);
    s = s ? s : api->CreateNode(OP, "com.microsoft", name, names, n_in, names + n_in, n_out, attrs, N_ATTRS, node);
    free(names);
    free(list);
    return s;
}

ort_status *context_node(const provider *p, const ort_graph *g, const ort_node *fused, const bytes *of, ort_node **node)
{
    const ort_api *api = p->api;
    const int64_t one = 1, embed = p->options.context_embed;
    const char *name, *file = (const char *)of->at;
    char *path = NULL;
    size_t length = of->n;
    ort_attr *attrs[N_ATTRS] = { NULL };
    TRY(api->Node_GetName(fused, &name));
    if (embed && of->n > INT_MAX)
        return fail(api, "a context of %zu bytes is too large for a node; set ep.context_embed_mode to 0", of->n);
    ort_status *s = NULL;
    if (!embed) {
        s = file_path(p, g, name, &path, &file);
        s = s ? s : write_file(api, path, of);
        length = s ? 0 : strlen(file);
    }
    s = s ? s : api->CreateOpAttr("source", PROVIDER_NAME, (int)strlen(PROVIDER_NAME), ORT_ATTR_STRING, &attrs[SOURCE]);
    s = s ? s : api->CreateOpAttr("partition_name", name, (int)strlen(name), ORT_ATTR_STRING, &attrs[PARTITION]);
    s = s ? s : api->CreateOpAttr("main_context", &one, 1, ORT_ATTR_INT, &attrs[MAIN]);
    s = s ? s : api->CreateOpAttr("embed_mode", &embed, 1, ORT_ATTR_INT, &attrs[EMBED]);
    s = s ? s : api->CreateOpAttr("ep_cache_context", file, (int)length, ORT_ATTR_STRING, &attrs[CACHE]);
    s = s ? s : make_node(api, fused, name, attrs, node);
    for (int i = 0; i < N_ATTRS; i++)
        if (attrs[i])
            api->ReleaseOpAttr(attrs[i]);
    free(path);
    return s;
}

/* ---- reading ---- */

/* The attribute of that name and type. *value is NULL, or to be freed; text has a zero behind it. */
static ort_status *attr_of(const ort_api *api, const ort_node *n, const char *name, int type, void **value,
                           size_t *size)
{
    size_t count;
    *value = NULL;
    TRY(api->Node_GetNumAttributes(n, &count));
    const ort_attr **list = calloc(count + 1, sizeof *list);
    ort_status *s = list ? api->Node_GetAttributes(n, list, count) : no_memory(api);
    for (size_t i = 0; i < count && !s && !*value; i++) {
        const char *other = "";
        int is = ORT_ATTR_UNDEFINED;
        s = api->OpAttr_GetName(list[i], &other);
        s = s ? s : api->OpAttr_GetType(list[i], &is);
        if (s || strcmp(other, name) != 0 || is != type)
            continue;
        s = attr_read(api, list[i], type, value, size);
        if (s) {
            free(*value);
            *value = NULL;
        } else {
            ((char *)*value)[*size] = 0;
        }
    }
    free(list);
    return s;
}

ort_status *context_is_ours(const ort_api *api, const ort_node *n, bool *ours)
{
    const char *op, *domain;
    void *source;
    size_t size;
    *ours = false;
    TRY(api->Node_GetOperatorType(n, &op));
    TRY(api->Node_GetDomain(n, &domain));
    if (strcmp(op, OP) != 0 || strcmp(domain, "com.microsoft") != 0)
        return NULL;
    TRY(attr_of(api, n, "source", ORT_ATTR_STRING, &source, &size));
    *ours = source && strcmp(source, PROVIDER_NAME) == 0;
    free(source);
    return NULL;
}

/* What is wrong with a context as a whole; NULL: nothing. */
static const char *fault_of(const uint8_t *at, size_t n, head *h)
{
    if (n < sizeof *h)
        return "is cut short";
    memcpy(h, at, sizeof *h);
    if (memcmp(h->magic, magic, sizeof magic - 2) != 0)
        return "is not one of Octet's";
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return "was written by another version of Octet";
    if (h->size != n || n % ALIGN)
        return "is cut short, or too long";
    if (sum_of(at + SUMMED, n - SUMMED) != h->sum)
        return "was changed: its checksum is another";
    n -= sizeof *h;
    if (h->n_constants > n / sizeof(constant) || h->message_size > n - h->n_constants * sizeof(constant))
        return "has sizes that do not fit";
    return NULL;
}

/* false: something does not fit. */
static bool take_constant(const uint8_t *at, size_t n, const constant *c, octet_array *a)
{
    size_t size;
    if (c->rank > OCTET_MAX_RANK || c->name_at >= n || !memchr(at + c->name_at, 0, n - c->name_at) ||
        c->data_at % ALIGN || c->data_at > n)
        return false;
    *a = (octet_array){ .name = (const char *)at + c->name_at,
                        .type = (octet_type)c->type,
                        .rank = (int)c->rank,
                        .data = at + c->data_at };
    memcpy(a->dims, c->dims, sizeof c->dims);
    return c->type <= INT_MAX && array_size(a, &size) && size <= n - c->data_at;
}

static ort_status *take_all(const ort_api *api, const char *label, const uint8_t *at, size_t n, graph_bytes *out)
{
    head h;
    const char *fault = fault_of(at, n, &h);
    if (fault)
        return fail(api, "the context %s %s; " AGAIN, label, fault);
    const size_t message_at = sizeof h + h.n_constants * sizeof(constant);
    out->message.n = h.message_size;
    out->message.at = malloc(h.message_size + 1);
    out->constants = calloc(h.n_constants + 1, sizeof *out->constants);
    if (!out->message.at || !out->constants)
        return no_memory(api);
    memcpy(out->message.at, at + message_at, h.message_size);
    for (size_t i = 0; i < h.n_constants; i++) {
        constant c;
        memcpy(&c, at + sizeof h + i * sizeof c, sizeof c);
        if (!take_constant(at, n, &c, &out->constants[i]))
            return fail(api, "the context %s has a constant, number %zu, that does not fit; " AGAIN, label, i);
    }
    out->n_constants = h.n_constants;
    return NULL;
}

/* The model may be anybody's: a name with a folder in it could be any file of this machine. */
static ort_status *read_file(const provider *p, const ort_graph *g, const char *name, graph_bytes *out)
{
    const char *model = NULL;
    char label[300];
    size_t n;
    TRY(p->api->Graph_GetModelPath(g, &model));
    if (!model || !*model)
        model = p->options.context_path;
    if (!model)
        return fail(p->api, "a model from bytes does not say where its context '%s' is; set ep.context_file_path",
                    name);
    if (strchr(name, '/'))
        return fail(p->api, "the context '%s' is not beside the model; " AGAIN, name);
    const uint8_t *at = external_map(model, name, &out->files, &n);
    if (!at)
        return fail(p->api,
                    "the context '%s' cannot be read: it belongs beside the model '%s'; copy it there, or "
                    "make both again with ep.context_enable",
                    name, model);
    snprintf(label, sizeof label, "'%s'", name);
    return take_all(p->api, label, at, n, out);
}

ort_status *context_read(const provider *p, const ort_graph *g, const ort_node *n, graph_bytes *out)
{
    const ort_api *api = p->api;
    void *embed, *cache;
    size_t size;
    *out = (graph_bytes){ 0 };
    TRY(attr_of(api, n, "embed_mode", ORT_ATTR_INT, &embed, &size));
    const bool embedded = !embed || size != sizeof(int64_t) || *(int64_t *)embed != 0;
    free(embed);
    TRY(attr_of(api, n, "ep_cache_context", ORT_ATTR_STRING, &cache, &size));
    if (!cache)
        return fail(api, "an EPContext node has no ep_cache_context; " AGAIN);
    if (embedded) {
        out->embedded = cache;
        return take_all(api, "in the model", cache, size, out);
    }
    ort_status *s = read_file(p, g, cache, out);
    free(cache);
    return s;
}
