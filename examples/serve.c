/* A program that holds a model itself and runs it from several threads: says which nodes the library would take over,
 * then answers requests, which are zeros, on as many threads as there are requests.
 *
 *     cc serve.c $(pkg-config --cflags --libs octet) -pthread -o serve
 *     ./serve model.onnx 4
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_REQUESTS = 16, LARGEST_ELEMENT = 8 };

typedef struct request {
    pthread_t thread;
    const octet_model *model; /* the one that all requests share */
    octet_array in;
    float *out;   /* the first output, where the program wants it */
    float answer; /* its first element */
    octet_status status;
} request;

/* Work of a run on threads of this program. These have one request each, so the thread that has it does it all. */
static void on_this_thread(void *context, size_t n, void (*work)(void *arg, size_t i), void *arg)
{
    (void)context;
    for (size_t i = 0; i < n; i++)
        work(arg, i);
}

/* The first output is written into memory of the program's own; nobody wants others. */
static void *place(void *context, size_t i, const octet_array *output)
{
    request *r = context;
    size_t count = 1;
    for (int k = 0; k < output->rank; k++)
        count *= (size_t)output->dims[k];
    if (i == 0 && output->type == OCTET_FLOAT32 && count > 0)
        r->out = malloc(count * sizeof *r->out);
    return i == 0 ? r->out : NULL;
}

static void *answer(void *arg)
{
    request *r = arg;
    octet *o = octet_open();
    octet_model *m = NULL;
    r->status = octet_model_share(o, r->model, &m);
    if (r->status == OCTET_OK)
        r->status = octet_model_parallel(o, m, 2, on_this_thread, NULL);
    if (r->status == OCTET_OK)
        r->status = octet_model_run_into(o, m, &r->in, 1, place, r);
    if (r->status == OCTET_OK && r->out)
        r->answer = r->out[0];
    free(r->out);
    octet_model_free(m);
    octet_close(o);
    return NULL;
}

/* Zeros in the shape of the model's only input; dimensions that the model leaves open are 1. */
static octet_array zeros(const octet_port *p)
{
    size_t count = 1;
    octet_array a = { .name = p->name, .type = p->type, .rank = p->rank < 0 ? 0 : p->rank };
    for (int i = 0; i < a.rank; i++)
        count *= (size_t)(a.dims[i] = p->dims[i] < 0 ? 1 : p->dims[i]);
    a.data = calloc(count + 1, LARGEST_ELEMENT);
    return a;
}

static octet_status serve(const octet_model *m, int n)
{
    request r[MOST_REQUESTS] = { 0 };
    octet_status s = OCTET_OK;
    for (int i = 0; i < n; i++) {
        r[i].model = m;
        r[i].in = zeros(octet_model_input(m, 0));
        r[i].status = OCTET_NOMEM;
        if (!r[i].in.data || pthread_create(&r[i].thread, NULL, answer, &r[i]) != 0)
            n = i;
    }
    for (int i = 0; i < n; i++) {
        pthread_join(r[i].thread, NULL);
        printf("request %d: %.9g\n", i, (double)r[i].answer);
        s = r[i].status != OCTET_OK ? r[i].status : s;
        free((void *)r[i].in.data);
    }
    return s;
}

static octet_status show_parts(octet *o, const void *data, size_t size)
{
    const octet_claim *claims;
    size_t n, taken = 0;
    const octet_status s = octet_graph_parts(o, data, size, NULL, 0, 0, &claims, &n);
    for (size_t i = 0; s == OCTET_OK && i < n; i++)
        taken += claims[i].part >= 0;
    if (s == OCTET_OK)
        printf("%zu of %zu nodes are worth taking over\n", taken, n);
    return s;
}

static void *read_file(const char *name, size_t *size)
{
    FILE *f = fopen(name, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    void *data = malloc(*size + 1);
    if (data && fread(data, 1, *size, f) != *size) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

int main(int argc, char **argv)
{
    const int n = argc == 3 ? atoi(argv[2]) : 0;
    size_t size = 0;
    if (n < 1 || n > MOST_REQUESTS) {
        fprintf(stderr, "usage: serve MODEL REQUESTS, at most %d\n", MOST_REQUESTS);
        return OCTET_USAGE;
    }
    void *data = read_file(argv[1], &size);
    octet *o = data ? octet_open() : NULL;
    octet_model *m = NULL;
    octet_status s = o ? show_parts(o, data, size) : OCTET_IO;
    if (s == OCTET_OK) /* no arrays stand for constants: all of them are in the file */
        s = octet_model_load_graph(o, data, size, NULL, 0, 1, &m);
    if (s == OCTET_OK)
        s = serve(m, n);
    if (s != OCTET_OK)
        fprintf(stderr, "%s\n%s\n", data ? octet_error(o) : "cannot read the model", octet_hint(o));
    octet_model_free(m);
    octet_close(o);
    free(data);
    return (int)s;
}
