/* A test that cannot run here says why. scripts/counting shows the line. */
#ifndef TESTS_SUPPORT_SKIP_H
#define TESTS_SUPPORT_SKIP_H

#define SKIP(...) (print_message("skipped because "), print_message(__VA_ARGS__), print_message("\n"), skip())

#endif
