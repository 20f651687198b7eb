/* lib/cli: options, help, progress, tables, numbers. */
#include "unit.h"

#include "cli/chart.h"
#include "cli/cli.h"
#include "cli/text_table.h"
#include "cli/textfmt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct tool {
    const char *model, *output, *observer, *table, *a, *b;
    oct_cli_list data, metrics, files;
    int64_t samples;
    double drop;
    bool layers, fuse, print_policy;
    oct_cli cli;
    oct_err err;
    oct_status s;
    char out[8192], said[4096], command[16]; /* the tables themselves end with run() */
} tool;

static const char *observer_names(size_t i, const char **summary)
{
    static const char *const names[] = { "minmax", "average", "hist-mse" };
    static const char *const texts[] = { "the whole range", "mean of each sample's range", "least squared error" };
    if (i >= OCT_COUNT(names))
        return NULL;
    *summary = texts[i];
    return names[i];
}

/* Runs the tool on a command line whose words are separated by '|', and keeps what it printed. */
static bool is_array(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".npy") == 0;
}

static int run(tool *t, const char *line)
{
    static char text[512];
    char *argv[32];
    int argc = 1;
    argv[0] = "qtest";
    snprintf(text, sizeof text, "%s", line);
    for (char *s = text, *next; s && *line; s = next) {
        next = strchr(s, '|');
        if (next)
            *next++ = 0;
        argv[argc++] = s;
    }
    argv[argc] = NULL;
    const oct_cli_opt opts[] = {
        OPT_POSITIONAL("MODEL", &t->model, "float model to calibrate"),
        OPT_MULTI('d', "data", &t->data, "SPEC", "samples"),
        OPT_OUT('o', "output", &t->output, "table to write"),
        OPT_GROUP("Tuning"),
        OPT_INT('n', "samples", &t->samples, 1, INT64_MAX, "stop after this many samples"),
        OPT_FLOAT(0, "drop", &t->drop, 0, 1, "largest drop"),
        OPT_ENUM(0, "observer", &t->observer, observer_names, "how a range is chosen"),
        OPT_ENUMS(0, "metric", &t->metrics, observer_names, "what to measure"),
        OPT_FLAG('l', "layers", &t->layers, "compare every layer"),
        OPT_FLAG(0, "fuse", &t->fuse,
                 "fuse first, with words enough to reach beyond the end of the line and wrap into another"),
        OPT_FILE(0, "calib", &t->table, "calibration table"),
        OPT_ACTION(0, "print-policy", &t->print_policy, "print the table of rules"),
        OPT_CONFLICT("data", "calib"),
        OPT_CONFLICT("print-policy fuse", "calib layers"),
        OPT_NEEDS("drop layers", "data"),
        OPT_COMMON,
        OPT_END,
    };
    const oct_cli_opt merge[] = { OPT_POSITIONALS("TABLE", &t->files, 2, "tables to join"),
                                  OPT_OUT('o', "output", &t->output, "where to"), OPT_REQUIRED("output"), OPT_COMMON,
                                  OPT_END };
    const oct_cli_opt diff[] = { OPT_POSITIONAL("A", &t->a, "one"), OPT_OPTIONAL("B", &t->b, "other"),
                                 OPT_ENUM_OR_FILE(0, "by", &t->observer, observer_names, "what counts"), OPT_COMMON,
                                 OPT_END };
    const oct_cli_opt pair[] = { OPT_POSITIONAL("FIRST", &t->a, "one"), OPT_POSITIONAL("SECOND", &t->b, "other"),
                                 OPT_COMMON, OPT_END };
    const oct_cli_command commands[] = { { "merge", "joins tables", merge, NULL },
                                         { "diff", "compares tables", diff, NULL },
                                         { "pair", "needs two", pair, NULL } };
    memset(t, 0, sizeof *t);
    t->observer = "minmax";
    t->samples = 512;
    t->fuse = true;
    t->cli = (oct_cli){ .name = "qtest",
                        .summary = "Tests the command line.",
                        .opts = opts,
                        .commands = commands,
                        .n_commands = OCT_COUNT(commands),
                        .examples = "  qtest m.onnx\n",
                        .isa_text = "avx2",
                        .isa_names = "scalar, avx2",
                        .is_data = is_array };
    t->cli.out = tmpfile();
    t->cli.err = tmpfile();
    FILE *out = t->cli.out, *said = t->cli.err;
    t->s = oct_cli_parse(&t->cli, argc, argv, &t->err);
    int code = -1;
    snprintf(t->command, sizeof t->command, "%s", t->cli.command ? t->cli.command->name : "");
    if (t->s != OCT_OK || t->cli.done)
        code = oct_cli_finish(&t->cli, t->s, &t->err);
    rewind(out);
    rewind(said);
    t->out[fread(t->out, 1, sizeof t->out - 1, out)] = 0;
    t->said[fread(t->said, 1, sizeof t->said - 1, said)] = 0;
    if (code >= 0) {
        fclose(out);
        fclose(said);
    }
    return code;
}

