/* lib/data/readers/read_tar.c -- reader: tar streams in the WebDataset convention, compressed or not: adjacent members
 * with one base name (up to the first dot) are a sample: NNN.jpg and NNN.cls, NNN.npy, NNN.wav, NNN.INPUT.npy. */
#include "data/readers/archive.h"
#include "data/readers/left_out.h"
#include "data/readers/readers.h"
#include "data/sound/sound.h"
#include "data/readers/stream.h"
#include "data/readers/tar_links.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/stop.h"

#include <string.h>
#include <unistd.h>

static bool tar_claims(const char *path, bool is_folder)
{
    static const char *const suffixes[] = { ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar.lz4" };
    for (size_t i = 0; i < OCT_COUNT(suffixes); i++)
        if (oct_has_suffix(path, suffixes[i]) && !is_folder)
            return true;
    return false;
}

#ifdef OCT_HAVE_ARCHIVE

#include <errno.h>
#include <stdio.h>

enum { MAX_MET = 64 }; /* members of a sample that are remembered */

typedef struct tar {
    const oct_feed_ctx *ctx;
    oct_origin from;
    char *path;
    const oct_libarchive *la;
    struct archive *a;
    struct archive_entry *entry; /* of the last header; libarchive does not check whether it has read one */
    oct_stream in;
    size_t n_read;                 /* number of bytes in its block that were read before the archive was opened */
    size_t in_block;               /* bytes of the block that was read last */
    struct archive_entry *pending; /* read, but belongs to the next sample */
    size_t headers;                /* read so far */
    oct_tar_links *links;          /* of a file, from its first link on */
    bool linked;                   /* the member is a link, and stands for `target` */
    size_t target;
    bool started, seen, eof, over; /* seen: a header */
    int64_t samples;
    char member[128];      /* the one that was met last */
    uint64_t met[MAX_MET]; /* hashes of member names in the current sample */
    size_t n_met;
    oct_sounds sounds; /* of the sample that was read last */
    oct_item whole;    /* that sample, while it still has windows */
    oct_left_out left; /* of this pass */
    char stranger[64]; /* suffix of a member of unknown kind, for the message about an archive without samples */
} tar;

static void stop(tar *r)
{
    if (r->a)
        r->la->archive_read_free(r->a);
    if (r->entry)
        r->la->archive_entry_free(r->entry);
    oct_stream_close(&r->in);
    oct_sounds_close(&r->sounds);
    r->a = NULL;
    r->entry = NULL;
    r->pending = NULL;
}

static void tar_close(void *self)
{
    tar *r = self;
    if (!r)
        return;
    stop(r);
    if (r->whole.parts)
        oct_item_free(&r->whole, r->ctx->n);
    oct_free(r->whole.parts);
    oct_sounds_free(&r->sounds);
    oct_tar_links_close(r->links);
    oct_free(r->path);
    oct_free(r);
}

static oct_status open_from(oct_origin from, const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    tar *r = oct_calloc(1, sizeof *r);
    if (!r || !(r->path = oct_strdup(path))) {
        oct_free(r);
        return oct_nomem(err);
    }
    r->in = (oct_stream)OCT_STREAM_INIT;
    r->ctx = ctx;
    r->from = from;
    oct_status s = (r->whole.parts = oct_calloc(ctx->n + 1, sizeof *r->whole.parts))
                       ? oct_sounds_init(&r->sounds, ctx, err)
                       : oct_nomem(err);
    if (s == OCT_OK)
        s = oct_archive_load(&r->la, err);
    if (s != OCT_OK) {
        tar_close(r);
        return oct_within(err, "%s", path), s;
    }
    *self = r;
    return OCT_OK;
}

static void take_stream(void *self, oct_stream *in, size_t n_read)
{
    tar *r = self;
    r->in = *in;
    r->n_read = n_read;
    *in = (oct_stream)OCT_STREAM_INIT;
}

static int64_t tar_count(void *self)
{
    return -1;
}

/* Adds to a message how far the reading came. */
static oct_status where(const tar *r, oct_status s, oct_err *err)
{
    if (!err)
        return s;
    const oct_err why = *err;
    oct_fail(err, s, "%s (byte %lld of the stream%s%s%s)", why.text, (long long)r->in.at,
             r->member[0] ? ", member '" : "", r->member, r->member[0] ? "'" : "");
    memcpy(err->hint, why.hint, sizeof err->hint);
    return s;
}

static oct_status command_failed(const tar *r, int code, oct_err *err)
{
    oct_fail(err, OCT_EIO, "%s: the command failed (exit %d)", r->path, code);
    return where(r, OCT_EIO, err);
}

/* An archive that ends too early: if it comes from a command, the transfer has failed, and no sample is at fault. */
static oct_status ended_early(const tar *r, const char *why, oct_err *err)
{
    const oct_status s = r->from == OCT_FROM_COMMAND ? OCT_EIO : OCT_EMALFORMED;
    oct_fail(err, s, "%s: %s", r->path, why);
    return where(r, s, err);
}

/* Whether the data are a text message of a server instead of an archive. */
static bool is_answer(const tar *r)
{
    return r->from != OCT_FROM_FILE && r->in.n_head && (r->in.head[0] == '<' || r->in.head[0] == '{');
}

static oct_status no_archive(const tar *r, const char *why, oct_err *err)
{
    const char *other = oct_archive_refused(r->in.head, r->in.n_head);
    if (r->from == OCT_FROM_COMMAND && r->in.at == 0)
        return oct_fail(err, OCT_EIO, "%s: the command delivered nothing", r->path);
    if (is_answer(r)) {
        const oct_status s =
            r->from == OCT_FROM_COMMAND ? OCT_EIO : OCT_EMALFORMED; /* no sample is broken: none was brought */
        oct_fail(err, s,
                 "%s: this is not an archive, but text that begins with '%c', such as a page or a message of a server",
                 r->path, r->in.head[0]);
        oct_hint(err, "with curl, --fail turns most of them into errors");
        return where(r, s, err);
    }
    const oct_status s = other ? oct_fail(err, OCT_EUNSUPPORTED, "%s: is %s, which is not read here", r->path, other)
                               : oct_fail(err, OCT_EMALFORMED, "%s: %s", r->path, why);
    oct_hint(err, "archives are tar, plain or compressed with gzip, bzip2, xz, zstd or lz4; " OCT_PIPE
                  "CMD reads what a command unpacks");
    return s;
}

static oct_status broken(tar *r, oct_err *err)
{
    const bool ended = r->in.ended;
    const int code = ended ? oct_stream_finish(&r->in) : 0; /* the command has failed, so the archive is not at fault */
    const char *why = r->la->archive_error_string(r->a);
    OCT_TRY(oct_stop_check(err));
    if (code)
        return command_failed(r, code, err);
    if (r->in.error)
        return oct_stream_fault(&r->in, r->path, err);
    if (r->la->archive_errno(r->a) == ENOMEM || !why) /* libarchive has no message if it had no memory for one */
        return oct_nomem(err);
    if (!r->seen)
        return no_archive(r, why, err);
    if (ended)
        return ended_early(r, why, err);
    oct_fail(err, OCT_EMALFORMED, "%s: %s", r->path, why);
    return where(r, OCT_EMALFORMED, err);
}

static la_ssize_t on_read(struct archive *a, void *self, const void **block)
{
    tar *r = self;
    ssize_t n = r->n_read ? (ssize_t)r->n_read : oct_stream_read(&r->in);
    r->n_read = 0;
    r->in_block = n > 0 ? (size_t)n : r->in_block;
    if (n < 0)
        r->la->archive_set_error(a, r->in.error, "%s", strerror(r->in.error));
    *block = r->in.block;
    return n;
}

static la_int64_t on_skip(struct archive *a, void *self, la_int64_t n)
{
    tar *r = self;
    return r->n_read ? 0 : oct_stream_skip(&r->in, n);
}

static oct_status start(tar *r, oct_err *err)
{
    r->started = true;
    r->eof = r->over = r->seen = false;
    r->samples = 0;
    r->headers = 0;
    r->left = (oct_left_out){ .links = 0 };
    r->member[0] = 0;
    if (!(r->a = r->la->archive_read_new()) || !(r->entry = r->la->archive_entry_new()))
        return oct_nomem(err);
    OCT_TRY(oct_archive_support(r->la, r->a, true, err));
    if (!r->in.block)
        OCT_TRY(oct_stream_open(&r->in, r->from, r->path + (r->from == OCT_FROM_COMMAND ? strlen(OCT_PIPE) : 0), err));
    return r->la->archive_read_open2(r->a, r, NULL, on_read, on_skip, NULL) == ARCHIVE_OK ? OCT_OK : broken(r, err);
}

/* Checks what follows a compressed archive and is not compressed in the same way, since decompressors end there
 * silently. Zeros are allowed. */
static oct_status check_rest(tar *r, oct_err *err)
{
    int64_t rest = r->in.at - r->la->archive_filter_bytes(r->a, -1);
    for (;;) {
        const uint8_t *end = r->in.block + r->in_block;
        for (const uint8_t *p = end - (rest < (int64_t)r->in_block ? rest : (int64_t)r->in_block); rest > 0 && p < end;
             p++)
            if (*p) {
                oct_fail(err, OCT_EMALFORMED,
                         "%s: something follows the compressed archive that is not compressed in the same way",
                         r->path);
                oct_hint(err,
                         "archives one behind the other are read where they are all plain, or all compressed alike");
                return where(r, OCT_EMALFORMED, err);
            }
        const ssize_t n = rest > 0 ? oct_stream_read(&r->in) : 0;
        if (n < 0)
            return oct_stream_fault(&r->in, r->path, err);
        if (n == 0)
            return OCT_OK;
        rest = n;
        r->in_block = (size_t)n;
    }
}

/* At the end of the archive, a command must exit successfully. Its remaining output is read, so that it can. */
static oct_status finish(tar *r, oct_err *err)
{
    r->over = true;
    const bool marked = r->la->archive_filter_bytes(r->a, 0) > r->la->archive_read_header_position(r->a);
    const oct_status s = check_rest(r, err);
    const int code = oct_stream_finish(&r->in);
    OCT_TRY(oct_stop_check(err));
    if (code)
        return command_failed(r, code, err);
    OCT_TRY(s);
    if (!marked && r->from != OCT_FROM_FILE &&
        r->seen) /* a connection that was cut between two members has this effect */
        return ended_early(r, "the archive ends without the mark of its end: it may be cut short", err);
    if (r->samples == 0) {
        oct_fail(err, OCT_EMALFORMED, "%s: no samples in this archive%s%s", r->path,
                 r->stranger[0] ? "; its members end in ." : "", r->stranger);
        oct_hint(
            err,
            "expected NNN.jpg, NNN.png, NNN.webp, NNN.bmp, NNN.wav, NNN.npy or NNN.pb, with NNN.cls for the label");
        return OCT_EMALFORMED;
    }
    return OCT_OK;
}

/* Where the suffix begins: after the first dot of the last path component. NULL when there is none. */
static const char *suffix_of(const char *name)
{
    const char *base = oct_path_base(name);
    const char *dot = *base ? strchr(base + 1, '.') : NULL;
    return dot && dot[1] ? dot + 1 : NULL;
}

static int input_of(const tar *r, const char *suffix);

static bool is_of_sample(void *self, const char *name)
{
    const char *suffix = suffix_of(name);
    return suffix && (input_of(self, suffix) >= 0 || strcmp(suffix, "cls") == 0);
}

/* For a link that would be part of a sample, or may be a folder: the member to which it leads. Links in a stream, which
 * cannot be read twice, and links out of the archive are counted as left out. */
static oct_status follow(tar *r, const char *name, oct_err *err)
{
    const bool of_sample = is_of_sample(r, name);
    oct_tar_end end = OCT_TAR_NOTHING;
    r->linked = false;
    if (r->from == OCT_FROM_FILE) {
        if (!r->links)
            OCT_TRY(oct_tar_links_open(r->la, r->path, is_of_sample, r, &r->links, err));
        end = oct_tar_links_find(r->links, r->headers - 1, &r->target);
    }
    r->linked = of_sample && end == OCT_TAR_FILE;
    r->left.links += !r->linked && (of_sample || end == OCT_TAR_FOLDER);
    return OCT_OK;
}

/* The next regular member with a usable name and its suffix, or NULL at the end. */
static oct_status next_member(tar *r, struct archive_entry **e, const char **name, const char **suffix, oct_err *err)
{
    for (;;) {
        int z = ARCHIVE_OK;
        struct archive_entry *member = r->pending;
        r->pending = NULL;
        if (!member) {
            z = r->eof ? ARCHIVE_EOF : r->la->archive_read_next_header2(r->a, r->entry);
            member = r->entry;
            r->headers++;
        }
        if (z == ARCHIVE_EOF) {
            r->eof = true;
            *e = NULL;
            return OCT_OK;
        }
        if (z != ARCHIVE_OK && z != ARCHIVE_WARN)
            return broken(r, err);
        r->seen = true;
        *name = oct_tar_name(r->la, member);
        if (*name)
            snprintf(r->member, sizeof r->member, "%.120s", *name);
        bool hard;
        r->linked = false;
        const bool link = oct_tar_link(r->la, member, &hard) != NULL;
        if (*name && link)
            OCT_TRY(follow(r, *name, err));
        const bool is_file = link ? r->linked : r->la->archive_entry_filetype(member) == AE_IFREG;
        *suffix = *name && is_file ? suffix_of(*name) : NULL;
        if (*suffix) {
            *e = member;
            return OCT_OK;
        }
    }
}

/* The input that a member feeds, by its suffix: "jpg" for a single input, "INPUT.npy" for one by name; -1 for none. */
static int input_of(const tar *r, const char *suffix)
{
    const char *last = strrchr(suffix, '.');
    const char *kind = last ? last + 1 : suffix;
    if (!oct_sample_kind(kind))
        return -1;
    if (!last)
        return r->ctx->n == 1 ? 0 : -1;
    for (size_t i = 0; i < r->ctx->n; i++)
        if (strlen(r->ctx->inputs[i].name) == (size_t)(last - suffix) &&
            strncmp(suffix, r->ctx->inputs[i].name, (size_t)(last - suffix)) == 0)
            return (int)i;
    return -1;
}

static oct_status read_target(const tar *r, const char *name, oct_array *bytes, oct_err *err)
{
    const oct_status s = oct_tar_links_read(r->links, r->target, bytes, err);
    if (s != OCT_OK)
        oct_within(err, "%s: %s", r->path, name);
    return s;
}

static oct_status read_member(tar *r, struct archive_entry *e, const char *name, oct_part *part, oct_err *err)
{
    const int64_t size = r->linked ? 0 : r->la->archive_entry_size(e);
    int64_t n;
    if (size < 0 || size > OCT_TAR_MEMBER)
        return oct_fail(err, OCT_EMALFORMED, "%s: %s: a member of %lld bytes", r->path, name, (long long)size);
    part->kind = OCT_PART_BYTES;
    if (!(part->path = oct_strdup(name)))
        return oct_nomem(err);
    if (r->linked)
        return read_target(r, name, &part->array, err);
    OCT_TRY(oct_tar_bytes(r->la, r->a, size, &part->array, &n, err));
    return n < 0 ? broken(r, err) : n < size ? ended_early(r, "cut short", err) : OCT_OK;
}

/* The first bytes of a member, as a text. */
static oct_status read_text(tar *r, const char *name, char *text, size_t room, size_t *n, oct_err *err)
{
    la_ssize_t got;
    *n = 0;
    if (r->linked) {
        oct_array bytes;
        OCT_TRY(read_target(r, name, &bytes, err));
        *n = bytes.bytes < room - 1 ? bytes.bytes : room - 1;
        memcpy(text, bytes.data, *n);
        oct_array_free(&bytes);
    }
    while (!r->linked && *n < room - 1 && (got = r->la->archive_read_data(r->a, text + *n, room - 1 - *n)) != 0) {
        if (got < 0)
            return broken(r, err);
        *n += (size_t)got;
    }
    text[*n] = 0;
    return OCT_OK;
}

static oct_status read_label(tar *r, const char *name, oct_item *item, oct_err *err)
{
    char text[65];
    size_t n;
    OCT_TRY(read_text(r, name, text, sizeof text, &n, err));
    if (strlen(text) != n || !oct_label_parse(text, &item->label)) {
        oct_fail(err, OCT_EMALFORMED, "%s: %s: the label is not a class number", r->path, name);
        oct_hint(err, OCT_LABEL_HINT);
        return OCT_EMALFORMED;
    }
    return OCT_OK;
}

/* One member of a sample. */
static oct_status take(tar *r, struct archive_entry *e, const char *name, const char *suffix, bool want, oct_item *item,
                       bool *any, oct_err *err)
{
    int input = input_of(r, suffix);
    if (input < 0 && strcmp(suffix, "cls") != 0) {
        oct_left_out_add(&r->left, name);
        if (!r->stranger[0])
            snprintf(r->stranger, sizeof r->stranger, "%.60s", suffix);
        return OCT_OK;
    }
    *any |= input >= 0;
    if ((!want && !(oct_is_sound_file(name) && oct_sounds_cut(&r->sounds))) ||
        (input >= 0 && item->parts[input].kind != OCT_PART_NONE))
        return OCT_OK;
    return input < 0 ? read_label(r, name, item, err) : read_member(r, e, name, &item->parts[input], err);
}

/* Whether the sample has a member of that name already. The member then begins another sample, in a concatenated
 * archive. */
static bool met_before(tar *r, const char *name)
{
    const uint64_t hash = oct_hash(OCT_HASH_INIT, name, strlen(name));
    for (size_t i = 0; i < r->n_met; i++)
        if (r->met[i] == hash)
            return true;
    if (r->n_met < MAX_MET)
        r->met[r->n_met++] = hash;
    return false;
}

/* Members of one base name. *any: some of them feed an input. */
static oct_status read_group(tar *r, bool want, oct_item *item, bool *any, oct_err *err)
{
    size_t base = 0;
    char *key = NULL;
    oct_status s = OCT_OK;
    r->n_met = 0;
    for (;;) {
        struct archive_entry *e = NULL;
        const char *name = NULL, *suffix = NULL;
        if ((s = next_member(r, &e, &name, &suffix, err)) != OCT_OK)
            break;
        if (!e) {
            if (!key)
                s = finish(r, err);
            break;
        }
        size_t n = (size_t)(suffix - 1 - name);
        if ((key && (n != base || memcmp(key, name, n) != 0)) || met_before(r, name)) {
            r->pending = e;
            break;
        }
        if (!key && (!(key = oct_strdup(name)) || !(item->name = oct_strprintf("%s:%.*s", r->path, (int)n, name)))) {
            s = oct_nomem(err);
            break;
        }
        base = n;
        if ((s = take(r, e, name, suffix, want, item, any, err)) != OCT_OK)
            break;
    }
    oct_free(key);
    return s;
}

/* ---- recordings: a sample of several windows is kept until all are given ---- */

static oct_status copy_part(const oct_part *from, oct_part *to, oct_err *err)
{
    to->kind = from->kind;
    if (from->path && !(to->path = oct_strdup(from->path)))
        return oct_nomem(err);
    if (!from->array.data)
        return OCT_OK;
    OCT_TRY(oct_array_create(&to->array, from->array.dtype, from->array.rank, from->array.dims, err));
    memcpy(to->array.data, from->array.data, from->array.bytes);
    return OCT_OK;
}

/* The next window of what is held. */
static oct_status give_window(tar *r, bool want, oct_item *item, oct_err *err)
{
    const int64_t k = r->sounds.window;
    item->label = r->whole.label;
    item->inside = k > 0;
    item->name =
        r->sounds.windows > 1 ? oct_strprintf("%s[%lld]", r->whole.name, (long long)k) : oct_strdup(r->whole.name);
    oct_status s = item->name ? OCT_OK : oct_nomem(err);
    for (size_t i = 0; s == OCT_OK && want && i < r->ctx->n; i++)
        s = r->sounds.sound[i] ? oct_sound_window(r->sounds.sound[i], k, &item->parts[i], err)
                               : copy_part(&r->whole.parts[i], &item->parts[i], err);
    if (s != OCT_OK)
        oct_sounds_close(&r->sounds);
    else
        oct_sounds_advance(&r->sounds);
    return s;
}

/* Takes over what is in a sample. Its array of parts stays: that is the caller's. */
static void hold(tar *r, oct_item *item)
{
    oct_part *parts = r->whole.parts;
    oct_item_free(&r->whole, r->ctx->n);
    memcpy(parts, item->parts, r->ctx->n * sizeof *parts);
    memset(item->parts, 0, r->ctx->n * sizeof *parts);
    r->whole = (oct_item){ item->name, item->label, item->inside, parts };
    item->name = NULL;
}

/* Opens the recordings among the members of a sample, and gives the first window. */
static oct_status open_sounds(tar *r, bool want, oct_item *item, oct_err *err)
{
    bool any = false;
    oct_status s = OCT_OK;
    for (size_t i = 0; s == OCT_OK && i < r->ctx->n; i++) {
        oct_part *p = &item->parts[i];
        if (r->ctx->as_files || p->kind != OCT_PART_BYTES || !p->path || !oct_is_sound_file(p->path))
            continue;
        any = true;
        s = oct_sounds_take(&r->sounds, i, &p->array, p->path, err);
    }
    if (!any)
        return OCT_OK;
    if (s != OCT_OK) {
        oct_sounds_close(&r->sounds);
        return want || s == OCT_ENOMEM ? (oct_within(err, "%s", r->path), s) : OCT_OK;
    }
    hold(r, item);
    return give_window(r, want, item, err);
}

static oct_status next_sample(tar *r, bool want, oct_item *item, bool *broken, oct_err *err)
{
    oct_status s = r->started ? OCT_OK : start(r, err);
    for (bool any = false; s == OCT_OK && !any && !r->over;) {
        oct_item_free(item, r->ctx->n);
        s = read_group(r, want, item, &any, err);
        r->samples += any;
    }
    if (s != OCT_OK || r->over)
        return s;
    s = open_sounds(r, want, item, err);
    *broken = s != OCT_OK;
    return s;
}

static oct_status tar_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    tar *r = self;
    if (r->sounds.windows)
        return give_window(r, want, item, err);
    bool alone = false; /* nothing else is broken */
    oct_io_foreign(true);
    oct_status s = next_sample(r, want, item, &alone, err);
    oct_io_foreign(false);
    *end = (s != OCT_OK && !alone) || r->over;
    return s;
}

