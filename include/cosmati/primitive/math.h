// The functions of the C library that kernels call by themselves, in the precision of their argument.
#pragma once
#include "cosmati/arch/config.h"

namespace cosmati {

#if defined(__CUDACC__)
COSMATI_DEVICE float exponential(float x) { return expf(x); }
COSMATI_DEVICE double exponential(double x) { return exp(x); }
COSMATI_DEVICE float logarithm(float x) { return logf(x); }
COSMATI_DEVICE double logarithm(double x) { return log(x); }
COSMATI_DEVICE float power(float x, float y) { return powf(x, y); }
COSMATI_DEVICE double power(double x, double y) { return pow(x, y); }
#else
COSMATI_DEVICE float exponential(float x) { return __builtin_expf(x); }
COSMATI_DEVICE double exponential(double x) { return __builtin_exp(x); }
COSMATI_DEVICE float logarithm(float x) { return __builtin_logf(x); }
COSMATI_DEVICE double logarithm(double x) { return __builtin_log(x); }
COSMATI_DEVICE float power(float x, float y) { return __builtin_powf(x, y); }
COSMATI_DEVICE double power(double x, double y) { return __builtin_pow(x, y); }
#endif

}  // namespace cosmati
