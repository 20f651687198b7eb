/* Writes a part. */
#include "eval/parts/part_bytes.h"

static void put(oct_part_out *p, const void *data, size_t n)
{
    p->hash = oct_hash(p->hash, data, n);
    oct_out_write(&p->out, data, n);
}

oct_status oct_part_create(oct_part_out *p, const char *path, const char *asked, uint32_t index, uint32_t count,
                           oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    *p = (oct_part_out){ .hash = OCT_HASH_INIT, .last = -1 };
    oct_buf_puts(&b, EV_PART_MAGIC);
    ev_put_u32(&b, index);
    ev_put_u32(&b, count);
    ev_put_text(&b, asked);
    oct_status s = b.failed ? oct_nomem(err) : oct_out_open(&p->out, path, err);
    if (s == OCT_OK)
        put(p, b.data, b.len);
    oct_buf_free(&b);
    return s;
}

oct_status oct_part_add(oct_part_out *p, int64_t index, const oct_buf *record, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    if (record->failed || index <= p->last)
        return record->failed ? oct_nomem(err)
                              : oct_fail(err, OCT_EUNSUPPORTED, "--shard needs samples in the order of the data");
    ev_put_u64(&b, (uint64_t)index);
    ev_put_u64(&b, record->len);
    if (!b.failed) {
        put(p, b.data, b.len);
        put(p, oct_buf_str(record), record->len);
    }
    p->samples++;
    p->last = index;
    const oct_status s = b.failed ? oct_nomem(err) : OCT_OK;
    oct_buf_free(&b);
    return s;
}

oct_status oct_part_commit(oct_part_out *p, const oct_buf *rest, oct_err *err)
{
    oct_buf b = OCT_BUF_INIT;
    if (!rest->failed)
        put(p, oct_buf_str(rest), rest->len);
    ev_put_u64(&b, rest->len);
    ev_put_u64(&b, p->samples);
    if (rest->failed || b.failed) {
        oct_buf_free(&b);
        oct_part_abort(p);
        return oct_nomem(err);
    }
    put(p, b.data, b.len);
    oct_buf_cut(&b, 0);
    ev_put_u64(&b, p->hash);
    put(p, oct_buf_str(&b), b.len);
    const oct_status s = b.failed ? oct_nomem(err) : oct_out_commit(&p->out, err);
    oct_buf_free(&b);
    return s;
}

void oct_part_abort(oct_part_out *p)
{
    oct_out_abort(&p->out);
}
