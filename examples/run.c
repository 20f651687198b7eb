/* Runs a model on zeros and prints what its outputs hold.
 *
 *     cc run.c $(pkg-config --cflags --libs octet) -o run
 *     ./run model.onnx        # a thread for each processor
 *     ./run model.onnx 2      # two threads: the same results
 *     ./run model.onnx 1 avx2 # no instructions beyond AVX2: the same results, and what each step takes
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST_INPUTS = 16, LARGEST_ELEMENT = 8 };

/* Fills *a with zeros, in the shape of the input; dimensions that the model leaves open are 1. */
static int fill(octet_array *a, const octet_port *p)
{
    size_t count = 1;
    *a = (octet_array){ .name = p->name, .type = p->type, .rank = p->rank < 0 ? 0 : p->rank };
    for (int i = 0; i < a->rank; i++)
        count *= (size_t)(a->dims[i] = p->dims[i] < 0 ? 1 : p->dims[i]);
    a->data = calloc(count + 1, LARGEST_ELEMENT);
    return a->data != NULL;
}

static void print(const octet_array *a)
{
    int64_t count = 1;
    printf("%s [", a->name);
    for (int i = 0; i < a->rank; i++) {
        printf(i ? ",%lld" : "%lld", (long long)a->dims[i]);
        count *= a->dims[i];
    }
    printf("]");
    for (int64_t i = 0; a->type == OCTET_FLOAT32 && i < count; i++)
        printf(" %.9g", (double)((const float *)a->data)[i]);
    printf("\n");
}

static void print_steps(const octet_model *m)
{
    octet_step s;
    for (size_t i = 0; octet_model_step(m, i, &s); i++)
        fprintf(stderr, "%8.4f ms  %s %s, %s %s\n", s.seconds * 1e3, s.op, s.name, s.scheme, s.kernel);
}

static octet_status run(octet *o, octet_model *m, int measure)
{
    octet_array in[MOST_INPUTS];
    const octet_array *out;
    const octet_port *p;
    size_t n_in = 0, n_out = 0;
    while (n_in < MOST_INPUTS && (p = octet_model_input(m, n_in)) && fill(&in[n_in], p))
        n_in++;
    octet_status s = measure ? octet_model_profile(o, m, 1) : OCTET_OK;
    if (s == OCTET_OK) /* what the first run would do otherwise */
        s = octet_model_prepare(o, m, in, n_in);
    if (s == OCTET_OK)
        s = octet_model_run(o, m, in, n_in, &out, &n_out);
    for (size_t i = 0; i < n_out; i++)
        print(&out[i]);
    for (size_t i = 0; i < n_in; i++)
        free((void *)in[i].data);
    if (measure)
        print_steps(m);
    return s;
}

int main(int argc, char **argv)
{
    octet *o = argc >= 2 && argc <= 4 ? octet_open() : NULL;
    octet_model *m = NULL;
    if (!o) {
        fprintf(stderr, "usage: run MODEL [THREADS [ISA]]\n");
        return OCTET_USAGE;
    }
    octet_status s = argc > 3 ? octet_use_isa(o, argv[3]) : OCTET_OK;
    if (s == OCTET_OK)
        s = octet_model_load(o, argv[1], argc > 2 ? atoi(argv[2]) : 0, &m);
    if (s == OCTET_OK)
        s = run(o, m, argc > 3);
    if (s != OCTET_OK)
        fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
    octet_model_free(m);
    octet_close(o);
    return (int)s;
}
