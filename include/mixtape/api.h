/* What every public header needs: visibility, versions, and the names of the opaque handles. */
#ifndef MIXTAPE_API_H
#define MIXTAPE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIXTAPE_VERSION "0.1.0"

#if defined(__GNUC__)
#define MIX_API __attribute__((visibility("default")))
#define MIX_PRINTF(position, first) __attribute__((__format__(__printf__, position, first)))
#else
#define MIX_API
#define MIX_PRINTF(position, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque handles. All are reference counted objects (object.h). */
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
typedef struct mix_history mix_history;

/* Options structs begin with `size_t size`, by which a library knows what its caller was compiled with. The macros of C set it. In C++ a
 * struct is zeroed and its size set by hand: mix_model_options o = {}; o.size = sizeof o; (layers and optimizers have a _defaults()
 * function that does so). Another size is a ValueError. NULL for the options of a call means all defaults. */

/* Zero in an options struct means Keras's default; these two say zero itself (each header row that accepts them says so). */
#define MIX_ZERO (-0x1p-1022)
#define MIX_INT_ZERO (INT64_MIN)

/* The version of the library that is linked, "major.minor.patch". */
MIX_API const char *mix_version(void);

#ifdef __cplusplus
}
#endif
#endif