static void end(tool *t)
{
    FILE *out = t->cli.out, *said = t->cli.err;
    assert_int_equal(oct_cli_finish(&t->cli, OCT_OK, &t->err), 0);
    fclose(out);
    fclose(said);
}

static void expect_usage(const char *line, const char *said)
{
    tool t;
    int code = run(&t, line);
    if (code != 2 || strcmp(t.said, said) != 0)
        fail_msg("%s: exit %d, said:\n%s, expected:\n%s", line, code, t.said, said);
    assert_string_equal(t.out, "");
}

TEST(values_arrive)
{
    tool t;
    assert_int_equal(
        run(&t, "--data=a b|m.onnx|-d|c|-n5|--observer|hist-mse|--no-fuse|-lvv|--drop|.25|-o-|--metric=average,minmax"),
        -1);
    assert_string_equal(t.model, "m.onnx");
    assert_int_equal(t.data.n, 2);
    assert_string_equal(t.data.v[0], "a b");
    assert_string_equal(t.data.v[1], "c");
    assert_int_equal(t.samples, 5);
    assert_string_equal(t.observer, "hist-mse");
    assert_false(t.fuse);
    assert_true(t.layers);
    assert_int_equal(t.cli.verbose, 2);
    assert_true(t.drop == 0.25);
    assert_string_equal(t.output, "-");
    assert_int_equal(t.metrics.n, 2);
    assert_string_equal(t.metrics.v[1], "minmax");
    assert_true(oct_cli_given(&t.cli, "samples") && oct_cli_given(&t.cli, "MODEL"));
    assert_false(oct_cli_given(&t.cli, "json"));
    assert_ptr_equal(oct_cli_result(&t.cli), t.cli.err);
    assert_int_equal(t.cli.progress.mode, OCT_PROGRESS_OFF);
    end(&t);
}

TEST(defaults_stay)
{
    tool t;
    assert_int_equal(run(&t, "--progress|--threads|3|--isa=avx2|--|-strange"), -1);
    assert_string_equal(t.model, "-strange");
    assert_int_equal(t.samples, 512);
    assert_string_equal(t.observer, "minmax");
    assert_true(t.fuse && !t.layers);
    assert_int_equal(t.cli.threads, 3);
    assert_string_equal(t.cli.isa, "avx2");
    assert_int_equal(t.cli.progress.mode, OCT_PROGRESS_PLAIN);
    assert_ptr_equal(oct_cli_result(&t.cli), t.cli.out);
    end(&t);
}

TEST(commands_have_tables)
{
    tool t;
    assert_int_equal(run(&t, "merge|a|b|-o|c|d"), -1);
    assert_string_equal(t.command, "merge");
    assert_int_equal(t.files.n, 3);
    assert_string_equal(t.files.v[2], "d");
    end(&t);
    assert_int_equal(run(&t, "diff|a"), -1);
    assert_string_equal(t.a, "a");
    assert_null(t.b);
    end(&t);
    assert_int_equal(run(&t, "m|--no-quiet|-v"), -1); /* what is switched off contradicts nothing */
    end(&t);
    assert_int_equal(run(&t, "./merge"), -1);
    assert_null(t.cli.command);
    end(&t);
    assert_int_equal(run(&t, "--print-policy"), -1);
    assert_true(t.print_policy);
    end(&t);
}

