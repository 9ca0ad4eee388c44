/* Which generation of the Keras mixed precision API an object follows: a constant table, one for each. Every policy, layer, loss,
 * metric, optimizer and model takes one when it is made (`.semantics`, else the process's) and keeps it. */
#ifndef MIXTAPE_SEMANTICS_H
#define MIXTAPE_SEMANTICS_H

#include <mixtape/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "tf_keras" (TensorFlow 2.4 and later, tf_keras; the default), "keras3", "experimental" (TensorFlow 2.1 to 2.3). ValueError for
 * another name. Objects that exist keep theirs. */
MIX_API mix_status mix_set_semantics(const char *name);
/* The process's. */
MIX_API const mix_semantics *mix_semantics_current(void);
/* The table of that name; NULL with a ValueError recorded where there is none. */
MIX_API const mix_semantics *mix_semantics_named(const char *name);
/* "tf_keras", "keras3" or "experimental". */
MIX_API const char *mix_semantics_name(const mix_semantics *semantics);

#ifdef __cplusplus
}
#endif
#endif
