/* The custom loop under each policy and the graph rewrite learn real MNIST as `fit` does (test_mnist_slow.c).
 */
#include "cli/mnist.h"

static void the_graph_rewrite_learns_mnist(void **state) {
  (void)state;
  if (!at_hand()) SKIP("MIXTAPE_DATA_DIR is not set");
  static const char *const dtypes[] = {"float16", "bfloat16"};
  double mean[3] = {mean_accuracy((const char *[]){NULL}, "float32")};
  for (int i = 0; i < 2; i++)
    mean[i + 1] = mean_accuracy((const char *[]){"--graph-rewrite", dtypes[i], NULL}, dtypes[i]);
  assert_goal(mean);
}

static void the_custom_loop_learns_mnist_under_every_policy(void **state) {
  (void)state, check_policies("custom");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_graph_rewrite_learns_mnist),
                                     cmocka_unit_test(the_custom_loop_learns_mnist_under_every_policy)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