TEST(a_name_or_a_file)
{
    tool t;
    assert_int_equal(run(&t, "diff|a|--by|hist-mse"), -1);
    assert_string_equal(t.observer, "hist-mse");
    end(&t);
    assert_int_equal(run(&t, "diff|a|--by=./none"), -1); /* whether it is there, the tool will see */
    assert_string_equal(t.observer, "./none");
    end(&t);
    assert_int_equal(run(&t, "diff|a|--by|help"), 0);
    assert_non_null(strstr(t.out, "hist-mse  least squared error\n"));
    assert_int_equal(run(&t, "diff|--help"), 0);
    assert_non_null(strstr(t.out, "hist-mse, or a file as"));
    expect_usage("diff|a|--by|hist",
                 "qtest: --by: unknown name 'hist'\n  hint: did you mean 'hist-mse'? '--by help' lists all\n");
    FILE *f = fopen("a_name_or_a_file.txt", "w");
    assert_non_null(f);
    fclose(f);
    expect_usage(
        "diff|a|--by|a_name_or_a_file.txt",
        "qtest: --by: unknown name 'a_name_or_a_file.txt'\n  hint: write a file with its folder: --by ./a_name_or_a_file.txt\n");
    remove("a_name_or_a_file.txt");
}

TEST(mistakes_are_explained)
{
    const char *see = "  hint: 'qtest --help' shows the options\n";
    char want[256];
    expect_usage("m|--sample=4", "qtest: unknown option '--sample'\n  hint: did you mean '--samples'?\n");
    expect_usage("m|--sampels|4", "qtest: unknown option '--sampels'\n  hint: did you mean '--samples'?\n");
    expect_usage("m|-samples", "qtest: unknown option '-s'\n  hint: did you mean '--samples'?\n");
    expect_usage(
        "m|--observer|minmx",
        "qtest: --observer: unknown name 'minmx'\n  hint: did you mean 'minmax'? '--observer help' lists all\n");
    expect_usage(
        "m|--data|--layers",
        "qtest: --data needs a value (SPEC)\n  hint: '--layers' was taken for an option; a value that starts with '-' is written --data=--layers\n");
    expect_usage("help", "qtest: 'help' is neither a file nor a command\n  hint: did you mean 'qtest --help'?\n");
    expect_usage("merg|a", "qtest: 'merg' is neither a file nor a command\n  hint: did you mean 'qtest merge'?\n");
    expect_usage(
        "m|--data|d/a.npy|d/b.npy",
        "qtest: unexpected argument 'd/b.npy'\n  hint: samples are given with --data, a pattern in quotes, so that it arrives whole: --data 'd/*.npy'\n");
    expect_usage(
        "--data|d/a.npy|d/b.npy|m|-o|x",
        "qtest: unexpected argument 'm'\n  hint: samples are given with --data, a pattern in quotes, so that it arrives whole: --data 'd/*.npy'\n");
    expect_usage(
        "merge|a|-o|b",
        "qtest: 1 TABLE given, at least 2 needed\n  hint: usage: qtest merge TABLE... --output FILE [options]; 'qtest merge --help' says more\n");
    expect_usage(
        "merge|a|b",
        "qtest: --output is missing\n  hint: usage: qtest merge TABLE... --output FILE [options]; 'qtest merge --help' says more\n");
    expect_usage("a|b", "qtest: unexpected argument 'b'\n  hint: a file to write is named with -o: -o b\n");
    expect_usage("a|/", "qtest: unexpected argument '/'\n  hint: samples are given with --data: --data /\n");
    expect_usage("a|-o|x|b", "qtest: unexpected argument 'b'\n  hint: 'qtest --help' shows the options\n");
    expect_usage("", "qtest: MODEL is missing\n  hint: usage: qtest MODEL [options]; 'qtest --help' says more\n");
    expect_usage(
        "pair|a",
        "qtest: SECOND is missing\n  hint: usage: qtest pair FIRST SECOND [options]; 'qtest pair --help' says more\n");
    expect_usage(
        "pair",
        "qtest: FIRST is missing\n  hint: usage: qtest pair FIRST SECOND [options]; 'qtest pair --help' says more\n");
    expect_usage("m|--drop=.5", "qtest: --drop needs --data\n  hint: --data SPEC: samples\n");
    expect_usage("m|-l", "qtest: --layers needs --data\n  hint: --data SPEC: samples\n");
    static const char *const plain[][2] = {
        { "m|--drop=0x1|-dx", "--drop: '0x1' is not a number" },
        { "m|--drop=inf|-dx", "--drop: inf is not between 0 and 1" },
        { "m|-l|--layers", "--layers is given twice" },
        { "m|--no-fuse|--no-fuse", "--no-fuse is given twice" },
        { "m|--print-policy|--print-policy", "--print-policy is given twice" },
        { "m|--samples", "--samples needs a value (N)" },
        { "m|--samples=0", "--samples: 0 is not 1 or more" },
        { "m|--samples=-3", "--samples: -3 is not 1 or more" },
        { "m|--samples|-3", "--samples: -3 is not 1 or more" },
        { "m|--samples=99999999999999999999", "--samples: 99999999999999999999 is not 1 or more" },
        { "m|--samples=4x", "--samples: '4x' is not a whole number" },
        { "m|--samples=", "--samples: '' is not a whole number" },
        { "m|--data=d|--drop=nan", "--drop: 'nan' is not a number" },
        { "m|--data=d|--drop=1.5", "--drop: 1.5 is not between 0 and 1" },
        { "m|-n3|--samples=4", "--samples is given twice" },
        { "m|--fuse|--no-fuse", "--fuse and --no-fuse contradict each other" },
        { "m|-qv", "--quiet and --verbose contradict each other" },
        { "m|--data=d|--calib=c", "--data and --calib contradict each other" },
        { "m|--fuse|--calib=c", "--fuse and --calib contradict each other" },
        { "m|--data=d|--fuse|-l", "--fuse and --layers contradict each other" },
        { "--print-policy|--calib=c", "--print-policy and --calib contradict each other" },
        { "m|--no-samples", "--samples cannot be negated" },
        { "m|--layers=yes", "--layers takes no value" },
        { "m|--data=", "--data: the value is empty" },
        { "m|-o|x|--json=x", "--output and --json write to the same place, 'x'" },
        { "m|-o-|--json=-", "--output and --json write to the same place, '-'" },
        { "m|--metric=minmax,minmax", "--metric: 'minmax' is given twice" },
        { "m|--threads=0", "--threads: 0 is not between 1 and 1024" },
        { "m|--zzz", "unknown option '--zzz'" },
    };
    for (size_t i = 0; i < OCT_COUNT(plain); i++) {
        snprintf(want, sizeof want, "qtest: %s\n%s", plain[i][1], see);
        expect_usage(plain[i][0], want);
    }
}

