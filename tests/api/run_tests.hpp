// Runs the tests of a program: each gives true, and throws nothing.
#ifndef TESTS_API_RUN_TESTS_HPP
#define TESTS_API_RUN_TESTS_HPP

#include <cstdio>
#include <initializer_list>
#include <mixtape.hpp>

struct named_test {
  const char *name;
  bool (*run)();
};

// How many failed.
inline int run_tests(std::initializer_list<named_test> tests) {
  int failed = 0;
  for (const named_test &test : tests) {
    bool passed = false;
    try {
      passed = test.run();
    } catch (const std::exception &e) { std::printf("%s\n", e.what()); }
    if (!passed) std::printf("%s failed\n", test.name), failed++;
  }
  mix_shutdown();
  return failed;
}

#endif
