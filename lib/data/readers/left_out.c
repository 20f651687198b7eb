/* lib/data/readers/left_out.c -- suffixes of files that look like samples. Files that lie beside samples for other
 * reasons, such as texts, are not among them. */
#include "data/readers/left_out.h"

#include "base/buf.h"
#include "base/mem.h"
#include "data/data_config.h" /* made by the build */
#include "data/readers/readers.h"

#include <string.h>

static const char *const kinds[] = {
#ifndef OCT_HAVE_WEBP
    ".webp",
#endif
    ".gif",  ".tif",  ".tiff", ".heic", ".heif",     ".avif",    ".jxl", ".jp2", ".ppm",  ".pgm", ".dng", ".cr2",
    ".nef",  ".jfif", ".mp3",  ".flac", ".ogg",      ".opus",    ".m4a", ".aac", ".aiff", ".mp4", ".avi", ".mov",
    ".mkv",  ".npz",  ".mat",  ".h5",   ".tfrecord", ".parquet", ".pt",  ".pkl", ".tar",  ".tgz", ".gz",  ".zip",
};
_Static_assert(OCT_COUNT(kinds) <= OCT_LEFT_KINDS, "there is a count for each kind");

void oct_left_out_add(oct_left_out *l, const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (oct_has_suffix(name, kinds[i])) {
            l->kind[i]++;
            return;
        }
}

char *oct_left_out_text(const oct_left_out *l)
{
    oct_buf b = OCT_BUF_INIT;
    size_t n = l->links, listed = 0;
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        n += l->kind[i];
    if (!n)
        return NULL;
    oct_buf_printf(&b, "%zu file%s left out:", n, n == 1 ? " is" : "s are");
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (l->kind[i])
            oct_buf_printf(&b, "%s %zu %s%s", listed++ ? "," : "", l->kind[i], kinds[i],
                           strcmp(kinds[i], ".webp") == 0 ? " (this build has no libwebp; install libwebp-dev)" : "");
    if (l->links)
        oct_buf_printf(&b, "%s %zu link%s to others (tar -h stores what they point to)", listed ? "," : "", l->links,
                       l->links == 1 ? "" : "s");
    char *text = b.failed ? NULL : oct_strdup(oct_buf_str(&b));
    oct_buf_free(&b);
    return text;
}
