/* lib/data/sound/wav.c -- WAV files: chunks to the place and form of the samples, samples to reals. */
#include "data/sound/wav.h"

#include "base/little_endian.h"

#include <string.h>

enum { PCM = 1, REAL = 3, EXTENSIBLE = 0xfffe };
/* Writers to pipes leave the largest number in place of a length, or one near it. */
static const uint64_t UNKNOWN = 0x7ff00000;

static oct_status unsupported(uint32_t form, oct_err *err)
{
    const char *name = form == 2 || form == 0x11 ? "ADPCM"
                       : form == 6               ? "A-law"
                       : form == 7               ? "mu-law"
                       : form == 0x55            ? "MP3"
                                                 : NULL;
    if (name)
        oct_fail(err, OCT_EUNSUPPORTED, "its samples are %s", name);
    else
        oct_fail(err, OCT_EUNSUPPORTED, "its samples are of the form 0x%04x", (unsigned)form);
    oct_hint(err, "store it as PCM, as by 'ffmpeg -i IN OUT.wav'");
    return OCT_EUNSUPPORTED;
}

/* The form of an extensible header: the first two bytes of a name whose others are always these. */
static uint32_t extended(const uint8_t *p, size_t n)
{
    static const uint8_t rest[14] = { 0, 0, 0, 0, 16, 0, 128, 0, 0, 170, 0, 56, 155, 113 };
    return n >= 40 && memcmp(p + 26, rest, sizeof rest) == 0 ? oct_le_u16(p + 24) : EXTENSIBLE;
}

static oct_status read_format(const uint8_t *p, size_t n, oct_wav *w, oct_err *err)
{
    if (n < 16)
        return oct_fail(err, OCT_EMALFORMED, "its format chunk has %zu bytes, at least 16 are expected", n);
    uint32_t form = oct_le_u16(p);
    if (form == EXTENSIBLE)
        form = extended(p, n);
    const uint32_t channels = oct_le_u16(p + 2), rate = oct_le_u32(p + 4), block = oct_le_u16(p + 12),
                   bits = oct_le_u16(p + 14);
    if (form != PCM && form != REAL)
        return unsupported(form, err);
    if (channels < 1 || channels > OCT_WAV_CHANNELS || rate < 1 || rate > OCT_WAV_RATE)
        return oct_fail(err, OCT_EMALFORMED, "%u channels of %u samples a second", (unsigned)channels, (unsigned)rate);
    *w = (oct_wav){
        .channels = (int)channels, .rate = (int)rate, .width = (int)(block / channels), .real = form == REAL
    };
    const bool known = w->real ? w->width == 4 || w->width == 8 : w->width >= 1 && w->width <= 4;
    /* Fewer bits than the bytes hold stand in the upper ones. */
    if (!known || block % channels || (bits + 7) / 8 != (uint32_t)w->width)
        return oct_fail(err, OCT_EMALFORMED, "samples of %u bits in blocks of %u bytes for %u channels", (unsigned)bits,
                        (unsigned)block, (unsigned)channels);
    return OCT_OK;
}

static oct_status set_data(const uint8_t *p, uint64_t size, uint64_t there, oct_wav *w, oct_err *err)
{
    const uint64_t block = (uint64_t)w->channels * (uint64_t)w->width;
    if (size > there && size >= UNKNOWN)
        size = there;
    if (size > there)
        return oct_fail(err, OCT_EMALFORMED, "cut short: %llu bytes of samples, the header says %llu",
                        (unsigned long long)there, (unsigned long long)size);
    w->data = p;
    w->n = (int64_t)(size / block);
    return OCT_OK;
}

oct_status oct_wav_parse(const void *bytes, size_t n, oct_wav *w, oct_err *err)
{
    const uint8_t *p = bytes;
    uint64_t long_size = UINT64_MAX; /* RF64: of the data, where 32 bits are not enough */
    bool format = false;
    *w = (oct_wav){ 0 };
    if (n < 12 || (memcmp(p, "RIFF", 4) != 0 && memcmp(p, "RF64", 4) != 0) || memcmp(p + 8, "WAVE", 4) != 0)
        return oct_fail(err, OCT_EMALFORMED, "is no WAV file");
    for (size_t at = 12; n - at >= 8;) {
        const uint8_t *chunk = p + at, *body = chunk + 8;
        const size_t left = n - at - 8;
        uint64_t size = oct_le_u32(chunk + 4);
        if (memcmp(chunk, "data", 4) == 0) {
            if (!format)
                return oct_fail(err, OCT_EMALFORMED, "has samples in front of their format");
            return set_data(body, size == UINT32_MAX && long_size != UINT64_MAX ? long_size : size, left, w, err);
        }
        if (size > left)
            break;
        if (memcmp(chunk, "ds64", 4) == 0 && size >= 16)
            long_size = oct_le_u64(body + 8);
        if (memcmp(chunk, "fmt ", 4) == 0) {
            OCT_TRY(read_format(body, (size_t)size, w, err));
            format = true;
        }
        at += 8 + (size_t)size;
        at += size % 2 && at < n;
    }
    return oct_fail(err, OCT_EMALFORMED, "cut short: holds no samples");
}

static double number(const oct_wav *w, const uint8_t *p)
{
    float f;
    double d;
    switch (w->width) {
    case 1: return ((int)p[0] - 128) / 128.0;
    case 2: return (int16_t)oct_le_u16(p) / 32768.0;
    case 3: return (int32_t)(oct_le_u16(p) << 8 | (uint32_t)p[2] << 24) / 2147483648.0;
    case 4:
        if (!w->real)
            return (int32_t)oct_le_u32(p) / 2147483648.0;
        memcpy(&f, p, sizeof f);
        return (double)f;
    default: memcpy(&d, p, sizeof d); return d;
    }
}

void oct_wav_read(const oct_wav *w, int channel, int64_t first, int64_t n, double *out)
{
    const size_t width = (size_t)w->width, block = width * (size_t)w->channels;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i;
        out[i] = 0;
        if (at < 0 || at >= w->n)
            continue;
        const uint8_t *p = w->data + (size_t)at * block;
        if (channel >= 0) {
            out[i] = number(w, p + (size_t)channel * width);
            continue;
        }
        for (int c = 0; c < w->channels; c++)
            out[i] += number(w, p + (size_t)c * width);
        out[i] /= w->channels;
    }
}
