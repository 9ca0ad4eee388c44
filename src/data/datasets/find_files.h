/* Finds the files of a data set: in the folder that the caller names, or else in $MIXTAPE_DATA_DIR,
 * $KERAS_HOME/datasets and ~/.keras/datasets, then by a download that is kept in the first of these. */
#pragma once

#include "data/datasets/download.h"

typedef struct mix_data_files {
  const char *call;          /* in messages: "mnist_load" */
  const char *folder;        /* a folder in these folders that is searched too: "mnist" */
  const char *missing;       /* "neither mnist.npz nor the IDX files are" */
  const char *missing_there; /* the same for the caller's folder */
  const char *remedy;        /* the end of the message if nothing is found */
  const char *kept_as;       /* the file name of the download */
  mix_download_request request;
  /* Searches one folder; true if data was found. It records the error of a damaged file, and then the search
   * ends. */
  bool (*search)(const char *folder, void *context);
  void (*take)(const void *data, size_t size, void *context); /* the content of the download */
} mix_data_files;
/* False with the error recorded. If they are optional, then without one where there are no files: nothing is
 * downloaded. */
bool mix_data_files_find(const mix_data_files *files, const char *directory, bool optional, void *context);
