/* A plug-in of functions for data sets, without the library, for backend/test_unload.c. What they give is
 * made by the function that their context is. */
#include <mixtape/dataset.h>

#define PUBLIC __attribute__((visibility("default")))

typedef void *maker(int64_t index);

PUBLIC mix_list *same(void *context, mix_list *element) { return (void)context, element; }
PUBLIC bool all(void *context, mix_list *element) { return (void)context, element != NULL; }
PUBLIC mix_list *generate(void *context, int64_t index) { return (*(maker **)context)(index); }
PUBLIC mix_dataset *expand(void *context, mix_list *element) {
  return (void)element, (*(maker **)context)(0);
}
