/* From arguments to the typed options of a conversion. */
#include "qconvert/qconvert.h"

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
    if (a->targets.n)
        x.target = a->targets.v[0];
    x.bits = a->bits ? atoi(a->bits) : 0; /* each is one of the names that the option allows */
    x.block_size = a->block_size ? atoi(a->block_size) : 0;
    x.accuracy_level = oct_cli_given(cli, "accuracy-level") ? atoi(a->accuracy_level) : -1;
    return x;
}
