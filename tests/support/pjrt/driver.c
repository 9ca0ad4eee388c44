/* A fake of libcuda.so.1. FAKE_GPUS: "NAME:MAJOR.MINOR:GIBIBYTES[:CORES],...", FAKE_CUDA: the driver's
 * version (13000), FAKE_CUDA_ERROR: what cuInit returns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
EXPORTED int cuInit(unsigned flags);
EXPORTED int cuDriverGetVersion(int *version);
EXPORTED int cuDeviceGetCount(int *count);
EXPORTED int cuDeviceGet(int *device, int number);
EXPORTED int cuDeviceGetName(char *name, int size, int device);
EXPORTED int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int device);

static const char *text_of(const char *name) { return getenv(name) ? getenv(name) : ""; }

typedef struct gpu {
  char name[96];
  int major, minor, gibibytes, cores;
} gpu;

/* False: there are fewer. */
static int find(int device, gpu *found) {
  const char *text = text_of("FAKE_GPUS");
  for (int i = 0; text && *text; i++) {
    if (i == device)
      return sscanf(text, "%95[^:]:%d.%d:%d:%d", found->name, &found->major, &found->minor, &found->gibibytes,
                    &found->cores) >= 4;
    text = strchr(text, ',');
    if (text) text++;
  }
  return 0;
}

int cuInit(unsigned flags) { return (void)flags, atoi(text_of("FAKE_CUDA_ERROR")); }
int cuDriverGetVersion(int *version) {
  *version = atoi(text_of("FAKE_CUDA"));
  return 0;
}
int cuDeviceGetCount(int *count) {
  gpu found;
  for (*count = 0; find(*count, &found);) ++*count;
  return 0;
}
int cuDeviceGet(int *device, int number) {
  *device = number;
  return 0;
}
int cuDeviceGetName(char *name, int size, int device) {
  gpu found;
  if (!find(device, &found)) return 101;
  snprintf(name, (size_t)size, "%s", found.name);
  return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  gpu found;
  if (!find(device, &found)) return 101;
  *bytes = (size_t)found.gibibytes << 30;
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  gpu found = {0};
  if (!find(device, &found)) return 101;
  *value = attribute == 75 ? found.major : attribute == 76 ? found.minor : attribute == 16 ? found.cores : 0;
  return 0;
}
