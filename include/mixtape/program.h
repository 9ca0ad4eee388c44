/* Errors in programs: a message and an exit code in one line. */
#ifndef MIXTAPE_PROGRAM_H
#define MIXTAPE_PROGRAM_H

#include <mixtape/status.h>
#include <stdio.h>
#include <stdlib.h>

/* The library itself never prints or exits; these are code of the program.
 *   return MIX_EXIT_CODE();                      0, or 1 after the pending error's message
 *   MIX_CHECK(mix_model_compile(model, ...));    ends the program at an error, with its place and message */
#define MIX_EXIT_CODE()                                                                                     \
  (mix_error() == MIX_OK                                                                                    \
       ? 0                                                                                                  \
       : (fprintf(stderr, "%s: %s\n", mix_status_name(mix_error()), mix_error_message()), 1))
#define MIX_CHECK(...)                                                                                      \
  do {                                                                                                      \
    (void)(__VA_ARGS__);                                                                                    \
    if (mix_error() != MIX_OK) {                                                                            \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, mix_status_name(mix_error()),                  \
              mix_error_message());                                                                         \
      exit(EXIT_FAILURE);                                                                                   \
    }                                                                                                       \
  } while (0)

#endif