TEST(help_goes_to_stdout)
{
    tool t;
    assert_int_equal(run(&t, "--bogus|--help"), 0);
    assert_string_equal(t.said, "");
    assert_true(t.cli.done);
    const char *lines[] = { "Usage: qtest MODEL [options]\n       qtest COMMAND ...\n",
                            "\nTests the command line.\n",
                            "  merge                   joins tables\n",
                            "\nArguments:\n  MODEL ",
                            "\nTuning:\n",
                            "  -n, --samples N         stop after",
                            "      --[no-]fuse  ",
                            ": minmax, average, hist-mse\n                          [default: minmax]\n",
                            "\nExamples:\n  qtest m.onnx\n" };
    for (size_t i = 0; i < OCT_COUNT(lines); i++)
        if (!strstr(t.out, lines[i]))
            fail_msg("no '%s' in:\n%s", lines[i], t.out);
    assert_null(strstr(t.out, "help-man"));
    for (const char *s = t.out; *s; s += strcspn(s, "\n") + 1)
        assert_true(strcspn(s, "\n") <= 80);
    assert_int_equal(run(&t, "merge|--help"), 0);
    assert_non_null(strstr(t.out, "Usage: qtest merge TABLE... --output FILE [options]\n"));
    assert_int_equal(run(&t, "--version"), 0);
    assert_string_equal(t.out, "qtest " OCT_VERSION " (octet; isa: avx2)\n");
    assert_int_equal(run(&t, "--observer|help"), 0);
    assert_string_equal(
        t.out, "minmax    the whole range\naverage   mean of each sample's range\nhist-mse  least squared error\n");
}

TEST(help_of_a_topic)
{
    tool t;
    assert_int_equal(run(&t, "--help|tuning"), 0);
    assert_ptr_equal(strstr(t.out, "Tuning:\n  -n, --samples N "), t.out);
    assert_non_null(strstr(t.out, "--print-policy"));
    assert_null(strstr(t.out, "--data"));
    assert_null(strstr(t.out, "--json"));
    assert_int_equal(run(&t, "--help|common"), 0); /* not "options", its last word */
    assert_ptr_equal(strstr(t.out, "Common options:\n      --json FILE "), t.out);
    assert_int_equal(run(&t, "--help|options"), 0); /* those before the first heading */
    assert_ptr_equal(strstr(t.out, "Options:\n  -d, --data SPEC"), t.out);
    assert_null(strstr(t.out, "--samples"));
    assert_int_equal(run(&t, "-h|drop"), 0);
    assert_string_equal(t.out, "      --drop X            largest drop\n");
    assert_int_equal(run(&t, "--help|examples"), 0);
    assert_string_equal(t.out, "Examples:\n  qtest m.onnx\n");
    assert_int_equal(run(&t, "--help|diff"), 0); /* a command */
    assert_non_null(strstr(t.out, "Usage: qtest diff A [B] [options]\n"));
    assert_int_equal(run(&t, "--help|m.onnx"), 0);
    assert_non_null(strstr(t.out, "Usage: qtest MODEL [options]\n"));
}

