/* lib/cli/cli.h -- the command line: one table of options makes parsing, --help and the manual's
 * OPTIONS section.
 *
 *   const oct_cli_opt opts[] = {
 *       OPT_POSITIONAL("MODEL", &a.model, "ONNX model to calibrate"),
 *       OPT_GROUP("Samples"),
 *       OPT_MULTI(0, "data", &a.data, "SPEC", "samples: a folder, an .npy, ..."),
 *       OPT_INT('n', "samples", &a.samples, 1, INT64_MAX, "stop after this many samples"),
 *       OPT_REQUIRED("data"),
 *       OPT_COMMON, OPT_END,
 *   };
 *   oct_err err = OCT_ERR_INIT;
 *   oct_cli cli = { .name = "qcalib", .summary = "...", .opts = opts };
 *   oct_status s = oct_cli_parse(&cli, argc, argv, &err);
 *   if (s == OCT_OK && !cli.done)              // --help, --version, `--observer help` end here
 *       s = calibrate(&a, &cli, &err);
 *   return oct_cli_finish(&cli, s, &err);
 *
 * Accepted: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, bundled flags (-qv), --flag and --no-flag,
 * options and positionals in any order, "--" before positionals that start with '-', "-" as a positional.
 * A value that starts with '-' needs the '=' form, but for numbers and "-" itself. Options are never
 * abbreviated. Given twice (but OPT_MULTI), contradicted or unknown options are OCT_EUSAGE with a hint.
 *
 * Strings put into variables point into argv. Lists belong to the cli, until oct_cli_finish. */
#ifndef OCT_CLI_CLI_H
#define OCT_CLI_CLI_H

#include "base/buf.h"
#include "base/mem.h"
#include "cli/progress_line.h"

typedef struct oct_cli_list {
    const char **v;
    size_t n;
} oct_cli_list;

enum { OCT_CLI_WORD = 64 }; /* bytes */

/* The i-th name of an enumeration, NULL beyond the last; *summary may be set to a one-line text. */
typedef const char *(*oct_cli_names_fn)(size_t i, const char **summary);

typedef enum oct_cli_kind {
    OCT_CLI_END,
    OCT_CLI_GROUP,        /* a heading in --help          */
    OCT_CLI_FLAG,         /* bool *                       */
    OCT_CLI_ACTION,       /* bool *                       */
    OCT_CLI_COUNT,        /* int *                        */
    OCT_CLI_STR,          /* const char **                */
    OCT_CLI_FILE,         /* const char **                */
    OCT_CLI_OUT,          /* const char **                */
    OCT_CLI_ENUM,         /* const char **                */
    OCT_CLI_ENUM_OR_FILE, /* const char **               */
    OCT_CLI_ENUMS,        /* oct_cli_list *               */
    OCT_CLI_MULTI,        /* oct_cli_list *               */
    OCT_CLI_INT,          /* int64_t *                    */
    OCT_CLI_FLOAT,        /* double *                     */
    OCT_CLI_POSITIONAL,   /* const char **                */
    OCT_CLI_POSITIONALS,  /* oct_cli_list *               */
    OCT_CLI_REQUIRED,
    OCT_CLI_CONFLICT,
    OCT_CLI_NEEDS,
    OCT_CLI_USUAL,
    OCT_CLI_COMMON,
} oct_cli_kind;

/* One line of the table; made by the macros below. */
typedef struct oct_cli_opt {
    oct_cli_kind kind;
    char letter;      /* 0: no short form */
    const char *name; /* without "--"; of a positional: as shown */
    void *var;
    const char *arg;  /* shown for the value */
    const char *help; /* NULL hides the option from --help and the manual */
    int64_t lo, hi;   /* of INT; how many of POSITIONAL(S) */
    double flo, fhi;  /* of FLOAT */
    oct_cli_names_fn names;
    bool (*spares)(const void *); /* of REQUIRED: whether what var points to needs no such option */
} oct_cli_opt;

#define OCT_CLI_VAR(type, p) ((void *)(1 ? (p) : (type *)0)) /* warns on a variable of another type */

