/* lib/cli: width and wrapping of texts. */
#include "cli/textfmt.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

int oct_utf8_next(const char *s, uint32_t *cp)
{
    size_t len;
    *cp = oct_utf8_char(s, 4, &len);
    return *s ? (int)len : 0;
}

typedef struct span {
    uint32_t lo, hi;
} span;

static bool in_spans(uint32_t c, const span *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= v[i].lo && c <= v[i].hi)
            return true;
    return false;
}

/* Blocks, not single characters: enough for file and node names. wcwidth() would need a locale. */
static int columns_of(uint32_t c)
{
    static const span none[] = { { 0x300, 0x36f },   { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
                                 { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f } };
    static const span wide[] = { { 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },  { 0xac00, 0xd7a3 },
                                 { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },  { 0xffe0, 0xffe6 },
                                 { 0x1f300, 0x1f64f }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd } };
    if (c < 0x300)
        return 1;
    return in_spans(c, none, OCT_COUNT(none)) ? 0 : in_spans(c, wide, OCT_COUNT(wide)) ? 2 : 1;
}

int oct_utf8_width(const char *s)
{
    int w = 0, n;
    uint32_t c;
    while ((n = oct_utf8_next(s, &c)) > 0) {
        w += columns_of(c);
        s += n;
    }
    return w;
}

size_t oct_utf8_fit(const char *s, int columns)
{
    size_t at = 0;
    int n, w = 0;
    uint32_t c;
    while ((n = oct_utf8_next(s + at, &c)) > 0 && (w += columns_of(c)) <= columns)
        at += (size_t)n;
    return at;
}

void oct_vprint(FILE *f, const char *fmt, va_list ap)
{
    char text[4096], one[12];
    const bool ascii = oct_term_ascii(f);
    const size_t before = strspn(fmt, "\n");
    size_t after = 0;
    for (size_t n = strlen(fmt); n - after > before && fmt[n - after - 1] == '\n';)
        after++;
    const bool whole = vsnprintf(text, sizeof text, fmt, ap) < (int)sizeof text;
    if (whole)
        text[strlen(text) - after] = 0;
    for (size_t i = 0; i < before; i++)
        fputc('\n', f);
    for (size_t at = before; text[at]; fputs(one, f))
        at += oct_text_clean_at(one, text, at, ascii);
    fputs(whole ? "" : "...", f);
    for (size_t i = 0; i < after; i++)
        fputc('\n', f);
}

void oct_print(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    oct_vprint(f, fmt, ap);
    va_end(ap);
}

static void line_break(oct_buf *b, int indent)
{
    oct_buf_printf(b, "\n%*s", indent, "");
}

void oct_text_wrap(oct_buf *b, const char *s, int at, int indent, int width)
{
    bool first = true; /* of the line */
    while (*s) {
        if (*s == '\n') {
            line_break(b, indent);
            at = indent;
            first = true;
            s++;
            continue;
        }
        if (*s == ' ') {
            s++;
            continue;
        }
        size_t n = strcspn(s, " \n");
        char word[256];
        snprintf(word, sizeof word, "%.*s", n < sizeof word ? (int)n : (int)sizeof word - 1, s);
        int w = oct_utf8_width(word);
        if (!first && at + 1 + w > width) {
            line_break(b, indent);
            at = indent;
        } else if (!first) {
            oct_buf_puts(b, " ");
            at++;
        }
        oct_buf_add(b, s, n);
        at += w;
        first = false;
        s += n;
    }
}

void oct_print_hanging(FILE *f, const char *head, int indent, const char *text, int width)
{
    oct_buf clean = OCT_BUF_INIT, lines = OCT_BUF_INIT;
    oct_text_clean(&clean, text, oct_term_ascii(f));
    oct_text_wrap(&lines, oct_buf_str(&clean), indent, indent, width);
    if (head)
        fprintf(f, "%-*s", indent, head);
    if (clean.failed || lines.failed)
        oct_print(f, "%s", text);
    else
        fputs(oct_buf_str(&lines), f);
    fputc('\n', f);
    oct_buf_free(&clean);
    oct_buf_free(&lines);
}

void oct_print_line(FILE *f, const char *head, int indent, const char *fmt, ...)
{
    char text[4096];
    const int width = oct_term_width(f);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    oct_print_hanging(f, head, indent, text, width ? width : INT_MAX);
}

/* The length of the next word of a command, with what is quoted in it, as oct_quote writes it. */
static size_t word_length(const char *s)
{
    size_t n = 0;
    for (bool quoted = false; s[n] && (quoted || s[n] != ' '); n++)
        if (s[n] == '\'')
            quoted = !quoted;
        else if (!quoted && s[n] == '\\' && s[n + 1])
            n++;
    return n;
}

void oct_print_command(FILE *f, const char *command, int indent, int width)
{
    static const char more[] = " \\";
    const int room = width - (int)(sizeof more - 1);
    oct_buf clean = OCT_BUF_INIT;
    int at = indent;
    oct_text_clean(&clean, command, oct_term_ascii(f));
    const char *s = oct_buf_str(&clean);
    fprintf(f, "%*s", indent, "");
    for (bool first = true; *s; first = false) {
        size_t n = word_length(s);
        if (s[0] == '-' && s[n] == ' ' && s[n + 1] != '-') /* an option and its value stay together */
            n += 1 + word_length(s + n + 1);
        if (!first && at + 1 + (int)n > room) {
            fprintf(f, "%s\n%*s", more, 2 * indent, "");
            at = 2 * indent;
        } else if (!first) {
            fputc(' ', f);
            at++;
        }
        fwrite(s, 1, n, f);
        at += (int)n;
        s += n;
        s += *s == ' ';
    }
    fputc('\n', f);
    oct_buf_free(&clean);
}

int oct_term_width(FILE *f)
{
    if (!f || !isatty(fileno(f)))
        return 0;
    const char *env = getenv("COLUMNS");
    int n = env ? atoi(env) : 0;
    if (n > 0 && n < 10000)
        return n;
    struct winsize ws;
    if (ioctl(fileno(f), TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0)
        return ws.ws_col;
    return 80;
}

/* By the first of LC_ALL, LC_CTYPE and LANG that is set. */
static bool utf8_locale(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        const char *v = getenv(names[i]);
        if (!v || !*v)
            continue;
        const char *dot = strchr(v, '.');
        return dot && (strncasecmp(dot, ".utf-8", 6) == 0 || strncasecmp(dot, ".utf8", 5) == 0);
    }
    return false;
}

bool oct_term_utf8(FILE *f)
{
    return f && isatty(fileno(f)) && utf8_locale();
}

bool oct_term_ascii(FILE *f)
{
    return f && isatty(fileno(f)) && !utf8_locale();
}

void oct_term_style(FILE *f, oct_style style)
{
    static const char *const codes[] = { "\033[0m", "\033[1m", "\033[1;33m", "\033[1;31m" };
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    if (f && isatty(fileno(f)) && !(no && *no) && term && strcmp(term, "dumb") != 0)
        fputs(codes[style], f);
}
