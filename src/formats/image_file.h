/* Reads images: PNG with libpng, JPEG with libjpeg-turbo. */
#pragma once

#include <mixtape/tensor.h>

/* uint8 (height, width, channels), as TensorFlow's decode_image, bit by bit with libjpeg-turbo: 1 channel
 * is grey, 3 are red, green and blue, 4 also have the opacity. NULL with the error recorded, which names the
 * file: FormatError if it is damaged, Unsupported for other formats, and for 4 channels of a JPEG. */
mix_tensor *mix_image_read_memory(const char *name, const void *data, size_t size, int channels);
mix_tensor *mix_image_load(const char *path, int channels);
