/* What loaders of labelled images share. */
#ifndef MIX_DATA_DATASETS_IMAGES_H
#define MIX_DATA_DATASETS_IMAGES_H

#include <mixtape/mnist.h>

/* A text that lives as long as the process; NULL with the error recorded. */
const char *mix_images_source(const char *format, ...) MIX_PRINTF(1, 2);
/* x_train, y_train, x_test, y_test as uint8: images (n, height, width), n >= 1 labels of 0 to 9 each. */
bool mix_images_check(const char *source, mix_tensor *const arrays[4]);
/* Fills the four arrays: as they are, or as float32 (n, height * width) = byte / 255 and int64 labels. */
void mix_images_finish(mix_images *images, mix_tensor *const arrays[4], bool bytes);
/* Moves the four out of the innermost scope; with an error pending all fields become NULL. */
void mix_images_leave(mix_images *images);

#endif