TEST(short_help_shows_usual_options)
{
    int64_t n = 0;
    bool rare = false;
    const char *said = NULL;
    const oct_cli_opt opts[] = {
        OPT_INT('n', "samples", &n, 1, 9, "stop after so many; all: without it"),
        OPT_FLAG(0, "rare", &rare, "for few"),
        OPT_STR(
            0, "say", &said, "TEXT",
            "words of no importance at all that reach beyond the end of one line: but not this clause [default: none]"),
        OPT_COMMON,
        OPT_USUAL("samples say quiet"),
        OPT_END,
    };
    static const char *const pages[2][3] = {
        { "\nOptions used most ('qtest --help-all', 'man qtest': all 13):\n  -n, --samples N  stop after so many; all: without it\n      --say TEXT   words of no",
          "  -q, --quiet      print results, warnings and errors only\n",
          "beyond the end of\n                   one line\n" },
        { "\nOptions:\n  -n, --samples N  ", "      --rare ", "[default: none]\n" },
    };
    for (int all = 0; all < 2; all++) {
        char text[4000], *argv[] = { "qtest", all ? "--help-all" : "--help", NULL };
        oct_err err = OCT_ERR_INIT;
        oct_cli cli = { .name = "qtest", .opts = opts, .out = tmpfile(), .err = tmpfile() };
        FILE *out = cli.out, *errors = cli.err;
        assert_int_equal(oct_cli_parse(&cli, 2, argv, &err), OCT_OK);
        rewind(out);
        text[fread(text, 1, sizeof text - 1, out)] = 0;
        for (int i = 0; i < 3; i++)
            if (!strstr(text, pages[all][i]))
                fail_msg("no '%s' in:\n%s", pages[all][i], text);
        assert_true(all == (strstr(text, "--rare") != NULL));
        oct_cli_finish(&cli, OCT_OK, &err);
        fclose(out);
        fclose(errors);
    }
}

TEST(manual_is_mdoc)
{
    tool t;
    assert_int_equal(run(&t, "--help-man"), 0);
    const char *lines[] = { ".It Ar \\&MODEL\n", ".It Fl n , Fl \\-samples Ar \\&N\nstop after this many samples.\n",
                            ".Ss qtest merge\n", ".It Ar \\&TABLE ...\n", ".It Fl \\-fuse , Fl \\-no\\-fuse\n" };
    for (size_t i = 0; i < OCT_COUNT(lines); i++)
        if (!strstr(t.out, lines[i]))
            fail_msg("no '%s' in:\n%s", lines[i], t.out);
}

TEST(messages_are_safe)
{
    tool t;
    assert_int_equal(run(&t, "m"), -1);
    FILE *said = t.cli.err;
    oct_cli_note(&t.cli, 0, "note %d", 1);
    oct_cli_note(&t.cli, 1, "hidden");
    oct_cli_warn(&t.cli, "node 'a\033[2J' is odd");
    oct_fail(&t.err, OCT_EMALFORMED, "m.onnx: truncated");
    oct_hint(&t.err, "fetch it again");
    fclose(t.cli.out);
    t.cli.out = fopen("/dev/full", "w");
    FILE *out = t.cli.out;
    assert_int_equal(oct_cli_finish(&t.cli, OCT_EMALFORMED, &t.err), 4);
    rewind(said);
    t.said[fread(t.said, 1, sizeof t.said - 1, said)] = 0;
    assert_string_equal(
        t.said, "note 1\nqtest: warning: node 'a\\x1b[2J' is odd\nqtest: m.onnx: truncated\n  hint: fetch it again\n");
    fclose(out);
    fclose(said);
}

