/* tools/common/common.h -- what the tools share: the start, the model's samples, outputs that are not inputs. */
#ifndef OCT_TOOLS_COMMON_H
#define OCT_TOOLS_COMMON_H

#include "base/json.h"
#include "cli/cli.h"
#include "data/data.h"
#include "eval/decode.h"
#include "eval/follow.h"
#include "eval/truth.h"
#include "graph/graph.h"
#include "observers/calib.h"
#include "onnx/model.h"

/* The tools as functions: what main does in the programs (tools/common/program.c), where host is NULL, and what the library calls, one at a time.
 * Return the exit code. */
int qcalib_main(int argc, char **argv, const oct_cli_host *host);
int qconvert_main(int argc, char **argv, const oct_cli_host *host);
int qeval_main(int argc, char **argv, const oct_cli_host *host);

/* The first call: sees to the descriptors 0 to 2 of a program, fills what --version and --help say of instruction sets. Before oct_cli_parse. */
void tool_init(oct_cli *cli, const oct_cli_host *host);
/* After it: guards files of a program, warns of what killed runs left where outputs go, applies --isa. */
oct_status tool_start(oct_cli *cli, oct_err *err);
/* The last: oct_cli_finish, and nothing remains for a next run in the same process. */
int tool_finish(oct_cli *cli, oct_status s, oct_err *err);

/* Loads a model. A folder, or what is data by its name, is OCT_EUSAGE with a hint to --data. */
oct_status tool_load(oct_cli *cli, const char *path, oct_model **m, oct_err *err);

enum { TOOL_STATES = 256 };

/* How samples are asked for on the command line. */
typedef struct tool_data {
    oct_cli_list specs, preprocess;
    int64_t samples;      /* 0: all */
    bool first;           /* the first ones, not spread over all */
    int64_t seed;         /* of the choice */
    bool hold;            /* leave at least a fifth unchosen */
    const char *labels;   /* file, or NULL */
    const char *shard;    /* "i/n", "auto", "auto/n" or NULL */
    int64_t shard_i, shard_n;
    bool skip_bad;
    bool synthetic;       /* samples may be made (data/synthetic.h) */
    oct_cli_list states;  /* OUT=IN */
    oct_state state[TOOL_STATES]; /* the same by number, of tool_read_states */
    size_t n_state;
} tool_data;

/* The options that fill it, the same for every tool; d: tool_data *. Options of one tool's own follow in the group. */
#define TOOL_OPT_DATA(d)                                                                                                      \
    OPT_GROUP("Samples"),                                                                                                     \
        OPT_MULTI(0, "data", &(d)->specs, "SPEC", "samples: a folder, .csv, .npy, .npz or tar shard; a test set or quoted "     \
                                                "pattern; - is standard input; pipe:CMD a tar stream"),                                    \
        OPT_MULTI('p', "preprocess", &(d)->preprocess, "STEPS", "steps, such as imagenet or resize=256:crop=224"),   \
        OPT_INT('n', "samples", &(d)->samples, 1, INT64_MAX, "use N samples, spread over all"),                               \
        OPT_FLAG(0, "first", &(d)->first, "use the first N instead"), OPT_NEEDS("first", "samples"),                         \
        OPT_INT(0, "seed", &(d)->seed, 0, INT64_MAX, "choose other N samples; a seed chooses the same ones on every machine"),             \
        OPT_NEEDS("seed", "samples"), OPT_CONFLICT("seed", "first"),                                                          \
        OPT_MULTI(0, "state", &(d)->states, "OUT=IN", "output OUT of a sample is input IN of the next one; zeros where a "  \
                                                  "recording begins"),                                                       \
        OPT_FLAG(0, "skip-bad", &(d)->skip_bad, "count and name broken samples instead of stopping")
#define TOOL_OPT_LABELS(d) OPT_FILE(0, "labels", &(d)->labels, "labels of the samples: an .npy of integers or a CSV")
/* What results are judged by beside labels, alike in all tools; a has members decode and truth, const char *. Their files are opened by tool_open_judging. */
#define TOOL_OPT_JUDGING(a)                                                                                                   \
    OPT_ENUM_MORE(0, "decode", &(a)->decode, oct_decode_builtin, "RULE",                                                      \
                  "what the outputs mean: a rule, as nanodet or yolov8:score=0.3, or a file of one"),                          \
        OPT_FILE(0, "truth", &(a)->truth,                                                                                     \
                 "truth about the samples other than labels: boxes (COCO .json, .csv), maps of classes (a folder, .npy), scores of pairs (.csv, .npy)")
/* The file that a rule is in; NULL: it is a built-in one, or there is none. */
const char *tool_rule_file(const char *decode);
/* NULL stays NULL. Close both, also after a failure. */
oct_status tool_open_judging(const char *decode, const char *truth, oct_decode **rule, oct_truth **t, oct_err *err);

/* Reads d->shard into shard_i and shard_n; "auto" asks the environment for both, "auto/n" for the part. OCT_EUSAGE. */
oct_status tool_read_shard(tool_data *d, oct_err *err);
/* Finds the states of the model in d->states. OCT_EUSAGE where there are no such outputs and inputs, or they do not go together. */
oct_status tool_read_states(const oct_graph *g, tool_data *d, oct_err *err);
/* Opens the samples for n inputs. Its states have been read. */
oct_status tool_open_inputs(const oct_input_desc *in, size_t n, const tool_data *d, int threads, oct_source **src, oct_err *err);
/* The same for the inputs of g, whose states are those that g leaves (eval/follow.h). g must outlive the source. */
oct_status tool_open_data(const oct_graph *g, const tool_data *d, int threads, oct_source **src, oct_err *err);
/* Says which samples were chosen, where not all are used. */
void tool_say_samples(oct_cli *cli, const oct_source *src);
/* Says how many samples were broken and which. */
void tool_say_bad(oct_cli *cli, const oct_source *src);

/* Warns of a calibration table that lacks shards, and names them. */
void tool_warn_incomplete(oct_cli *cli, const char *path, const oct_calib *c);

/* Fails when `out` (NULL never does) is one of the files, also through links, matches one of the patterns or is a folder, and when its
 * folder does not exist: before the work, not after it. What this does not see, because a list names it, is seen when the file is
 * opened (oct_out_claim). in: n paths, NULLs allowed. */
oct_status tool_check_output(const char *out, const char *const *in, size_t n, oct_err *err);
/* The same against a model's files. */
oct_status tool_check_model_output(const char *out, const oct_model *m, oct_err *err);

/* An oct_conversion's listener whose argument is the oct_cli: progress, and lines by their level. */
void tool_say_progress(void *cli, const char *what, int64_t done, int64_t total);
void tool_say_note(void *cli, int level, const char *text);

/* Writes a text to a file, or standard output for "-". */
oct_status tool_write_text(const char *path, const oct_buf *text, oct_err *err);
/* Opens the outermost level of j with its schema (share/schema/SCHEMA.json) and the version of this program. */
void tool_json_open(oct_json *j, const char *schema);
/* Closes the outermost level of j, writes the text so and frees it. */
oct_status tool_write_json(const char *path, oct_json *j, oct_err *err);

/* Appends an argument as a shell would need it. */
void tool_quote(oct_buf *b, const char *arg);
/* Appends the command line, for a shell: an option a line. */
void tool_command_line(oct_buf *b, const oct_cli *cli, int argc, char *const *argv);
/* File name without its folders. */
const char *tool_base(const char *path);

#endif