static char *tar_left_out(void *self)
{
    const tar *r = self;
    return oct_left_out_text(&r->left);
}

static oct_status tar_rewind(void *self, oct_err *err)
{
    tar *r = self;
    if (r->from == OCT_FROM_DESCRIPTOR && r->started)
        return oct_fail(err, OCT_EUNSUPPORTED, "%s cannot be read twice",
                        strcmp(r->path, "-") == 0 ? "standard input" : r->path);
    if (!r->started)
        return OCT_OK; /* a descriptor's first bytes are in hand */
    stop(r);
    r->started = r->over = false;
    return OCT_OK;
}

#else

static oct_status open_from(oct_origin from, const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    return oct_fail(err, OCT_EUNSUPPORTED, "%s: this build cannot read archives (libarchive)", path);
}

static void take_stream(void *self, oct_stream *in, size_t n_read)
{
}

static int64_t tar_count(void *self)
{
    return -1;
}

static oct_status tar_next(void *self, bool want, oct_item *item, bool *end, oct_err *err)
{
    *end = true;
    return OCT_OK;
}

static oct_status tar_rewind(void *self, oct_err *err)
{
    return OCT_OK;
}

static char *tar_left_out(void *self)
{
    return NULL;
}

static void tar_close(void *self)
{
}

#endif

