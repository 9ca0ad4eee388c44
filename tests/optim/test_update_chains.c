/* The updates that optimizers emit and the chains that the CPU has for them (backend/cpu/simd/
 * fused_chains.inc.h) are spelled apart. Here each optimizer with a chain, in each generation, with and
 * without loss scaling, with every option that leaves its arithmetic alone and with gradients that products
 * compute in the same plan, compiles to a plan that uses one chain for each variable. */
#include "../compile/support.h"

#include "backend/cpu/program/prepared_program.h"
#include "compile/compile.h"
#include "nn/policy/semantics.h"
#include "support/captured_graph.h"
#include <mixtape/mixtape.h>

enum { ROWS = 40, COLUMNS = 25, EXAMPLES = 8, VARIABLES = 2 };

static int chains_of(const mix_plan *plan) {
  int count = 0;
  for (int t = 0; t < plan->step_count; t++) {
    const mix_program *program = plan->steps[t].program;
    const bool tiles = program && !mix_tile_unsupported_reason(program);
    mix_tile_program *prepared = tiles ? mix_tile_prepare(program) : NULL;
    for (int i = 0; prepared && i < prepared->body_count; i++) count += prepared->body[i].chain != NULL;
    mix_free(prepared);
  }
  return count;
}

static mix_tensor *gradient(graph *g, bool product) {
  if (!product) return argument(g, MIX_FLOAT32, MIX_SHAPE(ROWS, COLUMNS));
  return mix_matmul(argument(g, MIX_FLOAT32, MIX_SHAPE(EXAMPLES, ROWS)),
                    argument(g, MIX_FLOAT32, MIX_SHAPE(EXAMPLES, COLUMNS)), true, false);
}

/* Captures one update of two variables and returns the chains of its plan. */
static int chains_in_update(const char *text, const char *generation, bool scaled, bool product) {
  mix_set_semantics(generation);
  mix_optimizer *optimizer = mix_optimizer_from_text(text, NULL);
  if (scaled && strcmp(generation, "experimental"))
    optimizer = mix_loss_scale_optimizer(optimizer);
  else if (scaled)
    optimizer = mix_loss_scale_optimizer(optimizer, .loss_scale = mix_dynamic_loss_scale());
  mix_variable *v[VARIABLES] = {variable("a", mix_fill(MIX_SHAPE(ROWS, COLUMNS), 1, MIX_FLOAT32)),
                                variable("b", mix_fill(MIX_SHAPE(ROWS, COLUMNS), 2, MIX_FLOAT32))};
  mix_list *variables = mix_list_of(v[0], v[1]);
  mix_optimizer_build(optimizer, variables);
  no_error();
  graph g;
  begin_graph(&g);
  mix_list *gradients = mix_list_new(0, NULL);
  for (int i = 0; i < VARIABLES; i++) mix_list_append(gradients, gradient(&g, product));
  if (scaled)
    mix_optimizer_apply(optimizer, gradients, variables);
  else
    mix_optimizer_apply_gradients(optimizer, gradients, variables);
  mix_ir *ir = end_graph(&g, mix_list_new(0, NULL));
  mix_compiled *compiled = mix_compile(ir, NULL, false);
  no_error();
  const int chains = chains_of(&compiled->plan);
  mix_compiled_free(compiled);
  mix_set_semantics("tf_keras");
  return chains;
}

/* Options that act before or after the update leave it its chain. In the experimental generation RMSprop
 * without momentum divides by root plus epsilon, which has no chain; it knows no weight decay and no
 * averages, and its wrapper refuses clipping. */
static void every_update_with_a_chain_uses_it(void **state) {
  (void)state;
  int failures = 0;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  static const struct {
    const char *optimizer;
    bool except_experimental;
  } rows[] = {{"sgd:momentum=0.9", false},
              {"sgd:momentum=0.5,learning_rate=0.1", false},
              {"sgd:momentum=0.9,clipvalue=0.5", false},
              {"sgd:momentum=0.9,weight_decay=0.01", true},
              {"rmsprop", true},
              {"rmsprop:rho=0.8,epsilon=1e-5", true},
              {"rmsprop:clipnorm=1", true},
              {"rmsprop:use_ema=true", true},
              {"rmsprop:momentum=0.9", false},
              {"rmsprop:momentum=0.9,clipvalue=0.5", false},
              {"adam", false},
              {"adam:beta_1=0.8,beta_2=0.9,epsilon=1e-3", false},
              {"adam:global_clipnorm=1", false},
              {"adam:clipvalue=0.5", false},
              {"adam:weight_decay=0.01", true},
              {"adam:use_ema=true", true},
              {"adamw", true}};
  for (int g = 0; g < COUNT(generations); g++)
    for (int r = 0; r < COUNT(rows); r++)
      for (int kind = 0; kind < 4; kind++) {
        const bool scaled = kind & 1, product = kind & 2;
        const bool experimental = !strcmp(generations[g], "experimental");
        if (experimental && (rows[r].except_experimental || (scaled && strstr(rows[r].optimizer, "clip"))))
          continue;
        const int chains = chains_in_update(rows[r].optimizer, generations[g], scaled, product);
        if (chains != VARIABLES)
          print_error("%s in %s%s%s: %d chains for %d variables\n", rows[r].optimizer, generations[g],
                      scaled ? ", scaled" : "", product ? ", of products" : "", chains, VARIABLES);
        failures += chains != VARIABLES;
      }
  assert_int_equal(failures, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_update_with_a_chain_uses_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
