/* lib/data/text/tokenizer_absent.c -- a build without utf8proc or PCRE2 has no tokenizers. */
#include "data/text/tokenizer.h"

oct_status oct_tokenizer_open(const char *path, oct_tokenizer **t, oct_err *err)
{
    oct_fail(err, OCT_EUNSUPPORTED, "%s: this build has no tokenizers", path);
    oct_hint(err, "build with utf8proc and PCRE2 (meson configure -Dtokenizers=enabled), or give token ids");
    return OCT_EUNSUPPORTED;
}

void oct_tokenizer_close(oct_tokenizer *t)
{
}

oct_status oct_tokenizer_encode(oct_tokenizer *t, const oct_tokenizer_text *in, size_t most, const int64_t **ids,
                                const int64_t **types, size_t *n, oct_err *err)
{
    return oct_fail(err, OCT_EUNSUPPORTED, "this build has no tokenizers");
}

int64_t oct_tokenizer_pad(const oct_tokenizer *t)
{
    return -1;
}
