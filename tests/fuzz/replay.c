/* Runs a fuzz target over files and folders, when targets are not built with a fuzzer: replay NAME PATH...
 * FUZZ_EACH(X), from the build, is X(NAME) for each target of the program, whose function the build calls fuzz_NAME. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define X(name) int fuzz_##name(const uint8_t *data, size_t size);
FUZZ_EACH(X)
#undef X

static const struct {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define X(name) { #name, fuzz_##name },
    FUZZ_EACH(X)
#undef X
};

static int (*target)(const uint8_t *data, size_t size);
static int count;

static void run_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(size ? size : 1);
    if (f && p && fread(p, 1, size, f) == size) {
        target(p, size);
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
    for (size_t i = 0; argc > 1 && i < sizeof targets / sizeof *targets; i++)
        if (strcmp(targets[i].name, argv[1]) == 0)
            target = targets[i].run;
    if (!target) {
        fprintf(stderr, "usage: %s NAME PATH..., with NAME one of fuzz_NAME.c\n", argv[0]);
        return 2;
    }
    for (int i = 2; i < argc; i++)
        if (!(argv[i] = realpath(argv[i], NULL))) /* a target may change the current folder */
            return 1;
    for (int i = 2; i < argc; i++) {
        run(argv[i]);
        free(argv[i]);
    }
    printf("%d inputs\n", count);
    return count ? 0 : 1;
}
