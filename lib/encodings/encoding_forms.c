/* The table of forms, and the choice of one by its name or by what a file begins with. */
#include "encodings/encodings_int.h"

#include <stdio.h>
#include <string.h>

#define OCT_ENCODING(f) extern const oct_encoding_form oct_encoding_##f;
#include "encodings/encodings.inc"
#undef OCT_ENCODING

static const oct_encoding_form *const forms[] = {
#define OCT_ENCODING(f) &oct_encoding_##f,
#include "encodings/encodings.inc"
#undef OCT_ENCODING
};

size_t oct_encoding_form_count(void)
{
    return OCT_COUNT(forms);
}

const oct_encoding_form *oct_encoding_form_at(size_t i)
{
    return forms[i];
}

const char *oct_encoding_form_name(const oct_encoding_form *f)
{
    return f->name;
}

const char *oct_encoding_form_summary(const oct_encoding_form *f)
{
    return f->summary;
}

bool oct_encoding_form_needs_model(const oct_encoding_form *f)
{
    return f->by_layer;
}

const char *oct_encoding_form_names(void)
{
    static _Thread_local char text[128];
    size_t len = 0;
    text[0] = 0;
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (forms[i]->write && len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len ? ", " : "", forms[i]->name);
    return text;
}

const oct_encoding_form *oct_encoding_form_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (forms[i]->write && strcmp(forms[i]->name, name) == 0)
            return forms[i];
    return NULL;
}

const oct_encoding_form *oct_encoding_form_of(const void *data, size_t size)
{
    if (oct_encoding_is_table(data, size))
        return NULL;
    for (size_t i = 0; i < OCT_COUNT(forms); i++)
        if (forms[i]->claims && forms[i]->claims(data, size))
            return forms[i];
    return NULL;
}

oct_status oct_encodings_parse(const void *data, size_t size, const char *label, oct_encodings *e, oct_err *err)
{
    *e = (oct_encodings){ .form = oct_encoding_form_of(data, size) };
    if (!e->form) {
        oct_fail(err, OCT_EMALFORMED, "%s: its ranges are not in a known form", label);
        if (size && memchr(data, 0, size))
            oct_hint(
                err,
                "known forms are texts; beside ONNX Runtime's calibration.flatbuffers lies calibration.json, which has the same ranges");
        oct_hint(err, "the known forms are calibration tables and %s", oct_encoding_form_names());
        return OCT_EMALFORMED;
    }
    if (!(e->ranges = oct_calib_create()))
        return oct_nomem(err);
    return e->form->read(e, data, size, label, err);
}
