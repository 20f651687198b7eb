/* Compares what several targets make of a model, and writes nothing.
 *
 *     cc targets.c $(pkg-config --cflags --libs octet) -o targets
 *     ./targets model.onnx samples.npz onnxruntime-x86 qnn tensorrt
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <math.h>
#include <stdio.h>

static void print(const octet_result *r)
{
    for (size_t i = 0; i < octet_result_count(r, "targets"); i++) {
        char target[64], share[64], bytes[64], findings[64];
        snprintf(target, sizeof target, "targets.%zu.target", i);
        snprintf(share, sizeof share, "targets.%zu.integer_share", i);
        snprintf(bytes, sizeof bytes, "targets.%zu.size_bytes.after", i);
        snprintf(findings, sizeof findings, "targets.%zu.findings", i);
        const double work = octet_result_number(r, share); /* NaN: shapes are not known */
        printf("%s: %.0f %% of the work on integers, %.0f bytes, %.0f findings\n", octet_result_text(r, target),
               isnan(work) ? 0 : 100 * work, octet_result_number(r, bytes), octet_result_number(r, findings));
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: targets MODEL SAMPLES TARGET...\n");
        return OCTET_USAGE;
    }
    octet *o = octet_open();
    if (!o)
        return OCTET_NOMEM;
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = argv[1];
    x.samples.data = (octet_texts){ (const char *const *)argv + 2, 1 };
    x.dry_run = true;
    octet_result *r;
    const octet_texts targets = { (const char *const *)argv + 3, (size_t)argc - 3 };
    const octet_status s = octet_convert_targets(o, &x, targets, &r);
    if (s == OCTET_OK)
        print(r);
    else
        fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
    octet_result_free(r);
    octet_close(o);
    return (int)s;
}
