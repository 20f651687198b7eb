/* From arguments to the typed options of a conversion. */
#include "qconvert/qconvert.h"

#include "graph/graph_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

octet_convert_options convert_options(const oct_cli *cli, const convert_args *a)
{
    octet_convert_options x = a->x;
    x.samples = tool_samples(cli, &a->data);
    x.rules = tool_texts(a->rules);
    x.disabled_passes = tool_texts(a->disabled);
    x.methods = tool_texts(a->methods);
    x.no_methods = tool_texts(a->no_methods);
    x.max_drop = tool_texts(a->max_drop);
    x.input_types = tool_texts(a->input_types);
    x.output_types = tool_texts(a->output_types);
    x.threads = (int)cli->threads;
    /* What was not given is not recorded, whatever --help shows as its default. */
    const struct {
        const char *option, **text;
    } texts[] = { { "target", &x.target }, { "scheme", &x.scheme }, { "format", &x.format }, { "effort", &x.effort } };
    for (size_t i = 0; i < OCT_COUNT(texts); i++)
        if (!oct_cli_given(cli, texts[i].option))
            *texts[i].text = NULL;
    x.bits = a->bits ? atoi(a->bits) : 0; /* each is one of the names that the option allows */
    x.block_size = a->block_size ? atoi(a->block_size) : 0;
    x.accuracy_level = oct_cli_given(cli, "accuracy-level") ? atoi(a->accuracy_level) : -1;
    return x;
}

static void keep_graph(void *arg, const char *step, const oct_graph *g)
{
    session *s = arg;
    if (strcmp(step, s->a->print_graph) != 0)
        return;
    oct_buf_cut(&s->graph_text, 0); /* of a conversion that was given up */
    if (s->a->dot)
        oct_graph_put_dot(g, &s->graph_text);
    else
        oct_graph_put_text(g, &s->graph_text);
}

oct_status session_open(session *s, oct_cli *cli, const convert_args *a, bool no_save, oct_err *err)
{
    *s = (session){ .cli = cli, .a = a, .of.memory = -1 };
    tool_command_line(&s->command, cli, a->argc, a->argv);
    if (s->command.failed)
        return oct_nomem(err);
    const char *const written[] = { cli->json, a->sarif };
    const octet_convert_options x = convert_options(cli, a);
    const oct_session_host host = { .voice = tool_voice(cli),
                                    .written = written,
                                    .n_written = OCT_COUNT(written),
                                    .no_save = no_save,
                                    .command = oct_buf_str(&s->command),
                                    .graph = a->print_graph ? keep_graph : NULL,
                                    .graph_arg = s };
    const oct_status st = oct_session_open(&s->of, &x, &host, err);
    cli->output_taken = strcmp(x.model, "-") == 0 && !x.output && !x.dry_run && !no_save;
    return st;
}

void session_close(session *s)
{
    oct_session_close(&s->of);
    oct_buf_free(&s->graph_text);
    oct_buf_free(&s->command);
}