/* --x sets true, --no-x false; what the variable holds before parsing is the default. */
#define OPT_FLAG(l, nm, var, text) { OCT_CLI_FLAG, l, nm, OCT_CLI_VAR(bool, var), NULL, text }
/* A flag that acts as a command (--print-policy): required positionals and options may be missing. */
#define OPT_ACTION(l, nm, var, text) { OCT_CLI_ACTION, l, nm, OCT_CLI_VAR(bool, var), NULL, text }
#define OPT_STR(l, nm, var, value, text) { OCT_CLI_STR, l, nm, OCT_CLI_VAR(const char *, var), value, text }
/* A file to read; "-" is standard input where the tool allows it. Never empty. */
#define OPT_FILE(l, nm, var, text) { OCT_CLI_FILE, l, nm, OCT_CLI_VAR(const char *, var), "FILE", text }
/* A file to write; "-" is standard output. Two outputs must differ. */
#define OPT_OUT(l, nm, var, text) { OCT_CLI_OUT, l, nm, OCT_CLI_VAR(const char *, var), "FILE", text }
/* One of the names; "help" lists them and ends the run. What the variable holds before is the default. */
#define OPT_ENUM(l, nm, var, fn, text) \
    { OCT_CLI_ENUM, l, nm, OCT_CLI_VAR(const char *, var), "NAME", text, 0, 0, 0, 0, fn }
/* The same, or the path of a file to read, which has a '/' in it. */
#define OPT_ENUM_OR_FILE(l, nm, var, fn, text) \
    { OCT_CLI_ENUM_OR_FILE, l, nm, OCT_CLI_VAR(const char *, var), "NAME", text, 0, 0, 0, 0, fn }
/* The same, and a name may be followed by ':' and more text, which the tool interprets. */
#define OPT_ENUM_MORE(l, nm, var, fn, value, text) \
    { OCT_CLI_ENUM_OR_FILE, l, nm, OCT_CLI_VAR(const char *, var), value, text, 1, 0, 0, 0, fn }
/* Several of the names, separated by commas. A name that ends in '#' stands for all names with a number in place of
 * '#'. */
#define OPT_ENUMS(l, nm, var, fn, text) \
    { OCT_CLI_ENUMS, l, nm, OCT_CLI_VAR(oct_cli_list, var), "NAME,...", text, 0, 0, 0, 0, fn }
/* Several of the names, or paths of files to read, which have a '/' in them. */
#define OPT_ENUMS_OR_FILES(l, nm, var, fn, text) \
    { OCT_CLI_ENUMS, l, nm, OCT_CLI_VAR(oct_cli_list, var), "NAME,...", text, 1, 0, 0, 0, fn }
/* May be repeated; values in the order given. */
#define OPT_MULTI(l, nm, var, value, text) { OCT_CLI_MULTI, l, nm, OCT_CLI_VAR(oct_cli_list, var), value, text }
#define OPT_INT(l, nm, var, lo, hi, text) { OCT_CLI_INT, l, nm, OCT_CLI_VAR(int64_t, var), "N", text, lo, hi }
#define OPT_FLOAT(l, nm, var, lo, hi, text) { OCT_CLI_FLOAT, l, nm, OCT_CLI_VAR(double, var), "X", text, 0, 0, lo, hi }
/* The same with a word for the value. */
#define OPT_FLOAT_OF(l, nm, var, value, lo, hi, text) \
    { OCT_CLI_FLOAT, l, nm, OCT_CLI_VAR(double, var), value, text, 0, 0, lo, hi }
#define OPT_POSITIONAL(nm, var, text) { OCT_CLI_POSITIONAL, 0, nm, OCT_CLI_VAR(const char *, var), NULL, text, 1, 1 }
#define OPT_OPTIONAL(nm, var, text) { OCT_CLI_POSITIONAL, 0, nm, OCT_CLI_VAR(const char *, var), NULL, text, 0, 1 }
/* Takes all remaining positionals, at least `least`; one per table. */
#define OPT_POSITIONALS(nm, var, least, text) \
    { OCT_CLI_POSITIONALS, 0, nm, OCT_CLI_VAR(oct_cli_list, var), NULL, text, least, INT64_MAX }
/* Heading for the options that follow. */
#define OPT_GROUP(title) { OCT_CLI_GROUP, 0, title }
/* Rules between options, by long names without dashes, separated by spaces. */
#define OPT_REQUIRED(nm) { OCT_CLI_REQUIRED, 0, nm }
#define OPT_REQUIRED_UNLESS(nm, fn, of) { OCT_CLI_REQUIRED, 0, nm, .var = of, .spares = fn }
#define OPT_CONFLICT(a, b) { OCT_CLI_CONFLICT, 0, a, NULL, b } /* none of a with any of b */
#define OPT_NEEDS(a, b) { OCT_CLI_NEEDS, 0, a, NULL, b }       /* each of a only with b, which is one */
/* The options that --help shows, by long names without dashes, separated by spaces; --help-all shows all of them.
 * Without this entry, --help shows all. What --help prints shall leave a line free on a screen of 24. Of a text, --help
 * shows only the clauses (they end in "; ", ": " or " [") that fit in a line. */
