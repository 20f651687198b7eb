/* A conversion's result as a .tflite file. */
#include "api/convert/session_int.h"
#include "tflite/tflite.h"

#include <string.h>

oct_status oct_session_tflite_check(const oct_graph *g, oct_err *err)
{
    oct_tflite t;
    const oct_status s = oct_tflite_make(g, "", &t, err);
    oct_tflite_free(&t);
    return s;
}

/* One line of the notes at a time. */
static void say_notes(const oct_session *s, const oct_buf *notes)
{
    char line[300];
    for (const char *p = oct_buf_str(notes); *p; p += strcspn(p, "\n") + 1) {
        oct_print_whole(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
        oct_say(s->h.voice, 0, "%s", line);
    }
}

static oct_status write_to(const oct_tfl_model *m, const char *path, oct_err *err)
{
    oct_out out;
    OCT_TRY(oct_out_open(&out, path, err));
    const oct_status st = oct_tfl_model_write(m, &out, err);
    if (st == OCT_OK)
        return oct_out_commit(&out, err);
    oct_out_abort(&out);
    return st;
}

oct_status oct_session_tflite_write(oct_session *s, const char *path, oct_err *err)
{
    oct_tflite t;
    OCT_TRY(oct_conversion_close_graph(&s->c, path, err));
    const char *by = oct_arena_printf(s->c.arena, "octet %s: %s", OCT_VERSION, oct_buf_str(&s->made_by));
    if (!by)
        return oct_nomem(err);
    oct_status st = oct_tflite_make(s->c.m->graph, by, &t, err);
    if (st == OCT_OK)
        st = oct_tfl_model_size(&t.model, &s->c.size_after, err);
    if (st == OCT_OK)
        st = write_to(&t.model, path, err);
    if (st == OCT_OK)
        say_notes(s, &t.notes);
    oct_tflite_free(&t);
    return st;
}
