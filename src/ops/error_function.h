/* The error function and its complement in double: within 2 ulp and 4 ulp, the same bits on every
 * architecture. */
#pragma once

double mix_erf_of(double x);
double mix_erfc_of(double x);
