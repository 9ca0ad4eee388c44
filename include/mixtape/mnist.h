/* Data sets of handwritten digits: MNIST from files (or downloaded), and one that needs no file. */
#ifndef MIXTAPE_MNIST_H
#define MIXTAPE_MNIST_H

#include <mixtape/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Labelled images. As the guide wants them (default): x float32 (n, 784) = bytes / 255 in float32, y int64 (n). With .bytes = true, as
 * the files hold them: x uint8 (n, 28, 28), y uint8 (n). All four NULL where loading failed (error recorded). */
typedef struct mix_images {
  mix_tensor *x_train, *y_train, *x_test, *y_test;
  const char *source; /* what this is and where it came from, for people: "MNIST from /data/mnist.npz"; lives as long as the process */
} mix_images;
typedef mix_images mix_mnist;
typedef mix_images mix_digits;

typedef struct mix_mnist_options {
  size_t size;
  const char *directory; /* look only here; NULL: $MIXTAPE_DATA_DIR, $KERAS_HOME/datasets, ~/.keras/datasets, then download */
  bool bytes;            /* as the files hold them */
} mix_mnist_options;
/* 60,000 images for training and 10,000 for test (LeCun, Cortes, Burges: The MNIST database of handwritten digits). Each directory, and
 * its folder mnist/, is searched for mnist.npz (Keras's own cache), then for the four IDX files, plain or .gz. What is found but
 * damaged is an error, never passed over. Else Keras's mnist.npz is downloaded (libcurl, https, SHA-256 checked) and kept in the first
 * of those directories; MIXTAPE_OFFLINE=1 forbids it. Where nothing works the message says what was tried and how to go on. */
MIX_API mix_mnist mix_mnist_load_with(const mix_mnist_options *options);
#ifndef __cplusplus
#define mix_mnist_load(...) mix_mnist_load_with(&(const mix_mnist_options){.size = sizeof(mix_mnist_options), __VA_ARGS__})
#endif

typedef struct mix_digits_options {
  size_t size;
  uint64_t seed; /* 0: the standard set */
  int64_t train; /* images for training; 0: 12,000 */
  int64_t test;  /* images for test; 0: 2,000 */
  bool bytes;    /* as drawn: uint8 (n, 28, 28) */
} mix_digits_options;
/* Digits drawn from strokes under random affine and elastic distortion, with pens of several widths and noise. Image i is a function of
 * (seed, i) alone, the same on every machine; test images are of another stream than those for training. Of every ten successive images
 * each shows another digit. */
MIX_API mix_digits mix_digits_load_with(const mix_digits_options *options);
#ifndef __cplusplus
#define mix_digits_load(...) mix_digits_load_with(&(const mix_digits_options){.size = sizeof(mix_digits_options), __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif
#endif
