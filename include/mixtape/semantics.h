/* Generations of the Keras mixed precision API. Each generation is a constant table of rules. Every
 * policy, layer, loss, metric, optimizer and model takes one when it is created (`.semantics`, or the
 * default of the process) and keeps it. */
#ifndef MIXTAPE_SEMANTICS_H
#define MIXTAPE_SEMANTICS_H

#include <mixtape/status.h>

MIX_BEGIN_DECLARATIONS

/* Sets the default generation of the process: "tf_keras" (TensorFlow 2.4 and later, tf_keras; initially),
 * "keras3" or "experimental" (TensorFlow 2.1 to 2.3). Existing objects keep theirs. ValueError for another
 * name. */
MIX_API mix_status mix_set_semantics(const char *name);
/* The default generation of the process. */
MIX_API const mix_semantics *mix_semantics_current(void);
/* The generation with that name; NULL with a ValueError if there is none. */
MIX_API const mix_semantics *mix_semantics_named(const char *name);
/* "tf_keras", "keras3" or "experimental". */
MIX_API const char *mix_semantics_name(const mix_semantics *semantics);

MIX_END_DECLARATIONS
#endif
