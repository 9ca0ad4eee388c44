/* Gradients by reverse-mode differentiation. A tape records what its own thread creates between begin and
 * end; everything else is a constant to it. Trainable variables are watched automatically. Gradients are
 * graph nodes, so an outer tape can differentiate them again. */
#ifndef MIXTAPE_TAPE_H
#define MIXTAPE_TAPE_H

#include <mixtape/variable.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_tape_options {
  size_t size;
  bool persistent;        /* allows more than one gradient call */
  bool no_watch_accessed; /* Keras: watch_accessed_variables=True */
} mix_tape_options;
/* Starts recording on this thread. Tapes nest. */
MIX_API mix_tape *mix_tape_begin_with(const mix_tape_options *options);
#ifndef __cplusplus
#define mix_tape_begin(...)                                                                                  \
  mix_tape_begin_with(                                                                                       \
      MIX_ARGUMENTS("mix_tape_begin", "persistent", #__VA_ARGS__, mix_tape_options, __VA_ARGS__))
#endif
/* Stops recording, also on tapes that this thread began after it. */
MIX_API void mix_tape_end(mix_tape *tape);
/* Makes a tensor of a floating dtype a source for nodes created from now on. */
MIX_API mix_status mix_tape_watch(mix_tape *tape, mix_tensor *tensor);
/* The gradient of `target` by each source: a list of tensors, NULL for a source that the target does not
 * depend on. `sources` holds tensors and variables. `target` is a tensor of a floating dtype or a list of
 * such tensors, whose sum is differentiated. A gradient has the dtype of its source; for a variable that
 * is its stored dtype. The gradient of a source of which rows alone are gathered (mix_gather along axis 0,
 * Embedding) has the layout "rows" (mix_rows), which other operations see as a dense tensor. A tape that is
 * not persistent allows one call (RuntimeError). */
MIX_API mix_list *mix_tape_gradient(mix_tape *tape, void *target, mix_list *sources);
/* The same with upstream gradients, one for each target; NULL means ones. */
MIX_API mix_list *mix_tape_gradient_from(mix_tape *tape, mix_list *targets, mix_list *output_gradients,
                                         mix_list *sources);

MIX_END_DECLARATIONS
#endif
