/* Numbers in texts, the same whatever locale the program has set (setlocale: some write 0,5). */
#ifndef MIX_BASE_NUMBER_H
#define MIX_BASE_NUMBER_H

#include <stddef.h>

/* As strtod. */
double mix_number_read(const char *text, char **end);
/* x as "%.*g" has it, or as that of another form, e or f. */
void mix_number_write(char *text, size_t size, char form, int digits, double x);
/* The shortest decimal that reads back as the double x; "nan", "inf", "-inf". */
void mix_number_write_shortest(char *text, size_t size, double x);

#endif