static oct_status tar_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    return open_from(OCT_FROM_FILE, ctx, path, self, err);
}

oct_status oct_read_tar_stream(const oct_feed_ctx *ctx, oct_stream *in, size_t n_read, const char *name, void **self,
                               oct_err *err)
{
    const oct_status s = open_from(OCT_FROM_DESCRIPTOR, ctx, name, self, err);
    if (s == OCT_OK)
        take_stream(*self, in, n_read);
    else
        oct_stream_close(in);
    return s;
}

static oct_status command_open(const oct_feed_ctx *ctx, const char *path, void **self, oct_err *err)
{
    return open_from(OCT_FROM_COMMAND, ctx, path, self, err);
}

/* Of an uncompressed file only the headers are read, by seeking. */
static bool tar_is_cheap_to_pass(const char *path)
{
    enum { MAGIC = 257 };
    char head[MAGIC + 5];
    oct_err ignored = OCT_ERR_INIT;
    int fd;
    if (oct_file_open(path, false, &fd, &ignored) != OCT_OK)
        return false;
    const bool plain = read(fd, head, sizeof head) == (ssize_t)sizeof head && memcmp(head + MAGIC, "ustar", 5) == 0;
    close(fd);
    return plain;
}

static bool never_cheap(const char *path)
{
    return false;
}

#define TAR_STREAM \
    .count = tar_count, .next = tar_next, .rewind = tar_rewind, .left_out = tar_left_out, .close = tar_close

/* Tar shards (WebDataset: NNN.jpg + NNN.cls), compressed or not: files, what a command prints. */
const oct_reader oct_read_tar = {
    .claims = tar_claims, .open = tar_open, .is_cheap_to_pass = tar_is_cheap_to_pass, TAR_STREAM
};
const oct_reader oct_read_command = { .open = command_open, .is_cheap_to_pass = never_cheap, TAR_STREAM };
