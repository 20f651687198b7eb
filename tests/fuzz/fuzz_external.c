/* Fuzz target: a model with its external data. What stands in the folder beside the model is told by the model's own
 * metadata, so that one input holds both: each entry is a file of that name, its value a number of bytes, or "dir",
 * "fifo", or a number of TARGETS with an 'l' before it. What loads is folded, hashed and saved, here and in a folder of
 * its own. */
#include "fuzz_folder.h"

#include "onnx/model.h"
#include "onnx/proto.h"
#include "passes/pass.h"

extern const ProtobufCMessageDescriptor *const fuzz_message;
const ProtobufCMessageDescriptor *const fuzz_message = &onnx__model_proto__descriptor;

enum { MOST_FILES = 100, MOST_BYTES = 1 << 20 };

/* What a symbolic link may lead to: nothing outside that reading changes. */
static const char *const TARGETS[] = { "w.bin",  "../nothing", "/dev/null", "/dev/zero",  "l",
                                       "m.onnx", "dir",        "..",        "/etc/passwd" };

static void make_file(const char *name, const char *value)
{
    static const char weights[4096] = { 1, 2, 3, 4, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x7f };
    if (!fuzz_is_name(name) || strcmp(name, "m.onnx") == 0 || strncmp(name, "out", 3) == 0)
        return;
    if (strcmp(value, "dir") == 0) {
        mkdir(name, 0700);
    } else if (strcmp(value, "fifo") == 0) {
        mkfifo(name, 0600);
    } else if (*value == 'l') {
        const unsigned long which = strtoul(value + 1, NULL, 10) % OCT_COUNT(TARGETS);
        if (symlink(TARGETS[which], name) != 0)
            return;
    } else {
        const long size = strtol(value, NULL, 10);
        fuzz_write(name, weights, sizeof weights);
        if (truncate(name, size < 0 ? 0 : size > MOST_BYTES ? MOST_BYTES : size) != 0)
            return;
    }
}

static bool make_files(const uint8_t *data, size_t size)
{
    oct_arena *a = oct_arena_create();
    void *message;
    const bool read = a && oct_proto_unpack(data, size, fuzz_message, a, &message, NULL) == OCT_OK;
    if (read) {
        const Onnx__ModelProto *p = message;
        fuzz_folder_open();
        for (size_t i = 0; i < p->n_metadata_props && i < MOST_FILES; i++)
            if (p->metadata_props[i]->key && p->metadata_props[i]->value)
                make_file(p->metadata_props[i]->key, p->metadata_props[i]->value);
        fuzz_write("m.onnx", data, size);
    }
    oct_arena_destroy(a);
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const oct_save_options small = { .max_bytes = 4096 };
    oct_err err = OCT_ERR_INIT;
    oct_model *m = NULL;
    if (!make_files(data, size) || oct_model_load("m.onnx", &m, &err) != OCT_OK)
        return 0;
    oct_model_hash(m);
    if (oct_infer_shapes(m->graph, &err) == OCT_OK && oct_passes_run(m->graph, NULL, 0, NULL, &err) == OCT_OK &&
        oct_graph_check(m->graph, &err) != OCT_OK)
        abort();
    mkdir("out", 0700);
    if (oct_model_save(m, "out.onnx", NULL, &err) == OCT_EINTERNAL ||
        oct_model_save(m, "out/m.onnx", &small, &err) == OCT_EINTERNAL)
        abort();
    oct_model_free(m);
    return 0;
}
