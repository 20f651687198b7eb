/* Runs a fuzz target over files and folders, when the target is not built with a fuzzer. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count;

static void run_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(size ? size : 1);
    if (f && p && fread(p, 1, size, f) == size) {
        LLVMFuzzerTestOneInput(p, size);
        count++;
    }
    free(p);
    if (f)
        fclose(f);
}

static void run(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        run_file(path, (size_t)st.st_size);
        return;
    }
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char sub[4096];
        if (e->d_name[0] != '.' && snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) < (int)sizeof sub)
            run(sub);
    }
    if (d)
        closedir(d);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!(argv[i] = realpath(argv[i], NULL))) /* a target may change the current folder */
            return 1;
    for (int i = 1; i < argc; i++) {
        run(argv[i]);
        free(argv[i]);
    }
    printf("%d inputs\n", count);
    return count ? 0 : 1;
}
