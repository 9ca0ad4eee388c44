/* The checkpoint target on damaged checkpoints of a fit in the middle of its second epoch. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_checkpoint.c"

static void damaged_checkpoints(void **state) {
  (void)state;
  static bytes good;
  make_run();
  MIX_SCOPE {
    const char *backup = in_folder("backup");
    mix_list *all =
        mix_list_of(mix_backup_and_restore(backup, .keep_checkpoint = true), mix_list_get(callbacks, 0));
    assert_non_null(mix_model_fit(model, dataset, NULL, .epochs = 3, .steps = 3, .verbose = MIX_SILENT,
                                  .callbacks = all));
  }
  char path[700];
  snprintf(path, sizeof path, "%s/backup/checkpoint-3.npz", test_folder);
  const unsigned char *read = read_file(path, &good.size);
  memcpy(good.data, read, good.size);
  MIX_SCOPE { /* the valid one is resumed */
    mix_fit_state f;
    int64_t epoch = -1;
    assert_true(fit_state_of(&f, "/nowhere"));
    f.resumed = mix_archive_load_memory("good", good.data, good.size);
    assert_true(mix_backup_resume(&f, &epoch));
    assert_true(epoch == 1 && f.position == 1 && f.history->steps == 3);
    mix_data_adapter_close(&f.adapter);
  }
  mutate_and_run(&good, 6000, 5);
  mix_release(model);
  mix_release(dataset);
  mix_release(callbacks);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_checkpoints)};
  return cmocka_run_group_tests(tests, folder_begin, data_end);
}
