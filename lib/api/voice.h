/* lib/api/voice.h -- how the functions of this layer speak to who called them. */
#ifndef OCT_API_VOICE_H
#define OCT_API_VOICE_H

#include "base/mem.h"
#include "base/progress.h"

typedef struct oct_model oct_model; /* onnx/model.h */

/* level: 0 for everybody, 1 for verbose output, OCT_NOTE_WARNING. text is one line. load: loads a model in place of
 * oct_load_checked. Each function may be NULL. */
typedef struct oct_voice {
    void (*note)(void *arg, int level, const char *text);
    oct_progress_fn progress;
    void *arg;
    oct_status (*load)(void *arg, const char *path, oct_model **m, oct_err *err);
} oct_voice;

/* Says a line. Where memory runs out, it is not said. */
void oct_say(oct_voice v, int level, const char *fmt, ...) OCT_PRINTF(3, 4);

#endif
