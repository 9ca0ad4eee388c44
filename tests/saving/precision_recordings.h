/* Shared by the tests of the recorded models of other precisions, through the library and through the program
 * ($MIXTAPE_REFERENCE_DIR/precision, whose README has the bounds). */
#ifndef TESTS_SAVING_PRECISION_RECORDINGS_H
#define TESTS_SAVING_PRECISION_RECORDINGS_H

#include "saving/reference_models.h"
#include "support/folder.h"

typedef struct recording {
  char name[128];
  json_t *json;
  mix_npz *npz;
  int examples;
} recording;

static inline const char *path_of(const recording *r, const char *end) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/precision/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), r->name, end);
  return path;
}

/* ---- bounds ---- */

/* Three times what Keras differs from itself by where a last bit moves: a rounding to float8 may decide. */
static inline double spread_of(const recording *r, const char *what) {
  const char *kind;
  json_t *of_kind;
  double largest = 0;
  json_object_foreach(json_object_get(r->json, "spread"), kind, of_kind) largest =
      fmax(largest, json_number_value(json_object_get(of_kind, what)));
  return 3 * largest;
}

static inline bool is_policy(const recording *r, const char *name) {
  return !strcmp(json_string_value(json_object_get(r->json, "policy")), name);
}

/* ---- weights ---- */

static inline const char *recorded_path(const recording *r, int index) {
  const json_t *variables = json_object_get(json_object_get(r->json, "after"), "variables");
  return json_string_value(json_object_get(json_array_get(variables, (size_t)index), "path"));
}

/* ---- tests ---- */

/* The recording whose name is the test's state. */
typedef void run_recording_of(const recording *r);
static run_recording_of *run_recording; /* of this program */

static inline void run(void **state) {
  recording r;
  snprintf(r.name, sizeof r.name, "%s", (const char *)*state);
  mix_set_accumulate("exact");
  MIX_SCOPE {
    r.json = json_load_file(path_of(&r, ".json"), 0, NULL);
    r.npz = mix_npz_open(path_of(&r, ".npz"));
    assert_non_null(r.json);
    assert_no_error();
    r.examples = (int)json_integer_value(json_object_get(r.json, "examples"));
    run_recording(&r);
    json_decref(r.json);
  }
}

static int forget_errors(void **state) {
  (void)state;
  mix_error_clear();
  return 0;
}

static inline void not_here(void **state) {
  (void)state;
  SKIP("there are no recordings in MIXTAPE_REFERENCE_DIR/precision");
}

static char *names[MAX_FILES];

/* Is the recording one of the program's? */
typedef bool is_wanted_recording(const char *name);

static inline int find_recordings(is_wanted_recording *is_wanted) {
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  char path[1024];
  int count = 0;
  snprintf(path, sizeof path, "%s/precision", folder ? folder : "");
  DIR *files = folder ? opendir(path) : NULL;
  for (const struct dirent *entry; files && (entry = readdir(files));)
    if (ends(entry->d_name, ".json") && count < MAX_FILES) {
      names[count] = strndup(entry->d_name, strlen(entry->d_name) - 5);
      if (is_wanted(names[count]))
        count++;
      else
        free(names[count]);
    }
  if (files) closedir(files);
  qsort(names, (size_t)count, sizeof *names, by_text);
  return count;
}

/* MIXTAPE_REFERENCE_SUBSET: one of each kind. */
static inline bool is_in_subset(const char *name, const char *const *subset, size_t count) {
  const char *asked = getenv("MIXTAPE_REFERENCE_SUBSET");
  bool chosen = !asked || !*asked;
  for (size_t i = 0; i < count; i++) chosen |= !strcmp(subset[i], name);
  return chosen;
}

/* A test for each recording. */
static inline int run_recordings(const char *group, is_wanted_recording *is_wanted,
                                 run_recording_of *run_one) {
  static struct CMUnitTest tests[MAX_FILES];
  const int count = find_recordings(is_wanted);
  run_recording = run_one;
  tests[0] = (struct CMUnitTest)TEST(not_here);
  for (int i = 0; i < count; i++)
    tests[i] = (struct CMUnitTest){names[i], run, forget_errors, NULL, names[i]};
  const int failed =
      _cmocka_run_group_tests(group, tests, (size_t)(count ? count : 1), folder_begin, folder_end);
  for (int i = 0; i < count; i++) free(names[i]);
  return failed;
}

#endif
