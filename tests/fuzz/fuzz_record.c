/* Fuzz target: the record of a written model, as qconvert verify reads it. Two texts with an empty line between them:
 * octet.record, and octet.command. What is read is written and read again, and a command may name nothing that a run
 * would write. */
#include "api/convert/session_int.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_status(oct_status s)
{
    if (s != OCT_OK && s != OCT_EMALFORMED && s != OCT_ENOMEM)
        abort();
}

static bool same(const oct_record *a, const oct_record *b)
{
    for (int p = 0; p < OCT_RECORD_PARTS; p++)
        if (a->part[p].there != b->part[p].there || a->part[p].n != b->part[p].n ||
            strcmp(a->part[p].sha256, b->part[p].sha256) != 0)
            return false;
    return true;
}

/* An empty one, where the text is none. */
static oct_record read_record(const char *text)
{
    oct_err err = OCT_ERR_INIT;
    oct_buf b = OCT_BUF_INIT;
    oct_record r, again;
    const oct_status s = oct_record_read(text, &r, &err);
    check_status(s);
    if (s != OCT_OK)
        return (oct_record){ 0 };
    oct_record_put(&r, &b);
    if (!b.failed && (oct_record_read(oct_buf_str(&b), &again, &err) != OCT_OK || !same(&r, &again)))
        abort();
    oct_buf_free(&b);
    return r;
}

static void read_command(const char *text, const oct_record *record)
{
    oct_err err = OCT_ERR_INIT;
    octet_convert_options x;
    oct_arena *a = oct_arena_create();
    if (!a)
        return;
    const oct_status s = oct_session_read_command(&x, "fuzz", text, record, a, &err);
    check_status(s);
    if (s == OCT_OK && (!x.model || x.output || x.html || x.dump_policy))
        abort();
    oct_arena_destroy(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = oct_alloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    char *command = strstr(text, "\n\n");
    if (command) {
        *command = 0;
        command += 2;
    }
    const oct_record record = read_record(text);
    if (command)
        read_command(command, &record);
    oct_free(text);
    return 0;
}
