/* Makes a folder of quantized models from a folder of models as people publish them, and judges the new one.
 *
 *     cc folder.c $(pkg-config --cflags --libs octet) -o folder
 *     ./folder published new texts.jsonl
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <stdio.h>

static octet_status convert(octet *o, const char *folder, const char *new)
{
    octet_result *r;
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = folder;
    x.output = new;
    const octet_status s = octet_convert_folder(o, &x, NULL, &r);
    if (s == OCTET_OK)
        printf("%s: %.0f bytes of models become %.0f\n", octet_result_text(r, "recipe"),
               octet_result_number(r, "bytes_before"), octet_result_number(r, "bytes_after"));
    octet_result_free(r);
    return s;
}

static octet_status judge(octet *o, const char *folder, const char *new, const char *samples)
{
    octet_result *r;
    octet_evaluate_options x;
    octet_evaluate_init(&x, sizeof x);
    x.model = folder;
    x.quantized = (octet_texts){ &new, 1 };
    x.samples.data = (octet_texts){ &samples, 1 };
    const octet_status s = octet_evaluate_folder(o, &x, NULL, &r);
    if (r)
        printf("%s: %s\n", octet_result_text(r, "variants.0.file"), octet_result_text(r, "variants.0.verdict"));
    octet_result_free(r);
    return s;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: folder FOLDER NEW SAMPLES\n");
        return OCTET_USAGE;
    }
    octet *o = octet_open();
    if (!o)
        return OCTET_NOMEM;
    octet_status s = convert(o, argv[1], argv[2]);
    if (s == OCTET_OK)
        s = judge(o, argv[1], argv[2], argv[3]);
    if (s != OCTET_OK)
        fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
    octet_close(o);
    return (int)s;
}
