/* Named values on their way into a checkpoint and out of it: tensors, whole numbers, texts. Their file is an .npz archive (numpy.load reads
 * it) whose comment, its last bytes, holds the SHA-256 of everything before: what is cut or altered anywhere is refused. */
#ifndef MIX_DATA_STATE_H
#define MIX_DATA_STATE_H

#include <mixtape/tensor.h>

/* The seal: these words, then 64 hexadecimal digits, at the very end. */
#define MIX_STATE_SEAL "mixtape checkpoint 1 sha256 "
enum { MIX_STATE_DIGITS = 64, MIX_STATE_SEAL_SIZE = sizeof MIX_STATE_SEAL - 1 + MIX_STATE_DIGITS };

typedef struct mix_state mix_state; /* an object: mix_release */

/* Nothing in it yet; scoped. */
mix_state *mix_state_new(void);
/* Retains the value, which keeps its bits whatever its dtype. Names must differ. */
bool mix_state_put(mix_state *state, const char *name, mix_tensor *value);
bool mix_state_put_integers(mix_state *state, const char *name, int count, const int64_t *values);
bool mix_state_put_text(mix_state *state, const char *name, const char *text);
/* Replaces the file in one step: written beside, flushed to the disk, renamed. `call` is for messages. */
bool mix_state_save(mix_state *state, const char *path, const char *call);

/* Refuses (FormatError, naming the file) what is damaged, cut, or no such file; scoped. */
mix_state *mix_state_load(const char *path);
/* The same from memory, which must outlive it. */
mix_state *mix_state_load_memory(const char *name, const void *data, size_t size);
/* The file it came from. */
const char *mix_state_path(const mix_state *state);
/* NULL, without an error, where there is none of that name; scoped. */
mix_tensor *mix_state_get(mix_state *state, const char *name);
/* False with the error recorded where they are missing or not that many whole numbers. */
bool mix_state_get_integers(mix_state *state, const char *name, int count, int64_t *values);
/* mix_free it. NULL with the error recorded where it is missing or no text. */
char *mix_state_get_text(mix_state *state, const char *name);

#endif