/* Newlines of the format are lines; those of names, like every other control, are shown. */
TEST(printing_is_safe)
{
    FILE *f = tmpfile();
    char text[8192];
    oct_print(f, "\n%s: %d\n\n", "a\nb\n", 7);
    oct_print(f, "%s", "");
    oct_print(f, "\n");
    oct_print(f, "%s\n", "\n");
    oct_print_hanging(f, NULL, 0, "one two\nthree four", 9);
    memset(text, 'x', 5000);
    text[5000] = 0;
    oct_print(f, "\n%s\n", text);
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    const char *want = "\na\\x0ab\\x0a: 7\n\n\n\\x0a\none\ntwo\\x0athree\nfour\n\n";
    assert_memory_equal(text, want, strlen(want));
    for (size_t i = strlen(want); i < n - 4; i++)
        assert_int_equal(text[i], 'x');
    assert_string_equal(text + n - 4, "...\n");
    fclose(f);
}

TEST(full_disk_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        print_message("# a full disk: not tried without /dev/full\n");
        return;
    }
    oct_err err = OCT_ERR_INIT;
    oct_cli cli = { .name = "qtest", .out = full, .err = tmpfile() };
    fputs("result\n", full);
    FILE *said = cli.err;
    assert_int_equal(oct_cli_finish(&cli, OCT_OK, &err), 3);
    assert_non_null(strstr(err.text, "standard output: "));
    fclose(full);
    fclose(said);
}

TEST(no_memory_is_an_error)
{
    const oct_cli_opt opts[] = { OPT_COMMON, OPT_END };
    for (size_t n = 1; n < 12; n++) {
        char *argv[] = { "qtest", "--help", NULL };
        oct_err err = OCT_ERR_INIT;
        oct_cli cli = { .name = "qtest", .opts = opts, .out = tmpfile(), .err = tmpfile() };
        FILE *out = cli.out, *said = cli.err;
        oct_alloc_fail_at(n);
        oct_status s = oct_cli_parse(&cli, 2, argv, &err);
        oct_alloc_fail_at(0);
        assert_true(s == OCT_OK || s == OCT_ENOMEM);
        assert_int_equal(oct_cli_finish(&cli, s, &err), s);
        fclose(out);
        fclose(said);
    }
}

static double fake_time;
static double fake_now(void)
{
    return fake_time;
}

TEST(progress_is_limited)
{
    oct_progress p;
    FILE *f = tmpfile();
    oct_progress_init(&p, f, -1);
    assert_int_equal(p.mode, OCT_PROGRESS_OFF);
    oct_progress_init(&p, f, 1);
    p.now = fake_now;
    for (int i = 0; i <= 100; i++, fake_time += 0.0625)
        oct_progress_report(&p, "calibrating", i, 100);
    p.mode = OCT_PROGRESS_LINE;
    rewind(f);
    char text[4096];
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    assert_string_equal(text, "calibrating 0/100 (0 %)\n"
                              "calibrating 16/100 (16 %), 16.0/s, 0:05 left\n"
                              "calibrating 32/100 (32 %), 16.0/s, 0:04 left\n"
                              "calibrating 48/100 (48 %), 16.0/s, 0:03 left\n"
                              "calibrating 64/100 (64 %), 16.0/s, 0:02 left\n"
                              "calibrating 80/100 (80 %), 16.0/s, 0:01 left\n"
                              "calibrating 96/100 (96 %), 16.0/s, 0:00 left\n"
                              "calibrating 100/100 (100 %), 16.0/s\n");
    long at = ftell(f);
    fseek(f, at, SEEK_SET);
    int drawn = 0;
    for (int i = 0; i < 1000; i++, fake_time += 0.001)
        oct_progress_report(&p, "comparing", i, 0);
    oct_progress_clear(&p);
    fseek(f, at, SEEK_SET);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    for (const char *s = text; (s = strchr(s, '\r')); s++)
        drawn++;
    assert_in_range(drawn, 6, 7); /* six drawings or the one at 0 s, and the erasing */
    assert_string_equal(text + strlen(text) - 4, "\r\033[K");
    at = ftell(f);
    oct_progress_report(&p, "checking", 1, 2);
    fake_time += 1;
    oct_progress_report(&p, "checking", 2, 2); /* the end erases the line */
    fseek(f, at, SEEK_SET);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    assert_string_equal(text, "\rchecking 1/2 (50 %)\033[K\r\033[K");
    assert_false(p.drawn);
    fclose(f);
}

