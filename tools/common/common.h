/* tools/common/common.h -- shared by the tools: start and end, the model's samples, and checks that outputs are not
 * inputs. */
#ifndef OCT_TOOLS_COMMON_H
#define OCT_TOOLS_COMMON_H

#include "api/files.h"
#include "api/samples.h"
#include "cli/cli.h"

/* The tools. The main functions of the programs call them (tools/common/program.c). They return the exit code. */
int qcalib_main(int argc, char **argv);
int qconvert_main(int argc, char **argv);
int qeval_main(int argc, char **argv);

/* The first call, before oct_cli_parse: makes sure that a program has the descriptors 0 to 2, and sets what --version
 * and --help say about instruction sets. */
void tool_init(oct_cli *cli);
/* The call after oct_cli_parse: protects the files of a program, warns of files that killed runs have left beside
 * outputs, and applies --isa. */
oct_status tool_start(oct_cli *cli, oct_err *err);
/* The last call: oct_cli_finish, and an end to the claims of outputs. */
int tool_finish(oct_cli *cli, oct_status s, oct_err *err);

/* The options about samples. */
typedef struct tool_data {
    oct_cli_list specs, preprocess;
    int64_t samples;    /* 0: all */
    bool first;         /* take the first ones, and do not spread the choice over all */
    int64_t seed;       /* the seed of the choice */
    bool hold;          /* leave at least a fifth of the samples unchosen */
    const char *labels; /* file, or NULL */
    const char *shard;  /* "i/n", "auto", "auto/n" or NULL */
    int64_t shard_i, shard_n;
    bool skip_bad;
    oct_cli_list states; /* OUT=IN */
    int64_t generate;    /* tokens after each text; 0: none */
} tool_data;

/* The options that fill it, the same for all tools; d: tool_data *. Options of a single tool follow in the group. */
#define TOOL_OPT_DATA(d)                                                                                           \
    OPT_GROUP("Samples"),                                                                                          \
        OPT_MULTI(0, "data", &(d)->specs, "SPEC",                                                                  \
                  "samples: a folder, .csv, .npy, .npz or tar shard; a test set or quoted "                        \
                  "pattern; - is standard input; pipe:CMD a tar stream"),                                          \
        OPT_MULTI('p', "preprocess", &(d)->preprocess, "STEPS", "steps, such as imagenet or resize=256:crop=224"), \
        OPT_INT('n', "samples", &(d)->samples, 1, INT64_MAX, "use N samples, spread over all"),                    \
        OPT_FLAG(0, "first", &(d)->first, "use the first N instead"), OPT_NEEDS("first", "samples"),               \
        OPT_INT(0, "seed", &(d)->seed, 0, INT64_MAX,                                                               \
                "choose other N samples; a seed chooses the same ones on every machine"),                          \
        OPT_NEEDS("seed", "samples"), OPT_CONFLICT("seed", "first"),                                               \
        OPT_MULTI(0, "state", &(d)->states, "OUT=IN",                                                              \
                  "output OUT of a sample is input IN of the next one; zeros where a "                             \
                  "recording begins"),                                                                             \
        OPT_INT(0, "generate", &(d)->generate, 1, OCT_GENERATE_MOST,                                               \
                "a decoder with a cache writes N tokens after each text, one by one: every step is a sample"),     \
        OPT_CONFLICT("generate", "skip-bad"),                                                                      \
        OPT_FLAG(0, "skip-bad", &(d)->skip_bad, "count and name broken samples instead of stopping")
#define TOOL_OPT_LABELS(d) OPT_FILE(0, "labels", &(d)->labels, "labels of the samples: an .npy of integers or a CSV")
/* Options about how results are judged, the same for all tools. a has the members decode and truth, const char *.
 * oct_judging_open opens their files. */
#define TOOL_OPT_JUDGING(a)                                                                           \
    OPT_ENUM_MORE(0, "decode", &(a)->decode, oct_decode_builtin, "RULE",                              \
                  "what the outputs mean: a rule, as nanodet or yolov8:score=0.3, or a file of one"), \
        OPT_FILE(                                                                                     \
            0, "truth", &(a)->truth,                                                                  \
            "truth about the samples other than labels: boxes (COCO .json, .csv), maps of classes (a folder, .npy), scores of pairs (.csv, .npy)")
/* The same; seconds: double *. */
#define TOOL_OPT_METRIC_TIMEOUT(seconds)                        \
    OPT_FLOAT(0, "metric-timeout", (seconds), 0.01, 30 * 86400, \
              "seconds for --metric-cmd on the outputs of one model [default: 3600]")
/* The same for the functions of the library. */
octet_samples tool_samples(const oct_cli *cli, const tool_data *d);
static inline octet_texts tool_texts(oct_cli_list l)
{
    return (octet_texts){ l.v, l.n };
}

/* Parses d->shard into shard_i and shard_n. "auto" takes both from the environment, and "auto/n" only the part.
 * OCT_EUSAGE. */
oct_status tool_read_shard(tool_data *d, oct_err *err);
/* The built-in recipes of folders, and "auto": what --recipe takes. */
const char *tool_recipe_name(size_t i, const char **summary);
/* Progress, notes by their level, and loading of models, with the cli as the argument. */
oct_voice tool_voice(oct_cli *cli);

/* Prints a report in some form to a file; nothing if path is NULL. OCT_ENOMEM: report is NULL, as of a document for
 * which memory ran out. */
oct_status tool_write_report(const char *path, void (*print)(const oct_item *report, oct_buf *out),
                             const oct_item *report, oct_err *err);

/* Appends the command line for a shell, with one option in each line. */
void tool_command_line(oct_buf *b, const oct_cli *cli, int argc, char *const *argv);
#endif
