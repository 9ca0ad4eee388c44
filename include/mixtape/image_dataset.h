/* Images in a tree of folders as a dataset: Keras's image_dataset_from_directory. */
#ifndef MIXTAPE_IMAGE_DATASET_H
#define MIXTAPE_IMAGE_DATASET_H

#include <mixtape/dataset.h>

MIX_BEGIN_DECLARATIONS

/* An index of the files and the datasets of them: batches of images, float32 (n, height, width, channels)
 * from 0 to 255, with their labels. Both datasets are NULL if there was an error. The arrays belong to the
 * innermost scope of the call, the strings to the process. */
typedef struct mix_image_dataset {
  mix_dataset *dataset;
  mix_dataset *validation; /* with subset "both" */
  int class_count;         /* 0 without labels, or with labels of the caller */
  const char *const *class_names;
  int64_t file_count; /* of `dataset` */
  const char *const *file_paths;
} mix_image_dataset;

typedef struct mix_image_dataset_options {
  size_t size;
  const char *directory; /* required */
  /* Labels from the names of the folders (Keras: labels="inferred"), or those of the caller, one for each
   * file in the order of the index, or none (Keras: labels=None). */
  const int64_t *labels;
  int64_t label_count;
  bool no_labels;
  /* NULL: "int", int32 scalars; "categorical": one-hot float32; "binary": float32 (1), of two classes; "none"
   */
  const char *label_mode;
  const char *const *class_names; /* the folders and their order; NULL: all, sorted */
  int class_count;
  const char *color_mode;  /* NULL: "rgb"; "rgba", "grayscale" */
  int64_t batch_size;      /* 0: 32; -1: no batches */
  int64_t height, width;   /* 0: 256 */
  bool no_shuffle;         /* the order of the index: by folder, then by name */
  uint64_t seed;           /* 0: derived from the global seed; required to shuffle with a validation split */
  double validation_split; /* the share of the files at the end that is for validation; 0: none */
  const char *subset;      /* with a split: "training", "validation" or "both" */
  const char *interpolation; /* NULL: "bilinear"; as Resizing of tf_keras */
  bool follow_links;         /* also folders that are links */
  bool crop_to_aspect_ratio; /* to the part in the middle, which is then resized */
  bool pad_to_aspect_ratio;  /* with zeros around the resized image, as tf.image.resize_with_pad */
  const char *data_format;   /* NULL: "channels_last"; "channels_first" */
} mix_image_dataset_options;
/* Finds the files .png, .jpg, .jpeg, .bmp and .gif (in any case) in the folder of each class, and in the
 * folders in it. Files are read when an element is needed, several at once. A file that is damaged, or no PNG
 * or JPEG, is an error then that names it. ValueError for bad options, and if there is no image. */
MIX_API mix_image_dataset mix_image_dataset_from_directory_with(const mix_image_dataset_options *options);
#ifndef __cplusplus
#define mix_image_dataset_from_directory(...)                                                                \
  mix_image_dataset_from_directory_with(MIX_ARGUMENTS("mix_image_dataset_from_directory", "directory",       \
                                                      #__VA_ARGS__, mix_image_dataset_options,               \
                                                      .directory = __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