static void table_text(bool utf8, int width, const char *want)
{
    oct_table *t = oct_table_create();
    oct_buf b = OCT_BUF_INIT;
    oct_table_column(t, "layer", OCT_LEFT);
    oct_table_column(t, "SQNR", OCT_RIGHT);
    oct_table_row(t);
    oct_table_cell(t, "/stage/block1/conv2");
    oct_table_cell(t, "%.1f dB", 31.44);
    oct_table_row(t);
    oct_table_cell(t, "%s", "größe\033");
    oct_table_cell(t, "9.0 dB");
    oct_table_row(t);
    oct_table_cell(t, "all");
    assert_int_equal(oct_table_write(t, &b, width, utf8, NULL), OCT_OK);
    assert_string_equal(oct_buf_str(&b), want);
    oct_buf_free(&b);
    oct_table_destroy(t);
}

TEST(tables_align_and_fit)
{
    table_text(false, 0,
               "layer                   SQNR\n"
               "-------------------  -------\n"
               "/stage/block1/conv2  31.4 dB\n"
               "größe\\x1b             9.0 dB\n"
               "all\n");
    table_text(true, 21,
               "layer            SQNR\n"
               "────────────  ───────\n"
               "/stage/bloc…  31.4 dB\n"
               "größe\\x1b      9.0 dB\n"
               "all\n");
    table_text(false, 3,
               "layer        SQNR\n" /* not below eight columns */
               "--------  -------\n"
               "/stage..  31.4 dB\n"
               "größe\\..   9.0 dB\n"
               "all\n");
}

TEST(charts)
{
    oct_buf b = OCT_BUF_INIT;
    oct_chart_spark(&b, (uint64_t[]){ 0, 1, 50, 100 }, 4, 10, false, true);
    oct_chart_spark(&b, (uint64_t[]){ 0, 1, 50, 100, 25, 25, 7, 0 }, 8, 4, false, false);
    assert_string_equal(oct_buf_str(&b), " ▁▄█.#:.");
    oct_buf_free(&b);
}

TEST(numbers)
{
    char d[32];
    assert_string_equal(oct_fmt_bytes(d, 999), "999 B");
    assert_string_equal(oct_fmt_bytes(d, 14200000), "14.2 MB");
    assert_string_equal(oct_fmt_bytes(d, 999900), "1.00 MB");
    assert_string_equal(oct_fmt_bytes(d, UINT64_MAX), "18.4 EB");
    assert_string_equal(oct_fmt_ms(d, 0.00421), "4.21 ms");
    assert_string_equal(oct_fmt_ms(d, 52.17e-6), "0.0522 ms");
    assert_string_equal(oct_fmt_ms(d, 0.00099962), "1.00 ms");
    assert_string_equal(oct_fmt_ms(d, 0), "0.00 ms");
    assert_string_equal(oct_fmt_seconds(d, 83e-6), "83 us");
    assert_string_equal(oct_fmt_seconds(d, 125), "2 min 05 s");
    assert_string_equal(oct_fmt_seconds(d, 0.9999), "1.00 s");
    assert_string_equal(oct_fmt_percent(d, 0.8625), "86.25 %");
    assert_string_equal(oct_fmt_db(d, INFINITY), "exact");
    assert_string_equal(oct_fmt_db(d, -3.25), "-3.2 dB");
    assert_string_equal(oct_fmt_count(d, -1234567), "-1 234 567");
    assert_string_equal(oct_fmt_count(d, 123), "123");
    assert_string_equal(oct_fmt_clock(d, 3723), "1:02:03");
    assert_string_equal(oct_fmt_clock(d, INFINITY), "--:--");
}

TEST(widths)
{
    assert_int_equal(oct_utf8_width("größe"), 5);
    assert_int_equal(oct_utf8_width("e\xcc\x81"), 1);
    assert_int_equal(oct_utf8_width("層1"), 3);
    assert_int_equal(oct_utf8_width("\xff\xc0\x80"), 3);
    assert_int_equal(oct_utf8_fit("層1", 1), 0);
    assert_int_equal(oct_utf8_fit("層1", 2), 3);
    uint32_t c;
    assert_int_equal(oct_utf8_next("\xf0\x9f\x98\x80", &c), 4);
    assert_int_equal(c, 0x1f600);
    assert_int_equal(oct_utf8_next("\xed\xa0\x80", &c), 1); /* a surrogate */
    assert_int_equal(c, 0xfffd);
}
