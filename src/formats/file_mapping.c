#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#endif
#include "formats/file_mapping.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A page before the file holds how large the region is, and one behind it serves kernels that read past the
 * end of a value (base/alloc.h). */
static void unmap(void *data) {
  char *region = (char *)data - sysconf(_SC_PAGESIZE);
  munmap(region, *(size_t *)(void *)region);
}

/* Private and writable: what wrote by mistake would change its own copy of a page, not the file. */
static void *map(int file, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size == 0 || size > SIZE_MAX / 2) return NULL;
  const size_t whole = page + (size + page - 1) / page * page + page;
  const int access = PROT_READ | PROT_WRITE;
  char *region = mmap(NULL, whole, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) return NULL;
  if (mmap(region + page, size, access, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) == MAP_FAILED) {
    munmap(region, whole);
    return NULL;
  }
  *(size_t *)(void *)region = whole;
  return region + page;
}

mix_memory *mix_file_map(const char *path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe does not wait for its writer */
  struct stat status;
  const bool regular = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  void *data = regular ? map(file, (size_t)status.st_size) : NULL;
  if (file >= 0) close(file);
  mix_memory *memory = data ? mix_memory_wrap(data, (size_t)status.st_size, unmap) : NULL;
  if (data && !memory) unmap(data);
  return memory;
}

mix_memory *mix_file_memory(const char *path, bool copies, bool *mapped) {
  size_t size = 0;
  mix_memory *memory = copies ? NULL : mix_file_map(path);
  *mapped = memory != NULL;
  void *data = memory || mix_failed() ? NULL : mix_file_read(path, SIZE_MAX, &size);
  if (data && !(memory = mix_memory_wrap(data, size, mix_free))) mix_free(data);
  return memory;
}
