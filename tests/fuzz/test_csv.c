/* The target of tables on damaged ones. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "fuzz/mutate.h"

#include "fuzz/fuzz_csv.c"

static void damaged_tables(void **state) {
  (void)state;
  static bytes table, columns;
  static const char text[] = "n,word,\"a \"\"name\"\"\",y\r\n1,red,2.5,0\r\n-2e3,\"gr\xc3\xbcn, hell\",NA,1\n"
                             "\n 7 ,\"two\nlines\",,0\n0x1p4,red,4,1\n",
                    json[] = "{\"features\": [{\"name\": \"n\", \"mean\": 1.5}, {\"name\": \"w\", \"words\": "
                             "[\"a\", \"b\"]}], \"label\": {\"name\": \"y\", \"words\": [\"0\", \"1\"]}, "
                             "\"missing\": \"mean\", \"unknown\": \"index\"}";
  put(&table, text, sizeof text - 1);
  put(&columns, json, sizeof json - 1);
  mutate_and_run(&table, 4000, 1);
  mutate_and_run(&columns, 2000, 2);
  misplaced_words(&columns, 1000, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_tables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
