/* Prints what a model takes, what it returns, and how it was made. The model is loaded from memory.
 *
 *     cc inspect.c $(pkg-config --cflags --libs octet) -o inspect
 *     ./inspect model.int8.onnx
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <stdio.h>
#include <stdlib.h>

/* The names of those element types that most models have. */
static const char *type_name(octet_type type)
{
    switch (type) {
    case OCTET_FLOAT32: return "float32";
    case OCTET_FLOAT16: return "float16";
    case OCTET_UINT8: return "uint8";
    case OCTET_INT8: return "int8";
    case OCTET_INT32: return "int32";
    case OCTET_INT64: return "int64";
    case OCTET_BOOL: return "bool";
    default: return "another type";
    }
}

/* One line: "input image float32 [?,3,32,32]". A dimension that the model leaves open is "?". */
static void print(const char *role, const octet_port *p)
{
    printf("%s %s %s [", role, p->name, type_name(p->type));
    for (int i = 0; i < p->rank; i++) {
        printf("%s", i ? "," : "");
        if (p->dims[i] < 0)
            printf("?");
        else
            printf("%lld", (long long)p->dims[i]);
    }
    printf("%s]\n", p->rank < 0 ? "any rank" : "");
}

static void inspect(const octet_model *m)
{
    const octet_port *p;
    for (size_t i = 0; (p = octet_model_input(m, i)); i++)
        print("input", p);
    for (size_t i = 0; (p = octet_model_output(m, i)); i++)
        print("output", p);
    const char *command = octet_model_metadata(m, "octet.command"); /* NULL if Octet did not write the model */
    printf("made by %s\n", command ? command : "another tool");
}

/* The bytes of a file, to be freed; NULL if it cannot be read. */
static void *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    long n = -1;
    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) > 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)n);
    if (data && fread(data, 1, (size_t)n, f) != (size_t)n) {
        free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    *size = data ? (size_t)n : 0;
    return data;
}

int main(int argc, char **argv)
{
    size_t size;
    octet_model *m;
    if (argc != 2) {
        fprintf(stderr, "usage: inspect MODEL\n");
        return OCTET_USAGE;
    }
    octet *o = octet_open();
    if (!o)
        return OCTET_NOMEM;
    void *data = read_file(argv[1], &size);
    if (!data) {
        fprintf(stderr, "%s: cannot be read\n", argv[1]);
        octet_close(o);
        return OCTET_IO;
    }
    printf("octet %s\n", octet_version());
    const octet_status s = octet_model_load_memory(o, data, size, 1, &m);
    if (s == OCTET_OK)
        inspect(m);
    else
        fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
    octet_model_free(m); /* before the bytes, which the model uses until then */
    free(data);
    octet_close(o);
    return (int)s;
}
