/* qcalib: records the values that a model's tensors take. */
#include "qcalib/qcalib.h"

#include "api/choices.h"

static oct_status calibrate(oct_cli *cli, calib_args *a, oct_err *err)
{
    const oct_calibration_host h = qcalib_host(cli);
    OCT_TRY(tool_read_shard(&a->data, err));
    const octet_calibrate_options x = { .model = a->model,
                                        .samples = tool_samples(cli, &a->data),
                                        .shard = a->data.shard_i,
                                        .shards = a->data.shard_n,
                                        .output = a->output,
                                        .resume = a->resume,
                                        .threads = (int)cli->threads };
    return oct_calibration_run(&x, &h, err);
}

static oct_status merge_tables(oct_cli *cli, const table_args *t, oct_err *err)
{
    const oct_calibration_host h = qcalib_host(cli);
    return oct_tables_merge(tool_texts(t->tables), t->output, t->partial, &h, err);
}

static oct_status import_ranges(oct_cli *cli, const foreign_args *f, oct_err *err)
{
    const oct_calibration_host h = qcalib_host(cli);
    return oct_table_import(f->file, f->model, f->output, &h, err);
}

int qcalib_main(int argc, char **argv)
{
    calib_args c = { 0 };
    table_args t = { 0 };
    foreign_args f = { 0 };
    pack_args p = { .size = "256MB" };
    char formats[120], observers[160];
    snprintf(formats, sizeof formats, "form of what is written: %s", oct_encoding_form_names());
    snprintf(observers, sizeof observers, "how ranges are chosen (those that are not pinned): %s",
             oct_observer_names());
    const oct_cli_opt run[] = {
        OPT_POSITIONAL("MODEL", &c.model, "float ONNX model"),
        TOOL_OPT_DATA(&c.data),
        OPT_STR(0, "shard", &c.data.shard, "I/N",
                "use only part I of N, counted from 0; auto and auto/N ask the job's environment"),
        OPT_GROUP("Output"),
        OPT_OUT('o', "output", &c.output, "file to write: the table; compressed when the name ends in .gz"),
        OPT_FLAG(0, "resume", &c.resume,
                 "keep a checkpoint, TABLE.checkpoint; continue from it after the run was killed"),
        OPT_REQUIRED("data"),
        OPT_REQUIRED("output"),
        OPT_COMMON,
        OPT_USUAL("data preprocess samples shard output json"),
        OPT_END,
    };
    const oct_cli_opt merge[] = {
        OPT_POSITIONALS("TABLE", &t.tables, 2, "tables of parts of the samples"),
        OPT_OUT('o', "output", &t.output, "file to write: the joined table"),
        OPT_FLAG(0, "partial", &t.partial, "write a table that lacks shards, marked as incomplete"),
        OPT_REQUIRED("output"),
        OPT_COMMON,
        OPT_USUAL("output partial json quiet verbose"),
        OPT_END,
    };
    const oct_cli_opt show[] = {
        OPT_POSITIONAL("TABLE", &t.table, "calibration table"),
        OPT_COMMON,
        OPT_USUAL("json quiet verbose"),
        OPT_END,
    };
    const oct_cli_opt diff[] = {
        OPT_POSITIONAL("A", &t.a, "calibration table"),
        OPT_POSITIONAL("B", &t.b, "the other one"),
        OPT_COMMON,
        OPT_USUAL("json quiet verbose"),
        OPT_END,
    };
    const oct_cli_opt import[] = {
        OPT_POSITIONAL("FILE", &f.file, "ranges that another tool has found; the form is recognized by its content"),
        OPT_FILE(0, "model", &f.model, "the float model: the one whose tensors have these ranges"),
        OPT_OUT('o', "output", &f.output, "file to write: the table"),
        OPT_REQUIRED("model"),
        OPT_REQUIRED("output"),
        OPT_COMMON,
        OPT_USUAL("model output json quiet verbose"),
        OPT_END,
    };
    const oct_cli_opt export[] = {
        OPT_POSITIONAL("TABLE", &f.table, "calibration table"),
        OPT_STR(0, "format", &f.format, "NAME", formats),
        OPT_STR(0, "observer", &f.observer, "NAME", observers),
        OPT_FILE(0, "model", &f.model, "the float model: the table of ncnn names its layers and weights"),
        OPT_OUT('o', "output", &f.output, "file to write: the ranges"),
        OPT_REQUIRED("format"),
        OPT_REQUIRED("output"),
        OPT_COMMON,
        OPT_USUAL("format observer model output json quiet verbose"),
        OPT_END,
    };
    const oct_cli_opt pack[] = {
        OPT_POSITIONALS("SPEC", &p.specs, 1,
                        "samples, one tensor each: a folder, .csv, .npy, .npz, .wav or tar shard; a quoted pattern"),
        OPT_STR(0, "prefix", &p.output, "PREFIX", "shards are PREFIX-000000.tar and so on"),
        OPT_INT(0, "count", &p.count, 1, INT64_MAX, "at most N samples in a shard"),
        OPT_STR(0, "shard-size", &p.size, "SIZE", "begin a new shard at this size [default: 256MB]"),
        OPT_REQUIRED("prefix"),
        OPT_COMMON,
        OPT_USUAL("prefix count shard-size json threads quiet verbose"),
        OPT_END,
    };
    const oct_cli_command commands[] = {
        { "merge", "join the tables of parts into that of the whole", merge,
          "  qcalib merge a.calib b.calib -o m.calib\n" },
        { "show", "draw ranges and histograms", show, "  qcalib show m.calib\n" },
        { "diff", "compare two tables", diff, "  qcalib diff old.calib new.calib\n" },
        { "import", "make a table of ranges that another tool has found", import,
          "  qcalib import calibration.json --model m.onnx -o m.calib\n" },
        { "export", "write a table's ranges as another tool has them", export,
          "  qcalib export m.calib --format tensorrt -o m.cache\n" },
        { "pack", "write samples as tar shards", pack, "  qcalib pack photos/ --prefix photos --count 1000\n" },
    };
    oct_err err = OCT_ERR_INIT;
    oct_cli cli = {
        .name = "qcalib",
        .summary =
            "Runs a float ONNX model over samples and writes a calibration table, from which qconvert chooses scales.",
        .opts = run,
        .commands = commands,
        .n_commands = OCT_COUNT(commands),
        .examples = "  qcalib m.onnx --data photos/ --preprocess imagenet -n 256 -o m.calib\n",
    };
    tool_init(&cli);
    oct_status s = oct_cli_parse(&cli, argc, argv, &err);
    if (s == OCT_OK && !cli.done)
        s = tool_start(&cli, &err);
    if (s == OCT_OK && !cli.done)
        s = !cli.command                  ? calibrate(&cli, &c, &err)
            : cli.command == &commands[0] ? merge_tables(&cli, &t, &err)
            : cli.command == &commands[1] ? qcalib_show(&cli, &t, &err)
            : cli.command == &commands[2] ? qcalib_diff(&cli, &t, &err)
            : cli.command == &commands[3] ? import_ranges(&cli, &f, &err)
            : cli.command == &commands[4] ? qcalib_export(&cli, &f, &err)
                                          : qcalib_pack(&cli, &p, &err);
    return tool_finish(&cli, s, &err);
}
