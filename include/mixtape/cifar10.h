/* CIFAR-10: small colour images of ten classes. */
#ifndef MIXTAPE_CIFAR10_H
#define MIXTAPE_CIFAR10_H

#include <mixtape/mnist.h>

MIX_BEGIN_DECLARATIONS

typedef mix_images mix_cifar10;

typedef struct mix_cifar10_options {
  size_t size;
  /* Search only here. NULL: $MIXTAPE_DATA_DIR, $KERAS_HOME/datasets, ~/.keras/datasets, then download. */
  const char *directory;
  bool bytes;    /* uint8, as Keras gives them */
  bool optional; /* where no file is found: no download and no error; all fields are NULL */
} mix_cifar10_options;
/* Loads 50,000 training and 10,000 test images (Krizhevsky: Learning multiple layers of features from tiny
 * images; 2009). x is float32 (n, 32, 32, 3), bytes / 255, and y is int64 (n); with .bytes = true, x is uint8
 * and y uint8 (n, 1), as from keras.datasets.cifar10.load_data. Each directory, and its folder cifar10/, is
 * searched for the binary version: the folder cifar-10-batches-bin, its six files themselves, or
 * cifar-10-binary.tar.gz. (The version that Keras keeps is pickled and not read.) A damaged file is an error;
 * it is not skipped. If no file is found, cifar-10-binary.tar.gz (170 MB) is downloaded (libcurl, https,
 * SHA-256 checked) and stored in the first of those directories. MIXTAPE_OFFLINE=1 forbids this. */
MIX_API mix_cifar10 mix_cifar10_load_with(const mix_cifar10_options *options);
#ifndef __cplusplus
#define mix_cifar10_load(...)                                                                                \
  mix_cifar10_load_with(                                                                                     \
      MIX_ARGUMENTS("mix_cifar10_load", "directory", #__VA_ARGS__, mix_cifar10_options, __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
