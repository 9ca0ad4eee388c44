/* Files of a folder that are replaced together: all are written as parts beside the old ones, then the last
 * one, the mark, is removed, the others take their places, and the mark comes back as the new one. What reads
 * the folder reads the mark first: it finds the old files, the new ones, or no mark. */
#pragma once

#include "formats/file.h"

enum { MIX_FILE_SET_LIMIT = 8 };

typedef struct mix_file_set {
  const char *folder, *call; /* borrowed */
  struct {
    char *target, *part; /* no part: the file is to be removed */
  } files[MIX_FILE_SET_LIMIT];
  int count;
  bool begun; /* to replace them */
} mix_file_set;

/* Writes a part and flushes it. The last one that is added is the mark. */
bool mix_file_set_add(mix_file_set *set, const char *name, const mix_piece_source *source);
bool mix_file_set_add_text(mix_file_set *set, const char *name, const char *text);
/* A file that is to go, if there is one. */
bool mix_file_set_remove(mix_file_set *set, const char *name);
/* Needs no memory. What fails is the disk: then parts stay, which are the new files. */
bool mix_file_set_commit(mix_file_set *set);
/* Removes the parts, unless they began to replace files. */
void mix_file_set_free(mix_file_set *set);
/* Has the folder a part of this mark, so that all others are whole, or in place? */
bool mix_file_set_interrupted(const char *folder, const char *mark);
