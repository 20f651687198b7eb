/* Converts a model that is in memory by samples that the program makes, and keeps the result in memory until it is
 * judged. A fifth of the samples tell what is lost. The calibration table OUT.calib has the ranges of all of them.
 *
 *     cc convert.c $(pkg-config --cflags --libs octet) -o convert
 *     ./convert model.onnx out.onnx
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 40, MOST = 1 << 22 };

typedef struct maker {
    octet_model *model; /* has the shapes of the inputs */
    float *x;           /* [MOST] */
} maker;

/* Sample i: noise for each input, the same each time. Open dimensions become 1. */
static int make_sample(void *arg, int64_t i, octet_array *inputs, size_t n)
{
    const maker *made = arg;
    float *x = made->x;
    size_t used = 0;
    uint32_t seed = (uint32_t)i * 2654435761u + 1;
    for (size_t k = 0; k < n; k++) {
        const octet_port *p = octet_model_input(made->model, k);
        size_t count = 1;
        inputs[k].type = OCTET_FLOAT32;
        inputs[k].rank = p->rank;
        inputs[k].data = x + used;
        for (int d = 0; d < p->rank; d++) {
            inputs[k].dims[d] = p->dims[d] < 1 ? 1 : p->dims[d];
            count *= (size_t)inputs[k].dims[d];
        }
        if (p->rank < 0 || count > MOST - used)
            return 1;
        for (size_t j = 0; j < count; j++) {
            seed = seed * 1664525u + 1013904223u;
            x[used++] = (float)(seed >> 8) / (float)(1 << 23) - 1;
        }
    }
    return 0;
}

static void *read_file(const char *name, size_t *size)
{
    FILE *f = fopen(name, "rb");
    char *data = NULL;
    *size = 0;
    while (f && !feof(f) && !ferror(f)) {
        char *more = realloc(data, *size + 65536);
        if (!more)
            break;
        data = more;
        *size += fread(data + *size, 1, 65536, f);
    }
    if (f)
        fclose(f);
    return data;
}

/* Layers, and what the warnings say. */
static void print(const octet_result *r)
{
    char path[64];
    printf("%s\n", octet_result_text(r, "text"));
    for (size_t i = 0; i < octet_result_count(r, "layers"); i++) {
        snprintf(path, sizeof path, "layers.%zu.name", i);
        printf("  %s", octet_result_text(r, path));
        snprintf(path, sizeof path, "layers.%zu.scheme", i);
        printf(": %s\n", octet_result_text(r, path));
    }
    for (size_t i = 0; i < octet_result_count(r, "warnings"); i++) {
        snprintf(path, sizeof path, "warnings.%zu", i);
        fprintf(stderr, "warning: %s\n", octet_result_text(r, path));
    }
}

static octet_status save(const octet_result *r, const char *name)
{
    size_t size;
    const void *model = octet_result_model(r, &size);
    FILE *f = model ? fopen(name, "wb") : NULL;
    if (!f)
        return OCTET_IO;
    const size_t n = fwrite(model, 1, size, f);
    return fclose(f) == 0 && n == size ? OCTET_OK : OCTET_IO;
}

static octet_status convert(octet *o, const maker *made, const void *data, size_t size, const char *name)
{
    octet_convert_options x;
    octet_result *r = NULL;
    octet_convert_init(&x, sizeof x);
    x.model = "model.onnx"; /* what it is called */
    x.model_data = data;
    x.model_size = size;
    x.in_memory = true;
    x.samples.get = make_sample;
    x.samples.get_arg = (void *)made;
    x.samples.count = SAMPLES;
    octet_status s = octet_convert_model(o, &x, &r);
    if (s == OCTET_OK) {
        print(r);
        printf("%.0f to %.0f bytes\n", octet_result_number(r, "size_bytes.before"),
               octet_result_number(r, "size_bytes.after"));
        s = *octet_result_json(r) == '{' ? save(r, name) : OCTET_INTERNAL;
    }
    octet_result_free(r);
    return s;
}

/* Tables hold what is needed to convert for another target, later and without samples. */
static octet_status calibrate(octet *o, const maker *made, const char *model, const char *name)
{
    char table[4096];
    octet_calibrate_options x;
    octet_result *r;
    snprintf(table, sizeof table, "%s.calib", name);
    octet_calibrate_init(&x, sizeof x);
    x.model = model;
    x.output = table;
    x.samples.get = make_sample;
    x.samples.get_arg = (void *)made;
    x.samples.count = SAMPLES;
    const octet_status s = octet_calibrate_model(o, &x, &r);
    if (s == OCTET_OK)
        printf("%zu ranges of %.0f samples\n", octet_result_count(r, "tensors"), octet_result_number(r, "samples"));
    octet_result_free(r);
    return s;
}

/* What the result of the conversion is worth against the model. */
static octet_status evaluate(octet *o, const maker *made, const char *model, const char *name)
{
    const char *const quantized[] = { name };
    octet_evaluate_options x;
    octet_result *r;
    octet_evaluate_init(&x, sizeof x);
    x.model = model;
    x.quantized = (octet_texts){ quantized, 1 };
    x.samples.get = make_sample;
    x.samples.get_arg = (void *)made;
    x.samples.count = SAMPLES;
    x.layers = x.latency = 0;
    const octet_status s = octet_evaluate_model(o, &x, &r);
    if (s == OCTET_OK)
        printf("output SQNR %.1f dB\n", octet_result_number(r, "models.1.output_sqnr_db"));
    octet_result_free(r);
    return s;
}

int main(int argc, char **argv)
{
    size_t size = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: convert MODEL OUT\n");
        return OCTET_USAGE;
    }
    octet *o = octet_open();
    void *data = read_file(argv[1], &size);
    maker made = { .x = calloc(MOST, sizeof *made.x) };
    octet_status s = o && data && made.x ? octet_model_load_memory(o, data, size, 0, &made.model) : OCTET_NOMEM;
    if (s == OCTET_OK)
        s = convert(o, &made, data, size, argv[2]);
    if (s == OCTET_OK)
        s = calibrate(o, &made, argv[1], argv[2]);
    if (s == OCTET_OK)
        s = evaluate(o, &made, argv[1], argv[2]);
    if (s != OCTET_OK)
        fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
    octet_model_free(made.model);
    free(made.x);
    free(data);
    octet_close(o);
    return (int)s;
}
