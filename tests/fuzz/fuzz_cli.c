/* Fuzz target: command lines. The first line names the tool, each further line is an argument. The tools' own main
 * functions read them up to where work would begin: tool_start, which stands here instead of the real one, says that
 * all is done. */
#include "common/common.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
oct_status __wrap_tool_start(oct_cli *cli, oct_err *err);

enum { MOST = 100 };

oct_status __wrap_tool_start(oct_cli *cli, oct_err *err)
{
    cli->done = true;
    return OCT_OK;
}

static int run(int argc, char **argv)
{
    const char *tool = argv[0];
    if (strcmp(tool, "qconvert") == 0)
        return qconvert_main(argc, argv);
    if (strcmp(tool, "qcalib") == 0)
        return qcalib_main(argc, argv);
    return strcmp(tool, "qeval") == 0 ? qeval_main(argc, argv) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    char *text = oct_alloc(size + 1), *argv[MOST + 1] = { text };
    int argc = 1;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    for (char *p = text; (p = strchr(p, '\n')) && argc < MOST;) {
        *p++ = 0;
        argv[argc++] = p;
    }
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    FILE *out = stdout, *err = stderr;
    stdout = stderr = nowhere;
    const int code = run(argc, argv);
    stdout = out;
    stderr = err;
    if (code != 0 && code != 2) /* nothing but the command line can be wrong here */
        abort();
    oct_free(text);
    return 0;
}
