/* Calibrates, converts and compares a model, all with files. Beside the model OUT, this writes the calibration table
 * OUT.calib and the report OUT.json.
 *
 *     cc quantize.c $(pkg-config --cflags --libs octet) -o quantize
 *     ./quantize model.onnx samples.csv mean=127.5:std=127.5 out.onnx
 *
 * Exit: the status of what failed. */
#include <octet/octet.h>

#include <signal.h>
#include <stdio.h>

static octet *running;

/* Ctrl-C: the call ends with OCTET_STOPPED, and leaves no half file. */
static void on_interrupt(int signal_number)
{
    (void)signal_number;
    octet_stop(running);
}

static void show(void *arg, const char *what, int64_t done, int64_t total)
{
    int64_t *last = arg;
    if (total > 0 && done == total && done != *last)
        printf("%s: %lld of %lld\n", what, (long long)done, (long long)total);
    *last = done;
}

static void warn(void *arg, int is_warning, const char *text)
{
    (void)arg;
    if (is_warning)
        fprintf(stderr, "warning: %s\n", text);
}

/* Writes the report to a file, and prints some of it. */
static octet_status report(const octet_result *r, const char *out)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.json", out);
    printf("SQNR of the outputs: %.1f dB on %.0f samples\n", octet_result_number(r, "output_sqnr_db"),
           octet_result_number(r, "samples"));
    FILE *f = fopen(name, "w");
    if (!f)
        return OCTET_IO;
    const int written = fputs(octet_result_json(r), f);
    return fclose(f) == 0 && written >= 0 ? OCTET_OK : OCTET_IO;
}

typedef struct job {
    const char *model, *out;
    octet_samples samples;
    char table[4096];
} job;

static octet_status calibrate(octet *o, const job *j)
{
    octet_result *r;
    octet_calibrate_options x;
    octet_calibrate_init(&x, sizeof x);
    x.model = j->model;
    x.samples = j->samples;
    x.output = j->table;
    const octet_status s = octet_calibrate_model(o, &x, &r);
    octet_result_free(r);
    return s;
}

static octet_status convert(octet *o, const job *j)
{
    octet_result *r;
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = j->model;
    x.calib = j->table;
    x.output = j->out;
    const octet_status s = octet_convert_model(o, &x, &r);
    octet_result_free(r);
    return s;
}

static octet_status evaluate(octet *o, const job *j)
{
    octet_result *r;
    octet_evaluate_options x;
    octet_evaluate_init(&x, sizeof x);
    x.model = j->model;
    x.quantized = (octet_texts){ &j->out, 1 };
    x.samples = j->samples;
    x.latency = 0;
    octet_status s = octet_evaluate_model(o, &x, &r);
    if (s == OCTET_OK)
        s = report(r, j->out);
    octet_result_free(r);
    return s;
}

/* What quantizing each value and each layer alone costs. */
static octet_status show_causes(octet *o, const job *j)
{
    octet_result *r;
    octet_evaluate_options x;
    octet_evaluate_init(&x, sizeof x);
    x.model = j->model;
    x.quantized = (octet_texts){ &j->out, 1 };
    x.samples = j->samples;
    const octet_status s = octet_measure_sensitivity(o, &x, NULL, &r);
    if (s == OCTET_OK)
        printf("most is lost by %s\n", octet_result_text(r, "sensitivity.causes.0.layer"));
    octet_result_free(r);
    return s;
}

/* What the target does with the model, what is known of its first node, and that the result is made from these
 * files. */
static octet_status inspect(octet *o, const job *j)
{
    octet_result *lint = NULL, *node = NULL, *verified = NULL;
    octet_convert_options x;
    octet_convert_init(&x, sizeof x);
    x.model = j->model;
    octet_status s = octet_lint_model(o, &x, &lint);
    if (s == OCTET_OK)
        printf("%.0f of %.0f nodes run on integers\n", octet_result_number(lint, "integer_nodes"),
               octet_result_number(lint, "counted_nodes"));
    if (s == OCTET_OK)
        s = octet_explain_node(o, &x, octet_result_text(lint, "conversion.0.name"), &node);
    x.model = j->out;
    x.calib = j->table;
    if (s == OCTET_OK)
        s = octet_verify_model(o, &x, j->model, &verified);
    if (s == OCTET_OK)
        printf("verified\n");
    octet_result_free(lint);
    octet_result_free(node);
    octet_result_free(verified);
    return s;
}

static octet_status quantize(octet *o, const char *model, const char *samples, const char *steps, const char *out)
{
    job j = { .model = model, .out = out };
    j.samples = (octet_samples){ .data = { &samples, 1 }, .preprocess = { &steps, 1 }, .seed = -1 };
    snprintf(j.table, sizeof j.table, "%s.calib", out);
    octet_status s = calibrate(o, &j);
    if (s == OCTET_OK)
        s = convert(o, &j);
    if (s == OCTET_OK)
        s = evaluate(o, &j);
    if (s == OCTET_OK)
        s = show_causes(o, &j);
    if (s == OCTET_OK)
        s = inspect(o, &j);
    return s;
}

int main(int argc, char **argv)
{
    int64_t last = -1;
    if (argc != 5) {
        fprintf(stderr, "usage: quantize MODEL SAMPLES STEPS OUT\n");
        return OCTET_USAGE;
    }
    octet *o = octet_open();
    if (!o)
        return OCTET_NOMEM;
    running = o;
    signal(SIGINT, on_interrupt);
    octet_on_progress(o, show, &last);
    octet_on_message(o, warn, NULL);
    const octet_status s = quantize(o, argv[1], argv[2], argv[3], argv[4]);
    if (s != OCTET_OK)
        fprintf(stderr, "%s\n%s\n", octet_error(o), octet_hint(o));
    octet_close(o);
    return (int)s;
}
