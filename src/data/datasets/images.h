/* Shared by the loaders of labelled images. */
#pragma once

#include <mixtape/mnist.h>

/* Formats an interned string, which lives as long as the process. NULL with the error recorded. */
const char *mix_images_source(const char *format, ...) MIX_PRINTF(1, 2);
/* Checks x_train, y_train, x_test, y_test, all uint8: images (n, height, width), n >= 1, and n labels in 0 to
 * 9. */
bool mix_images_check(const char *source, mix_tensor *const arrays[4]);
/* Fills the four arrays: unchanged if `bytes`, else images as float32 (n, height * width) = byte / 255 and
 * labels as int64. */
void mix_images_finish(mix_images *images, mix_tensor *const arrays[4], bool bytes);
/* Moves the four arrays out of the innermost scope. If an error is pending, all fields become NULL. */
void mix_images_leave(mix_images *images);
