/* Fuzz target: names of data, and what lies in the folder they lead to. The first line is what a user writes after
 * --data (several, with spaces between), the next what is written after --labels, then one line a file: its name, and
 * after a space its content where that is not the usual for its ending. A name that ends in / is a folder, into which
 * the files after it go. */
#include "fuzz_folder.h"

#include "data/data.h"

#include "base/mem.h"

enum { MOST_FILES = 50, MOST_SPECS = 4, MOST_SAMPLES = 30 };

static const char NPY[] =
    "\x93NUMPY\x01\x00\x43\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }       \n"
    "\0\0\x80\x3f\0\0\0\0\0\0\x80\x3f\0\0\x80\x3f\0\0\0\x40\0\0\x80\xbf";

static char *next_line(char **text)
{
    char *line = *text, *end = line ? strchr(line, '\n') : NULL;
    if (end)
        *end = 0;
    *text = end ? end + 1 : NULL;
    return line;
}

static void make_file(const char *folder, char *line)
{
    char path[300], *content = strchr(line, ' ');
    if (content)
        *content++ = 0;
    if (!fuzz_is_name(line))
        return;
    snprintf(path, sizeof path, "%s%s", folder, line);
    if (content)
        fuzz_write(path, content, strlen(content));
    else if (strstr(line, ".csv"))
        fuzz_write(path, "file,label\na.npy,1\nb.npy,0\n", 27);
    else
        fuzz_write(path, NPY, sizeof NPY - 1);
}

static void make_files(char *rest)
{
    char folder[256] = "";
    for (int i = 0; rest && i < MOST_FILES; i++) {
        char *line = next_line(&rest);
        const size_t n = strlen(line);
        if (n > 1 && n < 200 && line[n - 1] == '/') {
            line[n - 1] = 0;
            if (fuzz_is_name(line) && mkdir(line, 0700) == 0)
                snprintf(folder, sizeof folder, "%s/", line);
        } else {
            make_file(folder, line);
        }
    }
}

static void read_samples(const oct_source_options *o)
{
    oct_err err = OCT_ERR_INIT;
    oct_source *src = NULL;
    if (oct_source_open(o, &src, &err) != OCT_OK)
        return;
    oct_batch b = OCT_BATCH_INIT;
    size_t given = 0;
    while (given < MOST_SAMPLES && oct_source_next(src, 4, &b, &err) == OCT_OK && b.n)
        given += b.n;
    const int64_t n = oct_source_count(src);
    if (n >= 0 && (int64_t)given > n)
        abort();
    oct_batch_free(&b);
    oct_source_close(src);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[2] = { -1, 3 };
    const oct_input_desc in = { "x", OCT_F32, 2, dims };
    const char *specs[MOST_SPECS];
    size_t n = 0;
    char *text = size < 4096 ? oct_alloc(size + 1) : NULL;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    char *rest = text, *words = next_line(&rest), *labels = rest ? next_line(&rest) : NULL;
    for (char *w = strtok(words, " "); w && n < MOST_SPECS; w = strtok(NULL, " "))
        if (*w != '/' && !strstr(w, "..") && !strstr(w, "/.") && strcmp(w, "-") != 0 &&
            strncmp(w, "pipe:", 5) != 0) /* those are the user's */
            specs[n++] = w;
    fuzz_folder_open();
    make_files(rest);
    read_samples(
        &(oct_source_options){ .specs = specs,
                               .n_specs = n,
                               .inputs = &in,
                               .n_inputs = 1,
                               .skip_bad = true,
                               .threads = 1,
                               .labels = labels && *labels && *labels != '/' && *labels != '.' ? labels : NULL });
    oct_free(text);
    return 0;
}
