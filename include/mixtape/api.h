/* What every public header needs: symbol visibility, versions, and the names of the opaque handles. */
#ifndef MIXTAPE_API_H
#define MIXTAPE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of these headers. MIX_VERSION_NUMBER is 10000 * major + 100 * minor + patch, for #if. */
#define MIX_VERSION_MAJOR 0
#define MIX_VERSION_MINOR 1
#define MIX_VERSION_PATCH 0
#define MIX_VERSION_NUMBER (MIX_VERSION_MAJOR * 10000 + MIX_VERSION_MINOR * 100 + MIX_VERSION_PATCH)
#define MIX_VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define MIX_VERSION_EXPAND_(major, minor, patch) MIX_VERSION_TEXT_(major, minor, patch)
#define MIXTAPE_VERSION MIX_VERSION_EXPAND_(MIX_VERSION_MAJOR, MIX_VERSION_MINOR, MIX_VERSION_PATCH)

#if defined(__GNUC__)
#define MIX_API __attribute__((visibility("default")))
#define MIX_PRINTF(position, first) __attribute__((__format__(__printf__, position, first)))
#else
#define MIX_API
#define MIX_PRINTF(position, first)
#endif

/* Around what a header declares: C++ links it as C. */
#ifdef __cplusplus
#define MIX_BEGIN_DECLARATIONS extern "C" {
#define MIX_END_DECLARATIONS }
#else
#define MIX_BEGIN_DECLARATIONS
#define MIX_END_DECLARATIONS
#endif

MIX_BEGIN_DECLARATIONS

/* Opaque handles. All are reference-counted objects (object.h). */
typedef struct mix_list mix_list;
typedef struct mix_tensor mix_tensor;
typedef struct mix_variable mix_variable;
typedef struct mix_tape mix_tape;
typedef struct mix_function mix_function;
typedef struct mix_generator mix_generator;
typedef struct mix_policy mix_policy;
typedef struct mix_semantics mix_semantics;
typedef struct mix_layer mix_layer;
typedef struct mix_initializer mix_initializer;
typedef struct mix_regularizer mix_regularizer;
typedef struct mix_constraint mix_constraint;
typedef struct mix_loss mix_loss;
typedef struct mix_metric mix_metric;
typedef struct mix_optimizer mix_optimizer;
typedef struct mix_loss_scale mix_loss_scale;
typedef struct mix_dataset mix_dataset;
typedef struct mix_iterator mix_iterator;
typedef struct mix_model mix_model;
typedef struct mix_decode_state mix_decode_state;
typedef struct mix_history mix_history;

/* Options structs begin with `size_t size`, which tells the library which version of the struct the caller
 * was compiled with. The C macros set it, and in C++ mix::options<> of mixtape.hpp; by hand:
 * mix_model_options o = {}; o.size = sizeof o; (layers and optimizers have a _defaults() function that
 * does this). An unknown size is a ValueError. A NULL pointer to options means all defaults. */

/* The arguments of the macros of C. Only the arguments that a macro names in its definition may be written
 * without their names, first and in that order, as in Keras: mix_dense(64, "relu"); every other argument has
 * its name: mix_dense(64, "relu", .no_bias = true); a macro that stands for one is not seen as one. Anything
 * else is a TypeError at run time, and so is a 0 or NULL without a name where it would mean a default that is
 * not Keras's 0 or None (marked by '!'), and one number for a struct, .strides = 2 (they stand behind the
 * semicolon, with what makes them). A variable that holds the number is not seen as one; of its missing
 * braces compilers warn (-Wall). mix_arguments checks the text of a call and returns the options, or what
 * makes every function fail. */
MIX_API const void *mix_arguments(const char *call, const char *names, const char *text, const void *options);
#ifndef __cplusplus
#define MIX_ARGUMENTS(call, names, text, type, ...)                                                          \
  mix_arguments_of(call, names, text, &(const type){.size = sizeof(type), __VA_ARGS__})
static inline bool mix_begins_a_name(const char *text) {
  return (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '_';
}
/* The same; calls in loops, mix_call(layer, x, .training = MIX_TRUE), are known to be right where they are
 * compiled. */
static inline const void *mix_arguments_of(const char *call, const char *names, const char *text,
                                           const void *options) {
#if defined(__GNUC__)
  const char *comma = __builtin_strchr(text, ',');
  if (mix_begins_a_name(names) && mix_begins_a_name(text) &&
      (!comma || (comma[1] == ' ' && comma[2] == '.' && mix_begins_a_name(comma + 3) &&
                  !__builtin_strchr(comma + 1, ',') && !__builtin_strchr(names, ';'))))
    return options;
#endif
  return mix_arguments(call, names, text, options);
}
#endif

/* Zero in an options struct means Keras's default. These constants mean zero itself; each member that
 * accepts them says so. */
#define MIX_ZERO (-0x1p-1022)
#define MIX_INT_ZERO (INT64_MIN)

/* The version of the linked library, "major.minor.patch", and as MIX_VERSION_NUMBER counts. */
MIX_API const char *mix_version(void);
MIX_API int mix_version_number(void);
/* The parts that a build may leave out (docs/manual/small-build.md) which the linked library has, and those
 * that it has not: "download, drawing, images". A call that needs one of these is an Unsupported error. */
MIX_API const char *mix_parts(void);
MIX_API const char *mix_parts_left_out(void);

MIX_END_DECLARATIONS
#endif
