#include "external.h"

#include "provider_int.h"
#include "graph_bytes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mapped_file {
    mapped_file *next;
    uint8_t *at;
    size_t size;
    char path[];
};

/* Maps a regular file that is not empty; returns NULL for any other, and where there is no memory. */
static mapped_file *map_file(const char *path, size_t length)
{
    struct stat st;
    mapped_file *f = malloc(sizeof *f + length + 1);
    const int fd = f ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED) {
        free(f);
        return NULL;
    }
    *f = (mapped_file){ .at = at, .size = (size_t)st.st_size };
    memcpy(f->path, path, length + 1);
    return f;
}

/* The file of that name beside the model, mapped once. NULL: it cannot be. */
static const mapped_file *file_beside(const char *model, const char *name, mapped_file **files)
{
    const char *slash = strrchr(model, '/');
    const size_t folder = slash && name[0] != '/' ? (size_t)(slash + 1 - model) : 0, length = folder + strlen(name);
    char *path = malloc(length + 1);
    if (!path)
        return NULL;
    memcpy(path, model, folder);
    memcpy(path + folder, name, length - folder + 1);
    mapped_file *f = *files;
    while (f && strcmp(f->path, path) != 0)
        f = f->next;
    if (!f && (f = map_file(path, length))) {
        f->next = *files;
        *files = f;
    }
    free(path);
    return f;
}

ort_status *external_find(const ort_api *api, const ort_graph *g, const ort_value_info *v, octet_array *a,
                          mapped_file **files)
{
    ort_external *x = NULL;
    const char *model = NULL;
    size_t size;
    if (!array_size(a, &size) || !size)
        return NULL;
    TRY(api->ValueInfo_GetExternalInitializerInfo(v, &x));
    if (!x)
        return NULL;
    ort_status *s = api->Graph_GetModelPath(g, &model);
    const char *name = api->ExternalInitializerInfo_GetFilePath(x);
    const int64_t offset = api->ExternalInitializerInfo_GetFileOffset(x);
    const size_t length = api->ExternalInitializerInfo_GetByteSize(x);
    if (!s && model && *model && name && length == size && offset >= 0) {
        const mapped_file *f = file_beside(model, name, files);
        if (f && (uint64_t)offset <= f->size && size <= f->size - (uint64_t)offset)
            a->data = f->at + offset;
    }
    api->ReleaseExternalInitializerInfo(x);
    return s;
}

const uint8_t *external_map(const char *model, const char *name, mapped_file **files, size_t *size)
{
    const mapped_file *f = file_beside(model, name, files);
    *size = f ? f->size : 0;
    return f ? f->at : NULL;
}

bool external_has(const mapped_file *files, const void *data)
{
    const uintptr_t p = (uintptr_t)data;
    for (; files; files = files->next)
        if (p >= (uintptr_t)files->at && p - (uintptr_t)files->at < files->size)
            return true;
    return false;
}

void external_free(mapped_file *files)
{
    for (mapped_file *f; (f = files);) {
        files = f->next;
        munmap(f->at, f->size);
        free(f);
    }
}
