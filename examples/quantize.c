/* Calibrates, converts and compares a model. The functions take the arguments of the commands. Beside the model OUT,
 * this writes the calibration table OUT.calib and the report OUT.json.
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

/* Writes the report of the last call, and prints its text for people. */
static octet_status report(const octet *o, const char *out)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.json", out);
    fputs(octet_text(o), stdout);
    FILE *f = fopen(name, "w");
    if (!f)
        return OCTET_IO;
    const int written = fputs(octet_report(o), f);
    return fclose(f) == 0 && written >= 0 ? OCTET_OK : OCTET_IO;
}

static octet_status quantize(octet *o, const char *model, const char *samples, const char *steps, const char *out)
{
    char table[4096];
    snprintf(table, sizeof table, "%s.calib", out);
    const char *calibrate[] = { model, "--data", samples, "--preprocess", steps, "-o", table, NULL };
    const char *convert[] = { model, "--calib", table, "-o", out, NULL };
    const char *evaluate[] = { model, out, "--data", samples, "--preprocess", steps, "--no-latency", NULL };
    octet_status s = octet_calibrate(o, calibrate);
    if (s == OCTET_OK)
        s = octet_convert(o, convert);
    if (s == OCTET_OK)
        s = octet_evaluate(o, evaluate);
    if (s == OCTET_OK)
        s = report(o, out);
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
