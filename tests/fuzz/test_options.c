/* The target of command lines on damaged ones. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_options.c"

static const char *const lines[] = {
    ("train\n--data\ndigits\n--policy=mixed_float16\n--optimizer\nadam:learning_rate=0.01,clipnorm=1\n"
     "--metrics\naccuracy,auc:curve=PR,name=area\n--loss-scale\ndynamic:32768:100\n--epochs\n3\n"
     "--batch-size=64\n--seed\n7"),
    ("train\n--semantics=keras3\n--policy\nmixed_float16\n--loss-scale=128\n--optimizer=sgd:momentum=0.9,"
     "nesterov=true\n--loss\nsparse_categorical_crossentropy\n--class-weight\n0=1,1=2.5\n"
     "--validation-split=0.25"),
    ("train\n--callback\nearly_stopping:monitor=loss,patience=2\n--callback=csv_logger:filename=log.csv\n"
     "--checkpoint\ndir\n--resume=force\n--checkpoint-freq\n10\n--verbose=0\n--no-shuffle\n--json"),
    "train\n--graph-rewrite\nfloat16\n--loss-scale=dynamic:1e3\n--optimizer=rmsprop:rho=0.5\n--jit-compile",
    "train\n--loop=custom\n--semantics\nexperimental\n--policy=mixed_bfloat16\n--accumulate\nexact",
    "evaluate\n--data=file.npz\n--init-weights\nweights.npz\n--metrics=top_k_categorical_accuracy:k=3",
    "numerics\n--steps=5\n--every\n2\n--stall=9\n--png\nfile.png",
    "bench\n--quick\n--only=steps\n--units\n8",
    "predict\n--output=out.npy\n--help",
    "version\n-h",
};

static void damaged_command_lines(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    static bytes good;
    good.size = 0;
    put(&good, lines[i], strlen(lines[i]));
    mutate_and_run(&good, 1000, 200 + i);
  }
}

/* So that the mutations begin at something that is read. */
static void the_whole_lines_are_read(void **state) {
  (void)state;
  for (size_t i = 0; i < 8; i++) {
    static char text[1024];
    char *arguments[MAX_ARGUMENTS] = {0};
    int count = 0;
    cli_options options;
    snprintf(text, sizeof text, "%s", lines[i]);
    for (char *word = strtok(text, "\n"); word; word = strtok(NULL, "\n")) arguments[count++] = word;
    MIX_SCOPE {
      assert_int_equal(cli_parse(arguments[0], command_of(arguments[0]), count, arguments, &options), CLI_OK);
      options.threads = 0;
      assert_int_equal(cli_setup(&options), CLI_OK);
      if (!compile(&options)) fail_msg("%s: %s", lines[i], mix_error_message());
    }
    restore_defaults();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_whole_lines_are_read),
                                     cmocka_unit_test(damaged_command_lines)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
