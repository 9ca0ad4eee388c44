/* Datasets of handwritten digits: MNIST from files (or downloaded), and generated digits that need no
 * file. */
#ifndef MIXTAPE_MNIST_H
#define MIXTAPE_MNIST_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Labelled images. By default x is float32 (n, 784), bytes / 255 computed in float32, and y is int64 (n).
 * With .bytes = true they are as in the files: x uint8 (n, 28, 28), y uint8 (n). All four are NULL if
 * loading failed (error recorded). */
typedef struct mix_images {
  mix_tensor *x_train, *y_train, *x_test, *y_test;
  /* A description with the origin of the data: "MNIST from /data/mnist.npz". The string lives as long as
   * the process. */
  const char *source;
} mix_images;
typedef mix_images mix_mnist;
typedef mix_images mix_digits;

typedef struct mix_mnist_options {
  size_t size;
  /* Search only here. NULL: $MIXTAPE_DATA_DIR, $KERAS_HOME/datasets, ~/.keras/datasets, then download. */
  const char *directory;
  bool bytes;    /* uint8, as in the files */
  bool optional; /* where no file is found: no download and no error; all fields are NULL */
} mix_mnist_options;
/* Loads 60,000 training and 10,000 test images (LeCun, Cortes, Burges: The MNIST database of handwritten
 * digits). Each directory, and its folder mnist/, is searched for mnist.npz (Keras's cache), then for the
 * four IDX files, plain or .gz. A damaged file is an error; it is not skipped.
 * If no file is found, Keras's mnist.npz is downloaded (libcurl, https, SHA-256 checked) and stored in the
 * first of those directories. MIXTAPE_OFFLINE=1 forbids this. If everything fails, the message says what
 * was tried and what to do. */
MIX_API mix_mnist mix_mnist_load_with(const mix_mnist_options *options);
#ifndef __cplusplus
#define mix_mnist_load(...)                                                                                  \
  mix_mnist_load_with(                                                                                       \
      MIX_ARGUMENTS("mix_mnist_load", "directory", #__VA_ARGS__, mix_mnist_options, __VA_ARGS__))
#endif

typedef struct mix_digits_options {
  size_t size;
  uint64_t seed; /* 0: the default set */
  int64_t train; /* number of training images; 0: 12,000 */
  int64_t test;  /* number of test images; 0: 2,000 */
  bool bytes;    /* as drawn: uint8 (n, 28, 28) */
} mix_digits_options;
/* Draws digits from strokes with random affine and elastic distortion, several pen widths, and noise.
 * Image i is a function of (seed, i) only, the same on every machine. Test images come from another random
 * stream than training images. Every ten successive images show ten different digits. */
MIX_API mix_digits mix_digits_load_with(const mix_digits_options *options);
#ifndef __cplusplus
#define mix_digits_load(...)                                                                                 \
  mix_digits_load_with(MIX_ARGUMENTS("mix_digits_load", "", #__VA_ARGS__, mix_digits_options, __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
