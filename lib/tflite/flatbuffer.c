/* The few rules of flatbuffers that a writer needs. */
#include "tflite/flatbuffer.h"

#include <string.h>

static void put(oct_flat *f, const void *p, size_t n)
{
    oct_buf_add(&f->b, p, n);
}

static void put_u32(oct_flat *f, uint32_t x)
{
    put(f, &x, sizeof x);
}

void oct_flat_align(oct_flat *f, size_t align, size_t ahead)
{
    static const char zeros[16];
    put(f, zeros, (size_t)(-(f->b.len + ahead) & (align - 1)));
}

/* The place of a layout: bytes of itself and of the table, and where each slot's field stands in the table (0: absent).
 */
static size_t find_layout(oct_flat *f, const uint16_t *layout, size_t n)
{
    const size_t bytes = n * sizeof *layout;
    for (size_t i = 0; i < f->n_layouts && !f->b.failed; i++)
        if (f->layout[i] + bytes <= f->b.len && memcmp(f->b.data + f->layout[i], layout, bytes) == 0)
            return f->layout[i];
    oct_flat_align(f, 4, bytes);
    const size_t at = f->b.len;
    put(f, layout, bytes);
    if (f->n_layouts < OCT_FLAT_LAYOUTS)
        f->layout[f->n_layouts++] = at;
    return at;
}

size_t oct_flat_table(oct_flat *f, const oct_flat_field *field, size_t n, size_t at[OCT_FLAT_SLOTS])
{
    uint16_t layout[2 + OCT_FLAT_SLOTS] = { 0 };
    uint8_t body[4 * (1 + OCT_FLAT_SLOTS)] = { 0 };
    size_t slots = 0, used = 4;
    for (size_t pass = 4; pass; pass = pass == 4 ? 1 : 0) /* numbers of four bytes first: all stay aligned */
        for (size_t i = 0; i < n; i++) {
            const size_t bytes = field[i].bytes ? (size_t)field[i].bytes : 4, slot = (size_t)field[i].slot;
            if (slot + 1 > slots)
                slots = slot + 1;
            if (bytes != pass)
                continue;
            layout[2 + slot] = (uint16_t)used;
            memcpy(body + used, &field[i].bits, bytes);
            used += bytes;
        }
    layout[0] = (uint16_t)(2 * (2 + slots));
    layout[1] = (uint16_t)used;
    const size_t of = find_layout(f, layout, 2 + slots);
    oct_flat_align(f, 4, 0);
    const size_t table = f->b.len;
    const uint32_t back = (uint32_t)(table - of);
    memcpy(body, &back, sizeof back);
    put(f, body, used);
    for (size_t i = 0; i < n && at; i++)
        at[field[i].slot] = table + layout[2 + field[i].slot];
    return table;
}

void oct_flat_point(oct_flat *f, size_t at, size_t to)
{
    const uint32_t distance = (uint32_t)(to - at);
    if (!f->b.failed)
        memcpy(f->b.data + at, &distance, sizeof distance);
}

size_t oct_flat_vector(oct_flat *f, const void *data, size_t n, size_t bytes)
{
    oct_flat_align(f, bytes < 4 ? 4 : bytes, 4);
    const size_t at = f->b.len;
    put_u32(f, (uint32_t)n);
    if (data)
        put(f, data, n * bytes);
    for (size_t i = 0; i < n && !data; i++)
        put_u32(f, 0);
    return at;
}

size_t oct_flat_string(oct_flat *f, const char *text)
{
    const size_t at = oct_flat_vector(f, text, strlen(text), 1);
    put(f, "", 1);
    return at;
}
