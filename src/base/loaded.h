/* Code that must stay loaded, and libraries that are loaded when first needed. */
#pragma once

#include <stdbool.h>

/* Keeps the shared object that contains this function or datum in the process, also after dlclose. Call it
 * before the address is given to what may run later: a thread, or a destructor at a thread's end. */
void mix_keep_loaded(const void *address);
/* The same for the object that this library is linked into. */
void mix_keep_library_loaded(void);

/* A function of a library, and the address of the pointer to it. */
typedef struct mix_library_function {
  const char *name;
  void *pointer;
} mix_library_function;
/* Loads the first library of `names` that has all functions, for good, and fills the pointers. Both lists end
 * with NULL. False if no library has all functions. */
bool mix_load_library(const char *const *names, const mix_library_function *functions);
