/* The PJRT plug-in of MIXTAPE_TEST_PJRT on a device that is lost after as many runs and copies as
 * MIXTAPE_LOSE_AFTER says: from then on they fail, with the text of a GPU that has fallen off the bus. */
#include "backend/xla/pjrt_api.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const pjrt_api *real;
static atomic_int left;
static char lost[] = "CUDA_ERROR_UNKNOWN: the device is lost";

static pjrt_error *pass(pjrt_call call, void *arguments) {
  return atomic_fetch_sub(&left, 1) <= 0 ? (pjrt_error *)lost : real->functions[call](arguments);
}
static pjrt_error *execute(void *arguments) { return pass(PJRT_LOADED_EXECUTE, arguments); }
static pjrt_error *upload(void *arguments) { return pass(PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER, arguments); }
static pjrt_error *download(void *arguments) { return pass(PJRT_BUFFER_TO_HOST_BUFFER, arguments); }

static pjrt_error *destroy_error(void *arguments) {
  const pjrt_object_args *args = arguments;
  return args->object == lost ? NULL : real->functions[PJRT_ERROR_DESTROY](arguments);
}
static pjrt_error *error_message(void *arguments) {
  pjrt_text_args *args = arguments;
  if (args->object != lost) return real->functions[PJRT_ERROR_MESSAGE](arguments);
  args->text = lost;
  args->size = sizeof lost - 1;
  return NULL;
}
static pjrt_error *error_code(void *arguments) {
  pjrt_error_code_args *args = arguments;
  if ((const char *)args->error != lost) return real->functions[PJRT_ERROR_GET_CODE](arguments);
  args->code = 13;
  return NULL;
}

__attribute__((visibility("default"))) const pjrt_api *GetPjrtApi(void) {
  static pjrt_api *table; /* for the life of the process, as a plug-in's own */
  void *library = dlopen(getenv("MIXTAPE_TEST_PJRT"), RTLD_NOW | RTLD_LOCAL);
  const pjrt_api *(*entry)(void) = NULL;
  if (library) *(void **)&entry = dlsym(library, "GetPjrtApi");
  if (!entry) return NULL;
  real = entry();
  table = malloc(real->struct_size);
  memcpy(table, real, real->struct_size);
  table->functions[PJRT_LOADED_EXECUTE] = execute;
  table->functions[PJRT_CLIENT_BUFFER_FROM_HOST_BUFFER] = upload;
  table->functions[PJRT_BUFFER_TO_HOST_BUFFER] = download;
  table->functions[PJRT_ERROR_DESTROY] = destroy_error;
  table->functions[PJRT_ERROR_MESSAGE] = error_message;
  table->functions[PJRT_ERROR_GET_CODE] = error_code;
  atomic_store(&left, atoi(getenv("MIXTAPE_LOSE_AFTER")));
  return table;
}