#define OPT_USUAL(names) { OCT_CLI_USUAL, 0, names }
/* -q -v --threads --isa --json --progress --help --help-all --completion --version: the fields of oct_cli. */
#define OPT_COMMON { OCT_CLI_COMMON }
#define OPT_END { OCT_CLI_END }

/* `qcalib merge ...`: chosen by the first argument, with a table of its own. */
typedef struct oct_cli_command {
    const char *name, *summary;
    const oct_cli_opt *opts;
    const char *examples; /* as in oct_cli */
} oct_cli_command;

typedef struct oct_cli {
    /* Set by the tool. */
    const char *name;    /* "qcalib" */
    const char *summary; /* one or two sentences */
    const oct_cli_opt *opts;
    const oct_cli_command *commands; /* n_commands of them, or NULL */
    size_t n_commands;
    const char *examples;              /* lines under "Examples:", each ending in a newline; may be NULL */
    const char *isa_text;              /* what this CPU runs, for --version; may be NULL */
    const char *isa_note;              /* a line more of it, for --version --verbose; may be NULL */
    const char *isa_names;             /* what --isa accepts, for --help; may be NULL */
    bool (*is_data)(const char *path); /* whether a file's name is one of samples; may be NULL */
    /* What a word stands for that is none of an option's names, by its long name: the name it means, or NULL and
     * perhaps a hint. Of option "": what an unknown option stands for, as a hint. May be NULL. */
    const char *(*meant)(const char *option, const char *word, const char **hint);
    /* The i-th of these words, for what is mistyped; false: there are no more. May be NULL. */
    bool (*also)(const char *option, size_t i, char dst[OCT_CLI_WORD]);
    FILE *out, *err; /* NULL: stdout, stderr */

    /* Set by oct_cli_parse. */
    const oct_cli_command *command; /* NULL: the tool itself */
    bool done;                      /* nothing is left to do (--help) */
    bool quiet;                     /* -q */
    int verbose;                    /* how many -v */
    int64_t threads;                /* 0: as many as there are processors */
    const char *isa;                /* NULL: the best */
    const char *json;               /* where the report goes; NULL: nowhere, "-": standard output */
    bool output_taken;              /* the tool's: standard output gets an output that no option asked for */
    oct_progress progress;          /* give libraries oct_progress_report and &cli.progress */

    /* Private. */
    bool show_progress, help, help_all, version, help_man;
    const char *topic;      /* the word behind --help, or NULL */
    const char *completion; /* a shell, or NULL */
    oct_arena *arena;
    struct oct_cli_live *live;
    size_t n_live;
} oct_cli;

/* Fills the variables of the table. OCT_EUSAGE, OCT_ENOMEM. */
oct_status oct_cli_parse(oct_cli *cli, int argc, char **argv, oct_err *err);

/* Whether the option (long name, or a positional's name) was on the command line. */
bool oct_cli_given(const oct_cli *cli, const char *name);

/* Prints the error of a failure as "qcalib: <text>" and " hint: <hint>", flushes standard output (which can fail:
 * OCT_EIO), releases the cli and returns the exit code. If the reader of standard output is gone, there is only the
 * code and no text. */
int oct_cli_finish(oct_cli *cli, oct_status s, oct_err *err);

/* Lines on standard error, after erasing the progress line. A note of level 0 shows without -q, one of
 * level n > 0 with n times -v; a warning ("qcalib: warning: ...") always shows. No newline in fmt. */
void oct_cli_note(oct_cli *cli, int level, const char *fmt, ...) OCT_PRINTF(3, 4);
void oct_cli_warn(oct_cli *cli, const char *fmt, ...) OCT_PRINTF(2, 3);
/* Prints a fault like oct_cli_finish ("qcalib: ..."). For runs with several faults: all but the last one, which ends
 * the run. */
void oct_cli_fault(oct_cli *cli, const char *fmt, ...) OCT_PRINTF(2, 3);

/* The stream for results that people read: standard output, or standard error when --json or another OPT_OUT takes
 * standard output. Erases the progress line. Print to it with oct_print (textfmt.h) and tables. */
FILE *oct_cli_result(oct_cli *cli);

/* When `path` is data rather than a model (by cli->is_data, or a folder): hints that `option` takes
 * it, and that a pattern should be quoted. For tools whose positionals must be models. */
void oct_cli_pattern_hint(const oct_cli *cli, const char *option, const char *path, oct_err *err);

#endif
