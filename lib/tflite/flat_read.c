/* Offsets, layouts and vectors of a flatbuffer, each checked before it is used. */
#include "tflite/flat_read.h"

#include "base/little_endian.h"

/* Tables and vectors may be shared, as names and scales are by some writers: so many times the buffer's size is read,
 * and no more. */
enum { READ_FACTOR = 8, READ_LEAST = 1 << 16 };

static void fail(oct_flat_in *f, const char *what)
{
    if (!f->fault)
        f->fault = what;
}

static bool holds(const oct_flat_in *f, size_t at, size_t n)
{
    return at <= f->size && n <= f->size - at;
}

static bool spend(oct_flat_in *f, size_t n)
{
    if (n > f->left) {
        fail(f, "the same bytes stand for too much");
        return false;
    }
    f->left -= n;
    return true;
}

/* The place to which the offset at a place leads; 0: to none. */
static size_t follow(oct_flat_in *f, size_t at)
{
    if (!at)
        return 0;
    const uint32_t distance = holds(f, at, 4) ? oct_le_u32(f->data + at) : 0;
    if (distance && holds(f, at, distance) && holds(f, at + distance, 4))
        return at + distance;
    fail(f, "an offset leads out of the file");
    return 0;
}

static oct_flat_node open_table(oct_flat_in *f, size_t at)
{
    oct_flat_node t = { 0 };
    if (!at || !holds(f, at, 4))
        return t;
    const int64_t layout = (int64_t)at - (int32_t)oct_le_u32(f->data + at);
    if (layout >= 0 && (uint64_t)layout < f->size && holds(f, (size_t)layout, 4)) {
        const uint8_t *p = f->data + layout;
        const size_t bytes = oct_le_u16(p), inside = oct_le_u16(p + 2);
        if (bytes >= 4 && inside >= 4 && holds(f, (size_t)layout, bytes) && holds(f, at, inside)) {
            t = (oct_flat_node){ at, (size_t)layout, bytes / 2 - 2, inside };
            return spend(f, bytes) ? t : (oct_flat_node){ 0 };
        }
    }
    fail(f, "a table's layout is none");
    return t;
}

oct_flat_node oct_flat_root(oct_flat_in *f, const void *data, size_t size)
{
    const uint64_t most = (uint64_t)size * READ_FACTOR + READ_LEAST;
    *f = (oct_flat_in){ .data = data, .size = size, .left = most };
    if (size < 8) {
        fail(f, "the file ends in its first bytes");
        return (oct_flat_node){ 0 };
    }
    const uint32_t at = oct_le_u32(f->data);
    if (at < 4 || !holds(f, at, 4))
        fail(f, "an offset leads out of the file");
    return open_table(f, f->fault ? 0 : at);
}

/* The place of a field of so many bytes; 0: absent. */
static size_t place(oct_flat_in *f, const oct_flat_node *t, int slot, size_t bytes)
{
    if (!t->at || (size_t)slot >= t->slots)
        return 0;
    const size_t in = oct_le_u16(f->data + t->layout + 4 + 2 * (size_t)slot);
    if (!in)
        return 0;
    if (in >= 4 && in <= t->bytes && bytes <= t->bytes - in)
        return t->at + in;
    fail(f, "a field stands outside its table");
    return 0;
}

bool oct_flat_has(oct_flat_in *f, const oct_flat_node *t, int slot)
{
    return place(f, t, slot, 1) != 0;
}

uint64_t oct_flat_number(oct_flat_in *f, const oct_flat_node *t, int slot, int bytes, uint64_t absent)
{
    const size_t at = place(f, t, slot, (size_t)bytes);
    if (!at)
        return absent;
    return bytes == 1 ? f->data[at] : bytes == 4 ? oct_le_u32(f->data + at) : oct_le_u64(f->data + at);
}

oct_flat_node oct_flat_child(oct_flat_in *f, const oct_flat_node *t, int slot)
{
    return open_table(f, follow(f, place(f, t, slot, 4)));
}

static oct_flat_list list_at(oct_flat_in *f, const oct_flat_node *t, int slot, size_t bytes, bool read)
{
    oct_flat_list l = { 0 };
    const size_t at = follow(f, place(f, t, slot, 4));
    if (!at)
        return l;
    const size_t n = oct_le_u32(f->data + at);
    if (n > (f->size - at - 4) / bytes)
        fail(f, "a vector ends behind the file");
    else if (!read || spend(f, n * bytes))
        l = (oct_flat_list){ f->data + at + 4, at + 4, n };
    return l;
}

oct_flat_list oct_flat_elements(oct_flat_in *f, const oct_flat_node *t, int slot, size_t bytes)
{
    return list_at(f, t, slot, bytes, true);
}

oct_flat_list oct_flat_bytes(oct_flat_in *f, const oct_flat_node *t, int slot)
{
    return list_at(f, t, slot, 1, false);
}

oct_flat_node oct_flat_element(oct_flat_in *f, const oct_flat_list *l, size_t i)
{
    return open_table(f, i < l->n ? follow(f, l->at + 4 * i) : 0);
}

const char *oct_flat_text(oct_flat_in *f, const oct_flat_node *t, int slot)
{
    const oct_flat_list l = list_at(f, t, slot, 1, true);
    if (!l.p)
        return "";
    if (holds(f, l.at, l.n + 1) && !l.p[l.n])
        return (const char *)l.p;
    fail(f, "a text has no end");
    return "";
}
